"""Evaluate: real records, synthetic sets and a schema in; every finding that the options allow out."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gibbous.core.errors import SchemaMismatch, UsageError
from gibbous.core.extras import need
from gibbous.core.finding import Finding
from gibbous.core.protocols import Progress, silent
from gibbous.core.release import Release
from gibbous.core.schema import Column, Schema
from gibbous.evaluate.findings import Findings
from gibbous.evaluate.risk.findings import NAMES as RISKS
from gibbous.evaluate.tables import Subject, plain, subject

Columns = str | Sequence[str] | None
NOTICE = (
    "Computed against confidential records: whoever publishes a figure of it makes a release of its own, "
    "which no ledger has charged."
)
LIBRARIES = ("gibbous", "numpy", "polars", "scipy", "scikit-learn", "statsmodels")


@dataclass(frozen=True, slots=True)
class Part:
    """One module that makes findings.

    Attributes:
        module: dotted name; its function `findings(subject, ...)` is called.
        names: the findings it makes.
        options: keyword arguments that are passed on to it.
        needs: an option without which it has nothing to say.
        narrows: it takes `only` itself, and then computes no more than that.
        fits: it fits models with libraries that start threads of their own.
    """

    module: str
    names: tuple[str, ...]
    options: tuple[str, ...] = ()
    needs: str = ""
    narrows: bool = False
    fits: bool = False


_UTILITY = "gibbous.evaluate.utility."
PARTS = (
    Part(_UTILITY + "margins", ("tv1", "tv2", "tv3", "tv4"), narrows=True),
    Part(
        _UTILITY + "distances",
        ("marginal_distance", "conditional_distance", "u_distance", "outside_support"),
        ("given",),
    ),
    Part(_UTILITY + "association", ("association", "correlation")),
    Part(_UTILITY + "pmse", ("pmse", "pmse_ratio", "pmse_tree", "pmse_tree_ratio"), fits=True),
    Part(_UTILITY + "tstr", ("tstr",), ("targets",), needs="targets", fits=True),
    Part(_UTILITY + "regression", ("coefficients", "ci_overlap"), ("formulas",), needs="formulas"),
    Part(_UTILITY + "lasso", ("lasso_path", "lasso_mse"), ("targets",), needs="targets", fits=True),
    Part(
        "gibbous.evaluate.risk.findings",
        RISKS,
        ("keys", "sensitive", "fraction"),
        narrows=True,
    ),
)


def evaluate(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    *,
    keys: Columns = (),
    sensitive: Columns = None,
    targets: Columns = (),
    formulas: Columns = (),
    given: Columns = (),
    fraction: float | None = None,
    holdout: Any = None,
    seed: int = 0,
    only: Columns = None,
    progress: Progress = silent,
    options: Any = None,
) -> Findings:
    """Compare synthetic sets with the real records; confidential, and no part of a release.

    Args:
        real: a path or a frame of the confidential records.
        synthetic: a path, a frame, a release (or its folder), or a sequence of these.
        schema: the declared schema, or the path of its file.
        keys: quasi-identifiers: the columns that an intruder knows.
        sensitive: the column, or columns, that an intruder wants to know.
        targets: columns that models trained on synthetic rows predict.
        formulas: regressions, for example "stay ~ age + sex".
        given: columns that conditional distributions are given; empty: each in turn.
        fraction: share of the population that the real table holds, in (0, 1]; None: all of it.
        holdout: records of the same population that no synthesizer saw, as a path or a frame.
        seed: of samples and references.
        only: names of findings, or of groups ("utility", "risk"); None: all that the options allow.
        progress: called as parts are done.
        options: how text files are read (`gibbous.read.source.ReadOptions`).
    Returns:
        Findings, utility first; `facts` says what was compared, and `facts["left_out"]` which findings
        need an option that was not given.
    Raises:
        UsageError: an unknown column, finding or formula, no synthetic set, or a table without rows.
        InputRejected: a file is not what it says it is.
        SchemaMismatch: a table, or the schema of a release, does not fit the schema.
        EngineFailure: a library of the extra "evaluate" is not installed.
    """
    began = time.perf_counter()
    declared = plain(Schema.load(schema) if isinstance(schema, str | Path) else schema)
    chosen = {
        "keys": _listed(keys),
        "sensitive": _listed(sensitive),
        "targets": _listed(targets),
        "formulas": _listed(formulas),
        "given": _listed(given),
        "fraction": fraction,
    }
    _check_options(declared, chosen)
    left = left_out(declared, chosen)
    wanted = _wanted(None if only is None else _listed(only), left)
    sources = _opened(synthetic)
    for source in sources:
        if isinstance(source, Release):
            _check_release(source, declared)
    progress("read", 0, 1)
    tables = subject(real, sources, declared, holdout=holdout, seed=seed, options=options)
    progress("read", 1, 1)
    found, seconds = _found(tables, chosen, wanted, left, progress)
    made = {one.name for one in found}
    empty = [name for name in wanted if name not in made and name not in left]
    left |= dict.fromkeys(empty, "columns that it applies to")
    if only is not None:  # what nobody asked for is not missing
        left = {name: need for name, need in left.items() if name in wanted}
    facts = _facts(tables, sources, chosen, left) | {
        "elapsed_s": {"all": round(time.perf_counter() - began, 2)} | seconds
    }
    return Findings(tuple(found), facts)


def checked(
    schema: Schema, chosen: Mapping[str, Any], only: Sequence[str] | None
) -> tuple[str, ...]:
    """Check options against a schema, and name the findings that will be computed.

    Args:
        chosen: keys, sensitive, targets, formulas, given as tuples of text, and fraction.
        only: names of findings or groups; None for all that the options allow.
    Raises:
        UsageError: an unknown column, finding or formula, or a finding whose option is missing.
    """
    _check_options(schema, chosen)
    return _wanted(only, left_out(schema, chosen))


def compute(tables: Subject, chosen: Mapping[str, Any], wanted: Sequence[str]) -> list[Finding]:
    """The findings named by `checked`, of tables that are in memory; no file is read.

    Args:
        chosen: as for `checked`.
        wanted: names of findings.
    """
    left = left_out(tables.schema, chosen)
    return _found(tables, chosen, wanted, left, silent)[0]


def write_findings(findings: Findings, path: Path) -> Path:
    """Write findings as JSON to a new file that its owner alone may read.

    Raises:
        OutputNotWritten: the file exists or cannot be written.
    """
    from gibbous.write.files import write_bytes

    text = json.dumps(findings.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    write_bytes(path, text.encode("utf-8", "replace") + b"\n")
    return path


def names() -> tuple[str, ...]:
    """All findings that there are."""
    return tuple(name for part in PARTS for name in part.names)


def left_out(schema: Schema, chosen: Mapping[str, Any]) -> dict[str, str]:
    """Findings that these options leave out, and what they would need.

    Args:
        chosen: keys, sensitive, targets, formulas as tuples of text.
    """
    found: dict[str, str] = {}
    for part in PARTS:
        if part.needs and not chosen[part.needs]:
            found |= dict.fromkeys(part.names, part.needs)
    risk = importlib.import_module("gibbous.evaluate.risk.findings")
    missing: dict[str, str] = risk.left_out(
        schema, keys=chosen["keys"], sensitive=chosen["sensitive"]
    )
    return found | missing


def _found(
    tables: Subject,
    chosen: Mapping[str, Any],
    wanted: Sequence[str],
    left: Mapping[str, str],
    progress: Progress,
) -> tuple[list[Finding], dict[str, float]]:
    found: list[Finding] = []
    seconds: dict[str, float] = {}
    parts = [(p, [n for n in p.names if n in wanted and n not in left]) for p in PARTS]
    parts = [(part, mine) for part, mine in parts if mine]
    for done, (part, mine) in enumerate(parts):
        progress("compare", done, len(parts))
        began = time.perf_counter()
        module = importlib.import_module(part.module)
        keywords = {name: chosen[name] for name in part.options}
        if part.narrows:
            keywords["only"] = mine
        with _one_thread() if part.fits else contextlib.nullcontext():
            found += [one for one in module.findings(tables, **keywords) if one.name in mine]
        seconds[part.module.rpartition(".")[2].replace("findings", "risk")] = round(
            time.perf_counter() - began, 2
        )
    progress("compare", len(parts), len(parts))
    return found, seconds


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Within it, libraries of models use one thread.

    Their sums are then the same on every machine, several evaluations can run side by side, and no
    thread waits by spinning: on a busy machine boosting was over 20 times slower with two.
    """
    need("sklearn.ensemble", "evaluate")  # only libraries that are loaded already are limited
    with need("threadpoolctl", "evaluate").threadpool_limits(limits=1):
        yield


