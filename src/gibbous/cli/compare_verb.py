"""`gibbous compare`: methods side by side on one table, and the risk-utility map of what came out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.cli import show
from gibbous.cli.progress import Bars
from gibbous.cli.study_verb import check_folder

if TYPE_CHECKING:
    from gibbous.cli.flags import ScreenFlags


def run(
    config: Path,
    out: Path,
    workers: int | None,
    public_data: bool,
    ledger: Path | None,
    reading: Mapping[str, str],
    screen: ScreenFlags,
) -> None:
    """Run, or go on with, the study of a file, and write its figures and maps.

    Args:
        out: folder; finished runs are kept in it, and the same call goes on where it stopped.
        reading: how text files are read, as far as flags say, in place of what the file says.
    """
    from gibbous.frontier.compare import compare
    from gibbous.frontier.study_file import load

    plan = load(config, reading)
    flags = {"workers": workers, "public_data": public_data or None}
    settings = plan.settings | {name: value for name, value in flags.items() if value is not None}
    check_folder(out)
    with Bars(quiet=screen.quiet, json=screen.json) as bars:
        study = compare(
            plan.source,
            plan.schema,
            plan.methods,
            resume=out,
            ledger=ledger,
            progress=bars,
            **settings,
        )
    study.write(out)
    ys = plan.y or study.metrics()
    drawn = _maps(study, plan.x, ys, out)
    if screen.json:
        from gibbous.core.json_values import plain

        show.as_json(plain(study.to_json()) | {"written": str(out), "maps": drawn})
        return
    if not screen.quiet:
        from gibbous.frontier.runner import broke

        _table(study, ys)
        for label, reason in study.failed():
            verb = "failed" if broke([{"failed": reason}]) else "was refused"
            show.line(f"  {label} {verb}: {reason}")
        for name in drawn:
            show.line(f"  map: {out / name}")
    if study.confidential:
        show.line(
            "Confidential: these figures were computed against the records; publishing them is a "
            "release of its own (--public-data where the records are public)."
        )
    show.line(f"{len(study.points())} points in {show.quoted(out)}.")


def _maps(study: Any, x: str, ys: tuple[str, ...], out: Path) -> list[str]:
    """One page with hover and one drawing a finding, where the map has points."""
    from gibbous.core.errors import UsageError

    drawn = []
    for y in ys:
        try:
            made = study.ru_map(x, y)
            drawn += [made.save(out / f"ru_{y}.{kind}").name for kind in ("html", "svg")]
        except UsageError as error:
            if error.name != "NOPOINT":
                raise
    return drawn


def _table(study: Any, metrics: tuple[str, ...]) -> None:
    rows = []
    for point in study.points():
        budget = point.get("epsilon_proven")
        cost = "" if budget is None else ("none" if math.isinf(budget) else f"{budget:g}")
        values = [show.figure(point.get(name), ".4f") for name in metrics]
        rows.append((point["label"], show.figure(point.get("epsilon"), "g"), cost, *values))
    show.table(("table", "epsilon given", "proven for the file", *metrics), rows)
