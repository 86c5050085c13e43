"""The page of figures beside other tools: tables of bench/results, each under the command that made it.

python website/figures.py docs/reference/beside-other-tools.svg     # the picture of the README
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))

import accuracy  # noqa: E402 - a script of bench/, found through the line above
import accuracy_picture  # noqa: E402

TABLES = {
    "adult": "Adult, binned",
    "discharge13": "Hospital discharges",
    "acs_ma2019": "American Community Survey, Massachusetts 2019",
}
PAGE = """# Figures beside other tools

Distances of synthetic rows to the records, and what they cost, for gibbous and for the packages of the index that
promise differential privacy for a table. Every tool got the same records as codes, the same public domain, the same epsilon, and
delta = 1e-9; epsilon is the whole release. This page is generated from `bench/results/accuracy.jsonl` when the site is built.

- **TVk**: mean total variation distance over margins of k columns; less is closer. 0.05 of TV2 says that, for an average pair of
  columns, 5 % of the rows would have to change to match the records.
- **AUC**: gradient boosting trained on synthetic rows and tested on records that no synthesizer saw; more is better.
- **Records resampled** is the floor: the records themselves, drawn anew. It protects nobody.
- **Dated** lines are published code that no package index holds, run once by us in the past.

SDV and synthpop are not in these tables: they make no claim of differential privacy, so there is no epsilon to hold fixed.
Run to run, TV2 varies by about 3 %. `adaptive_gibbs` was measured on a quieter machine than the others; [its page](../mechanisms/adaptive_gibbs.md#how-good-it-is)
says how much that is, and where it is behind.

![Distance of pairs beside CPU seconds on Adult at epsilon 1](beside-other-tools.svg)

"""
AGAIN = """## Run them again

```sh
./dev bench peers
```

makes a throw-away environment for every peer, runs all of them beside gibbous on a table that a library ships, and prints such a
table. The commands below need the three tables, which are public and no part of the repository.

"""


def page() -> str:
    """The page, Markdown."""
    parts = [PAGE, AGAIN]
    for data, title in TABLES.items():
        command = (
            f"python bench/accuracy.py --peers PEERS --data {data} --epsilon 0.1 1 10 --seeds 3"
        )
        rows = [r for r in accuracy.known() if r["data"] == data and r.get("rows")]
        size = f"{rows[0]['rows']:,} records, {rows[0]['columns']} columns"
        name = title.split(":")[0]
        parts.append(
            f"## {name}\n\n{size}, delta = {rows[0]['delta']:g}.\n\n```text\n{command}\n```\n\n"
        )
        parts.append(accuracy.table(data) + "\n\n")
    return "".join(parts)


if __name__ == "__main__":
    accuracy_picture.figure(Path(sys.argv[1]))
