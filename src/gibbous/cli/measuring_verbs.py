"""The verbs that measure and show: evaluate, report, infer, audit, compare, study, map."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from gibbous.cli.flags import (
    Delta,
    Epsilon,
    GeographyFile,
    Names,
    ReadingFlags,
    Relation,
    SchemaFile,
    ScreenFlags,
    Settings,
)
from gibbous.cli.output_flags import Overwrite, SignFlags


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ComparedFlags:
    """How synthetic rows are compared with real ones."""

    schema: SchemaFile = None
    geography: GeographyFile = None
    cuts: Annotated[
        str | None, Option("--cuts", help="Flows: miles of moderate, long trips: 6,20.")
    ] = None
    keys: Names = None
    sensitive: Names = None
    targets: Names = None
    formula: Annotated[
        list[str] | None, Option("--formula", help='A regression, "y ~ a + b"; repeatable.')
    ] = None
    holdout: Annotated[str | None, Option("--holdout", help="Records no synthesizer saw.")] = None
    seed: Annotated[int, Option("--seed", help="Of samples and references.")] = 0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EvaluateFlags(ComparedFlags):
    """What is compared, and which findings are computed."""

    real: Annotated[
        str, Argument(help="The confidential records: CSV, Parquet, or the address of a table.")
    ]
    synth: Annotated[list[Path], Argument(help="A release folder, or synthetic files.")]
    given: Names = None
    only: Annotated[
        list[str] | None, Option("--only", "--metrics", help="Findings, or utility, risk.")
    ] = None
    fraction: Annotated[
        float | None, Option("--fraction", help="Share of the population in REAL.")
    ] = None


def evaluate(
    evaluated: EvaluateFlags,
    reading: ReadingFlags,
    screen: ScreenFlags,
    out: Annotated[Path | None, Option("--out", "-o", help="New folder of the report.")] = None,
) -> None:
    """Compare synthetic rows with the real records: findings beside references, internal report."""
    from gibbous.cli import evaluate_verb

    evaluate_verb.run(evaluated, reading, out, screen)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ReportFlags(ComparedFlags):
    """What a report shows beside the release itself."""

    real: Annotated[str | None, Option("--real", help="Real records to compare with.")] = None
    findings: Annotated[
        Path | None, Option("--findings", help="findings.json, in place of --real.")
    ] = None
    destination: Annotated[
        list[str] | None, Option("--destination", help="Flows: ids on maps; repeatable.")
    ] = None
    study: Annotated[
        Path | None, Option("--study", help="Folder of a study: its map, for internal use.")
    ] = None


def report(
    release: Annotated[Path, Argument(help="A release folder.")],
    reported: ReportFlags,
    signing: SignFlags,
    reading: ReadingFlags,
    screen: ScreenFlags,
    audience: Annotated[str, Option("--audience", help="public or internal.")] = "public",
    out: Annotated[
        Path | None,
        Option(
            "--out", "-o", help="HTML file, JSON twin beside it; default (public): in the release."
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write one self-contained page: public (from the release alone), internal (with real data)."""
    from gibbous.cli import report_verb

    page = report_verb.Page(release, audience, out, overwrite, signing)
    report_verb.run(page, reported, reading, screen)


@dataclass(frozen=True, eq=False, repr=False)
class InferFlags:
    """A model, and how its sets are combined."""

    formula: Annotated[str, Argument(help='For example "y ~ a + b"; "~ a + b" for shares.')]
    family: Annotated[
        str, Option("--family", help="gaussian, binomial, multinomial or poisson.")
    ] = "gaussian"
    rule: Annotated[
        str,
        Option(
            "--rule",
            help="auto, unified, raghunathan2003, reiter2003, raab2016; of shares measurement.",
        ),
    ] = "auto"
    level: Annotated[float, Option("--level", help="Of the intervals.")] = 0.95
    records: Annotated[
        float | None, Option("--records", help="Number of records, where public.")
    ] = None
    replicates: Annotated[int | None, Option("--replicates", help="Redraws of the noise.")] = None
    seed: Annotated[int, Option("--seed", help="Of the redrawn noise.")] = 0
    reference: Annotated[
        list[str] | None,
        Option("--reference", help="COLUMN=LEVEL to compare with; by default the first level."),
    ] = None


def infer(
    release: Annotated[Path, Argument(help="A release folder.")],
    fitted: InferFlags,
    screen: ScreenFlags,
) -> None:
    """Fit a model to every set of a release and combine; needs no real data and spends nothing."""
    from gibbous.cli import infer_verb

    infer_verb.run(release, fitted, screen)


@dataclass(frozen=True, eq=False, repr=False)
class AuditFlags:
    """A method, and how hard it is attacked."""

    method: Annotated[str, Argument(help="A registered method.")]
    epsilon: Epsilon = None
    delta: Delta = None
    relation: Relation = None
    setting: Settings = None
    seconds: Annotated[
        float | None, Option("--seconds", help="CPU seconds, about; by default 60.")
    ] = None
    runs: Annotated[int | None, Option("--runs", help="Runs of each part instead.")] = None
    seed: Annotated[int, Option("--seed", help="Seeds the canaries' coins.")] = 0
    nightly: Annotated[
        bool, Option("--nightly", help="Up to 20 times the runs, by default in 4 hours at most.")
    ] = False


