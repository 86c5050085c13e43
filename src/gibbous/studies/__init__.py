"""Studies: the simulations of the papers, run again; `names()` lists them, `run(name)` runs one."""

from __future__ import annotations

from gibbous.studies.registry import names
from gibbous.studies.runner import run

__all__ = ["names", "run"]
