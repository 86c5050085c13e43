"""The default way: which functions of src one record meets in `synthesize` with adaptive_gibbs.

Run: python bench/way.py [--list ROOM] [--json FILE]
2,000 rows of 4 columns, seen by `sys.setprofile`: distinct named functions (code objects) under src, of the
second run, when everything is imported and compiled. It has a ledger of its own: what the first one bought
would be free, and no record would be counted. Lambdas and comprehensions are left out.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import polars as pl
from common import Result, arguments, save, show

import gibbous as gb

SRC = Path(gb.__file__).parent
SIZES = (2, 3, 5, 8)
AIMS = (450.0, 75.0)


def table(rows: int = 2000) -> tuple[pl.DataFrame, gb.Schema]:
    """Columns that lean on the one before."""
    rng, codes = np.random.default_rng(1), np.zeros(rows, dtype=np.int64)
    columns: dict[str, Any] = {}
    declared = []
    for j, size in enumerate(SIZES):
        codes = (codes + rng.integers(0, max(2, size // 2), rows)) % size
        labels = tuple(f"v{v}" for v in range(size))
        columns[f"c{j}"] = np.array(labels)[codes]
        declared.append(gb.Column(f"c{j}", "nominal", levels=labels))
    return pl.DataFrame(columns), gb.Schema(tuple(declared), unit=gb.Unit("row"))


def met(folder: Path) -> set[CodeType]:
    """Code objects under src of the second of two runs."""
    rows, schema = table()
    (folder / "data.csv").write_text(rows.write_csv())

    def run(name: str) -> None:
        gb.synthesize(
            folder / "data.csv",
            schema,
            gb.AdaptiveGibbs(epsilon=1.0, delta=1e-6),
            out=folder / name,
            ledger=folder / f"ledger {name}",
        )

    run("first")
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run("second")
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    own = str(SRC)
    return {c for c in seen if c.co_filename.startswith(own) and not c.co_name.startswith("<")}


def room(code: CodeType) -> str:
    """First folder under src, or the file itself."""
    parts = Path(code.co_filename).relative_to(SRC).parts
    return parts[0]


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--list", metavar="ROOM", help="print the functions of a room")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        codes = met(Path(name))
    files: dict[str, set[str]] = {}
    for code in codes:
        files.setdefault(room(code), set()).add(code.co_filename)
    if options.list:
        for code in sorted(codes, key=lambda c: (c.co_filename, c.co_firstlineno)):
            if options.list in ("all", room(code)):
                place = Path(code.co_filename).relative_to(SRC)
                print(f"{place}:{code.co_firstlineno} {code.co_qualname}")
    count = Counter(room(code) for code in codes)
    every = len({code.co_filename for code in codes})
    results = [
        Result("functions", float(len(codes)), AIMS[0], ""),
        Result("files", float(every), AIMS[1], ""),
    ]
    results += [
        Result(name, float(n), None, "", f"{len(files[name])} files")
        for name, n in count.most_common()
    ]
    show("The default way: functions met by one release", results)
    save(options.json, "way", results, "numpy")


if __name__ == "__main__":
    main()
