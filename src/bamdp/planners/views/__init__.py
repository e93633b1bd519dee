"""Views of the search behind one decision, built on request (``agent.plan(state, tree=True)``)."""
