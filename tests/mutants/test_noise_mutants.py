"""Mutants of the noise: too little, in the wrong place, from the wrong source, for the wrong price."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gibbous.contract import checks, privacy_checks
from gibbous.contract.cases import cases, neighbors
from gibbous.contract.coupled import uncovered
from gibbous.contract.residuals import residuals
from gibbous.contract.runs import release
from gibbous.contract.saboteur_audits import at_epsilon_one
from gibbous.contract.saboteurs import saboteurs
from gibbous.core.claim import pure
from gibbous.core.errors import PrivacyRefused
from gibbous.core.tables import Dense, Table
from gibbous.mechanisms import _budget, _plans, registry
from gibbous.privacy import curator, entropy, noise
from gibbous.privacy.calibrate import scales
from gibbous.structure import choice
from gibbous.structure.contexts import margins
from tests.frame import test_source_gates as gates
from tests.mutants.broken_builds import faults, killed
from tests.privacy import test_entropy

TABLES = ("laplace", "noisy_pegs", "sba", "sbhg")


def audit_noise(name: str, fits: int = 80) -> None:
    kind = registry.load(name)
    found = residuals(kind, at_epsilon_one(kind, "add_remove"), fits=fits)
    assert found is not None
    assert found.holds, found


def less_noise(factor: Fraction) -> tuple[object, str, Any]:
    """Every sampler is made for a smaller scale than was asked for."""
    honest = entropy._sampler
    return (entropy, "_sampler", lambda law, scale: honest(law, scale * factor))


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_m01_halved_noise(name: str) -> None:
    killed(lambda: audit_noise(name), faults(less_noise(Fraction(1, 2))))


@pytest.mark.slow
@pytest.mark.parametrize("law", ["geometric", "gaussian"])
def test_m02_a_tenth_less_noise_does_not_conform(law: str) -> None:
    """Level 1e-6, power above 0.999 (tests/privacy, G7)."""

    def conforms() -> None:
        drawn = test_entropy.sample(law, "4", 20_000)
        assert test_entropy.conforms(drawn, law, 4.0)

    killed(conforms, faults(less_noise(Fraction(9, 10))))


@pytest.mark.statistical
@pytest.mark.parametrize("name", TABLES)
def test_m02_a_tenth_less_noise_is_seen_in_the_tables_of_a_method(name: str) -> None:
    """1,500 fits: the energy is 0.81, 8 standard errors or more below 1; false alarm below 1e-8."""
    killed(lambda: audit_noise(name, 1500), faults(less_noise(Fraction(9, 10))))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["laplace", "noisy_pegs"])
def test_m03_noise_skipped_for_the_last_column(name: str) -> None:
    honest = curator.Curator.noisy_counts

    def skips(self: Any, contexts: Sequence[Any], law: Any) -> tuple[Table, ...]:
        tables = honest(self, contexts, law)
        exact = self._count(contexts, keep=False)
        last = len(self.schema) - 1
        return tuple(
            Table(t.context, e.cells, t.noise) if last in t.context.targets else t
            for t, e in zip(tables, exact, strict=True)
        )

    killed(lambda: audit_noise(name), faults((curator.Curator, "noisy_counts", skips)))


def test_m04_noise_skipped_for_cells_without_records() -> None:
    honest = noise.Geometric.add

    def skips(self: Any, cells: Any, *, progress: Any = None) -> Dense:
        return Dense(np.where(cells.values == 0, 0, honest(self, cells).values))

    killed(lambda: audit_noise("laplace"), faults((noise.Geometric, "add", skips)))


@pytest.mark.parametrize("name", ["laplace", "sba", "sbhg", "noisy_pegs"])
def test_m04_keys_that_occur_leaked_beside_the_noise(name: str) -> None:
    """The contract's saboteur, caught without one statistical test: blind runs must be equal."""
    check = privacy_checks._records_reach_the_output_only_by_noise_choices_and_paid_draws
    leak = next(s for s in saboteurs() if s.breaks == "keys")

    killed(lambda: check(registry.load(name)), leak.apply())  # type: ignore[arg-type]


@pytest.mark.parametrize("name", TABLES)
def test_m10_a_seed_reaches_the_noise(name: str) -> None:
    def seeded(values: np.ndarray, sampler: Any, progress: Any) -> np.ndarray:
        return values + np.random.default_rng(7).integers(-9, 10, values.shape)

    killed(
        lambda: checks._two_fits_differ_in_their_noise(registry.load(name)),
        faults(
            (entropy, "_noised", seeded),
            (entropy, "exponential_choice", lambda scores, **_: int(np.argmax(scores))),
        ),
    )


def test_m11_noise_of_numpys_global_generator_moves_its_state() -> None:
    def borrowed(values: np.ndarray, sampler: Any, progress: Any) -> np.ndarray:
        return values + np.random.laplace(0, 3, values.shape).astype(np.int64)

    killed(
        test_entropy.test_g6_global_generators_of_numpy_are_neither_used_nor_changed,
        faults((entropy, "_noised", borrowed)),
    )


@pytest.mark.slow
def test_m11_noise_of_numpys_global_generator_does_not_pass_the_gate(tmp_path: Path) -> None:
    text = Path(entropy.__file__).read_text()
    broken = tmp_path / "entropy.py"
    broken.write_text(text + "\n\ndef laplace(b):\n    return np.random.laplace(0, b)\n")

    killed(
        gates.test_g6_numpy_random_is_not_reached_as_an_attribute,
        faults((gates, "sources", lambda: [broken]), (gates, "where", lambda path, line: line)),
    )


