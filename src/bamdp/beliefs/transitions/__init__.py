"""Priors over transitions and their posteriors."""
