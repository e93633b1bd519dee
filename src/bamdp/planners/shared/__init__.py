"""Components shared by several planners: model buffers, history trees, leaf values, bonuses."""
