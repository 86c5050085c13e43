# %% [markdown]
# # Inference from several sets
#
# An analyst receives five synthetic sets. A regression on one of them gives standard errors that are too small;
# `gibbous.infer` adds what synthesis and noise contribute.

# %%
import numpy as np
import polars as pl

import gibbous as gb

rng = np.random.default_rng(3)
n = 6_000
age = rng.integers(20, 80, n)
treated = rng.choice(["no", "yes"], n)
logit = -2 + 0.03 * (age - 50) + 0.6 * (treated == "yes")
ill = np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "yes", "no")
records = pl.DataFrame({"age": age, "treated": treated, "ill": ill})
schema = gb.Schema(
    (
        gb.Column("age", "numeric", edges=(20, 30, 40, 50, 60, 70, 80), integer=True),
        gb.Column("treated", "binary", levels=("no", "yes")),
        gb.Column("ill", "binary", levels=("no", "yes")),
    ),
    gb.Unit("row"),
)
method = gb.AdaptiveGibbs(epsilon=2, delta=1e-6)
release = gb.synthesize(records, schema, method, rows=6_000, sets=5, seed=7, out="release")

# %% [markdown]
# The analyst has the folder, and nothing else.

# %%
rel = gb.infer.load_release("release")
print(rel.glm("ill ~ age + treated", family="binomial").summary())

# %% [markdown]
# The last columns say where the variance comes from: sampling of the records, synthesis of the rows, and the noise.
# The true coefficient of `treated` is 0.6.
