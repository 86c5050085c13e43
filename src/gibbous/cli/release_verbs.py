"""`gibbous verify` and `gibbous warmup`."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

from gibbous.cli import show
from gibbous.cli.progress import Bars
def warmup(json,quiet): pass
