"""The screens in order; one module each: what it shows, and what each of its forms does."""

from __future__ import annotations

from gibbous.studio.screens import (
    analyse,
    assess,
    board,
    budget,
    compare,
    data,
    describe,
    ledger,
    method,
    release,
    run,
)
from gibbous.studio.screens.screen import Screen as Screen

SCREENS: tuple[Screen, ...] = (
    board.SCREEN,  # of a studio that opens a release alone
    data.SCREEN,
    describe.SCREEN,
    budget.SCREEN,
    method.SCREEN,
    run.SCREEN,
    release.SCREEN,
    assess.SCREEN,
    compare.SCREEN,
    analyse.SCREEN,
    ledger.SCREEN,
)
