"""Starred cases of the catalogue that need the whole: F6, C18, J2, J4, M2."""

from __future__ import annotations

import ast
import json
import os
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous import pipeline
from gibbous.cli import main
from gibbous.contract.cases import cases, secret
from gibbous.core.claim import Claim, l_diverse, no_claim, pure, zcdp
from gibbous.core.errors import BudgetExhausted, OutputNotWritten, PrivacyRefused
from gibbous.core.schema import Unit
from gibbous.core.tables import Counts, Dense
from gibbous.disintegrate.records import LocalEngine
from gibbous.perturb.diverse import Diverse
from gibbous.privacy import accountant, entropy
from gibbous.privacy.curator import Curator
from gibbous.privacy.noise import geometric_for
from gibbous.read.schema_write import schema_toml
from gibbous.sampling.gibbs_rows import GibbsRows, JointRows
from gibbous.structure.contexts import margins
from gibbous.write import partial
from tests.blinded import blinded
from tests.frame.tree import SRC, imports, sources, tree
from tests.mutants.broken_builds import RARE, SCHEMA, people, published, without_entry

FIVE = 5
METHODS = {
    "noisy_pegs": (gb.NoisyPegs(), None),
    "sbhg": (gb.Sbhg(delta=1e-4), None),
    "laplace": (gb.Laplace(), None),
    "sba": (gb.Sba(delta=1e-4), None),
    "pegs": (gb.Pegs(), 25),
    "block_pegs": (gb.BlockPegs(block=5), 25),
    "exponential_pegs": (gb.ExponentialPegs(hash="minhash"), 25),
}


# -- F6, F10: what has no proof is never combined with a claim


@pytest.mark.parametrize("name", ["DiversePegs", "Contingency", "Bootstrap"])
def test_f6_f10_a_budget_for_a_method_without_a_claim_is_refused_before_reading(name: str) -> None:
    class Unopened:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError("the source was touched")

    with pytest.raises(PrivacyRefused) as refused:
        gb.synthesize(Unopened(), SCHEMA, getattr(gb, name)(), rows=5, budget=1)

    assert refused.value.exit_code == FIVE


@pytest.mark.parametrize("method", ["diverse_pegs", "contingency", "bootstrap"])
@pytest.mark.parametrize("flag", ["--epsilon", "--delta", "--budget"])
def test_f6_f10_the_command_refuses_a_claim_for_such_a_method_with_code_5(
    method: str, flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "schema.toml").write_text(schema_toml(SCHEMA))
    people().write_csv(tmp_path / "data.csv")

    code = main(
        ["synthesize", str(tmp_path / "data.csv"), "--schema", str(tmp_path / "schema.toml"),
         "--method", method, flag, "0.5", "--rows", "5", "--out", str(tmp_path / "out")]
    )  # fmt: skip

    assert code == FIVE
    assert "differential privacy" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "draw", [GibbsRows(Diverse(Fraction(3, 2))), JointRows()], ids=["l_diversity", "none"]
)
def test_f6_f10_a_draw_without_a_claim_cannot_be_bought_with_a_claims_budget(draw: Any) -> None:
    """A mechanism that plans differential privacy and draws without it is stopped by the curator."""
    case = next(c for c in cases() if c.name == "one column")
    for budget in (pure(Fraction(100)), Claim("approximate", Fraction(9), Fraction(1, 10))):
        held = Curator(
            LocalEngine.from_codes(case.codes()), budget, case.schema, relation="add_remove"
        )
        with pytest.raises(PrivacyRefused) as refused:
            held.draw(margins(case.schema), draw, 3)
        assert refused.value.exit_code == FIVE
        assert held.spent == ()


@pytest.mark.parametrize("weak", [no_claim(), l_diverse(Fraction(2))], ids=["none", "l_diversity"])
def test_f6_f10_no_sum_of_claims_hides_one_that_is_none(weak: Claim) -> None:
    strong = pure(Fraction(1))
    for add_up in (
        lambda: strong.then(weak),
        lambda: weak.then(strong),
        lambda: accountant.within(strong, [weak]),
        lambda: accountant.as_approximate(weak, Fraction(1, 10**6)),
    ):
        with pytest.raises(PrivacyRefused) as refused:
            add_up()
        assert refused.value.exit_code == FIVE


def test_a_budget_covers_a_total_that_is_stated_in_zcdp() -> None:
    """rho has no epsilon of its own: a budget must not let it pass for that reason."""

    class Concentrated(gb.NoisyPegs):
        def plan(self, schema: Any, rows: Any, sets: int = 1) -> Any:
            found = gb.NoisyPegs().plan(schema, rows, sets)
            return replace(found, total=zcdp(Fraction(8)), claim=zcdp(Fraction(8)))

    with pytest.raises(BudgetExhausted):
        pipeline.plan(SCHEMA, Concentrated(), rows=9, budget=1)
    assert pipeline.plan(SCHEMA, Concentrated(), rows=9, budget=1000).total.rho == 8


# -- C18, G-P7: one rare row more changes no public byte but by noise


