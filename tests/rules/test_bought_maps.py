"""Maps of rules that are bought: read off noisy counts of pairs alone, and paid for."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import PrivacyRefused, UsageError
from gibbous.core.schema import Column, Schema, Unit
from gibbous.disintegrate.records import LocalEngine
from gibbous.encode.encode import encode
from gibbous.mechanisms import paid_bins
from gibbous.mechanisms.paid_bins import PaidBins
from gibbous.privacy.curator import Curator
from gibbous.privacy.noise import gaussian_for
from gibbous.read.schema_file import load_schema
from gibbous.read.schema_write import save_schema
from gibbous.write.release_digest import digest_of
from gibbous.write.verify import verify
from tests.blinded import blinded

TOWNS = tuple(f"town {i}" for i in range(12))
REGIONS = ("north", "south", "west")
RULE = gb.Rule(detail="town", group="region", bought=True)
SCHEMA = Schema(
    (
        Column("town", "nominal", levels=TOWNS, other="elsewhere", missing=True),
        Column("region", "nominal", levels=REGIONS, missing=True),
        Column("pay", "numeric", edges=(0, 50, 100), integer=True),
    ),
    Unit(),
    rules=(RULE,),
)


def frame(rows: int, seed: int = 1) -> pl.DataFrame:
    """Town i lies in region i mod 3; elsewhere is the south; in one row of twenty the region is wrong."""
    rng = np.random.default_rng(seed)
    town = rng.integers(0, 13, rows)
    wrong = rng.random(rows) < 0.05
    region = np.where(wrong, rng.integers(0, 3, rows), np.where(town == 12, 1, town % 3))
    return pl.DataFrame(
        {
            "town": [(*TOWNS, "elsewhere")[i] for i in town],
            "region": [REGIONS[i] for i in region],
            "pay": rng.integers(0, 101, rows),
        }
    )


def desk_of(mechanism: Any, schema: Schema = SCHEMA, rows: int = 3000, seed: int = 1) -> Curator:
    engine = LocalEngine.from_codes(encode(frame(rows, seed), schema))
    total = mechanism.plan(schema, None).total
    return Curator(engine, total, schema, relation=mechanism.relation)


def test_the_map_is_the_most_frequent_group_of_each_level() -> None:
    found = PaidBins(gb.Laplace(epsilon=50), maps=("town",)).run(
        desk_of(PaidBins(gb.Laplace(epsilon=50), maps=("town",))), None
    )

    rows = frame(3000)
    truth = {
        town: rows.filter(pl.col("town") == town)["region"].mode()[0]
        for town in (*TOWNS, "elsewhere")
    }
    (rule,) = found.schema.rules
    assert dict(rule.map) == truth
    assert rule.bought
    assert not rule.to_buy
    assert found.schema["pay"].edges == (0, 50, 100)  # no bins were asked for


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_pairs_and_method_cost_together_what_the_method_costs(relation: Any) -> None:
    one = PaidBins(gb.Laplace(epsilon=2, relation=relation), maps=("town",), share=0.25)
    desk = desk_of(one)

    one.run(desk, None)

    assert desk.spent[0].epsilon == pytest.approx(Fraction(1, 2), rel=1e-6)
    assert Fraction(199, 100) < sum(claim.epsilon for claim in desk.spent) <= 2
    (pairs,) = (s for s in one.plan(SCHEMA, None).spends if "pairs" in s.what)
    assert pairs.claim.epsilon == desk.spent[0].epsilon


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_the_price_covers_every_pair_of_neighbors(relation: Any, monkeypatch: Any) -> None:
    """Brute force over all records: the squared distance of the pair table times 1 / (2 sigma^2)."""
    noises = []

    def noted(rho: Fraction, *shape: Any, **more: Any) -> Any:
        noises.append((rho, gaussian_for(rho, *shape, **more)))
        return noises[-1][1]

    monkeypatch.setattr(paid_bins, "gaussian_for", noted)
    method = gb.NoisyPegs(epsilon=1, delta=1e-6, relation=relation)
    PaidBins(method, maps=("town",)).plan(SCHEMA, None)
    (budget, noise), *_ = noises

    cells = np.eye(14 * 4, dtype=int)  # one record is in one pair
    others = cells if relation == "replace_one" else [0 * cells[0]]
    worst = max(int(((a - b) ** 2).sum()) for a, b in itertools.product(cells, others))
    price = worst / Fraction(noise.sigma) ** 2  # mu^2 of Gaussian differential privacy
    assert price <= budget * (1 + Fraction(1, 10**6))
    assert 4 * price > budget  # half the noise does not


def test_persons_with_several_rows_pay_for_all_of_them() -> None:
    several = replace(SCHEMA, unit=Unit("person", "who", 4))
    one = PaidBins(gb.Laplace(epsilon=1), maps=("town",))

    texts = [
        next(s.detail for s in one.plan(schema, None).spends if "pairs" in s.what)
        for schema in (SCHEMA, several)
    ]

    scales = [float(text.partition("scale ")[2].partition(" ")[0]) for text in texts]
    assert scales[1] == pytest.approx(4 * scales[0], rel=1e-5)


def test_records_reach_the_map_through_noise_alone(monkeypatch: Any) -> None:
    one = PaidBins(gb.Laplace(), maps=("town",))

    def blind(seed: int) -> object:
        with blinded():
            found = one.run(desk_of(one, rows=20, seed=seed), None)
            return digest_of(found), found.schema.rules

    assert blind(1) == blind(40)

    honest = Curator.noisy_counts

    def raw(desk: Curator, contexts: Any, noise: Any) -> Any:
        """The saboteur: pairs as they were counted, with the noise left out."""
        tables = honest(desk, contexts, noise)
        if contexts[0].parents:
            secrets = desk._count(contexts, keep=False)
            return tuple(replace(t, cells=s.cells) for t, s in zip(tables, secrets, strict=True))
        return tables

    monkeypatch.setattr(Curator, "noisy_counts", raw)
    assert blind(1) != blind(40)


def test_pairs_that_nobody_charges_are_refused_by_the_curator(monkeypatch: Any) -> None:
    """The saboteur: the method inside is given the whole budget beside the pairs."""
    honest = PaidBins._split
    method = gb.Laplace(epsilon=1)
    monkeypatch.setattr(
        PaidBins, "_split", lambda one, *given: replace(honest(one, *given), inside=method)
    )
    one = PaidBins(method, maps=("town",))

    with pytest.raises(PrivacyRefused, match="more than it planned"):
        one.run(desk_of(one), None)


@pytest.mark.slow
def test_a_release_buys_the_map_by_itself_and_every_row_keeps_it(tmp_path: Path) -> None:
    save_schema(SCHEMA, tmp_path / "open.toml")
    schema = load_schema(tmp_path / "open.toml")
    assert schema.rules == (RULE,)
    ledger = gb.Ledger.open(tmp_path / "ledger.db")
    method = gb.NoisyPegs(epsilon=3, delta=1e-6)

    found = gb.synthesize(
        frame(5000), schema, method, rows=500, out=tmp_path / "out", ledger=ledger
    )

    (rule,) = load_schema(tmp_path / "out" / "schema.toml").rules
    assert rule.bought
    assert dict(rule.map)["town 4"] == "south"
    rows = found.sets[0].drop_nulls()
    assert set(map(tuple, rows.select("town", "region").rows())) <= set(rule.map)
    verify(tmp_path / "out")
    again = gb.load(tmp_path / "out").sample(300).drop_nulls()
    assert set(map(tuple, again.select("town", "region").rows())) <= set(rule.map)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gb.Rule(require="a < b", bought=True), "in none of the forms"),
        (lambda: replace(SCHEMA, rules=(replace(RULE, group="pay"),)), "one column of levels"),
        (lambda: replace(SCHEMA, rules=(replace(RULE, group="town"),)), "one column of levels"),
        (lambda: PaidBins("laplace", maps=("region",)).plan(SCHEMA, None), "'region'"),
        (lambda: gb.plan(SCHEMA, gb.Pegs(epsilon=1), rows=5), "nothing in this run buys it"),
        (
            lambda: gb.plan(SCHEMA, PaidBins("laplace", epsilon=1), rows=5),
            "nothing in this run buys it",
        ),
    ],
)
def test_what_cannot_be_bought_is_refused_with_a_way_out(make: Any, words: str) -> None:
    with pytest.raises((UsageError, PrivacyRefused)) as caught:
        make()

    assert words in str(caught.value)
    assert caught.value.fix