def _listed(value: Columns) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _check_options(schema: Schema, chosen: Mapping[str, Any]) -> None:
    for option in ("keys", "sensitive", "targets", "given"):
        lost = [name for name in chosen[option] if name not in schema.names]
        if lost:
            raise UsageError(
                "NOCOLUMN",
                f"{option}: there is no column {', '.join(map(repr, lost))}.",
                f"Columns are {', '.join(schema.names)}.",
                "Check the spelling.",
            )
        twice = sorted({n for n in chosen[option] if chosen[option].count(n) > 1})
        if twice:
            raise UsageError(
                "TWICE",
                f"{option}: {', '.join(map(repr, twice))} is named more than once.",
                "Each column comes once.",
                "Remove one.",
            )
    both = [name for name in chosen["keys"] if name in chosen["sensitive"]]
    if both:
        raise UsageError(
            "KEYS",
            f"Column {', '.join(map(repr, both))} is among keys and sensitive.",
            "An intruder knows the keys and wants the sensitive columns: a column is one of these.",
            "Leave it out of one.",
        )
    if chosen["formulas"]:
        parse = importlib.import_module(_UTILITY + "formula").parse
        for text in chosen["formulas"]:
            parse(text, schema)


def _wanted(only: Sequence[str] | None, left: Mapping[str, str]) -> tuple[str, ...]:
    every = names()
    if only is None:
        return every
    risk = PARTS[-1].names
    groups = {"utility": [n for n in every if n not in risk], "risk": list(risk)}
    unknown = [name for name in only if name not in every and name not in groups]
    if unknown:
        raise UsageError(
            "ONLY",
            f"only: there is no finding {', '.join(map(repr, unknown))}.",
            f"Findings are {', '.join(every)}; groups are {', '.join(groups)}.",
            "Correct only, or leave it out.",
        )
    lacking = {name: left[name] for name in only if name in left}
    if lacking:
        raise UsageError(
            "NEEDS",
            f"only: {', '.join(lacking)} cannot be computed.",
            f"What is missing: {'; '.join(dict.fromkeys(lacking.values()))}.",
            "Give it, or leave the name out of only.",
        )
    return tuple(n for name in only for n in groups.get(name, [name]))