def pairs(count: int, seed: int) -> Any:
    """Random tables with a row more in a random place, of a level that nobody else has."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        size = int(rng.integers(0, 200))
        table = pl.DataFrame(
            {
                "sex": rng.choice(["f", "m"], size),
                "region": [("01", "02", "NA", None)[i] for i in rng.integers(0, 4, size)],
                "age": rng.integers(0, 60, size),
            },
            schema={"sex": pl.String, "region": pl.String, "age": pl.Int64},
        )
        more = pl.concat([table, RARE]).sample(fraction=1, shuffle=True, seed=int(rng.integers(99)))
        yield table, more


def compare(count: int, seed: int, folder: Path | None) -> None:
    names = list(METHODS)
    for number, (one, two) in enumerate(pairs(count, seed)):
        method, rows = METHODS[names[number % len(names)]]
        outs = [folder / f"{number}-{side}" if folder else None for side in "ab"]
        found = [
            published(t, method, rows=rows, out=o) for t, o in zip((one, two), outs, strict=True)
        ]
        assert found[0].keys() == found[1].keys()
        assert [k for k in found[0] if found[0][k] != found[1][k]] == []


@pytest.mark.slow
def test_c18_fifty_random_pairs_publish_the_same_but_noise() -> None:
    compare(50, 1, None)


@pytest.mark.slow
def test_c18_every_file_of_a_package_is_the_same_but_noise(tmp_path: Path) -> None:
    compare(14, 2, tmp_path)


@pytest.mark.slow
def test_c18_g_p7_a_thousand_random_pairs_publish_the_same_but_noise(tmp_path: Path) -> None:
    compare(1000, 3, None)
    compare(35, 4, tmp_path)


@pytest.mark.parametrize("name", ["noisy_pegs", "sbhg", "pegs"])
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["people", "json"])
def test_c18_m5_the_terminal_says_the_same_of_both(
    name: str,
    form: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No number of records, no count and no level of theirs on stdout or stderr."""
    said = []
    for side, data in (("a", people()), ("b", pl.concat([people(), RARE]))):
        folder = tmp_path / side
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("GIBBOUS_HOME", str(folder / "home"))
        Path("schema.toml").write_text(schema_toml(SCHEMA))
        data.write_csv("data.csv")
        with blinded():
            code = main(
                ["synthesize", "data.csv", "--schema", "schema.toml", "--method", name, "-e", "0.5",
                 "--rows", "20", "--seed", "1", "--out", "release", "--engine", "numpy", *form,
                 *(("--delta", "1e-4") if name == "sbhg" else ())]
            )  # fmt: skip
        assert code == 0
        text = capsys.readouterr()
        said.append((_shared(text.out, json_form=bool(form)), text.err))

    assert said[0] == said[1]


def _shared(text: str, *, json_form: bool) -> object:
    """What was printed, less the random name and the hashes of the ledger entry."""
    if not json_form:
        return text
    found = json.loads(text)
    return found | {"receipt": without_entry(found["receipt"])}


# -- J2, J4: engines count, and noise is made once


# The files that cut persons, and what their words of the operating system are handed to.
CUTTING = {
    "disintegrate/scanning.py": {"_OnDisk", "Encoder", "People"},
}


def test_j2_no_file_of_an_engine_reaches_the_noise() -> None:
    """The one exception draws the words that cut a person's rows to max_rows, and only those."""
    reached = {
        path.relative_to(SRC).as_posix(): name
        for path in sources()
        if path.is_relative_to(SRC / "disintegrate")
        for name, _ in imports(path)
        if "entropy" in name or name.startswith(("opendp", "gibbous.privacy.noise", "secrets"))
        if name != "gibbous.privacy.entropy"
    }

    assert reached == dict.fromkeys(CUTTING, "gibbous.privacy.entropy.words")


def test_j2_engines_name_no_maker_of_randomness() -> None:
    banned = {"urandom", "getrandom", "geometric", "gaussian", "default_rng", "exponential_choice"}
    named = {
        (path.name, node.attr if isinstance(node, ast.Attribute) else node.id)
        for path in sources()
        if path.is_relative_to(SRC / "disintegrate")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute | ast.Name)
    }

    assert not {pair for pair in named if pair[1] in banned}


def test_j2_the_words_of_an_engine_go_to_the_cutting_of_persons_and_nowhere_else() -> None:
    """They are imported in one function of a file, and every call that is given them is known."""
    given = {}
    for name in CUTTING:
        file = tree(SRC / name)
        (importing,) = [
            f
            for f in ast.walk(file)
            if isinstance(f, ast.FunctionDef) and "privacy.entropy" in ast.unparse(f)
        ]
        assert importing.name in ("_words", "words_for")
        given[name] = {
            ast.unparse(n.func)
            for n in ast.walk(file)
            if isinstance(n, ast.Call)
            for value in (*n.args, *(k.value for k in n.keywords))
            if isinstance(value, ast.Name) and value.id == "words"
        }

    assert given == CUTTING


