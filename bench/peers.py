"""gibbous beside its peers, for anyone to run again: throw-away environments, a table that a library ships.

    ./dev bench peers                       # every peer, epsilon 1, one run each: some CPU hours
    ./dev bench peers --methods adaptive_gibbs noisy_pegs dpmm-mst --seeds 3

The records are the 20,190 person-years of the RAND health insurance experiment (statsmodels ships them),
binned as accuracy_small.py says. Peers come from the package index, each family in an environment that is
removed afterwards. The table has the columns of bench/results/accuracy.jsonl; that file stays as it is.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

NAME = "randhie"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--methods", nargs="+", help="by default all, with the references")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GIBBOUS_BENCH_DATA"] = folder
        os.environ["GIBBOUS_BENCH_RESULTS"] = f"{folder}/results.jsonl"
        import accuracy
        import polars as pl
        from gibbous.cli.demo_data import demo_file

        pl.read_csv(demo_file(), infer_schema_length=None).write_parquet(f"{folder}/{NAME}.parquet")
        given.methods = given.methods or [*accuracy.REFERENCES, *accuracy.OURS, *accuracy.PEERS]
        given.methods = list(dict.fromkeys(["resampled", *given.methods]))
        given.peers, given.data, given.again = Path(folder), [NAME], False
        if set(given.methods) & set(accuracy.PEERS):
            accuracy.install(Path(folder))
        accuracy.measure(given)
        told = "16,152 of 20,190 records; the others test the classifier"
        print(f"\n{NAME}: {told}. delta {given.delta:g}\n\n{accuracy.table(NAME)}")


if __name__ == "__main__":
    main()
