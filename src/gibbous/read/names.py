"""Column names of an input: present, unique, and not confusable with each other."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from gibbous.core.errors import InputRejected, ResourceLimit


def check_names(names: Sequence[str], max_columns: int) -> None:
    """Refuse blank, double and nearly double names; by place, since a name may be a value of a record.

    Args:
        names: in the order of the input.
        max_columns: most columns.
    Raises:
        ResourceLimit: too many columns.
        InputRejected: a name is blank, occurs twice, or differs from another one only by case, by
            Unicode form (NFC) or by outer blanks.
    """
    if len(names) > max_columns:
        raise ResourceLimit(
            "TOOMANYCOLUMNS",
            f"The input has {len(names):,} columns.",
            f"At most {max_columns:,}.",
            "Keep the columns that are needed, or raise max_columns.",
        )
    seen: dict[str, int] = {}
    folded: dict[str, int] = {}
    for place, name in enumerate(names):
        if not name.strip():
            raise _rejected(
                "BLANKNAME",
                f"Column {place + 1} has no name",
                "Name it in the header line, or leave it out (pandas: to_csv(index=False)).",
            )
        if name in seen:
            places = [i + 1 for i, other in enumerate(names) if other == name]
            raise _rejected(
                "DUPCOL",
                f"One column name occurs {len(places)} times (positions "
                f"{', '.join(map(str, places[:10]))})",
                "Rename one.",
            )
        seen[name] = place
        same = folded.setdefault(unicodedata.normalize("NFC", name.strip()).casefold(), place)
        if same != place:
            raise _rejected(
                "NEARNAMES",
                f"Two column names (positions {same + 1}, {place + 1}) differ only by case, Unicode form "
                "or outer blanks",
                "Rename one.",
            )


def _rejected(name: str, wrong: str, fix: str) -> InputRejected:
    return InputRejected(name, f"{wrong}.", "Names are unique and not blank.", fix)