def test_j2_an_engine_asks_for_no_words_where_nobody_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def asked(count: int) -> np.ndarray:
        raise AssertionError("words were asked for")

    monkeypatch.setattr(entropy, "words", asked)
    persons = people().with_columns(pl.Series("who", range(60)))
    one_each = replace(SCHEMA, unit=Unit("person", "who", 1))

    for data, schema in ((people(), SCHEMA), (persons, one_each)):
        LocalEngine().scan(data, schema, key=bytes(32))


def test_j4_counting_again_gives_the_same_counts() -> None:
    case = cases()[0]
    held = LocalEngine.from_codes(case.codes())
    first, second = (held.tally(margins(case.schema)) for _ in range(2))

    assert all(_equal(a, b) for a, b in zip(first, second, strict=True))


def _equal(one: Counts, two: Counts) -> bool:
    assert isinstance(one.cells, Dense)
    return bool((one.cells.values == two.cells.values).all())


def test_j4_every_use_of_a_release_shows_the_same_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty looks at a lazy noisy frame would average the noise away: ours is drawn once."""
    drawn: list[int] = []
    honest = entropy._noised
    monkeypatch.setattr(entropy, "_noised", lambda v, s, p: drawn.append(v.size) or honest(v, s, p))
    release = gb.synthesize(
        people(), SCHEMA, gb.NoisyPegs(), rows=9, sets=2, out=tmp_path / "r",
        ledger=gb.Ledger.ephemeral(),
    )  # fmt: skip
    once = len(drawn)
    assert once > 0

    loaded = gb.load(tmp_path / "r")
    looks = {
        tuple(t.cells.values.tobytes() for t in found.items + found.extra)
        for found in (release.tables, release.tables, loaded.tables, gb.load(tmp_path / "r").tables)
    }
    for seed in range(5):
        release.sample(100, seed=seed)
        loaded.sample(100, seed=seed)
    list(release.sets), list(release.sets)
    gb.verify(tmp_path / "r")

    assert len(looks) == 1
    assert len(drawn) == once


def test_j4_the_same_context_bought_twice_is_paid_twice() -> None:
    """A curator does not hand out a second noise for the price of one."""
    case = next(c for c in cases() if c.name == "one column")
    engine = LocalEngine.from_codes(secret(case.schema, case.values))
    held = Curator(engine, pure(Fraction(1)), case.schema, relation="add_remove")
    law = geometric_for(1, 1)
    held.noisy_counts(margins(case.schema), law)

    with pytest.raises(PrivacyRefused, match="more than it planned"):
        held.noisy_counts(margins(case.schema), law)


# -- M2: what a killed run leaves behind


PAUSE = """
import sys, time
from gibbous.write import package
honest = package.Package.commit
def commit(self):
    print("drawn", flush=True)
    time.sleep(60)
package.Package.commit = commit
from gibbous.cli import main
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_m2_scratch_of_a_killed_run_is_private_and_swept_at_the_next_start(tmp_path: Path) -> None:
    """kill -9 with the drawn tables on disk: 0700 and 0600 under umask 000, gone after the next run."""
    (tmp_path / "schema.toml").write_text(schema_toml(SCHEMA))
    people().write_csv(tmp_path / "data.csv")
    command = [
        "synthesize", "data.csv", "--schema", "schema.toml", "--method", "pegs", "-e", "0.5",
        "--rows", "5", "--out", "release", "--engine", "numpy", "--quiet",
    ]  # fmt: skip
    env = os.environ | {"GIBBOUS_HOME": str(tmp_path / "home")}
    process = subprocess.Popen(
        [sys.executable, "-c", PAUSE, *command], cwd=tmp_path, env=env, umask=0,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "drawn\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()

    (left,) = [p for p in tmp_path.iterdir() if "partial" in p.name]
    inside = list(left.rglob("*"))
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    assert inside
    for path in inside:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert not (tmp_path / "release").exists()

    command[command.index("--rows") + 1] = "6"  # another request for the same output
    done = subprocess.run(
        [sys.executable, "-m", "gibbous", *command], cwd=tmp_path, env=env, capture_output=True
    )

    assert done.returncode == 0, done.stderr
    assert not [p.name for p in tmp_path.iterdir() if "partial" in p.name]


def test_m2_what_was_left_beside_a_finished_release_is_swept_too(tmp_path: Path) -> None:
    """Killed after the rename and before the cleaning: the next start finds the release, and cleans."""
    book, out = gb.Ledger.ephemeral(), tmp_path / "release"
    honest = partial.Partial.remove
    partial.Partial.remove = partial.Partial.close  # type: ignore[method-assign]
    try:
        gb.synthesize(people(), SCHEMA, gb.NoisyPegs(), rows=3, out=out, ledger=book)
    finally:
        partial.Partial.remove = honest  # type: ignore[method-assign]
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name]

    with pytest.raises(OutputNotWritten):
        gb.synthesize(people(), SCHEMA, gb.NoisyPegs(), rows=3, out=out, ledger=book)

    assert [p.name for p in tmp_path.iterdir()] == ["release"]