FORKS = """
import os, sys
import numpy as np
from fractions import Fraction
from gibbous.privacy import entropy

if sys.argv[1] == "mutant":
    shared = np.random.default_rng()
    entropy._noised = lambda values, sampler, progress: values + shared.integers(0, 1 << 40, values.size)
entropy.geometric(np.zeros(4, dtype=np.int64), Fraction(10**12))  # the parent has drawn before
found = set()
for _ in range(8):
    read, write = os.pipe()
    if os.fork() == 0:
        cells = entropy.geometric(np.zeros(4, dtype=np.int64), Fraction(10**12))
        os.write(write, ",".join(map(str, cells.tolist())).encode())
        os._exit(0)
    found.add(os.read(read, 1000))
    os.wait()
print(len(found))
"""


@pytest.mark.parametrize(("build", "streams"), [("honest", "8"), ("mutant", "1")])
def test_m12_forked_workers_that_share_a_stream_are_noticed(build: str, streams: str) -> None:
    """Eight children each draw once: eight noises of the honest build, one of a kept generator."""
    done = subprocess.run(
        [sys.executable, "-c", FORKS, build], capture_output=True, text=True, env=os.environ
    )

    assert done.stdout.strip() == streams, done.stderr


def fit(name: str) -> None:
    kind = registry.load(name)
    pair = neighbors("add_remove", 20)[0]
    release(kind(), pair.schema, pair.one, None)


def test_m14_a_budget_not_divided_over_tables_is_refused_by_the_curator() -> None:
    """The purchase is priced from the noise itself, so the plan cannot hide it."""
    one = noise.gaussian_for

    def undivided(share: Fraction, tables: int, *rest: Any, **more: Any) -> Any:
        return one(share, 1, *rest, **more)

    killed(lambda: fit("noisy_pegs"), faults((_budget, "gaussian_for", undivided)))
    with faults((_budget, "gaussian_for", undivided)), pytest.raises(PrivacyRefused):
        fit("noisy_pegs")


def test_m14_nor_does_a_price_that_forgets_the_tables_help() -> None:
    """Price and noise are wrong in the same way: exact counts of real neighbors show it."""
    places = (("noisy_pegs", noise, "l2_squared"), ("sbhg", scales, "l1_sensitivity"))
    for name, owner, function in places:
        honest = getattr(owner, function)
        wrong = (owner, function, lambda tables, *rest, of=honest: of(1, *rest))

        killed(lambda name=name: covered(name, "add_remove"), faults(wrong))


def covered(name: str, relation: Any) -> None:
    kind = registry.load(name)
    told = uncovered(checks.default(kind, relation=relation, delta=0.01), relation)
    assert not told, told


@pytest.mark.parametrize("name", TABLES)
def test_m25_the_sensitivity_of_add_remove_under_a_claim_of_replace_one(name: str) -> None:
    """The relation is forgotten in noise and price alike; under add/remove that changes nothing."""
    wrong = faults((scales, "steps", lambda relation: 1))
    with wrong:
        covered(name, "add_remove")

    killed(lambda: covered(name, "replace_one"), faults((scales, "steps", lambda relation: 1)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["noisy_pegs", "sbhg"])
def test_m25_a_choice_with_the_sensitivity_of_add_remove(name: str) -> None:
    """Scores of real neighbors move by two where one record is replaced.

    What is looked at next follows from noise, so one run may meet no such score; eight will.
    """

    def eight() -> None:
        for _ in range(8):
            covered(name, "replace_one")

    killed(eight, faults((choice, "steps", lambda relation: 1)))


def test_m25_a_noise_of_the_other_relation_is_refused_by_the_curator() -> None:
    case = next(c for c in cases() if c.name == "one column")

    def buys() -> None:
        kind = registry.load("laplace")
        one = kind(relation="replace_one")
        held = curator.Curator(
            privacy_checks.LocalEngine.from_codes(case.codes()),
            one.plan(case.schema, None).total,
            case.schema,
            relation="replace_one",
        )
        held.noisy_counts(margins(case.schema), noise.geometric_for(1, 1, relation))

    relation: Any = "replace_one"
    buys()
    relation = "add_remove"
    with pytest.raises(PrivacyRefused, match="more than it planned"):
        buys()


@pytest.mark.parametrize("name", TABLES)
def test_rows_of_a_person_forgotten_in_the_noise_are_refused_by_the_curator(name: str) -> None:
    """C14, E13: a method that plans for one row a person pays the curator's price for max_rows."""

    def check() -> None:
        covered(name, "add_remove")

    killed(check, faults((_plans, "most_rows", lambda schema: 1)))


def test_a_price_below_zero_is_refused() -> None:
    class Refund:
        def __getattr__(self, name: str) -> Any:
            return getattr(noise.Geometric(Fraction(1)), name)

        def cost(self, tables: int, relation: Any, max_rows: int) -> Any:
            return pure(Fraction(-5), relation=relation)

    case = next(c for c in cases() if c.name == "one column")
    held = curator.Curator(
        privacy_checks.LocalEngine.from_codes(case.codes()),
        registry.load("laplace")().plan(case.schema, None).total,
        case.schema,
        relation="add_remove",
    )

    with pytest.raises(PrivacyRefused, match="negative"):
        held.noisy_counts(margins(case.schema), Refund())
