"""Who stands behind a release: issuer, contact, date and license, as its issuer gives them; public text."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields

from gibbous.core.errors import UsageError

LONGEST = 200  # characters of one value


@dataclass(frozen=True, slots=True)
class Imprint:
    """What a release says about its issuer. Nobody checks it; it is published as it was given.

    Attributes:
        issuer: person or institution that publishes the release.
        contact: where questions go.
        date: of publication, YYYY-MM-DD.
        license: under which the synthetic data may be used.
    """

    issuer: str = ""
    contact: str = ""
    date: str = ""
    license: str = ""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            printable = isinstance(value, str) and value.isprintable()
            if not printable or len(value) > LONGEST or value != value.strip():
                raise UsageError(
                    "IMPRINT",
                    f"The {name} of the release cannot be printed as it is.",
                    f"It is one line of at most {LONGEST} printable characters, without spaces around it.",
                    f"Correct --{name}, or {name} in [output].",
                )
        if self.date and not _is_day(self.date):
            raise UsageError(
                "IMPRINT",
                "The date of the release is not a day.",
                "A date is written YYYY-MM-DD, for example 2026-05-01.",
                "Correct --date, or date in [output].",
            )

    def lines(self) -> Iterator[tuple[str, str]]:
        """What was given, with its label."""
        labels = {"issuer": "Issued by", "contact": "Contact", "date": "Date", "license": "License"}
        yield from ((labels[name], value) for name, value in asdict(self).items() if value)

    def to_json(self) -> dict[str, str]:
        """What was given."""
        return {name: value for name, value in asdict(self).items() if value}

    @staticmethod
    def from_json(data: Mapping[str, object]) -> Imprint:
        """Read what `to_json` wrote.

        Raises:
            ValueError: it is something else.
        """
        if not isinstance(data, Mapping) or set(data) - {f.name for f in fields(Imprint)}:
            raise ValueError("not an imprint")
        try:
            return Imprint(**data)  # type: ignore[arg-type]
        except UsageError:
            raise ValueError("not an imprint") from None


NONE_GIVEN = Imprint()


def _is_day(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
