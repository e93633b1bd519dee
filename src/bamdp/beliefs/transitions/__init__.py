"""Priors over transitions and their posteriors: independent rows (Dirichlet, sparse), sets of models, mixtures."""
