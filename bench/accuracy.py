"""Accuracy against the peers on the same rows: TV1 to TV4, AUC, CPU seconds, peak memory; resumable.

    python bench/accuracy.py --install PEERS_FOLDER         # a virtual environment a peer, from the index
    python bench/accuracy.py --peers PEERS_FOLDER --data adult --epsilon 1 --seeds 3
    python bench/accuracy.py --table                        # what was measured so far, as Markdown
    python bench/accuracy.py --figure docs/reference/accuracy.svg

Every run is a process of its own, for gibbous as for a peer, and one line of bench/results/accuracy.jsonl;
a line that is there is not run again but with --again, and the last one counts. An hour of CPU is the
most. All get the same training rows as codes under the same public domain, the same epsilon and delta
(whole budget: no peer needs preprocessing here), and hand back as many rows. TVk is the mean total
variation distance over all 1- and 2-way and 100 random 3- and 4-way margins against the training rows;
AUC is of gradient boosting trained on synthetic rows and tested on rows that no synthesizer saw. The
tables lie beside the repository (../shared/data).
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import resource
import signal
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
RESULTS = Path(os.environ.get("GIBBOUS_BENCH_RESULTS", HERE / "results" / "accuracy.jsonl"))
PEERS = {
    "dpmm-aim": "dpmm",
    "dpmm-mst": "dpmm",
    "dpmm-privbayes": "dpmm",
    "smartnoise-mst": "smartnoise",
}
PACKAGES = {"dpmm": "dpmm==0.1.9", "smartnoise": "smartnoise-synth==1.0.8"}
OURS = ("adaptive_gibbs", "noisy_pegs", "privbayes", "sbhg")
REFERENCES = ("independent", "resampled")
TARGETS = {
    "adult": 14,
    "discharge13": 7,
    "acs_ma2019": 9,
    "randhie": 2,
}  # income, disposition, tenure, plan
HOUR = 3600  # CPU seconds a run may take
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
    seen, counts = np.unique(rows[:, target], return_counts=True)
    seen = seen[counts > 1]  # one row cannot be held out for early stopping
    if len(seen) < 2:
        return float("nan")
    rows = rows[np.isin(rows[:, target], seen)]
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
    from gibbous.core.request import Privacy
    from gibbous.disintegrate.records import LocalEngine
    from gibbous.mechanisms import registry
    from gibbous.privacy.spend import spend
    from gibbous.sampling.sample import sample

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
    tables = spend(Privacy(schema, mechanism), mechanism.plan(schema, None), engine)
    return sample(tables, len(codes), seed=seed).values.astype(np.int64)


def at_most_an_hour() -> None:
    """In the child: CPU time, so that a busy machine does not shorten the hour."""
    resource.setrlimit(resource.RLIMIT_CPU, (HOUR, HOUR + 60))


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
            check=False,
            preexec_fn=at_most_an_hour,
        )
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            raise TimeoutError
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        cost = json.loads(target.with_suffix(".json").read_text())
        cost["process_seconds"] = time.perf_counter() - begin
        return np.load(target)["values"], cost


def run_here(given: argparse.Namespace) -> None:
    """The child process of one run of gibbous."""
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
    """The last line of each run."""
    if not RESULTS.exists():
        return []
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    return list({(r["method"], r["data"], r["epsilon"], r["seed"]): r for r in rows}.values())


def build() -> str:
    """Names the code that made a release: eight digits of a digest of its sources."""
    digest = hashlib.sha256()
    for part in ("mechanisms", "structure", "sampling"):
        for path in sorted((HERE.parent / "src" / "gibbous" / part).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def measure(given: argparse.Namespace) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    done = {(r["method"], r["data"], r["epsilon"], r["seed"]) for r in known()}
    done = set() if given.again else done
    for data in given.data:
        split = load(data)
        grid = itertools.product(given.epsilon, range(given.seeds), given.methods)
        for epsilon, seed, method in grid:
            if (method, data, epsilon, seed) in done:
                continue
            row = {"method": method, "data": data, "epsilon": epsilon, "seed": seed}
            row |= {"delta": given.delta, "rows": len(split.train), "columns": len(split.sizes)}
            if method in (*OURS, "independent"):
                row["build"] = build()
            try:
                if method == "resampled":
                    rng = np.random.default_rng(seed)
                    made = split.train[rng.integers(0, len(split.train), len(split.train))]
                    cost: dict[str, Any] = {}
                else:
                    made, cost = one(method, split, epsilon, given.delta, seed, given.peers)
            except TimeoutError:
                row["failed"] = "more than one CPU hour"
            except RuntimeError as error:
                if method not in PEERS:
                    raise
                row["failed"] = str(error).strip().splitlines()[-1][:200]
            else:
                row |= distances(split, made) | {"auc": auc(split, made)} | cost
            with RESULTS.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)


FIELDS = ("tv1", "tv2", "tv3", "tv4", "auc", "cpu_seconds", "peak_mb")
DATED = (  # one run each of code that no package installs; same rows of Adult, other triples and fours
    ("private-pgm AIM, full size, dated", 1.0, 0.0064, 0.0301, 0.0692, 0.1164, 0.904, 644, 5451),
    ("private-pgm MST, dated", 1.0, 0.0061, 0.0457, 0.0976, 0.1609, 0.835, 83, 2029),
    ("private-pgm AIM, 1 MB model, dated", 0.1, 0.041, 0.101, 0.173, 0.237, 0.857, 138, None),
    ("private-pgm AIM, 1 MB model, dated", 10.0, 0.0013, 0.017, 0.051, 0.094, 0.917, 747, 5700),
)


@dataclass(frozen=True)
class Line:
    """Means over the runs of one method; NaN where a field was not measured."""

    name: str
    epsilon: float
    runs: int
    means: dict[str, float]


def lines(data: str) -> list[Line]:
    """What is known of a data set: measured runs, and the dated figures of what no index has."""
    rows = [r for r in known() if r["data"] == data and "failed" not in r]
    found = []
    for epsilon, method in sorted({(r["epsilon"], r["method"]) for r in rows}):
        runs = [r for r in rows if (r["epsilon"], r["method"]) == (epsilon, method)]
        means = {f: float(np.mean([r.get(f, np.nan) for r in runs])) for f in FIELDS}
        version = f" {runs[0]['version']}" if method in PEERS else ""
        found.append(Line(method + version, epsilon, len(runs), means))
    if data == "adult":
        for name, epsilon, *numbers in DATED:
            values = (np.nan if n is None else float(n) for n in numbers)
            found.append(Line(name, float(epsilon), 1, dict(zip(FIELDS, values, strict=True))))
    return found


def table(data: str) -> str:
    """One Markdown table: every epsilon, closest pairs first; what failed is said below it."""
    out = [
        "| epsilon | method | runs | TV1 | TV2 | TV3 | TV4 | AUC | CPU s | peak MB |",
        "|---:|---|---:|---|---|---|---|---|---:|---:|",
    ]
    found = lines(data)
    floor = [one for one in found if one.name == "resampled"]
    rest = [one for one in found if one.name != "resampled"]
    for one in floor + sorted(rest, key=lambda o: (ORDER.index(o.epsilon), o.means["tv2"])):
        name = f"**{one.name}**" if one.name == "adaptive_gibbs" else one.name
        name = "records resampled" if one.name == "resampled" else name
        cells = ["-" if one in floor else f"{one.epsilon:g}", name, str(one.runs)]
        cells += [_short(one.means[f], 4) for f in FIELDS[:4]] + [_short(one.means["auc"], 3)]
        cpu, peak = one.means["cpu_seconds"], one.means["peak_mb"]
        cells.append("" if np.isnan(cpu) else f"{cpu:.1f}" if cpu < 9.95 else f"{cpu:,.0f}")
        cells.append("" if np.isnan(peak) else f"{peak:,.0f}")
        out.append("| " + " | ".join(cells) + " |")
    failed = [r for r in known() if r["data"] == data and "failed" in r]
    out += [f"\n{r['method']}, epsilon {r['epsilon']:g}: {r['failed']}." for r in failed]
    return "\n".join(out)


ORDER = (1.0, 10.0, 0.1)


def _short(value: float, digits: int) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}f}".removeprefix("0")


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
    parser.add_argument("--again", action="store_true", help="run what was run before; it counts")
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
        print("\n\n".join(f"**{data}**\n\n{table(data)}" for data in given.data))
    elif given.figure:
        import accuracy_picture

        accuracy_picture.figure(given.figure)
    else:
        measure(given)


if __name__ == "__main__":
    main()
