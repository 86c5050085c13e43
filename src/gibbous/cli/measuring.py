"""The verbs that measure and show: evaluate, report, infer, audit, compare, study, map."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gibbous.cli.flags import (
    BadLine,
    Debug,
    Delta,
    Encoding,
    Epsilon,
    GeographyFile,
    Json,
    Names,
    Overwrite,
    Quiet,
    Relation,
    SchemaFile,
    Sep,
    Settings,
    reading,
)


def evaluate(
    real: Annotated[Path, typer.Argument(help="The confidential records: CSV or Parquet.")],
    synth: Annotated[list[Path], typer.Argument(help="A release folder, or synthetic files.")],
    schema: SchemaFile = None,
    geography: GeographyFile = None,
    keys: Names = None,
    sensitive: Names = None,
    targets: Names = None,
    formula: Annotated[
        list[str] | None,
        typer.Option("--formula", help='A regression, "y ~ a + b"; repeatable.'),
    ] = None,
    given: Names = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", "--metrics", help="Findings, or utility, risk."),
    ] = None,
    holdout: Annotated[
        Path | None, typer.Option("--holdout", help="Records no synthesizer saw.")
    ] = None,
    fraction: Annotated[
        float | None, typer.Option("--fraction", help="Share of the population in REAL.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of samples and references.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="New folder of the report.")
    ] = None,
    sep: Sep = ",",
    encoding: Encoding = "utf-8",
    on_bad_line: BadLine = "reject",
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare synthetic rows with the real records: findings beside references, internal report."""
    from gibbous.cli import evaluate_verb

    asked = evaluate_verb.Asked(
        real,
        synth,
        schema,
        keys or [],
        sensitive or [],
        targets or [],
        formula or [],
        given or [],
        only or [],
        holdout,
        fraction,
        seed,
        reading(sep, encoding, on_bad_line),
        geography,
    )
    evaluate_verb.run(asked, out, json, quiet)


def report(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    audience: Annotated[str, typer.Option("--audience", help="public or internal.")] = "public",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="HTML file, JSON twin beside it; default (public): in the release."
        ),
    ] = None,
    real: Annotated[
        Path | None, typer.Option("--real", help="Real records to compare with.")
    ] = None,
    findings: Annotated[
        Path | None, typer.Option("--findings", help="findings.json, in place of --real.")
    ] = None,
    schema: SchemaFile = None,
    geography: GeographyFile = None,
    destination: Annotated[
        list[str] | None, typer.Option("--destination", help="Flows: ids on maps; repeatable.")
    ] = None,
    keys: Names = None,
    sensitive: Names = None,
    targets: Names = None,
    formula: Annotated[
        list[str] | None,
        typer.Option("--formula", help='A regression, "y ~ a + b"; repeatable.'),
    ] = None,
    holdout: Annotated[
        Path | None, typer.Option("--holdout", help="Records no synthesizer saw.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of samples and references.")] = 0,
    study: Annotated[
        Path | None, typer.Option("--study", help="Folder of a study: its map, for internal use.")
    ] = None,
    overwrite: Overwrite = False,
    sep: Sep = ",",
    encoding: Encoding = "utf-8",
    on_bad_line: BadLine = "reject",
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write one self-contained page: public (from the release alone), internal (with real data)."""
    from gibbous.cli import report_verb

    compared = report_verb.Compared(
        options=reading(sep, encoding, on_bad_line),
        real=real,
        schema=schema,
        holdout=holdout,
        findings=findings,
        keys=keys or [],
        sensitive=sensitive or [],
        targets=targets or [],
        formulas=formula or [],
        seed=seed,
        study=study,
        geography=geography,
        destinations=destination or [],
    )
    report_verb.run(release, audience, out, compared, overwrite, json, quiet)


def infer(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    formula: Annotated[str, typer.Argument(help='For example "y ~ a + b".')],
    family: Annotated[
        str, typer.Option("--family", help="gaussian, binomial, multinomial or poisson.")
    ] = "gaussian",
    rule: Annotated[
        str,
        typer.Option("--rule", help="auto, unified, raghunathan2003, reiter2003 or raab2016."),
    ] = "auto",
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
    records: Annotated[
        float | None, typer.Option("--records", help="Number of records, where public.")
    ] = None,
    replicates: Annotated[
        int | None, typer.Option("--replicates", help="Redraws of the noise.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the redrawn noise.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit a model to every set of a release and combine; needs no real data and spends nothing."""
    from gibbous.cli import infer_verb

    infer_verb.run(release, formula, family, rule, level, records, replicates, seed, json, quiet)


