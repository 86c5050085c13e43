"""What users call: `evaluate` with findings that write their report, and `report` for both audiences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from gibbous.core.boundary import guarded
from gibbous.core.errors import UsageError
from gibbous.core.keywords import answering
from gibbous.core.protocols import Progress, silent
from gibbous.core.release import Release
from gibbous.core.request import nothing_to_sign
from gibbous.core.schema import Schema
from gibbous.evaluation import evaluation
from gibbous.evaluation.findings import Findings, read_findings
from gibbous.evaluation.measure import NOTHING, Options
from gibbous.flows import Flows, Geography, load_geography, read_flows
from gibbous.reporting import release_report
from gibbous.reporting.flow_map import Mapped
from gibbous.reporting.internal_report import internal_report
from gibbous.reporting.public_report import public_report
from gibbous.write.signature import SigningKey, signing_key

Audience = Literal["public", "internal"]


@guarded
@answering
def evaluate(
    real: Any,
    synthetic: Any,
    schema: Schema | Geography | str | Path | None = None,
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
        real: the confidential records: a path, the address of a table (as for `synthesize`), or a frame.
        synthetic: a path, a frame, a release (or its folder), or a sequence of these.
        schema: the declared schema, or the path of its file; None: that of the release. A geography
            for tables of flows (`gibbous.flows.load_geography`): findings are then about flows, and
            keys, sensitive, targets, formulas, given, fraction and holdout have no part in them.
        keys: quasi-identifiers: the columns that an intruder knows.
        sensitive: the column, or columns, that an intruder wants to know.
        targets: columns that models trained on synthetic rows predict.
        formulas: regressions, for example "stay ~ age + sex".
        given: columns that conditional distributions are given; empty: each in turn.
        fraction: share of the population that the real table holds, in (0, 1]; None: all of it.
        holdout: records of the same population that no synthesizer saw, in any such form.
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
    chosen = Options.of(
        fraction, keys=keys, sensitive=sensitive, targets=targets, formulas=formulas, given=given,
        only=only,
    )  # fmt: skip
    if isinstance(schema, Geography):
        return _flows(real, synthetic, schema, chosen, holdout, seed, options)
    findings = evaluation.evaluate(
        real, synthetic, schema, chosen, holdout, seed, progress, options
    )
    return _reporting(findings, synthetic)


@guarded
@answering
def report(
    release: Release | str | Path,
    audience: Audience = "public",
    out: str | Path | None = None,
    *,
    findings: Findings | str | Path | None = None,
    study: Any = None,
    axes: tuple[str, str] = ("epsilon_proven", "tv2"),
    geography: Geography | str | Path | None = None,
    destinations: str | Sequence[str] = (),
    flows: Any = None,
    options: Any = None,
    sign: SigningKey | str | Path | None = None,
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
        geography: public places of a release of flows, or their file: maps are drawn.
        destinations: ids to draw; empty for the largest of the release.
        flows: the confidential flows, for the internal report: drawn beside the synthetic ones.
        options: how these are read (`gibbous.read.source.ReadOptions`).
        sign: the private key that signs a release again into which its report is put (docs/how-to/sign.md).
        overwrite: replace files that are there.
    Returns:
        The path of the HTML file.
    Raises:
        UsageError: the audience is unknown, or something it needs is missing or out of place.
        ModelRejected: the folder is not an intact release.
        OutputNotWritten: a file exists or cannot be written.
        EngineFailure: the extra "report" is not installed.
    """
    mapped = _mapped(geography, destinations, flows, options)
    if sign is not None and (audience, out) != ("public", None):
        raise nothing_to_sign()
    if audience == "internal":
        findings, out = _given(findings, out)
        return internal_report(
            findings,
            out,
            release=release,
            study=study,
            axes=axes,
            mapped=mapped,
            overwrite=overwrite,
        )
    _check_public(findings, study, flows)
    if out is None:
        folder, key = _folder(release), signing_key(sign)
        return release_report.into_release(folder, mapped=mapped, sign=key, overwrite=overwrite)
    return public_report(release, out, mapped=mapped, overwrite=overwrite)


def _check_public(*confidential: Any) -> None:
    if any(thing is not None for thing in confidential):
        raise UsageError(
            "AUDIENCE",
            "A public report was given findings, a study or confidential flows.",
            "A public report is made from the release alone.",
            "Leave them out, or ask for audience='internal'.",
        )


def _given(
    findings: Findings | str | Path | None, out: str | Path | None
) -> tuple[Findings, str | Path]:
    """What an internal report shows, and the file to write."""
    if findings is None or out is None:
        raise UsageError(
            "FINDINGS",
            "An internal report was asked for without findings, or without a file to write.",
            "It shows what gibbous.evaluate found, in a file outside the release.",
            "Pass findings=evaluate(...), or the path of findings.json, and out='report.internal.html'.",
        )
    return findings if isinstance(findings, Findings) else read_findings(findings), out


def _flows(
    real: Any,
    synthetic: Any,
    geography: Geography,
    chosen: Options,
    holdout: Any,
    seed: int,
    reading: Any,
) -> Findings:
    """Findings about flows; their report has maps of the release, the records beside it."""
    from gibbous.evaluation.flows import evaluate_flows

    if holdout is not None or replace(chosen, only=()) != NOTHING:
        raise UsageError(
            "FLOWOPTIONS",
            "keys, sensitive, targets, formulas, given, fraction or holdout was given with a geography.",
            "Findings about flows compare origins and distances by destination; they have no such parts.",
            "Leave them out, or give a schema in place of the geography.",
        )
    # Read once; unlike a frame, secret flows cannot be pickled with the findings that hold them.
    truth = real if isinstance(real, Flows) else read_flows(real, geography, options=reading)[0]
    findings = evaluate_flows(
        truth, synthetic, geography, seed=seed, only=chosen.only or None, options=reading
    )
    return _reporting(findings, synthetic, Mapped(geography, real=truth))


def _reporting(findings: Findings, synthetic: Any, mapped: Mapped | None = None) -> Findings:
    """The findings with a report: of the one release that was evaluated, if it was one."""
    release: Release | Path | None = None
    if isinstance(synthetic, Release):
        release = synthetic
    elif isinstance(synthetic, str | Path) and Path(synthetic).is_dir():
        release = Path(synthetic)
    reporter = partial(internal_report, release=release)
    if mapped is not None:
        reporter = partial(reporter, mapped=mapped if release else None)
    return replace(findings, reporter=reporter)


def _mapped(
    geography: Geography | str | Path | None,
    destinations: str | Sequence[str],
    flows: Any,
    options: Any,
) -> Mapped | None:
    if geography is None:
        if destinations or flows is not None:
            raise UsageError(
                "NOGEOGRAPHY",
                "destinations or flows was given without a geography.",
                "A map needs public places with coordinates.",
                "Pass geography=, a Geography or its file.",
            )
        return None
    public = geography if isinstance(geography, Geography) else load_geography(geography)
    named = (destinations,) if isinstance(destinations, str) else tuple(destinations)
    return Mapped(public, named, flows, options)


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
