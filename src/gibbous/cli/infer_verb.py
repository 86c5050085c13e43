"""`gibbous infer`: a model on every set of a release, combined; the real data are never needed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gibbous.cli import show
from gibbous.cli.config import pairs
from gibbous.cli.progress import Bars

if TYPE_CHECKING:
    from gibbous.cli.flags import ScreenFlags
    from gibbous.cli.measuring_verbs import InferFlags
    from gibbous.evaluation.inference.analysis import Analysis
    from gibbous.evaluation.inference.combined_estimate import Fit
    from gibbous.evaluation.inference.combining_rules import Rule
    from gibbous.evaluation.inference.measurement_model import TableRule
    from gibbous.evaluation.inference.models import Family

HEADERS = ("coefficient", "estimate", "se", "df", "low", "high", "sampling", "synthesis", "noise")


def run(release: Path, fitted: InferFlags, screen: ScreenFlags) -> None:
    """Print coefficients with intervals, the rule and its reason, and which receipt entries entered.

    Raises:
        UsageError: formula, family, rule or level do not fit the release.
        ModelRejected: it is not an intact release.
    """
    from gibbous.evaluation.inference.analysis import load_release

    analysis = load_release(release, records=fitted.records)
    if fitted.formula.lstrip().startswith("~"):
        _shares(analysis, fitted, screen)
        return
    asked = dict(pairs(fitted.reference or [], "REFERENCE", "--reference", "sex=f"))

    def first(fit: Fit) -> None:
        show.line("Provisional, from few redraws of the noise; the final intervals follow.")
        _coefficients(fit)
        show.line("")

    def early(fit: Fit) -> None:
        print(json.dumps({"provisional": fit.to_json()}), file=sys.stderr, flush=True)

    with Bars(quiet=screen.quiet, json=screen.json) as bars:
        fit = analysis.glm(
            fitted.formula,
            cast("Family", fitted.family),
            rule=cast("Rule", fitted.rule),
            level=fitted.level,
            seed=fitted.seed,
            progress=bars,
            replicates=fitted.replicates,
            reference=asked,
            first=None if screen.quiet else early if screen.json else first,
        )
    entered = numbers(analysis)
    if screen.json:
        show.as_json(fit.to_json() | {"entered": entered})
        return
    if not screen.quiet:
        _details(fit, entered)
    last = fit.combined
    show.line(
        f"{show.counted(len(last.names), 'coefficient')} by {last.rule} at {100 * fitted.level:g} %; "
        f"{show.counted(len(last.warnings) + len(fit.remarks), 'note')}. Nothing was spent."
    )


def _shares(analysis: Analysis, asked: InferFlags, screen: ScreenFlags) -> None:
    columns = [name.strip().strip("`") for name in asked.formula.split("~", 1)[1].split("+")]
    with Bars(quiet=screen.quiet, json=screen.json) as bars:
        found = analysis.table(
            columns,
            rule=cast("TableRule", asked.rule),
            level=asked.level,
            replicates=asked.replicates,
            seed=asked.seed,
            progress=bars,
        )
    if screen.json:
        said = found.combined.to_json() | found.to_json() | {"remarks": []}
        show.as_json(said | {"formula": asked.formula, "entered": numbers(analysis)})
        return
    if not screen.quiet:
        show.line(str(found))
    show.line(
        f"{show.counted(len(found.levels), 'share')} by {found.combined.rule} at "
        f"{100 * asked.level:g} %. Nothing was spent."
    )


def numbers(analysis: Analysis) -> dict[str, Any]:
    """What of the receipt enters the formula, by its name in ledger.json."""
    receipt, facts = analysis.release.receipt, analysis.facts
    return {
        "sets": receipt["sets"],
        "rows": receipt["rows"],
        "sanitized": receipt["sanitized"],
        "relation": receipt["relation"],
        "tables": receipt["tables"],
        "method": receipt["method"]["name"],
        "records": facts.records,
        "records_from": facts.records_from,
    }


def _coefficients(fit: Fit) -> None:
    from gibbous.evaluation.inference.combined_estimate import shown

    show.line(f"{fit.formula} ({fit.family})")
    for line in fit.compared():
        show.line(f"  {line}")
    rows = []
    for one in fit.combined.records_of():
        values = [shown(one[key]) for key in HEADERS[1:6]]
        parts = [show.figure(one[key], ".0%").replace("%", " %") or "-" for key in HEADERS[6:]]
        rows.append((one["name"], *values, *parts))
    show.table(HEADERS, rows)


def _details(fit: Fit, entered: dict[str, Any]) -> None:
    combined = fit.combined
    _coefficients(fit)
    show.line(f"  rule: {combined.rule}. {combined.why}")
    for text in (*combined.warnings, *fit.remarks):
        show.line(f"  note: {text}")
    said = "; ".join(
        f"{k} = {f'{v[0]} each' if isinstance(v, list) and len(set(v)) == 1 else v}"
        for k, v in entered.items()
        if not k.startswith("records")
    )
    show.line(f"  from ledger.json: {said}")
    records = entered["records"]
    known = "not published" if records is None else f"{records:,.0f} ({entered['records_from']})"
    show.line(f"  n, not in ledger.json: {known}")
