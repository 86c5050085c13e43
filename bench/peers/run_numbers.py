"""One run of one peer on numbers under public bounds, in its own virtual environment.

    PEER_VENV/bin/python bench/peers/run_numbers.py mst in.csv domain.json out.csv --epsilon 1 --delta 1e-9

domain.json is dpmm's: {column: {"lower": .., "upper": ..} or {"categories": [..]}}. A tenth of epsilon
divides the numbers into bins (its default amount), the rest is the model's. It imports nothing of gibbous;
`bench/number_columns.py --write` makes the two files, and `--read` scores the third.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("mst", "aim", "privbayes"))
    for name in ("source", "domain", "target"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, required=True)
    given = parser.parse_args()
    import pandas as pd
    from dpmm import pipelines

    domain = json.loads(given.domain.read_text())
    texts = {name: str for name, known in domain.items() if "categories" in known}
    frame = pd.read_csv(given.source, dtype=texts, keep_default_na=False)
    kind = {
        "mst": pipelines.MSTPipeline,
        "aim": pipelines.AIMPipeline,
        "privbayes": pipelines.PrivBayesPipeline,
    }[given.kind]
    start = time.process_time()
    pipeline = kind(
        epsilon=0.9 * given.epsilon, delta=given.delta, proc_epsilon=0.1 * given.epsilon, n_jobs=1
    )
    pipeline.fit(frame, domain=domain)
    pipeline.generate(n_records=len(frame)).to_csv(given.target, index=False)
    print(f"{time.process_time() - start:.0f} CPU s")


if __name__ == "__main__":
    main()
