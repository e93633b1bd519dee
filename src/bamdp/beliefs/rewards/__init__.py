"""Priors over rewards and their posteriors: known ones, and those that are learned."""
