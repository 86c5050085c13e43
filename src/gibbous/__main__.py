"""`python -m gibbous`: the command line, without the console script."""

from gibbous.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
