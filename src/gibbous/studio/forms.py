"""The forms that a browser sends: text alone, every name once, numbers that every reader agrees on."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from urllib.parse import parse_qsl

from gibbous.core.errors import GibbousError, ParameterError
from gibbous.studio.words import refusal, words

FIELDS = 5000
CHARACTERS = 200_000


class Form(dict[str, str]):
    """Names and texts of a form; `many` holds those that may come more than once ("keys[]")."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        super().__init__(given or {})
        self.many: dict[str, list[str]] = {}

    def text(self, name: str, most: int = 2000) -> str:
        """A text without blanks around it; UsageError if it is too long, or holds a NUL."""
        found = self.get(name, "").strip()
        if len(found) > most or "\0" in found:
            raise refusal("TEXT", name, most)
        return found

    def number(self, name: str, usual: str = "", *, zero: bool = False) -> str:
        """A positive decimal number, or 0 where `zero` is taken, too, as it was written.

        Raises:
            ParameterError: it is none, not finite, or not above 0.
        """
        typed = self.text(name, 40) or usual
        if not _is_number(typed, zero):
            raise refusal(
                f"NUMBER_{'orzero' if zero else 'one'}",
                _called(name),
                typed[:40],
                "1e-9" if name == "delta" else "1",
                kind=ParameterError,
            )
        return typed

    def numbers(self, name: str) -> list[str]:
        """Positive decimal numbers between blanks, each as it was written, each once.

        Raises:
            ParameterError: one of them is none, not finite, or not above 0.
        """
        typed = [word.strip(",;") for word in self.text(name, 80).split()]
        for word in typed:
            if not _is_number(word, zero=False):
                raise refusal("NUMBER_several", _called(name), word[:40], kind=ParameterError)
        return list({float(word): word for word in typed}.values())

    def whole(self, name: str, least: int = 1, usual: int | None = None) -> int | None:
        """A whole number; `usual` where nothing was written; ParameterError if it is none, or too small."""
        typed = self.text(name, 20).replace(",", "")
        if not typed:
            return usual
        if not typed.isascii() or not typed.isdecimal() or int(typed) < least:
            raise refusal(
                "NUMBER_whole", _called(name), typed, least, max(least, 1), kind=ParameterError
            )
        return int(typed)


def _called(name: str) -> str:
    return str(words()["fields"].get(name, name))


def _is_number(words: str, zero: bool) -> bool:
    try:
        value = Decimal(words)
        return value.is_finite() and (0 < float(value) < float("inf") or (zero and value == 0))
    except (InvalidOperation, OverflowError):
        return False


def parsed(body: bytes) -> Form:
    """Read the body of a form; UsageError if it cannot be read, or has a name twice."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=FIELDS,
        )
    except ValueError:
        raise _unreadable() from None
    form = Form()
    for name, text in pairs:
        if len(text) > CHARACTERS:
            raise _unreadable()
        if name.endswith("[]"):
            form.many.setdefault(name[:-2], []).append(text)
        elif name in form:
            raise _unreadable()
        else:
            form[name] = text
    return form


def _unreadable() -> GibbousError:
    return refusal("FORM")
