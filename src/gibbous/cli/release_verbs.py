"""`gibbous verify` and `gibbous warmup`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from gibbous.cli import show
from gibbous.cli.progress import Bars

if TYPE_CHECKING:
    from gibbous.cli.flags import ScreenFlags


def verify(release: Path, ledger: Path | None, key: Path | None, screen: ScreenFlags) -> None:
    """Check a release folder without the data.

    Args:
        ledger: the ledger that paid for it; None checks the release alone.
        key: public keys of which one has to have signed it; None takes any release.
    Raises:
        LedgerUnusable: there is no such ledger, or it does not fit together.
        ModelRejected: something was changed, is missing, or does not add up.
    """
    from gibbous.reporting.release_report import verify as check

    with Bars(quiet=screen.silent) as bars:
        report = check(release, ledger=ledger, key=key, progress=bars)
    if screen.json:
        show.as_json(report.to_json())
        return
    whole, *others = report.checks
    state = report.signer.state
    if not screen.quiet:
        show.line(f"  ok: {whole}")
    if state != "signed":
        mark = "NOT SIGNED" if state == "unsigned" else "NOT CHECKED"
        show.line(f"  {mark}: {report.signer.words.removeprefix('not signed: ')}")
    if not screen.quiet:
        for sentence in others:
            show.line(f"  ok: {sentence}")
    for sentence in report.gaps:
        show.line(f"  NOT CHECKED: {sentence}")
    cost = show.bound(report.guarantee, report.claim.is_dp)
    show.line(f"total cost: {cost}. {release} is whole and says what it is; {report.signer.brief}.")


def warmup(screen: ScreenFlags) -> None:
    """Compile every kernel into this user's cache."""
    from gibbous.core.compiled import cache_folder
    from gibbous.disintegrate.warm import compile_all as counting
    from gibbous.sampling.warm import compile_all as drawing

    began = time.perf_counter()
    with Bars(quiet=screen.silent) as bars:
        for compile_all in (counting, drawing):
            compile_all(bars)
    seconds = time.perf_counter() - began
    folder = cache_folder()
    if screen.json:
        show.as_json({"seconds": round(seconds, 1), "cache": str(folder) if folder else None})
        return
    where = f"kept in {folder}" if folder else "not kept: no private folder can be written"
    show.line(f"kernels compiled in {seconds:.1f} s, {where}.")
