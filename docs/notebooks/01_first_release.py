# %% [markdown]
# # A first release with pandas
#
# A table of patients becomes synthetic rows. Everything here runs in a minute, on made-up records.

# %%
import numpy as np
import pandas as pd

import gibbous as gb

rng = np.random.default_rng(1)
n = 5_000
age = rng.integers(18, 95, n)
smokes = np.where(rng.random(n) < 0.35 - age / 400, "yes", "no")
ill = np.where(rng.random(n) < 0.05 + age / 300 + 0.1 * (smokes == "yes"), "yes", "no")
patients = pd.DataFrame({"age": age, "smokes": smokes, "ill": ill})
patients.head()

# %% [markdown]
# **Describe the table.** Declare only what is public: codebook, form, law. Nothing is read off the records.

# %%
schema = gb.Schema(
    (
        gb.Column("age", "numeric", edges=(18, 30, 45, 60, 75, 95), integer=True),
        gb.Column("smokes", "binary", levels=("no", "yes")),
        gb.Column("ill", "binary", levels=("no", "yes")),
    ),
    gb.Unit("row"),
)

# %% [markdown]
# **See the cost before a record is read.**

# %%
method = gb.AdaptiveGibbs(epsilon=1, delta=1e-6)
gb.plan(schema, method, rows=5_000, sets=2)

# %% [markdown]
# **Release.** The ledger charges the budget first. Then the records are counted once, and noise is added once.

# %%
release = gb.synthesize(patients, schema, method, rows=5_000, sets=2, seed=7, out="release")
release.sets[0].head()

# %% [markdown]
# **Check the folder.** This needs no data; whoever receives the release can do it.

# %%
gb.verify("release")

# %% [markdown]
# **Compare, for your own eyes.** Findings against the records are confidential.

# %%
for name, table in (("records", patients), ("synthetic", release.sets[0])):
    share = table.groupby("smokes")["ill"].apply(lambda s: (s == "yes").mean())
    print(
        f"{name:<10} ill: {share['no']:.3f} of those who do not smoke, {share['yes']:.3f} of those who do"
    )
