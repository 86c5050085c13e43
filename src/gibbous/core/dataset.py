"""The name by which a ledger knows records, and by what else it would know their source again."""

from __future__ import annotations

from collections.abc import Iterable


class DataSet(bytes):
    """A keyed fingerprint of records, 32 bytes, which nothing that an analyst sets can change.

    What stands beside it decides nothing about whose account is charged: it only shows when other
    records come from where a capped account's came from. Without the ledger's key all of it says
    nothing.

    Attributes:
        columns: keyed digests of the names of the columns; empty if they are not known.
        place: keyed digest of the path or address; empty for a frame.
        stamp: of an unchanged file (`privacy.ledger.datasets.file_stamp`); empty for anything else.
    """

    columns: frozenset[str]
    place: str
    stamp: str

    def __new__(
        cls, name: bytes, columns: Iterable[str] = (), place: str = "", stamp: str = ""
    ) -> DataSet:
        """A name, and what is known beside it."""
        dataset = super().__new__(cls, name)
        dataset.columns, dataset.place, dataset.stamp = frozenset(columns), place, stamp
        return dataset

    @staticmethod
    def of(name: bytes) -> DataSet:
        """A fingerprint as it is, or with nothing known beside it."""
        return name if isinstance(name, DataSet) else DataSet(name)

    def read_from(self, place: str, stamp: str) -> DataSet:
        """The same records, with where they were read."""
        return DataSet(self, self.columns, place, stamp)

    def under(self, account: bytes) -> DataSet:
        """The name of its account in place of its own."""
        return DataSet(account, self.columns, self.place, self.stamp)
