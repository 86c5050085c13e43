"""`gibbous demo`: the main job on real data, what came of it in plain words, and both reports."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gibbous.cli import show
from gibbous.cli.parameters import build_method
from gibbous.cli.progress import WORDS, Bars
from gibbous.cli.synthesize_verb import finish
from gibbous.core.discovery import Discovery
from gibbous.core.keywords import DEFAULT_METHOD
from gibbous.core.release import Release
from gibbous.core.schema import Schema, Unit
from gibbous.core.tables import Tables
from gibbous.read import demo_data
from gibbous.write.output_path import check_output

if TYPE_CHECKING:
    import polars

    from gibbous.cli.flags import ScreenFlags
    from gibbous.core.protocols import Mechanism, Progress

EPSILON, DELTA, SETS, SEED = "3", "1e-6", 2, 7
PAID_ROWS = 200  # for methods that cost by the row
SHOWN = 4
COLUMN = "mdvis"
# What an insurer's clerk would know of a family's plan, what they might want to know, and the
# regression that the data set is known for.
KEYS = ("lncoins", "idp", "lpi", "fmde")
SENSITIVE, TARGET = "disea", "physlm"
FORMULA = "mdvis ~ lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp"
SLOW = ("lasso_path", "lasso_mse", "pmse_tree", "pmse_tree_ratio")  # a minute together, on one core
EVALUATE = ("sklearn", "statsmodels", "formulaic")
REPORT = ("altair", "vl_convert")


def run(out: Path | None, name: str, overwrite: bool, screen: ScreenFlags) -> None:
    """Make a release of the RAND data, verify it, and show it.

    For the default method nothing is declared; others get the declared schema. `out`: None takes
    ./gibbous-demo, or the next free name.
    """
    method = _method(name)
    demo_data.demo_file()  # it is there
    target = out or _free(Path("gibbous-demo"))
    check_output(target, overwrite=overwrite)
    inside = _inside(target, overwrite)
    source, holdout = inside / "records.csv", inside / "holdout.csv"
    size = demo_data.write_records(source, holdout)
    schema: Schema | Discovery = demo_data.demo_schema()
    if name == DEFAULT_METHOD:
        person = Unit("person", demo_data.PERSON, demo_data.YEARS)
        schema = Discovery.of(source, person, numeric=demo_data.NUMBERS)
    rows = PAID_ROWS if method.about.releases == "rows" else None
    from gibbous.pipeline import synthesize
    from gibbous.privacy.ledger.files import default_path
    from gibbous.reporting.release_report import verify

    if not screen.silent:
        _opening(source, target, size, schema)
    began = time.perf_counter()
    with Bars(quiet=screen.silent) as drawn:
        bars = drawn if screen.silent or sys.stderr.isatty() else _Told(drawn)
        drawn.compiling()
        release = synthesize(
            source,
            schema,
            method,
            rows=rows,
            sets=SETS,
            seed=SEED,
            out=target,
            overwrite=overwrite,
            ledger=default_path().with_name("demo-ledger.sqlite"),  # beside the real one
            progress=bars,
        )
        seconds = time.perf_counter() - began
        if not screen.silent:
            show.line(
                "The release is written. For the two reports it is compared with the real rows."
            )
            show.line()
        reports = _reports(release, (source, holdout), target, inside, bars)
        verify(target, progress=bars)
        if bars is not drawn:
            show.line()
    if screen.silent:
        finish(release, target, screen)
        return
    _closing(release, target, seconds, reports)


class _Told:
    """Progress where there is no terminal: one line a stage, when it begins."""

    def __init__(self, bars: Bars) -> None:
        self._bars, self._seen = bars, {""}

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._seen:
            self._seen.add(stage)
            show.line(f"  {WORDS.get(stage, stage)}")
            sys.stdout.flush()
        self._bars(stage, done, total)


def _opening(source: Path, target: Path, size: tuple[int, int], schema: Schema | Discovery) -> None:
    rows, persons = size
    show.line(f"{demo_data.TITLE}: {rows:,} real person-years of {persons:,} persons, 10 columns")
    show.line(f"  {source} (a fifth of the persons is held out, to compare with)")
    if isinstance(schema, Discovery):
        show.line(f"  A person is protected with all their years, {demo_data.YEARS} at most.")
        show.line(
            "  Nothing is declared but which columns are numbers: all else is bought, too. This is"
        )
        command = (
            f"gibbous synthesize {show.quoted(source)} --header-is-public",
            f"--id {demo_data.PERSON}:{demo_data.YEARS} --numeric {','.join(demo_data.NUMBERS)}",
            f"--epsilon {EPSILON} --delta {DELTA} --sets {SETS} --out {show.quoted(target)}",
        )
        show.line("    " + " \\\n        ".join(command))
    else:
        show.line("  The schema is declared, and one row is protected: one person in one year.")
    show.line()


def _inside(target: Path, overwrite: bool) -> Path:
    """A private folder beside the release, for the records and what is compared with them."""
    inside = target.with_name(f"{target.name}-internal")
    if not (overwrite and inside.is_dir() and not inside.is_symlink()):
        inside = _free(inside)
    inside.mkdir(mode=0o700, exist_ok=True)
    return inside


def _reports(
    release: Release, records: tuple[Path, Path], target: Path, inside: Path, bars: Progress
) -> tuple[Path, Path] | None:
    """The public report inside the release, the internal one beside it; None without the extra."""
    if any(importlib.util.find_spec(name) is None for name in (*EVALUATE, *REPORT)):
        return None
    from gibbous.evaluation.metrics import names
    from gibbous.reporting import evaluate_and_report

    found = evaluate_and_report.evaluate(
        records[0],
        release,
        release.schema,
        holdout=records[1],
        keys=KEYS,
        sensitive=SENSITIVE,
        targets=TARGET,
        formulas=FORMULA,
        only=[name for name in names() if name not in SLOW],
        progress=bars,
    )
    bars("report", 0, 2)
    public = evaluate_and_report.report(target, "public")
    bars("report", 1, 2)
    internal = inside / "report.internal.html"
    evaluate_and_report.report(target, "internal", internal, findings=found, overwrite=True)
    bars("report", 2, 2)
    return public, internal


def _closing(
    release: Release, target: Path, seconds: float, reports: tuple[Path, Path] | None
) -> None:
    plan = release.plan
    show.line(f"What was released, in {seconds:.0f} s:")
    show.folder(target, prefix=True)
    show.line()
    show.line("What it promises:")
    for line in _promise(release):
        show.line(f"  {line}")
    show.line()
    first: polars.DataFrame = release.sets[0]
    whence = "drawn from the noisy tables" if release.tables else "each of them paid for"
    show.line(f"The first {SHOWN} rows of {len(first):,} synthetic ones, {whence}:")
    show.table(first.columns, first.head(SHOWN).rows())
    if release.tables is not None:
        show.line()
        _margin(release.tables, release)
    show.line()
    _where(reports)
    _next(target, more=release.tables is not None)
    show.line(f"Verified. Total cost: {show.cost_words(plan, release.schema)}.")


def _where(reports: tuple[Path, Path] | None) -> None:
    if reports is None:
        show.line('Reports were left out: install them with pip install "gibbous[report]".')
    else:
        public, internal = reports
        show.line("Two reports, for a browser; both work without a network:")
        show.line(f"  {public}")
        show.line("    public: from the release alone; it may be published with it")
        show.line(f"  {internal}")
        show.line("    CONFIDENTIAL: compared with the real records; it stays with their holder")
    show.line()


def _next(target: Path, *, more: bool) -> None:
    folder = show.quoted(target)
    lines = [
        (f"gibbous verify {folder}", "needs no data; a review board has none"),
        (f"less {folder}/METHODS.md", "the guarantee in plain words"),
        (
            "gibbous synthesize YOUR.csv --unit row --header-is-public -e 1 -d 1e-6 -o out",
            "your data",
        ),
    ]
    if more:
        lines.insert(
            1, (f"gibbous synthesize --tables {folder} --rows 1000 -o more", "costs nothing")
        )
    show.line("What to do next:")
    width = max(len(command) for command, _ in lines)
    for command, why in lines:
        show.line(f"  {command:<{width}}   # {why}")
    show.line()


def _promise(release: Release) -> list[str]:
    claim, plan = release.claim, release.plan
    if not claim.is_dp:
        return [claim.words()]
    odds = float(np.exp(float(plan.total.epsilon)))
    lines = [plan.total.words()]
    if odds < 1e6:
        unit = release.schema.unit
        whose = "one person" if unit and unit.kind == "person" else "one person-year"
        lines.append(
            f"Whether {whose} is in the data or not, no event about the release becomes more"
        )
        lines.append(
            f"than {odds:.2f} times as likely, but for a chance of {float(plan.total.delta):.0e}."
            if plan.total.delta
            else f"than {odds:.2f} times as likely."
        )
    if release.tables is not None:
        lines.append("It covers the noisy tables and every row drawn from them, now or later.")
    return lines


def _margin(tables: Tables, release: Release) -> None:
    """Noisy beside synthetic shares of one column: two public facts, no real count."""
    schema = replace(tables.schema, unit=Unit())
    place = schema.index(COLUMN)
    found = next((t for t in tables.extra + tables.items if t.context.targets == (place,)), None)
    if found is None:
        return
    from gibbous.encode.encode import encode
    from gibbous.reporting.margins import summed

    noisy = np.maximum(summed(found, place), 0)
    drawn = np.zeros(schema.sizes[place])
    for frame in release.sets:
        codes = encode(frame, schema).by_column[place]
        drawn += np.bincount(codes, minlength=schema.sizes[place])
    shares = [v / max(float(v.sum()), 1.0) for v in (noisy, drawn)]
    show.line(f"{COLUMN} (visits to a physician in a year), share of rows, both columns public:")
    labels = schema[COLUMN].labels()
    show.table(
        (COLUMN, "noisy table", "synthetic"),
        [(n, f"{a:.3f}", f"{b:.3f}") for n, a, b in zip(labels, *shares, strict=True)],
    )


def _method(name: str) -> Mechanism:
    from gibbous.core.params import describe
    from gibbous.mechanisms.registry import load

    known = {p.name for p in describe(load(name))}
    budget = {"epsilon": EPSILON, "delta": DELTA}
    return build_method(name, {k: v for k, v in budget.items() if k in known})


def _free(path: Path) -> Path:
    """The path itself, or with the first free number behind it: a demonstration never replaces."""
    numbered = (path.with_name(f"{path.name}-{n}") for n in itertools.count(2))
    return path if not path.exists() else next(p for p in numbered if not p.exists())
