"""What every data set has spent, and the most it may: a file that only grows.

`ledger` is what a caller sees; `accounts` adds up and holds caps, `datasets` says whose account is
charged, `entries` and `chain` are the lines and their hashes, `store` and `files` keep them on disk.
"""

from gibbous.core.errors import UNCHARGED
from gibbous.privacy.ledger.errors import LedgerWarning
from gibbous.privacy.ledger.ledger import Ledger
from gibbous.privacy.ledger.reservation import Hold

__all__ = ["UNCHARGED", "Hold", "Ledger", "LedgerWarning"]