def audit(
    audited: AuditFlags,
    screen: ScreenFlags,
    out: Annotated[Path | None, Option("--out", "-o", help="JSON file to write.")] = None,
) -> None:
    """Attack a method on constructed tables; no real data, no budget."""
    from gibbous.cli import audit_verb

    code = audit_verb.run(audited, out, screen)
    if code:
        raise typer.Exit(code)


@dataclass(frozen=True, eq=False, repr=False)
class OverridingFlags:
    """How text files are read, in place of what a study file says."""

    sep: Annotated[str | None, Option("--sep", help="Separator of the CSV input.")] = None
    encoding: Annotated[str | None, Option("--encoding", help="Encoding of the CSV input.")] = None
    decimal: Annotated[str | None, Option("--decimal", help="Decimal mark of the CSV input.")] = (
        None
    )
    on_bad_line: Annotated[
        str | None,
        Option("--on-bad-line", help="reject, or drop: ragged CSV lines, counted and reported."),
    ] = None


def compare(
    config: Annotated[Path, Option("--config", "-c", help="A study file (TOML).")],
    out: Annotated[
        Path, Option("--out", "-o", help="Folder of the study; goes on where it stopped.")
    ],
    reading: OverridingFlags,
    screen: ScreenFlags,
    workers: Annotated[
        int | None, Option("--workers", min=1, help="Processes; default: all cores.")
    ] = None,
    public_data: Annotated[
        bool, Option("--public-data", help="The records are public: no mark on the figures.")
    ] = False,
    ledger: Annotated[
        Path | None, Option("--ledger", help="Charge each run here; default: nothing is.")
    ] = None,
) -> None:
    """Run methods at several budgets, measure what comes out, draw risk-utility maps; resumable."""
    from gibbous.cli import compare_verb

    read = {name: text for name, text in asdict(reading).items() if text is not None}
    compare_verb.run(config, out, workers, public_data, ledger, read, screen)


@dataclass(frozen=True, eq=False, repr=False)
class StudyFlags:
    """How an experiment is run again."""

    quick: Annotated[bool, Option("--quick", help="The short setting in place of the paper's.")] = (
        False
    )
    reps: Annotated[int | None, Option("--reps", min=1, help="Repeats of each setting.")] = None
    workers: Annotated[
        int | None, Option("--workers", min=1, help="Processes; default: all cores.")
    ] = None
    seed: Annotated[int, Option("--seed", help="Of every draw.")] = 0
    data: Annotated[Path | None, Option("--data", help="A table in place of the study's own.")] = (
        None
    )
    schema: SchemaFile = None


def study(
    name: Annotated[
        str, Argument(help="bowen2016-1 and so on; a wrong name lists all.", metavar="NAME")
    ],
    repeated: StudyFlags,
    screen: ScreenFlags,
    out: Annotated[
        Path | None, Option("--out", "-o", help="Folder; goes on where it stopped.")
    ] = None,
    restart: Annotated[
        bool, Option("--no-resume", help="Refuse a folder of an earlier start.")
    ] = False,
) -> None:
    """Run an experiment of a paper again: its tables here, files and figures in a folder."""
    from gibbous.cli import study_verb

    study_verb.run(name, out, asdict(repeated) | {"resume": not restart}, screen)


@dataclass(frozen=True, eq=False, repr=False)
class MapFlags:
    """Which flows are drawn, and where their columns are."""

    release: Annotated[Path, Argument(help="A release folder, or public flows.")]
    destination: Annotated[str, Option("--destination", help="Id shown first.")]
    coordinates: Annotated[Path, Option("--coordinates", help="Places: id, lat, lon.")]
    real: Annotated[
        Path | None, Option("--real", help="Real flows beside them: an internal map.")
    ] = None
    outlines: Annotated[Path | None, Option("--outlines", help="GeoJSON areas or lines.")] = None
    view: Annotated[
        int | None, Option("--view", help="Distance to the edge; default: 95 % of people.")
    ] = None
    unit: Annotated[str, Option("--unit", help="Of distances: miles or km.")] = "miles"
    destination_column: Annotated[
        str, Option("--destination-column", help="Where it does not follow.")
    ] = ""
    origin_column: Annotated[str, Option("--origin-column", help="Where it does not follow.")] = ""
    count: Annotated[str, Option("--count", help="Column of counts, if any.")] = ""
    place: Annotated[str, Option("--place", help="Id column of the coordinates.")] = ""
    name: Annotated[str, Option("--name", help="Column of coordinates: names of places.")] = ""
    lat: Annotated[str, Option("--lat", help="Latitude column.")] = "lat"
    lon: Annotated[str, Option("--lon", help="Longitude column.")] = "lon"
    number: Annotated[int, Option("--number", help="Which set, from 1.")] = 1


def flow_map(
    mapped: MapFlags,
    out: Annotated[Path, Option("--out", "-o", help=".html, .svg or .png.")],
    reading: ReadingFlags,
    screen: ScreenFlags,
    overwrite: Overwrite = False,
) -> None:
    """Draw where the people of a destination come from: a page to search, or one picture."""
    from gibbous.cli import map_verb

    map_verb.run(mapped, out, overwrite, reading, screen)


VERBS = (
    (evaluate, "How good and how risky synthetic rows are; confidential."),
    (report, "The public or the internal report of a release."),
    (infer, "Estimates and intervals from a release."),
    (audit, "Try to refute what a method claims."),
    (compare, "Methods side by side on one table."),
    (study, "The experiments of the papers, run again."),
    (flow_map, "A map of where the people of a destination come from."),
)
"""(function, short help), in the order of the help page."""
