"""The command line: `gibbous VERB ...`; the same functions as in Python, one flag a keyword."""

from gibbous.cli.entry import main

__all__ = ["main"]
