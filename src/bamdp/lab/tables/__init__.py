"""Tables of a study's results: their form and renderings, those of the evaluation, and those of tuning."""
