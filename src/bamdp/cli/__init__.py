"""The command line: parses, calls, prints. What it does is done elsewhere."""

from bamdp.cli.main import main

__all__ = ["main"]
