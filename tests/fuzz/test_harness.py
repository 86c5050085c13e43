"""The harness finds what it is for: a traceback, an abort and a hang that were planted, made small."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.frame.tree import ROOT
from tests.fuzz.campaign import Finding, distilled, minimized, save
from tests.fuzz.mutate import mutate, shortened
from tests.fuzz.planted import TARGETS as PLANTED
from tests.fuzz.worker import Recorder

KINDS = {"raises": "traceback", "aborts": "abort", "hangs": "hang"}


def test_an_input_is_made_short_and_still_does_the_same() -> None:
    assert shortened(b"a lot of words and one key: x", lambda data: b"key" in data, 200) == b"key"


def test_a_finding_that_does_not_come_again_keeps_its_input() -> None:
    finding = Finding("abort", "signal 6", b"0123456789")

    assert minimized(finding, lambda data: "").data == finding.data


def test_a_named_file_keeps_its_name_and_a_document_stays_one() -> None:
    dice, data = Random(1), b'ledger.json\n{"a": [1, 2, {"b": "x"}], "c": null}'
    found = [mutate(data, dice, named=True) for _ in range(300)]

    assert all(one.startswith(b"ledger.json\n") for one in found)
    assert len(set(found)) > 200
    assert sum(_is_json(one.partition(b"\n")[2]) for one in found) > 150


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True


def test_each_way_to_escape_is_recorded_once_with_a_short_input(tmp_path: Path) -> None:
    def attempt(data: bytes) -> BaseException | None:
        return KeyError("x") if b"k" in data else ValueError("y") if b"v" in data else None

    (tmp_path / "found").mkdir()
    record = Recorder(tmp_path, _raised(attempt))
    for data in (b"fine", b"a key", b"more keys", b"of value"):
        record(data)

    found = [json.loads(p.read_text()) for p in (tmp_path / "found").glob("*.json")]
    assert sorted(bytes.fromhex(one["input"]) for one in found) == [b"k", b"v"]


def _raised(attempt):  # type: ignore[no-untyped-def]
    """What was returned, as something that was raised."""

    def call(data: bytes) -> BaseException | None:
        error = attempt(data)
        if error is None:
            return None
        try:
            raise error
        except (KeyError, ValueError) as caught:
            return caught

    return call


def test_a_finding_is_saved_beside_what_it_did(tmp_path: Path) -> None:
    path = save(Finding("hang", "exit 1", b"data"), tmp_path / "csv")

    assert path.read_bytes() == b"data"
    assert path.with_suffix(".txt").read_text() == "hang: exit 1\n"


@pytest.mark.slow
def test_what_reaches_further_is_distilled_to_its_shortest_inputs(tmp_path: Path) -> None:
    rule = b'{"call": "rule", "with": {"require": "age <= 40 <= 3"}}'
    for name, data in {"a": rule, "b": rule + b" ", "c": b"{}", "d": b"x" * 99}.items():
        (tmp_path / name).write_bytes(data)

    assert distilled("arguments", tmp_path, 1000) == [rule]
    assert distilled("arguments", tmp_path, 10) == []


@pytest.mark.slow
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_of_each_kind_is_found_within_two_minutes(bug: str, tmp_path: Path) -> None:
    """Release fields that nobody checks; a quote that aborts; a text that is read for ever."""
    command = [
        sys.executable, "-m", "tests.fuzz", "--planted", bug, "--minutes", "2", "--engine", "plain",
        "--out", str(tmp_path),
    ]  # fmt: skip
    env = os.environ | {"GIBBOUS_FUZZ_HANG": "5"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)

    assert done.returncode == 1, done.stderr
    # Without its check a document may raise in more than one line before the worker is stopped.
    assert {p.name.split("-")[0] for p in (tmp_path / PLANTED[bug]).glob("*.txt")} == {KINDS[bug]}
