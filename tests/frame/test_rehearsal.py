"""A privacy fault, rehearsed: docs/concepts/privacy-fault.md with a planted one, from release to refusal."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import gibbous as gb
from gibbous.contract.saboteurs import saboteurs
from gibbous.core.errors import ModelRejected
from tests.frame.tree import DOCS

SCHEMA = gb.Schema((gb.Column("ill", "binary", levels=("no", "yes")),), gb.Unit("row"))
FRAME = pl.DataFrame({"ill": ["no", "yes"] * 20})
METHOD = gb.Laplace(epsilon=1)


def _halved() -> object:
    (one,) = (s for s in saboteurs() if s.name == "half the noise")
    return one.apply()


def _release(folder: Path) -> Path:
    gb.synthesize(FRAME, SCHEMA, METHOD, rows=20, out=folder, ledger=gb.Ledger.ephemeral())
    return folder


def test_1_files_of_a_broken_build_agree_with_one_another(tmp_path: Path) -> None:
    with _halved():  # type: ignore[attr-defined]
        folder = _release(tmp_path / "affected")

    gb.verify(folder)

    assert gb.load(folder).receipt["total"]["epsilon"] in (1, "1")


@pytest.mark.slow
@pytest.mark.statistical
def test_2_an_audit_refutes_the_broken_build_and_not_the_sound_one() -> None:
    """False alarms at the level of the audit, 1e-6 here; power is that of its own tests."""
    sound = gb.audit(METHOD, seconds=10)
    with _halved():  # type: ignore[attr-defined]
        broken = gb.audit(METHOD, seconds=10)

    assert broken.verdict == "VIOLATION"
    assert sound.verdict != "VIOLATION"


def test_3_the_manifest_names_version_and_method(tmp_path: Path) -> None:
    folder = _release(tmp_path / "release")

    manifest = json.loads((folder / "manifest.json").read_text())
    receipt = json.loads((folder / "ledger.json").read_text())

    assert manifest["gibbous"] == gb.__version__
    assert "laplace" in json.dumps(receipt)


def test_4_a_receipt_that_states_half_its_price_is_refused(tmp_path: Path) -> None:
    folder = _release(tmp_path / "release")
    path = folder / "ledger.json"
    text = path.read_text()
    path.write_text(
        text.replace('"epsilon": "1"', '"epsilon": "1/2"').replace(
            '"epsilon": 1,', '"epsilon": 0.5,'
        )
    )
    assert path.read_text() != text

    with pytest.raises(ModelRejected):
        gb.verify(folder)


def test_the_page_of_the_steps_names_this_rehearsal() -> None:
    page = (DOCS / "concepts" / "privacy-fault.md").read_text()

    assert "tests/frame/test_rehearsal.py" in page
