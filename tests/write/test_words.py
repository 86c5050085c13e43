"""What METHODS.md and the public report say of where rows come from, and of what pays."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import gibbous as gb
from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs
from gibbous.reporting import public_report as public_summary
from gibbous.write.glossary import origin

SCHEMA = gb.Schema(
    (
        gb.Column("sex", "binary", levels=("f", "m")),
        gb.Column("age", "numeric", edges=(0, 40, 110), integer=True),
    )
)
PEOPLE = pl.DataFrame({"sex": ["f", "m"] * 40, "age": list(range(80))})


@pytest.mark.parametrize(
    ("method", "words", "absent"),
    [
        (gb.Modips(epsilon=1), "drawn from the noisy counts and sums and", "fitted to them"),
        (gb.PerSet(gb.Modips(epsilon=1)), "drawn from the noisy counts and sums and", "fitted to them"),
        (gb.Laplace(epsilon=1), "drawn from the noisy counts and from nothing", "and sums"),
        (gb.Pegs(epsilon=0.1), "Each row has its price;", "noisy counts"),
        (gb.BlockPegs(epsilon=0.1), "Each block has its price;", "Each row has its price"),
        (gb.Cdf(epsilon=1), "The price is that of all these rows together", "Each row has its price"),
        (gb.MultipleSynthesis(), "or from a model fitted to them. Neither", "price"),
    ],
    ids=["modips", "modips per set", "laplace", "pegs", "block_pegs", "cdf", "multiple_synthesis"],
)  # fmt: skip
def test_the_board_and_the_report_read_what_rows_were_drawn_from(
    method: object, words: str, absent: str, tmp_path: Path
) -> None:
    ledger = gb.Ledger.ephemeral()
    release = gb.synthesize(
        PEOPLE, SCHEMA, method, rows=9, sets=2, out=tmp_path / "out", ledger=ledger
    )

    text = (tmp_path / "out" / "METHODS.md").read_text()
    done = text.partition("## What was done")[2].partition("\n## ")[0]
    summary = dict(public_summary.summary(release))["What was released."]

    for said in (done, summary):
        assert words in said
        assert absent not in said


def test_a_method_of_the_project_is_not_made_after_it() -> None:
    assert origin(AdaptiveGibbs.about.paper).startswith("of this project, after AIM")
    assert origin("onthemap, alg. 1").startswith("after onthemap, alg. 1 (Machanavajjhala")


def test_B5_page_and_report_say_that_delta_grows_with_a_group(tmp_path: Path) -> None:
    methods = (
        gb.NoisyPegs(epsilon=1, delta=1e-6),
        gb.Sba(epsilon=1, delta=1e-6),
        gb.Laplace(epsilon=1),
    )
    said = []
    for place, method in enumerate(methods):
        out = tmp_path / str(place)
        made = gb.synthesize(PEOPLE, SCHEMA, method, rows=9, out=out, ledger=gb.Ledger.ephemeral())
        page = (out / "METHODS.md").read_text()
        report = " ".join(public_summary.unprotected(made))
        said.append(page + report + dict(public_summary.summary(made))["In plain words."])

    noise, threshold, pure = said
    assert noise.count("2 units have epsilon = 2, delta = 3.7183e-06; 5 units") == 2
    assert noise.count("each by its own rule: 2 units have epsilon = 2.12") == 2
    assert noise.count("known to be present, the bound is epsilon = 2, delta = 3.7183e-06") == 2
    assert "delta grows to" in threshold
    assert "own rule" not in threshold
    assert "2 units have epsilon = 2; 5 units have epsilon = 5;" in pure
    assert "delta grows" not in pure
