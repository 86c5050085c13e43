"""Accuracy against the peers on the same rows: TV1 to TV4, AUC, CPU seconds, peak memory; resumable.

    python bench/accuracy.py --install PEERS_FOLDER         # a virtual environment a peer, from the index
    python bench/accuracy.py --peers PEERS_FOLDER --data adult --epsilon 1 --seeds 3
    python bench/accuracy.py --table                        # what was measured so far, as Markdown
    python bench/accuracy.py --figure docs/reference/accuracy.svg

Every run is a process of its own, for gibbous as for a peer, and one line of bench/results/accuracy.jsonl;
a line that is there is not run again. All get the same training rows as codes under the same public
domain, the same epsilon and delta (whole budget: no peer needs preprocessing here), and hand back as many
rows. TVk is the mean total variation distance over all 1- and 2-way and 100 random 3- and 4-way margins
against the training rows; AUC is of gradient boosting trained on synthetic rows and tested on rows that no
synthesizer saw. The tables lie beside the repository (../shared/data).
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import accuracy_small
import numpy as np

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "accuracy.jsonl"
PEERS = {
    "dpmm-aim": "dpmm",
    "dpmm-mst": "dpmm",
    "dpmm-privbayes": "dpmm",
    "smartnoise-mst": "smartnoise",
}
PACKAGES = {"dpmm": "dpmm==0.1.9", "smartnoise": "smartnoise-synth==1.0.8"}
OURS = ("adaptive_gibbs", "noisy_pegs", "privbayes", "sbhg")
REFERENCES = ("independent", "resampled")
TARGETS = {"adult": 14, "discharge13": 7, "acs_ma2019": 9}  # income, disposition, tenure
HOLDOUT = 5  # one row in five is kept for testing where the data have no split of their own


@dataclass(frozen=True)
class Split:
    """Codes: what a synthesizer sees and what a classifier is tested on."""

    name: str
    sizes: tuple[int, ...]
    train: np.ndarray
    test: np.ndarray


def load(name: str) -> Split:
    """Adult has a fixed split; of the others a seeded fifth is held out."""
    table = accuracy_small.load(name)
    if name == "adult":
        import polars as pl

        domain = json.loads((accuracy_small.DATA / "adult_binned.domain.json").read_text())
        test = pl.read_parquet(accuracy_small.DATA / "adult_binned_test.parquet")
        return Split(name, table.sizes, table.values, test.select(list(domain)).to_numpy())
    order = np.random.default_rng(0).permutation(len(table.values))
    cut = len(order) // HOLDOUT
    return Split(name, table.sizes, table.values[order[cut:]], table.values[order[:cut]])


def distances(split: Split, rows: np.ndarray) -> dict[str, float]:
    return {
        f"tv{ways}": accuracy_small.distance(split.train, rows, split.sizes, ways)
        for ways in (1, 2, 3, 4)
    }


def auc(split: Split, rows: np.ndarray) -> float:
    """Macro one-vs-rest AUC of gradient boosting trained on `rows`, tested on the held-out rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    target = TARGETS[split.name]
    others = [j for j in range(len(split.sizes)) if j != target]
    seen = np.unique(rows[:, target])
    if len(seen) < 2:
        return float("nan")
    model = HistGradientBoostingClassifier(random_state=0)
    model.fit(rows[:, others], rows[:, target])
    scores = model.predict_proba(split.test[:, others])
    areas = []
    for place, level in enumerate(model.classes_):
        truth = split.test[:, target] == level
        if 0 < truth.sum() < len(truth):
            areas.append(roc_auc_score(truth, scores[:, place]))
    return float(np.mean(areas))


def ours(method: str, split: Split, epsilon: float, delta: float, seed: int) -> np.ndarray:
    """One run of gibbous through the Curator, in this process."""
    from gibbous.core.codes import Codes
    from gibbous.core.params import build, describe
    from gibbous.disintegrate.local_engine import LocalEngine
    from gibbous.mechanisms import registry
    from gibbous.privacy.curator import Curator
    from gibbous.synthesize.sample import sample

    kind = registry.load("noisy_pegs" if method == "independent" else method)
    wanted = {"epsilon": epsilon, "delta": delta}
    if method == "independent":
        wanted["parents"] = 0
    if method == "privbayes":
        wanted["noise"] = "gaussian"
    names = {p.name for p in describe(kind)}
    mechanism = build(kind, {k: v for k, v in wanted.items() if k in names})
    table = accuracy_small.Table(split.name, split.train, split.sizes)
    schema = table.schema
    codes = np.asfortranarray(split.train.astype(schema.code_dtype()))
    engine = LocalEngine.from_codes(Codes(schema, codes, secret=True))
    plan = mechanism.plan(schema, None)
    curator = Curator(engine, plan.total, schema, relation=mechanism.relation)
    tables = mechanism.run(curator, None)
    curator.close()
    return sample(tables, len(codes), seed=seed).values.astype(np.int64)


