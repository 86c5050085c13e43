"""Every exception becomes one three-part line and the right exit code, and quotes no value."""

from __future__ import annotations

import errno
import re

import pytest

from gibbous.cli import faults
from gibbous.core import errors

MARKER = "Zaphod-SECRET-7"
CLASSES = [
    (errors.UsageError, 2),
    (errors.InputRejected, 3),
    (errors.SchemaMismatch, 4),
    (errors.PrivacyRefused, 5),
    (errors.ParameterError, 5),
    (errors.BudgetExhausted, 6),
    (errors.LedgerUnusable, 7),
    (errors.ModelRejected, 8),
    (errors.OutputNotWritten, 9),
    (errors.ResourceLimit, 10),
    (errors.EngineFailure, 11),
]
FOREIGN = [
    (ValueError(MARKER), 1),
    (KeyError(MARKER), 1),
    (UnicodeDecodeError("utf-8", MARKER.encode(), 0, 1, MARKER), 1),
    (RuntimeError(f"cannot convert '{MARKER}'"), 1),
    (MemoryError(MARKER), 10),
    (OSError(errno.ENOSPC, MARKER), 10),
    (PermissionError(errno.EACCES, MARKER), 9),
    (OSError(errno.EROFS, MARKER), 9),
    (OSError(errno.EIO, MARKER), 9),
    (ModuleNotFoundError(MARKER, name="statsmodels"), 11),
    (RecursionError(MARKER), 1),
]


@pytest.mark.parametrize(("kind", "code"), CLASSES)
def test_each_class_of_error_has_its_exit_code_and_form(
    kind: type[errors.GibbousError], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = faults.report(kind("NAME", "Wrong.", "Allowed.", "Fix."), [])

    line = capsys.readouterr().err
    assert found == code
    assert line == (
        f"error[GB{code}-NAME]: Wrong. Allowed. Fix. Nothing was released; no budget was spent.\n"
    )


@pytest.mark.parametrize(("error", "code"), FOREIGN, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("debug", [False, True])
def test_m1_m10_messages_of_other_libraries_are_never_quoted(
    error: Exception, code: int, debug: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = MARKER  # a local with a value, as a traceback with locals would show it

    try:
        try:
            raise LookupError(cell)
        except LookupError:
            raise error  # noqa: B904 - a chain, as libraries leave it
    except Exception as caught:  # noqa: BLE001 - as the last net does
        found = faults.report(caught, [], debug=debug)

    text = capsys.readouterr()
    assert found == code
    assert MARKER not in text.err + text.out
    assert re.match(rf"error\[GB{code}-[A-Z]+\]: ", text.err)
    assert ("test_faults.py" in text.err) == debug


def test_the_same_bug_has_the_same_id_and_another_bug_another() -> None:
    def one(value: str) -> str:
        try:
            int(value)
        except ValueError as error:
            return faults.error_id(error)
        raise AssertionError

    def other() -> str:
        try:
            int("y")
        except ValueError as error:
            return faults.error_id(error)
        raise AssertionError

    assert one("x") == one("z")
    assert one("x") != other()


def test_names_with_control_characters_are_shown_not_obeyed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    faults.report(errors.UsageError("NAME", "column 'a\x1b[2Jb\nc\u202e'.", "A.", "F."), [])

    line = capsys.readouterr().err
    assert "\\x1b[2Jb\\nc\\u202e" in line
    assert line.count("\n") == 1
