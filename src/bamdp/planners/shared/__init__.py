"""What several planners share: room for models, trees of histories, models merged into one, bonuses."""