def one(method: str, split: Split, epsilon: float, delta: float, seed: int, peers: Path) -> Any:
    """Rows and their cost, made in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.npz"), Path(folder, "out.npz")
        np.savez(source, values=split.train, sizes=np.array(split.sizes))
        budget = ["--epsilon", repr(epsilon), "--delta", repr(delta)]
        if method in PEERS:
            python = peers / PEERS[method] / "bin" / "python"
            script = [str(HERE / "peers" / "run_peer.py"), method]
        else:
            python = Path(sys.executable)
            script = [str(HERE / "accuracy.py")]
            budget += ["--run", method, "--data", split.name, "--seed", str(seed)]
        begin = time.perf_counter()
        done = subprocess.run(
            [str(python), *script, str(source), str(target), *budget],
            capture_output=True,
            text=True,
            timeout=3600,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        cost = json.loads(target.with_suffix(".json").read_text())
        cost["process_seconds"] = time.perf_counter() - begin
        return np.load(target)["values"], cost


def run_here(given: argparse.Namespace) -> None:
    """The child process of one run of gibbous."""
    import resource

    from gibbous import __version__

    split = load(given.data[0])
    warm = resource.getrusage(resource.RUSAGE_SELF)
    begin = time.perf_counter()
    rows = ours(given.run, split, given.epsilon[0], given.delta, given.seed)
    used = resource.getrusage(resource.RUSAGE_SELF)
    np.savez_compressed(given.files[1], values=rows)
    cpu = used.ru_utime + used.ru_stime - warm.ru_utime - warm.ru_stime
    cost = {
        "package": "gibbous",
        "version": __version__,
        "cpu_seconds": cpu,
        "wall_seconds": time.perf_counter() - begin,
        "peak_mb": used.ru_maxrss / 1024,
    }
    given.files[1].with_suffix(".json").write_text(json.dumps(cost))


def known() -> list[dict[str, Any]]:
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text().splitlines()]


def measure(given: argparse.Namespace) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    done = {(r["method"], r["data"], r["epsilon"], r["seed"]) for r in known()}
    for data in given.data:
        split = load(data)
        grid = itertools.product(given.epsilon, range(given.seeds), given.methods)
        for epsilon, seed, method in grid:
            if (method, data, epsilon, seed) in done:
                continue
            row = {"method": method, "data": data, "epsilon": epsilon, "seed": seed}
            row |= {"delta": given.delta, "rows": len(split.train), "columns": len(split.sizes)}
            try:
                if method == "resampled":
                    rng = np.random.default_rng(seed)
                    made = split.train[rng.integers(0, len(split.train), len(split.train))]
                    cost: dict[str, Any] = {}
                else:
                    made, cost = one(method, split, epsilon, given.delta, seed, given.peers)
            except subprocess.TimeoutExpired:
                row["failed"] = "more than an hour"
            except RuntimeError as error:
                if method not in PEERS:
                    raise
                row["failed"] = str(error).strip().splitlines()[-1][:200]
            else:
                row |= distances(split, made) | {"auc": auc(split, made)} | cost
            with RESULTS.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)


def table() -> str:
    """Means over seeds, one Markdown table a data set and epsilon."""
    lines = []
    rows = known()
    for data, epsilon in sorted({(r["data"], r["epsilon"]) for r in rows}):
        here = [r for r in rows if (r["data"], r["epsilon"]) == (data, epsilon)]
        lines += [
            f"\n**{data}, epsilon {epsilon:g}**\n",
            "| method | version | runs | TV1 | TV2 | TV3 | TV4 | AUC | CPU s | peak MB |",
            "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        ]
        means = []
        for method in dict.fromkeys(r["method"] for r in here):
            runs = [r for r in here if r["method"] == method]
            good = [r for r in runs if "failed" not in r]
            if not good:
                lines.append(f"| {method} | | {len(runs)} | {runs[0]['failed']} |||||||")
                continue
            fields = ("tv1", "tv2", "tv3", "tv4", "auc", "cpu_seconds", "peak_mb")
            mean = {f: np.mean([r.get(f, np.nan) for r in good]) for f in fields}
            means.append((mean["tv2"], method, good, mean))
        for _, method, good, mean in sorted(means, key=lambda m: m[0]):
            version = f"{good[0].get('package', '')} {good[0].get('version', '')}".strip()
            cost = [f"{mean[f]:.3g}" if mean[f] == mean[f] else "" for f in ("cpu_seconds",)]
            peak = f"{mean['peak_mb']:.0f}" if mean["peak_mb"] == mean["peak_mb"] else ""
            shown = [f"{mean[f]:.4f}" for f in ("tv1", "tv2", "tv3", "tv4")]
            cells = [method, version, str(len(good)), *shown, f"{mean['auc']:.3f}", *cost, peak]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


AIM = {"method": "AIM (dated figure)", "tv2": 0.0301, "tv3": 0.0692, "cpu_seconds": 644.0}
# private-pgm on the same rows, one run, another list of random triples; no package installs it.


def figure(path: Path, data: str = "adult", epsilon: float = 1.0) -> None:
    """TV of pairs against CPU seconds, one mark a method; mean of its runs."""
    import altair as alt
    import pandas as pd

    rows = [r for r in known() if r["data"] == data and r["epsilon"] == epsilon]
    floor = np.mean([r["tv2"] for r in rows if r["method"] == "resampled"])
    timed = [r for r in rows if r.get("cpu_seconds")]
    frame = pd.DataFrame(timed).groupby("method", as_index=False)[["tv2", "cpu_seconds"]].mean()
    if (data, epsilon) == ("adult", 1.0):
        frame = pd.concat([frame, pd.DataFrame([AIM])[list(frame.columns)]], ignore_index=True)
    # Names of marks that lie together stand above and below in turn.
    frame = frame.sort_values(["cpu_seconds", "tv2"]).reset_index(drop=True)
    x = alt.X("cpu_seconds:Q", scale=alt.Scale(type="log", domain=[0.3, 3000]))
    x = x.title("CPU seconds (logarithmic)")
    y = alt.Y("tv2:Q", scale=alt.Scale(domain=[0, 0.14]))
    y = y.title("mean distance over all pairs of columns (less is closer)")
    base = alt.Chart(frame).encode(x=x, y=y)
    ours = alt.datum.method == "adaptive_gibbs"
    marks = base.mark_point(filled=True, size=90, opacity=1).encode(
        color=alt.condition(ours, alt.value("#1f6f8b"), alt.value("#8c6a9e"))
    )
    words = base.encode(text="method:N")
    names = [
        words.transform_filter(
            f"indexof({list(frame.method[start::2])}, datum.method) >= 0"
        ).mark_text(align="left", dx=9, dy=-6 if start else 6, fontSize=12)
        for start in (0, 1)
    ]
    line = alt.Chart(pd.DataFrame({"y": [floor]})).mark_rule(strokeDash=[4, 4]).encode(y="y:Q")
    chart = alt.layer(line, marks, *names).properties(
        width=620, height=340, title=f"{data}, epsilon {epsilon:g}; dashed: records resampled"
    )
    chart.save(str(path))
    if path.suffix == ".svg":
        path.write_text(path.read_text().rstrip() + "\n")


def install(folder: Path) -> None:
    """One virtual environment a family of peers, from the package index."""
    for family, package in PACKAGES.items():
        place = folder / family
        if not (place / "bin" / "python").exists():
            subprocess.run(["python3.11", "-m", "venv", str(place)], check=True)
        subprocess.run([str(place / "bin" / "pip"), "install", "--quiet", package], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--data", nargs="+", default=["adult", "discharge13", "acs_ma2019"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=[*REFERENCES, *OURS, *PEERS])
    parser.add_argument("--peers", type=Path, default=Path("peers"))
    parser.add_argument("--install", type=Path)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.install:
        install(given.install)
    elif given.run:
        run_here(given)
    elif given.table:
        print(table())
    elif given.figure:
        figure(given.figure)
    else:
        measure(given)


if __name__ == "__main__":
    main()
