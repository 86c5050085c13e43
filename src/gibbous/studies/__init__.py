"""Studies: the simulations of the papers, run again; `names()` lists them, `run(name)` runs one."""

from __future__ import annotations

from gibbous.studies.study_parts import names
from gibbous.studies.study_run import run

__all__ = ["names", "run"]
