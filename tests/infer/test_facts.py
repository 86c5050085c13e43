"""What is read off a receipt and its tables: sizes, where the noise went, what moves estimates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gibbous.core.context import Context
from gibbous.core.release import Receipt, Release
from gibbous.core.schema import Column, Unit
from gibbous.core.tables import NoiseInfo, Sparse, Table, Tables
from gibbous.evaluation.inference.release_facts import biases, facts_of
from tests.infer.made import cross

COUNTS = np.array([30, 20, 26, 24])


def made(
    tables: Tables | None, method: str = "any", rows: tuple[int, ...] = (90, 110), **params: Any
) -> Release:
    named = {"name": method, "params": params}
    receipt: dict[str, Any] = {"rows": list(rows), "sets": len(rows), "method": named}
    known: Any = None
    schema = tables.schema if tables else cross(COUNTS, 1.0).schema
    return Release((), schema, known, known, tables, Receipt(receipt))


def test_tables_were_noised_once_and_their_total_stands_for_n() -> None:
    found = facts_of(made(cross(COUNTS, 1.0)))

    assert found.sanitized == "once"
    assert found.records == 100
    assert found.rows == 100
    assert found.sets == 2
    assert found.ratio == 1
    assert "noisy" in found.records_from


def test_a_public_number_of_records_goes_before_the_noisy_one() -> None:
    found = facts_of(made(cross(COUNTS, 1.0)), records=50)

    assert found.records == 50
    assert found.ratio == 2
    assert found.records_from == "given"


@pytest.mark.parametrize(
    ("records", "said"), [(50, True), (10**9, True), (100, False), (95, False)]
)
def test_a_given_number_that_is_not_that_of_the_tables_is_named(records: int, said: bool) -> None:
    found = facts_of(made(cross(COUNTS, 1.0)), records=records)

    assert any("the noisy tables hold about 100" in line for line in found.biases) == said


def test_a_noisy_total_below_one_is_one() -> None:
    assert facts_of(made(cross(-COUNTS, 1.0))).records == 1


def test_paid_rows_do_not_tell_n() -> None:
    found = facts_of(made(None, "pegs"))

    assert found.sanitized == "per_set"
    assert found.records is None
    assert found.ratio is None


@pytest.mark.parametrize(
    ("method", "draws"),
    [("pegs", "fitted"), ("bootstrap", "posterior"), ("unheard_of", "posterior")],
)
def test_a_method_that_is_not_known_counts_as_drawing_parameters(method: str, draws: str) -> None:
    assert facts_of(made(None, method)).draws == draws


def test_a_total_of_thresholded_tables_is_said_to_be_too_small() -> None:
    assert "too small" in facts_of(made(_thresholded())).records_from


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, "Clipping"),
        ({"fit": "rake"}, "Projection"),
        ({"kappa": 2.0}, "Prior"),
    ],
)
def test_what_the_recipe_does_to_estimates_is_named(change: dict[str, Any], word: str) -> None:
    tables = cross(COUNTS, 1.0)
    tables = replace(tables, recipe=replace(tables.recipe, **change))

    assert any(text.startswith(word) for text in biases(made(tables)))


def test_thresholds_narrow_tables_and_bins_are_named() -> None:
    tables = _thresholded()
    wide = replace(
        tables.schema, columns=(*tables.schema.columns, Column("x", "numeric", edges=(0, 1, 2)))
    )
    tables = replace(tables, schema=wide)

    found = " ".join(biases(made(tables)))

    assert "Threshold:" in found
    assert "Structure:" in found
    assert "Binning: values of x" in found
    assert "One bin is most" not in found


def test_a_bin_that_is_most_of_its_columns_range_is_named() -> None:
    """An open end that was closed far out: a twentieth of the rows there is a mean of its own."""
    tables = cross(COUNTS, 1.0)
    cost = Column("cost", "numeric", edges=(0, 10, 100, 5000), integer=True)
    day = Column("day", "numeric", edges=(0, 10, 20, 60))
    tables = replace(tables, schema=replace(tables.schema, columns=(cost, day)))

    (found,) = (text for text in biases(made(tables)) if text.startswith("Binning"))

    assert f"One bin is most of the range of cost {cost.labels()[2]}: rows" in found


def test_persons_with_several_rows_are_named() -> None:
    tables = cross(COUNTS, 1.0)
    tables = replace(tables, schema=replace(tables.schema, unit=Unit("person", "id", 4)))

    assert any(
        text.startswith("Clusters: a person has up to 4 rows") for text in biases(made(tables))
    )


def test_a_full_table_has_no_structure_to_lose() -> None:
    assert not any(text.startswith("Structure") for text in biases(made(cross(COUNTS, 1.0))))


def test_perturbed_draws_are_named_and_unperturbed_ones_are_not() -> None:
    assert biases(made(None, "pegs"))[0].startswith("Perturbation: pegs")
    assert biases(made(None, "contingency")) == ()
    assert biases(made(None, "contingency", order=2))[0].startswith(
        "Structure: the rows follow a log"
    )


def _thresholded() -> Tables:
    cells = Sparse(
        np.zeros(2, dtype=np.uint64),
        np.array([0, 3], dtype=np.uint64),
        np.array([40, 50], dtype=np.int64),
    )
    context = Context((0, 1), (), (2, 2), (), support="seen")
    return replace(
        cross(COUNTS, 1.0), items=(Table(context, cells, NoiseInfo("geometric", 3.0, 9)),)
    )
