"""One run of one peer in its own virtual environment: codes in, synthetic codes out, CPU and memory told.

    PEER_VENV/bin/python bench/peers/run_peer.py dpmm-aim in.npz out.npz --epsilon 1 --delta 1e-9

in.npz holds `values` (rows, columns) and `sizes`; out.npz gets `values`, out.json the cost. Defaults of
the peer are kept; its preprocessing is off, because the codes are public levels already. It imports
nothing of gibbous.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np


def dpmm(kind: str, frame: Any, sizes: list[int], epsilon: float, delta: float) -> Any:
    from dpmm import pipelines

    pipeline = {
        "aim": pipelines.AIMPipeline,
        "mst": pipelines.MSTPipeline,
        "privbayes": pipelines.PrivBayesPipeline,
    }[kind](epsilon=epsilon, delta=delta, disable_processing=True, n_jobs=1)
    domain = dict(zip(frame.columns, sizes, strict=True))
    pipeline.fit(frame, domain=domain)
    return pipeline.generate(n_records=len(frame))


def smartnoise(kind: str, frame: Any, sizes: list[int], epsilon: float, delta: float) -> Any:
    from snsynth import Synthesizer
    from snsynth.transform import LabelTransformer, TableTransformer

    # The labels are declared from the public sizes, not learned from the records.
    labels = []
    for size in sizes:
        one = LabelTransformer(nullable=False)
        one.fit(list(range(size)))
        labels.append(one)
    synth = Synthesizer.create(kind, epsilon=epsilon, delta=delta)
    synth.fit(frame, transformer=TableTransformer(labels), preprocessor_eps=0.0)
    return synth.sample(len(frame))


PEERS = {"dpmm": ("dpmm", dpmm), "smartnoise": ("smartnoise-synth", smartnoise)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", help="dpmm-aim, dpmm-mst, dpmm-privbayes, smartnoise-mst")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, required=True)
    given = parser.parse_args()
    import pandas as pd

    family, kind = given.peer.split("-", 1)
    package, run = PEERS[family]
    data = np.load(given.source)
    names = [f"c{j}" for j in range(data["values"].shape[1])]
    frame = pd.DataFrame(data["values"].astype(np.int64), columns=names)
    sizes = [int(s) for s in data["sizes"]]
    warm = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    made = run(kind, frame, sizes, given.epsilon, given.delta)
    wall = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    values = np.asarray(made)[:, : len(names)].astype(np.int64)
    np.savez_compressed(given.target, values=values)
    cost = {
        "package": package,
        "version": version(package),
        "cpu_seconds": used.ru_utime
        + used.ru_stime
        - warm.ru_utime
        - warm.ru_stime
        + children.ru_utime
        + children.ru_stime,
        "wall_seconds": wall,
        "peak_mb": max(used.ru_maxrss, children.ru_maxrss) / 1024,
    }
    given.target.with_suffix(".json").write_text(json.dumps(cost))


if __name__ == "__main__":
    main()
