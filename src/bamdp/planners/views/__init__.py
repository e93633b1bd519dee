"""Trees to look at: what a search did for one decision, made on request (``agent.plan(state, tree=True)``)."""
