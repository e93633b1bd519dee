"""Studies defined as data, executed in resumable runs, and summarised in tables, figures and reports."""