def audit(
    method: Annotated[str, typer.Argument(help="A registered method.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    relation: Relation = None,
    setting: Settings = None,
    seconds: Annotated[float, typer.Option("--seconds", help="CPU seconds, about.")] = 60.0,
    runs: Annotated[int | None, typer.Option("--runs", help="Runs of each part instead.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seeds the canaries' coins.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="JSON file to write.")] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Attack a method on constructed tables; no real data, no budget."""
    from gibbous.cli import audit_verb

    code = audit_verb.run(
        method, (epsilon, delta), relation, setting or [], (seconds, runs, seed), out, json, quiet
    )
    if code:
        raise typer.Exit(code)


def compare(
    config: Annotated[Path, typer.Option("--config", "-c", help="A study file (TOML).")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder of the study; goes on where it stopped.")
    ],
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; default: all cores.")
    ] = None,
    public_data: Annotated[
        bool, typer.Option("--public-data", help="The records are public: no mark on the figures.")
    ] = False,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Charge each run here; default: nothing is.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run methods at several budgets, measure what comes out, draw risk-utility maps; resumable."""
    from gibbous.cli import compare_verb

    compare_verb.run(config, out, workers, public_data, ledger, json, quiet)


def study(
    name: Annotated[
        str, typer.Argument(help="bowen2016-1 and so on; a wrong name lists all.", metavar="NAME")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder; goes on where it stopped.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The short setting in place of the paper's.")
    ] = False,
    reps: Annotated[
        int | None, typer.Option("--reps", min=1, help="Repeats of each setting.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; default: all cores.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of every draw.")] = 0,
    data: Annotated[
        Path | None, typer.Option("--data", help="A table in place of the study's own.")
    ] = None,
    schema: SchemaFile = None,
    restart: Annotated[
        bool, typer.Option("--no-resume", help="Refuse a folder of an earlier start.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run an experiment of a paper again: its tables here, files and figures in a folder."""
    from gibbous.cli import study_verb

    settings = {
        "quick": quick,
        "reps": reps,
        "workers": workers,
        "seed": seed,
        "data": data,
        "schema": schema,
        "resume": not restart,
    }
    study_verb.run(name, out, settings, json, quiet)


def flow_map(
    release: Annotated[Path, typer.Argument(help="A release folder, or public flows.")],
    destination: Annotated[str, typer.Option("--destination", help="Id shown first.")],
    coordinates: Annotated[Path, typer.Option("--coordinates", help="Places: id, lat, lon.")],
    out: Annotated[Path, typer.Option("--out", "-o", help=".html, .svg or .png.")],
    real: Annotated[
        Path | None, typer.Option("--real", help="Real flows beside them: an internal map.")
    ] = None,
    outlines: Annotated[
        Path | None, typer.Option("--outlines", help="GeoJSON areas or lines.")
    ] = None,
    view: Annotated[
        int | None, typer.Option("--view", help="Miles to the edge; default: 95 % of people.")
    ] = None,
    destination_column: Annotated[
        str, typer.Option("--destination-column", help="Where it does not follow.")
    ] = "",
    origin_column: Annotated[
        str, typer.Option("--origin-column", help="Where it does not follow.")
    ] = "",
    count: Annotated[str, typer.Option("--count", help="Column of counts, if any.")] = "",
    place: Annotated[str, typer.Option("--place", help="Id column of the coordinates.")] = "",
    lat: Annotated[str, typer.Option("--lat", help="Latitude column.")] = "lat",
    lon: Annotated[str, typer.Option("--lon", help="Longitude column.")] = "lon",
    number: Annotated[int, typer.Option("--number", help="Which set, from 1.")] = 1,
    overwrite: Overwrite = False,
    sep: Sep = ",",
    encoding: Encoding = "utf-8",
    on_bad_line: BadLine = "reject",
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Draw where the people of a destination come from: a page to search, or one picture."""
    from gibbous.cli import map_verb

    columns: dict[str, str | int] = {
        "destination": destination_column,
        "origin": origin_column,
        "count": count,
        "place": place,
        "lat": lat,
        "lon": lon,
        "set": number,
    }
    asked = map_verb.Asked(
        release,
        destination,
        coordinates,
        columns,
        reading(sep, encoding, on_bad_line),
        real,
        outlines,
        view,
    )
    map_verb.run(asked, out, overwrite, json, quiet)


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
