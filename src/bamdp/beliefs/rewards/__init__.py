"""Reward models and their posteriors, for known and for learned rewards."""
