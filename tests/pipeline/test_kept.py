"""Releases without a folder of their own: bought once, never lost, never two tables for one charge."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import (
    BudgetExhausted,
    ParameterError,
    PrivacyRefused,
    ResourceLimit,
    UsageError,
)
from gibbous.privacy.ledger import Ledger, LedgerWarning
from gibbous.write import kept as kept_module
from gibbous.write import manifest
from gibbous.write import package as package_module
from gibbous.write.package import Package
from gibbous.write.purchases import Earlier
from gibbous.write.verify import verify
from tests.mutants.broken_builds import faults
from tests.pipeline.test_pipeline import SCHEMA, table
from tests.write.nursery import Child, Connection, killing

METHOD = gb.Laplace(epsilon=1)
LEDGER = "home/ledger.sqlite"


def ask(folder: Path, **more: Any) -> gb.Release:
    """One cell of a notebook: a ledger that lasts, no `out`."""
    given: dict[str, Any] = {"rows": 20, "engine": "numpy", "ledger": folder / LEDGER} | more
    return gb.synthesize(table(90), SCHEMA, given.pop("method", METHOD), **given)


def full_disk(*_: Any) -> None:
    raise ResourceLimit("DISK", "The disk is full.", "It is not.", "Make room.")


def tables_by_charge(folder: Path) -> dict[str, set[str]]:
    """Reservation -> digests of everything that was ever released for it; each release is verified."""
    ledger = Ledger.read(folder / LEDGER)
    committed = {e.id: {e.sha256} for e in ledger.entries() if e.kind == "commit"}
    found: dict[str, set[str]] = {e.id: set() for e in ledger.entries() if e.kind == "reserve"}
    for kept in gb.releases(folder / LEDGER):
        verify(kept.path, ledger=ledger)
        found[kept.reservation].add(str(gb.load(kept).receipt["digest"]))
    assert all(found[one] <= committed.get(one, set()) for one in found)
    return found


def test_the_same_cell_again_returns_the_release_that_was_bought(tmp_path: Path) -> None:
    first, second = ask(tmp_path), ask(tmp_path)

    assert not first.bought_before
    assert second.bought_before
    assert "at no further cost" in repr(second)
    assert second.sets[0].equals(first.sets[0])
    assert second.receipt.to_json() == first.receipt.to_json()
    assert len(tables_by_charge(tmp_path)) == 1


@pytest.mark.slow
def test_other_rows_and_seeds_are_drawn_from_the_tables_that_were_bought(tmp_path: Path) -> None:
    asked = [{}, {"rows": 35}, {"seed": 4}, {"rows": None}]
    releases = [ask(tmp_path, **one) for one in asked]

    assert len(tables_by_charge(tmp_path)) == 1
    assert [one.bought_before for one in releases] == [False, True, True, True]
    assert len(releases[1].sets[0]) == 35
    assert releases[2].sets[0].equals(releases[0].sample(20, seed=4))


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        {"method": gb.Laplace(epsilon=2)},
        {"method": gb.Laplace(epsilon=1, relation="replace_one")},
        {"sets": 2},
        {"fresh": True},
    ],
    ids=str,
)
def test_another_request_is_another_purchase(other: dict[str, Any], tmp_path: Path) -> None:
    first, second = ask(tmp_path), ask(tmp_path, **other)

    assert not second.bought_before
    assert len(tables_by_charge(tmp_path)) == 2
    assert first.receipt["digest"] != second.receipt["digest"]


@pytest.mark.slow
def test_other_records_are_another_purchase(tmp_path: Path) -> None:
    ask(tmp_path)

    other = gb.synthesize(table(91), SCHEMA, METHOD, rows=20, ledger=tmp_path / LEDGER)

    assert not other.bought_before
    assert len(tables_by_charge(tmp_path)) == 2


def test_what_was_bought_anew_is_what_the_next_run_returns(tmp_path: Path) -> None:
    ask(tmp_path)
    newest = ask(tmp_path, fresh=True)

    assert ask(tmp_path).receipt["digest"] == newest.receipt["digest"]
    assert ask(tmp_path, rows=7).receipt["digest"] == newest.receipt["digest"]
    assert len(tables_by_charge(tmp_path)) == 2


def test_rows_that_were_paid_for_are_the_same_rows_whatever_the_seed(tmp_path: Path) -> None:
    rows = [ask(tmp_path, method=gb.Pegs(epsilon=1), rows=5, seed=s).sets[0] for s in (1, 2)]

    assert rows[0].equals(rows[1])
    assert len(tables_by_charge(tmp_path)) == 1


def test_a_spent_cap_does_not_stand_against_what_it_paid_for(tmp_path: Path) -> None:
    source, ledger = tmp_path / "data.csv", Ledger.open(tmp_path / LEDGER)
    table(90).write_csv(source)
    ledger.cap(ledger.dataset(source), 1, 0)
    first = gb.synthesize(source, SCHEMA, METHOD, rows=5, ledger=ledger)

    assert (
        gb.synthesize(source, SCHEMA, METHOD, rows=5, ledger=ledger).sets[0].equals(first.sets[0])
    )
    assert gb.synthesize(source, SCHEMA, METHOD, rows=6, ledger=ledger).bought_before
    with pytest.raises(BudgetExhausted):
        gb.synthesize(source, SCHEMA, METHOD, rows=5, ledger=ledger, fresh=True)


def test_what_is_kept_is_private_to_the_user(tmp_path: Path) -> None:
    release = ask(tmp_path)

    assert release.path is not None
    assert stat.S_IMODE(release.path.parent.stat().st_mode) == 0o700
    assert not list(release.path.parent.glob(".*partial*"))


def cell(says: Connection, folder: Path, rows: int, last: int) -> None:
    """A cell whose kernel is killed at a durable step; 0 lets it end, and tells how many it has."""
    honest, done, kill = os.fsync, [0], killing(last)

    def fsync(handle: int) -> None:
        honest(handle)
        done[0] += 1
        kill()

    os.fsync = fsync
    ask(folder, rows=rows)
    says.send(done[0])


def survives(folder: Path, last: int) -> None:
    """Killed at a step; then a cell that asks for other rows; then the first one: one charge at most.

    Each run draws its own noise: a second draw on one charge would show.
    """
    Child(cell, folder, 20, last).rest()
    other, same = ask(folder, rows=30), ask(folder, rows=20)

    assert [len(one.sets[0]) for one in (other, same)] == [30, 20]
    assert {len(digests) for digests in tables_by_charge(folder).values()} == {1}
    assert len(tables_by_charge(folder)) == 1
    assert not list((folder / "home" / "ledger.sqlite.releases").glob(".*"))


def kill_steps(tmp_path: Path, stride: int) -> range:
    (tmp_path / "whole").mkdir()
    total = int(Child(cell, tmp_path / "whole", 20, 0).rest()[-1])
    assert total > 20
    return range(1, total + 1, stride)


@pytest.mark.slow
def test_a_kernel_that_is_killed_anywhere_is_charged_once_and_loses_nothing(tmp_path: Path) -> None:
    for last in kill_steps(tmp_path, 3):
        (tmp_path / str(last)).mkdir()
        survives(tmp_path / str(last), last)


def _buys_again(self: Package, release: gb.Release, where: str = "") -> None:
    """A take that takes nothing: the tables that were bought are drawn again."""


def _pays_with_what_is_spent(
    self: Package, ledger: Ledger, reserve: Callable[[], Any], *, strict: bool = False
) -> Any:
    """A hold that takes over any reservation, whatever became visible for it."""
    self.result = None
    self._hold = ledger.find(self.request) or reserve()
    self._partial.save(reservation=self._hold.id)
    return self._hold


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [("take", _buys_again), ("hold", _pays_with_what_is_spent)],
    ids=["buys again", "one charge for two tables"],
)
def test_a_saboteur_is_caught(broken: tuple[str, Any], tmp_path: Path) -> None:
    with faults((Package, *broken)), pytest.raises((AssertionError, gb.GibbousError)):
        survives(tmp_path, 0)


@pytest.mark.slow
def test_a_release_is_saved_where_its_user_wants_it(tmp_path: Path) -> None:
    kept, brief = ask(tmp_path), ask(tmp_path, ledger=gb.Ledger.ephemeral(), sets=2)

    for number, release in enumerate((kept, brief, gb.load(kept.path))):
        folder = release.save(tmp_path / f"saved-{number}")
        verify(folder)
        saved = gb.load(folder)
        assert [one.to_dicts() for one in saved.sets] == [one.to_dicts() for one in release.sets]
        assert saved.receipt["ledger"] == release.receipt["ledger"]
    assert len(tables_by_charge(tmp_path)) == 1
    with pytest.raises(gb.GibbousError, match="overwrite=True"):
        kept.save(tmp_path / "saved-0")
    kept.save(tmp_path / "saved-0", overwrite=True)


def test_a_damaged_release_is_not_copied(tmp_path: Path) -> None:
    kept = ask(tmp_path)
    assert kept.path is not None
    with (kept.path / "synthetic_1.parquet").open("ab") as file:
        file.write(b"x")

    with pytest.raises(gb.GibbousError):
        kept.save(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert not list(tmp_path.glob(".copy*"))


@pytest.mark.parametrize(
    ("method", "given"),
    [
        (None, {}),
        ("laplace", {}),
        (gb.Laplace(), {}),
        (gb.NoisyPegs(delta=1e-6), {}),
        ("adaptive_gibbs", {"delta": 1e-9}),
        (gb.PerSet("noisy_pegs"), {}),
        (gb.PerSet(gb.NoisyPegs(delta=1e-6)), {}),
    ],
    ids=str,
)
def test_a_budget_that_nobody_stated_is_not_spent(
    method: Any, given: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ParameterError, match="stated, never assumed"):
        ask(tmp_path, method=method, **given)

    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    "given",
    [
        {"method": "laplace", "epsilon": 1},
        {"method": gb.PerSet(gb.NoisyPegs(epsilon=1, delta=1e-6))},
        {"method": "noisy_pegs", "risk": "tpr@1%=3%"},
        {"method": "noisy_pegs", "epsilon": 1, "delta": 1e-6, "parents": 1},
    ],
    ids=str,
)
def test_a_budget_that_was_stated_is_spent(given: dict[str, Any], tmp_path: Path) -> None:
    release = ask(tmp_path, **given)

    assert release.claim.is_dp
    assert len(tables_by_charge(tmp_path)) == 1


def test_a_risk_is_what_the_release_keeps(tmp_path: Path) -> None:
    risky = ask(tmp_path, method="noisy_pegs", risk="tpr@1%=3%")

    assert risky.claim == gb.plan(SCHEMA, "noisy_pegs", risk="tpr@1%=3%", rows=20).total


def test_parameters_beside_a_mechanism_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="already made"):
        ask(tmp_path, method=gb.Laplace(epsilon=1), epsilon=2)


CELLS = [
    "import gibbous as gb, polars as pl",
    "from tests.pipeline.test_pipeline import SCHEMA, table",
    "data = table(90)",
    "schema = SCHEMA",
    "gb.methods()",
    "plan = gb.plan(schema, 'laplace', epsilon=1)",
    "str(plan)",
    "release = gb.synthesize(data, schema, 'laplace', epsilon=1)  # 1",
    "made.append(release)",
    "release.sets[0].head()",
    "release.sample(5)",
    "other = gb.synthesize(data, schema, 'laplace', epsilon=1, rows=40)",
    "made.append(other)",
    "other.sets[0].height",
    "synthesizer = gb.Synthesizer('laplace', epsilon=2, schema=schema)",
    "synthesizer.fit(data)  # 2",
    "made.append(synthesizer.release_)",
    "synthesizer.sample(10)",
    "synthesizer.fit(data, rows=12)",
    "made.append(synthesizer.release_)",
    "paid = gb.synthesize(data, schema, 'pegs', epsilon=0.5, rows=4)  # 3",
    "made.append(paid)",
    "paid.sets[0]",
    "seeded = gb.synthesize(data, schema, 'laplace', epsilon=1, seed=3)",
    "made.append(seeded)",
    "several = gb.synthesize(data, schema, 'noisy_pegs', epsilon=1, delta=1e-6, sets=2)  # 4",
    "made.append(several)",
    "several.sets[1]",
    "gb.releases()",
    "one = gb.load(gb.releases()[0])",
    "one.sets[0]",
    "gb.verify(one.path)",
    "pandas = gb.synthesize(data.to_pandas(), schema, 'laplace', epsilon=1)",
    "made.append(pandas)",
    "same = gb.Synthesizer(gb.Laplace(epsilon=1)).fit(data, schema)",
    "made.append(same.release_)",
    "gb.Ledger.open().accounts()",
    "release.claim",
    "release.receipt['digest']",
    "len(made)",
]
OUT_CELLS = [  # the same, each into a folder that no cell named before; but rows that are paid for
    c.replace("epsilon=1", "epsilon=1, out=new()") if "synthesize" in c else c for c in CELLS
]
PURCHASES = 4
ORDERS = {  # what each kernel runs, one after the other
    "rerun": ["[c for c in CELLS for _ in range(2)]"],
    "restart": ["CELLS[:21]", "CELLS[:27] + ['import os; os._exit(0)']", "CELLS", "CELLS[:4] + CELLS[25:26]"],
    "reload": ["CELLS", "CELLS[:4] + ['[gb.load(r).sets[0] for r in gb.releases()]'] + CELLS[4:]"],
}  # fmt: skip
OUTS = {"rerun": 10, "restart": 12, "reload": 10}  # folders that cells have made


@pytest.mark.parametrize("cells", ["CELLS", "OUT_CELLS"])
@pytest.mark.parametrize(
    "order", [o if o == "rerun" else pytest.param(o, marks=pytest.mark.slow) for o in ORDERS]
)
@pytest.mark.slow
def test_a_notebook_of_forty_cells_in_any_order_spends_once_a_request(
    order: str, cells: str, tmp_path: Path
) -> None:
    assert len(CELLS) == 40
    kept: set[Path] = set()
    environment = dict(os.environ, GIBBOUS_HOME=str(tmp_path / "home"))
    for kernel in ORDERS[order]:
        code = (
            f"import pathlib, tempfile\nfrom tests.pipeline.test_kept import {cells} as CELLS\n"
            f"new = lambda: pathlib.Path(tempfile.mkdtemp(dir={str(tmp_path)!r})) / 'out'\n"
            f"space = {{'made': [], 'new': new}}\nfor cell in {kernel}: exec(cell, space)"
        )
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, cwd=os.getcwd())
        now = {one.path for one in gb.releases(tmp_path / LEDGER)}
        assert kept <= now
        kept = now

    charged = tables_by_charge(tmp_path)
    for folder in tmp_path.glob("*/out"):
        verify(folder, ledger=Ledger.read(tmp_path / LEDGER))
        receipt = gb.load(folder).receipt
        charged[receipt["ledger"]["reservation"]].add(receipt["digest"])
    assert len(charged) == PURCHASES
    assert {len(digests) for digests in charged.values()} == {1}
    assert all(isinstance(gb.load(path).sets[0], pl.DataFrame) for path in kept)
    assert len(list(tmp_path.glob("*/out"))) == (0 if cells == "CELLS" else OUTS[order])


@pytest.mark.slow
def test_another_folder_is_drawn_from_the_tables_that_were_paid_for(tmp_path: Path) -> None:
    first = ask(tmp_path, out=tmp_path / "a")
    second = ask(tmp_path, out=tmp_path / "b", rows=35)
    shutil.rmtree(tmp_path / "a")
    third, kept = ask(tmp_path, out=tmp_path / "c", format="csv"), ask(tmp_path)
    shutil.rmtree(tmp_path / "b")
    shutil.rmtree(tmp_path / "c")
    last = ask(tmp_path, out=tmp_path / "d")

    assert not first.bought_before
    for one, place in ((second, "/a'"), (third, "/b'"), (kept, "/b'"), (last, "releases/")):
        assert one.bought_before
        assert place in one.bought_from
        assert one.bought_from in repr(one)
        assert one.receipt["digest"] == first.receipt["digest"]
    assert charges(tmp_path) == [first.receipt["ledger"]["reservation"]]
    verify(tmp_path / "d", ledger=Ledger.read(tmp_path / LEDGER))


def test_the_newest_tables_are_drawn_from(tmp_path: Path) -> None:
    ask(tmp_path, out=tmp_path / "a")
    newest = ask(tmp_path, out=tmp_path / "b", fresh=True)

    assert not newest.bought_before
    assert ask(tmp_path, out=tmp_path / "c").receipt["digest"] == newest.receipt["digest"]
    assert len(charges(tmp_path)) == 2


def test_what_is_charged_again_since_its_tables_are_gone_is_said(tmp_path: Path) -> None:
    first = ask(tmp_path, out=tmp_path / "a")
    shutil.rmtree(tmp_path / "a")

    with pytest.warns(
        LedgerWarning, match=r"\('a', 2.*\), but its folder is gone .* charged again"
    ):
        second = ask(tmp_path, out=tmp_path / "b")

    assert second.receipt["digest"] != first.receipt["digest"]
    assert len(charges(tmp_path)) == 2


def changed_elsewhere(folder: Path) -> None:
    """A folder whose tables were changed, and sealed again with their digest, is not drawn from."""
    (folder / "elsewhere").mkdir()
    first = ask(folder, out=folder / "out")
    forged(folder)
    other = gb.load(folder / "elsewhere" / "out").receipt["digest"]
    receipt = folder / "out" / "ledger.json"
    text = receipt.read_text().replace(first.receipt["digest"], other)
    receipt.write_text(text)
    for seal in manifest.SEALS:
        (folder / "out" / seal).unlink(missing_ok=True)
    manifest.seal(folder / "out")
    assert gb.load(folder / "out").receipt["digest"] == other

    with pytest.warns(LedgerWarning, match="gone or was changed"):
        second = ask(folder, out=folder / "b")

    assert not second.bought_before
    assert second.receipt["digest"] not in (first.receipt["digest"], other)
    assert len(charges(folder)) == 2


def test_a_folder_whose_tables_were_changed_is_not_drawn_from(tmp_path: Path) -> None:
    changed_elsewhere(tmp_path)


def _believes(ledger: Ledger, purchase: bytes, folders: Iterable[Path]) -> Earlier | None:
    """A look that takes what lies in a folder for what was paid for."""
    return next((Earlier(str(one), gb.load(one)) for one in folders if one.exists()), None)


def test_a_look_that_believes_a_folder_is_caught(tmp_path: Path) -> None:
    with (
        faults((kept_module, "earlier", _believes)),
        pytest.raises((AssertionError, pytest.fail.Exception)),
    ):
        changed_elsewhere(tmp_path)


def test_what_a_look_believes_is_charged_all_the_same(tmp_path: Path) -> None:
    with faults((kept_module, "earlier", _believes)), contextlib.suppress(pytest.fail.Exception):
        changed_elsewhere(tmp_path)

    assert len(charges(tmp_path)) == 2  # the hold does not rely on the look


def again(folder: Path, **more: Any) -> gb.Release:
    """One cell of a notebook that writes its own folder, and replaces it."""
    return ask(folder, out=folder / "out", overwrite=True, **more)


def charges(folder: Path) -> list[str]:
    return [e.id for e in Ledger.read(folder / LEDGER).entries() if e.kind == "reserve"]


@pytest.mark.slow
def test_a_cell_that_replaces_its_own_folder_pays_once(tmp_path: Path) -> None:
    first = again(tmp_path)
    for more in ({}, {"rows": 35}, {"seed": 4}, {"format": "csv"}):
        second = again(tmp_path, **more)
        assert second.bought_before
        assert second.receipt["digest"] == first.receipt["digest"]
        assert len(second.sets[0]) == more.get("rows", 20)
        verify(tmp_path / "out", ledger=Ledger.read(tmp_path / LEDGER))

    assert charges(tmp_path) == [first.receipt["ledger"]["reservation"]]


@pytest.mark.parametrize(
    "other",
    [
        {"method": gb.Laplace(epsilon=2)},
        {"method": gb.Laplace(epsilon=1, relation="replace_one")},
        {"sets": 2},
        {"fresh": True},
        {"ledger": "other.sqlite"},
    ],
    ids=["epsilon", "relation", "sets", "fresh", "ledger"],
)
def test_a_folder_of_another_purchase_is_replaced_by_one_that_is_paid(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    if "ledger" in other:
        other = {"ledger": tmp_path / other["ledger"]}
    first, second = again(tmp_path), again(tmp_path, **other)

    assert not second.bought_before
    assert second.receipt["digest"] != first.receipt["digest"]
    assert second.receipt["ledger"]["reservation"] != first.receipt["ledger"]["reservation"]


def test_a_folder_of_other_records_is_replaced_by_one_that_is_paid(tmp_path: Path) -> None:
    again(tmp_path)
    other = gb.synthesize(
        table(91), SCHEMA, METHOD, rows=20, engine="numpy", ledger=tmp_path / LEDGER,
        out=tmp_path / "out", overwrite=True,
    )  # fmt: skip

    assert not other.bought_before
    assert len(charges(tmp_path)) == 2


def test_rows_that_are_drawn_from_records_are_paid_for_each_time(tmp_path: Path) -> None:
    first = again(tmp_path, method=gb.Pegs(epsilon=90))
    with pytest.warns(LedgerWarning, match="its rows are what was paid for"):
        second = again(tmp_path, method=gb.Pegs(epsilon=90))

    assert not first.bought_before
    assert not second.bought_before
    assert len(charges(tmp_path)) == 2


def forged(folder: Path) -> None:
    """Other tables than those that were paid for, in a folder whose seals are whole."""
    other = again(folder / "elsewhere", ledger=folder / "theirs.sqlite")
    assert other.path is not None
    receipt = (folder / "out" / "ledger.json").read_bytes()
    shutil.rmtree(folder / "out")
    shutil.copytree(other.path, folder / "out")
    (folder / "out" / "ledger.json").write_bytes(receipt)
    for seal in manifest.SEALS:
        (folder / "out" / seal).unlink(missing_ok=True)
    manifest.seal(folder / "out")


def forgery_is_paid_for(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    first = again(folder)
    forged(folder)
    with pytest.warns(LedgerWarning, match="gone or was changed"):
        found = again(folder)

    assert found.receipt["digest"] != gb.load(folder / "elsewhere" / "out").receipt["digest"]
    assert not found.bought_before
    assert found.receipt["ledger"]["reservation"] != first.receipt["ledger"]["reservation"]
    verify(folder / "out", ledger=Ledger.read(folder / LEDGER))


def test_tables_that_were_not_paid_for_are_not_taken(tmp_path: Path) -> None:
    forgery_is_paid_for(tmp_path)


def _trusts_the_folder(
    self: Package, ledger: Ledger, reserve: Callable[[], Any], *, strict: bool = False
) -> Any:
    """A hold that believes what the folder says of its reservation."""
    self._hold = ledger.find(self.request, str(self._partial.state["reservation"])) or reserve()
    self._partial.save(reservation=self._hold.id)
    return self._hold


def test_a_hold_that_trusts_the_folder_is_caught(tmp_path: Path) -> None:
    with (
        faults((Package, "hold", _trusts_the_folder)),
        pytest.raises((AssertionError, gb.GibbousError, pytest.fail.Exception)),
    ):
        forgery_is_paid_for(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "retried", [{"out": "a", "rows": 35}, {"out": "b"}, {"out": "b", "seed": 4}]
)
def test_tables_of_a_run_that_a_full_disk_stopped_are_drawn_from_whatever_comes_next(
    tmp_path: Path, retried: dict[str, Any]
) -> None:
    """Before: other rows removed the private folder, another one did not find it; both paid again."""
    with faults((Package, "write_sets", full_disk)), pytest.raises(ResourceLimit):
        ask(tmp_path, out=tmp_path / "a", seed=3)

    found = ask(tmp_path, **retried | {"out": tmp_path / str(retried["out"])})

    assert charges(tmp_path) == [found.receipt["ledger"]["reservation"]]
    assert len(found.sets[0]) == retried.get("rows", 20)
    assert not (found.bought_before and retried["out"] == "a")
    verify(tmp_path / str(retried["out"]), ledger=Ledger.read(tmp_path / LEDGER))


def test_tables_of_a_stopped_run_are_drawn_anew_where_that_is_wanted(
    tmp_path: Path,
) -> None:
    with faults((Package, "write_sets", full_disk)), pytest.raises(ResourceLimit):
        ask(tmp_path, out=tmp_path / "a")

    ask(tmp_path, out=tmp_path / "b", fresh=True)

    assert len(charges(tmp_path)) == 2


def test_what_a_refusal_drew_is_not_drawn_again_for_the_same_charge(tmp_path: Path) -> None:
    """Before: a refusal that noise decided left its reservation open, and the next draw was free."""

    def refused(*_: Any) -> Any:
        raise PrivacyRefused("RULE", "No row is possible.", "One is.", "Change the rule.")

    with faults((package_module, "with_rules", refused)), pytest.raises(PrivacyRefused) as caught:
        ask(tmp_path, out=tmp_path / "a")
    assert "the same command is charged again" in str(caught.value)
    with pytest.warns(LedgerWarning, match="charged again"):
        again = ask(tmp_path, out=tmp_path / "a")

    paid = charges(tmp_path)
    assert len(paid) == 2
    assert paid[1] == again.receipt["ledger"]["reservation"]


def forged_leftovers_are_paid_for(folder: Path, out: str) -> None:
    """Tables of another ledger's run lie, with their digest, where a stopped run left its own."""
    for name, ledger in (("a", LEDGER), ("c", "other/ledger.sqlite")):
        with faults((Package, "write_sets", full_disk)), pytest.raises(ResourceLimit):
            ask(folder, out=folder / name, ledger=folder / ledger)
    mine, theirs = (next(folder.glob(f".{name}.partial-*")) for name in ("a", "c"))
    shutil.rmtree(mine / "package")
    shutil.copytree(theirs / "package", mine / "package")
    digest = json.loads((theirs / "state.json").read_text())["digest"]
    state = json.loads((mine / "state.json").read_text()) | {"digest": digest}
    (mine / "state.json").write_text(json.dumps(state))

    found = ask(folder, out=folder / out, rows=35)

    assert found.receipt["digest"] != digest
    assert len(charges(folder)) == 2
    verify(folder / out, ledger=Ledger.read(folder / LEDGER))


@pytest.mark.parametrize("out", ["a", "b"])
@pytest.mark.filterwarnings("ignore::gibbous.privacy.ledger.LedgerWarning")
def test_tables_in_a_private_folder_that_were_not_paid_for_are_not_taken(
    tmp_path: Path, out: str
) -> None:
    forged_leftovers_are_paid_for(tmp_path, out)


@pytest.mark.parametrize("out", ["a", "b"])
def test_a_hold_that_trusts_a_private_folder_is_caught(tmp_path: Path, out: str) -> None:
    with (
        faults((Package, "hold", _trusts_the_folder)),
        pytest.raises((AssertionError, gb.GibbousError)),
    ):
        forged_leftovers_are_paid_for(tmp_path, out)
