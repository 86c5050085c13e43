"""Risk findings on the discharge table: seconds of each metric, and what releases of known kind score.

    python bench/risk.py                         # seconds on 151,551 x 13, one core
    python bench/risk.py --quick                 # the same on 20,000 rows
    python bench/risk.py --scores                # also a copy, noisy_pegs, independent columns, ...

The table lies beside the repository (../shared/data). Its levels are read off the file: the bench is
about metrics, not about a release.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from common import Result, arguments, save, show

from gibbous.core.codes import Codes
from gibbous.core.request import Privacy
from gibbous.core.schema import Column, Schema
from gibbous.disintegrate.records import LocalEngine
from gibbous.evaluation import metrics
from gibbous.evaluation.measure import Options
from gibbous.evaluation.tables import (
    Side,
    Subject,
    independent,
    permutation,
    resampled,
    side,
    typed,
)
from gibbous.mechanisms.noisy_pegs import NoisyPegs
from gibbous.privacy.spend import spend
from gibbous.sampling.sample import sample

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
KEYS = ("age_yrs", "sex", "los", "hosp")
SENSITIVE = ("mdc", "nproc")
OPTIONS = Options(keys=KEYS, sensitive=SENSITIVE)
SEED = 7
TOLD = {  # where the value alone says little: the row of the detail to show beside it
    "output_k": ("group of at most", 1, "share of rows"),
    "output_l": ("of a group", "exp(entropy), mean over rows", "value"),
}


def main() -> None:
    """Print both tables."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--scores", action="store_true", help="what releases of known kind score")
    given = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit("the data sets beside the repository (../shared/data) are absent")
    table = load(20_000 if given.quick else None)
    results = seconds(table)
    show(f"Risk findings, {table.rows:,} x {len(table.schema)}: CPU seconds", results)
    save(given.json, "risk", results, "gibbous", "numpy", "numba", "polars")
    if given.scores:
        scores(table)


def load(rows: int | None = None) -> Side:
    """The discharge table, or a random part of it."""
    about = json.loads((DATA / "discharge13.schema.json").read_text())
    columns = tuple(
        Column(c["name"], "ordinal" if c["kind"] == "ordinal" else "nominal", tuple(c["levels"]))
        for c in about["columns"]
    )
    frame = pl.read_parquet(DATA / "discharge13.parquet").cast(pl.String)
    whole = side(frame, Schema(columns))
    return whole if rows is None else whole.take(permutation(whole.rows, SEED, 1)[:rows])


def thirds(table: Side) -> list[Side]:
    """Three random parts: records, outsiders, and fresh draws from the same population."""
    return [table.take(part) for part in np.array_split(permutation(table.rows, SEED, 2), 3)]


def seconds(table: Side) -> list[Result]:
    """The whole table as records, as many synthetic rows, and a tenth of it as holdout."""
    few = table.take(permutation(table.rows, SEED, 3)[: table.rows // 10])
    subject = Subject(table.schema, table, (independent(table, SEED),), few, SEED)
    small = table.take(np.arange(2))  # compile first
    tiny = Subject(table.schema, small, (small,), small, SEED)
    risks = [name for name in metrics.names() if metrics.card(name).group == "risk"]
    metrics.compute(tiny, OPTIONS, risks)
    out = []
    for name in risks:
        start = time.process_time()
        metrics.compute(subject, OPTIONS, (name,))
        out.append(Result(name, time.process_time() - start, unit="s"))
    start = time.process_time()
    metrics.compute(subject, OPTIONS, risks)
    out.append(Result("all of them", time.process_time() - start, 20, unit="s"))
    return out


def noisy(real: Side, epsilon: float) -> Side:
    """As many rows as the records, from noisy tables."""
    mechanism = NoisyPegs(epsilon=epsilon, delta=1e-6)
    plan = mechanism.plan(real.schema, None)
    engine = LocalEngine.from_codes(replace(real.codes, secret=True))
    tables = spend(Privacy(real.schema, mechanism), plan, engine)
    rows = np.asfortranarray(sample(tables, real.rows, seed=SEED).values)
    return made(rows, real)


def half_copied(real: Side) -> Side:
    """Half of the rows are records, the others independent columns: a leak that margins hide."""
    half = real.rows // 2
    copied = real.take(permutation(real.rows, SEED, 4)[:half])
    drawn = independent(real.take(resampled(real.rows, real.rows - half, SEED, 5)), SEED)
    return made(np.concatenate([copied.codes.values, drawn.codes.values]), real)


def made(values: np.ndarray, like: Side) -> Side:
    """A table of these codes."""
    codes = Codes(like.schema, np.asfortranarray(values.astype(like.schema.code_dtype())))
    blank = pl.DataFrame({column.name: [] for column in like.schema})
    return Side(codes, typed(blank, codes))


def scores(table: Side) -> None:
    """One line a metric, one column a release; all against the same records and outsiders."""
    inside, outside, fresh = thirds(table)
    releases = {
        "copy": inside,
        "half copied": half_copied(inside),
        "fresh draws": fresh,
        "independent": independent(inside, SEED),
        "noisy_pegs, epsilon 1": noisy(inside, 1.0),
    }
    print(
        f"\n{inside.rows} records, {outside.rows} outsiders; value / outsiders, or value [interval]"
    )
    shown: dict[str, list[str]] = {}
    for release in releases.values():
        subject = Subject(table.schema, inside, (release,), outside, SEED)
        for one in metrics.compute(
            subject, OPTIONS, metrics.selected(("risk",), table.schema, OPTIONS)
        )[0]:
            about = f"`{one.name}`"
            if one.subject and one.subject[-1] in SENSITIVE:
                about += f" {one.subject[-1]}"
            null = dict(one.null)
            text = f"{one.value:.4g}"
            if "outsiders" in null:
                text += f" / {null['outsiders']:.4g}"
            elif one.interval:
                text += f" [{one.interval[0]:.3f}, {one.interval[1]:.3f}]"
            if one.name in TOLD:
                key, wanted, value = TOLD[one.name]
                text += "; " + next(f"{r[value]:.3g}" for r in one.detail if r[key] == wanted)
            shown.setdefault(about, []).append(text)
    print("\n| metric | " + " | ".join(releases) + " |")
    print("|---|" + "---|" * len(releases))
    for about, texts in shown.items():
        print(f"| {about} | " + " | ".join(texts) + " |")


if __name__ == "__main__":
    main()
