"""The laboratory: studies as data, runs that can be stopped and resumed, and what comes of them."""
