"""What users call: `evaluate` with findings that write their report, and `report` for both audiences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from gibbous.core.errors import UsageError
from gibbous.core.keywords import answering
from gibbous.core.protocols import Progress, silent
from gibbous.core.release import Release
from gibbous.core.schema import Schema
from gibbous.evaluate import run
from gibbous.evaluate.findings import Findings
from gibbous.report import place
from gibbous.report.internal import internal_report
from gibbous.report.public import public_report
from gibbous.report.saved import read_findings

Audience = Literal["public", "internal"]


@answering
def evaluate(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    *,
    keys: str | Sequence[str] | None = (),
    sensitive: str | Sequence[str] | None = None,
    targets: str | Sequence[str] | None = (),
    formulas: str | Sequence[str] | None = (),
    given: str | Sequence[str] | None = (),
    fraction: float | None = None,
    holdout: Any = None,
    seed: int = 0,
    only: str | Sequence[str] | None = None,
    progress: Progress = silent,
    options: Any = None,
) -> Findings:
    """Compare synthetic sets with the real records.

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
        only: names of findings, or of groups; None: all that the options allow.
        progress: called as parts are done.
        options: how text files are read (`gibbous.read.source.ReadOptions`).
    Returns:
        Findings; `report("report.internal.html")` writes the internal report. They are computed
        against confidential records: no part of a release, and covered by no guarantee.
    Raises:
        UsageError: an unknown column, finding or formula, no synthetic set, or a table without rows.
        InputRejected, SchemaMismatch: a table is not what it says, or does not fit the schema.
        EngineFailure: a library of the extra "evaluate" is not installed.
    """
    found = run.evaluate(
        real, synthetic, schema, keys=keys, sensitive=sensitive, targets=targets,
        formulas=formulas, given=given, fraction=fraction, holdout=holdout, seed=seed, only=only,
        progress=progress, options=options,
    )  # fmt: skip
    return Findings(found.items, found.facts, partial(internal_report, release=_release(synthetic)))


@answering
def report(
    release: Release | str | Path,
    audience: Audience = "public",
    out: str | Path | None = None,
    *,
    findings: Findings | str | Path | None = None,
    study: Any = None,
    axes: tuple[str, str] = ("epsilon_proven", "tv2"),
    overwrite: bool = False,
) -> Path:
    """Write a report of a release: one self-contained HTML file, and its JSON twin beside it.

    Args:
        release: a release, or its folder.
        audience: "public": from the release alone, it may be published; "internal": with comparisons
            with real records.
        out: the HTML file. Without it the public report becomes a file of the release itself, which
            is sealed again.
        findings: of `evaluate`, or the file of them; for the internal report.
        study: points of a risk-utility map, for the internal report.
        axes: columns of the study for x and y.
        overwrite: replace files that are there.
    Returns:
        The path of the HTML file.
    Raises:
        UsageError: the audience is unknown, or something it needs is missing or out of place.
        ModelRejected: the folder is not an intact release.
        OutputNotWritten: a file exists or cannot be written.
        EngineFailure: the extra "report" is not installed.
    """
    if audience == "public":
        if findings is not None or study is not None:
            raise UsageError(
                "AUDIENCE",
                "A public report was given findings or a study.",
                "A public report is made from the release alone.",
                "Leave them out, or ask for audience='internal'.",
            )
        if out is None:
            return place.into_release(_folder(release), overwrite=overwrite)
        return public_report(release, out, overwrite=overwrite)
    if audience != "internal":
        raise UsageError(
            "AUDIENCE",
            f"There is no audience {str(audience)!r}.",
            "Audiences are 'public' and 'internal'.",
            "Correct the audience.",
        )
    if findings is None or out is None:
        raise UsageError(
            "FINDINGS",
            "An internal report was asked for without findings, or without a file to write.",
            "It shows what gibbous.evaluate found, in a file outside the release.",
            "Pass findings=evaluate(...), or the path of findings.json, and out='report.internal.html'.",
        )
    found = findings if isinstance(findings, Findings) else read_findings(findings)
    return internal_report(found, out, release=release, study=study, axes=axes, overwrite=overwrite)


def _release(synthetic: Any) -> Release | Path | None:
    """The one release that was evaluated, if it was one."""
    if isinstance(synthetic, Release):
        return synthetic
    if isinstance(synthetic, str | Path) and Path(synthetic).is_dir():
        return Path(synthetic)
    return None


def _folder(release: Release | str | Path) -> Path:
    folder = release.path if isinstance(release, Release) else Path(release)
    if folder is None:
        raise UsageError(
            "NOFOLDER",
            "This release is in memory: there is no folder to write its report into.",
            "synthesize(..., out=FOLDER) writes one.",
            "Pass out= to write the report elsewhere.",
        )
    return folder