def _opened(synthetic: Any) -> list[Any]:
    # Folders become releases here, so that their schema can be compared before any row is read.
    if isinstance(synthetic, list | tuple):
        return [one for part in synthetic for one in _opened(part)]
    if isinstance(synthetic, str | os.PathLike) and Path(synthetic).is_dir():
        from gibbous.write.load import load

        return [load(Path(synthetic))]
    return [synthetic]


def _check_release(release: Release, schema: Schema) -> None:
    theirs = plain(release.schema)
    lost = [name for name in schema.names if name not in theirs.names]
    more = [name for name in theirs.names if name not in schema.names]
    changed = [
        column.name
        for column in schema
        if column.name in theirs.names and _domain(column) != _domain(theirs[column.name])
    ]
    parts = [
        f"{what}: {', '.join(map(repr, found))}"
        for what, found in [
            ("not in the release", lost),
            ("only in the release", more),
            ("of another kind, or with other levels, bounds, bins or missing", changed),
        ]
        if found
    ]
    if parts:
        raise SchemaMismatch(
            "SCHEMA",
            f"The schema of the release and the schema given differ; {'; '.join(parts)}.",
            "A release is compared under the schema that it was made with.",
            "Give that schema: schema.toml in the folder of the release has its public facts.",
        )


def _domain(column: Column) -> tuple[Any, ...]:
    return column.kind, column.levels, column.edges, column.missing, column.other


def _facts(
    tables: Subject, sources: Sequence[Any], chosen: Mapping[str, Any], left: Mapping[str, str]
) -> dict[str, Any]:
    released = [source for source in sources if isinstance(source, Release)]
    return {
        "notice": NOTICE,
        "name": tables.schema.name,
        "rows": {
            "real": tables.real.rows,
            "synthetic": [one.rows for one in tables.sets],
            "holdout": tables.holdout.rows if tables.holdout else None,
        },
        "columns": list(tables.schema.names),
        "sets": len(tables.sets),
        "seed": tables.seed,
        **{name: list(v) if isinstance(v, tuple) else v for name, v in chosen.items()},
        "left_out": dict(left),
        "releases": [
            {
                "method": one.plan.mechanism,
                "claim": one.claim.to_json(),
                "words": one.claim.words(),
            }
            for one in released
        ],
        "versions": _versions(),
    }


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue  # the extra is not installed, and nothing used it
    return found
