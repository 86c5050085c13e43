"""The errors users see: what is wrong, what is allowed, what to do next; never a cell value.

Each class has an exit code (the first digits of its printed code) and each instance a short name:

    GibbousError
    +-- UsageError           2   flags, configuration, schema files
    |   +-- UnknownKeyword   2   a function was called with a keyword that it does not have
    +-- InputRejected        3   the input file is not what it says it is
    +-- SchemaMismatch       4   the data do not fit the declared schema
    +-- PrivacyRefused       5   a privacy parameter or a claim is refused
    |   +-- ParameterError   5   a mechanism's parameter is outside its range
    +-- BudgetExhausted      6   the data set's cap does not cover the request
    +-- LedgerUnusable       7   the ledger is missing, damaged or not writable
    +-- ModelRejected        8   a release or model folder is damaged or not one of ours
    +-- OutputNotWritten     9   the output exists, or cannot be written
    +-- ResourceLimit       10   memory, disk, size or time
    +-- EngineFailure       11   an engine or a needed library is missing or failed
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator
from contextvars import ContextVar

UNCHARGED = "Nothing was released; no budget was spent."
MAY_BE_SPENT = "Nothing was released. A budget that this run had reserved stays spent."


_flags: ContextVar[bool] = ContextVar("flags", default=False)
_FLAG = re.compile(r"(?<![\w'\"=-])--([a-z][a-z-]*)(?: \(\w+=(?:True)?\)| (?=[A-Z]{2}|\d))?")
_SWITCHES = {
    "i-understand": "understand=True",
    "passphrase-file": "gibbous.SigningKey",
    "sep": "options=ReadOptions(sep=...)",
    "encoding": "options=ReadOptions(encoding=...)",
    "amounts": "options=ReadOptions(amounts=True)",
    "on-bad-line": "options=ReadOptions(on_bad_line=...)",
} | {
    name: f"{name.replace('-', '_')}=True"
    for name in ("accept-inferred", "overwrite", "strict", "csv-raw")
}


@contextlib.contextmanager
def speaking_flags() -> Iterator[None]:
    """Errors that are made meanwhile name flags, as they are written; else the arguments of Python."""
    token = _flags.set(True)
    try:
        yield
    finally:
        _flags.reset(token)


def spoken(text: str) -> str:
    """A sentence that names flags, in the words of whoever is spoken to: --ledger, or ledger=.

    Quoted names, `commands` and sentences on the command line stay as they are.
    """
    if _flags.get() or "--" not in text or "command line" in text:
        return text
    parts = text.split("`")
    parts[::2] = (
        _FLAG.sub(lambda f: _SWITCHES.get(f[1], f[1].replace("-", "_") + "="), part)
        for part in parts[::2]
    )
    return "`".join(parts)


class GibbousError(Exception):
    """Base of all errors that gibbous raises on purpose.

    Args:
        name: short upper-case name, for example ``DUPCOL``; printed as ``GB3-DUPCOL``.
        wrong: what is wrong, and where; no cell value.
        allowed: what is allowed.
        fix: what to do next.
        state: what was released and spent.
    """

    exit_code = 1

    def __init__(
        self, name: str, wrong: str, allowed: str, fix: str, *, state: str = UNCHARGED
    ) -> None:
        self.name, self.state = name, state
        self.wrong, self.allowed, self.fix = spoken(wrong), spoken(allowed), spoken(fix)
        super().__init__(f"{self.wrong} {self.allowed} {self.fix} {state}".strip())

    def restate(self, state: str) -> None:
        """Say something else about what was released and spent."""
        self.state = state
        self.args = (f"{self.wrong} {self.allowed} {self.fix} {state}".strip(),)

    @property
    def code(self) -> str:
        """The printed code, for example ``GB3-DUPCOL``."""
        return f"GB{self.exit_code}-{self.name}"

    def render(self) -> str:
        """The one line that the command line prints."""
        return f"error[{self.code}]: {self}"

    def __reduce__(self) -> tuple[object, ...]:
        words = (self.name, self.wrong, self.allowed, self.fix)
        return (functools.partial(type(self), state=self.state), words)


class UsageError(GibbousError):
    """A flag, a configuration or a schema file is wrong."""

    exit_code = 2


class UnknownKeyword(UsageError, TypeError):
    """A function was called with a keyword that it does not have, or without one that it needs."""


class InputRejected(GibbousError):
    """The input file is not what it says it is."""

    exit_code = 3


class SchemaMismatch(GibbousError):
    """The data do not fit the declared schema."""

    exit_code = 4


class PrivacyRefused(GibbousError):
    """A privacy parameter or a claim is refused."""

    exit_code = 5


class ParameterError(PrivacyRefused, ValueError):
    """A mechanism's parameter is outside its range."""


class BudgetExhausted(GibbousError):
    """The data set's cap does not cover what was asked."""

    exit_code = 6


class LedgerUnusable(GibbousError):
    """The ledger is missing, damaged, newer, or not writable."""

    exit_code = 7


class ModelRejected(GibbousError):
    """A release or model folder is damaged, or not one of ours."""

    exit_code = 8


class OutputNotWritten(GibbousError):
    """The output exists already, or cannot be written."""

    exit_code = 9


class ResourceLimit(GibbousError):
    """Memory, disk, size or time would be exceeded."""

    exit_code = 10


class EngineFailure(GibbousError):
    """An engine, or a library it needs, is missing or failed."""

    exit_code = 11
