# %% [markdown]
# # A steward's day
#
# A draft schema, a cap, a plan, a release, what the board gets, and a second request that is refused.

# %%
from pathlib import Path

import numpy as np
import polars as pl

import gibbous as gb
from gibbous.core.errors import GibbousError

rng = np.random.default_rng(2)
n = 4_000
visits = pl.DataFrame(
    {
        "age": rng.integers(0, 100, n),
        "sex": rng.choice(["f", "m"], n),
        "diagnosis": rng.choice(["I10", "J45", "E11"], n, p=[0.5, 0.3, 0.2]),
    }
)
visits.write_csv("visits.csv")

# %% [markdown]
# **Morning: the schema.** A draft reads facts off the data and marks each one. A claim over such facts is refused.

# %%
draft = gb.infer_schema("visits.csv")
print(len(draft.inferred()), "facts to declare")
try:
    gb.plan(draft, gb.NoisyPegs(epsilon=1, delta=1e-6))
except GibbousError as error:
    print(error.code)

# %% [markdown]
# The steward declares them from the codebook.

# %%
schema = gb.Schema(
    (
        gb.Column("age", "numeric", edges=(0, 18, 40, 65, 100), integer=True),
        gb.Column("sex", "binary", levels=("f", "m")),
        gb.Column("diagnosis", "nominal", levels=("I10", "J45", "E11")),
    ),
    gb.Unit("row"),
)
schema.save("schema.toml")

# %% [markdown]
# **Noon: the plan, then the release.** A ledger of its own, so that the notebook leaves none behind.

# %%
ledger = gb.Ledger.open("ledger.sqlite")
method = gb.NoisyPegs(epsilon=1, delta=1e-6)
release = gb.synthesize(
    "visits.csv", schema, method, rows=4_000, sets=2, seed=7, out="release", ledger=ledger
)
print(release.plan.headline())

# %% [markdown]
# **Afternoon: what the board gets.** A folder that can be verified without the data.

# %%
gb.verify("release")
sorted(p.name for p in Path("release").iterdir())

# %% [markdown]
# **Evening: a cap, and a request beyond it.** The cap is the most that these records may ever spend. Another release would cost as
# much again, and is refused before a record is counted.

# %%
dataset = ledger.entries()[0].dataset
ledger.cap(dataset, epsilon=1, delta=1e-6)
try:
    gb.synthesize("visits.csv", schema, method, rows=4_000, out="second", ledger=ledger)
except GibbousError as error:
    print(error.code)

# %% [markdown]
# What was spent, entry by entry:

# %%
for entry in ledger.entries():
    print(entry.seq, entry.kind, entry.claim.words() if entry.claim else "")
ledger.close()

# %% [markdown]
# From a terminal: `gibbous ledger cap`, `gibbous ledger show`, and [the steward's guide](../how-to/steward.md).
