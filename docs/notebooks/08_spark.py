# %% [markdown]
# # Spark
#
# The same call counts on a cluster. Only counts leave it; noise is made once, on the driver.

# %%
import importlib.util
import shutil

import polars as pl

import gibbous as gb

HERE = importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None
if not HERE:
    skip("it needs pyspark and Java 17 (pip install '.[spark]')")  # noqa: F821 - of the runner

# %%
schema = gb.Schema((gb.Column("ill", "binary", levels=("no", "yes")),), gb.Unit("row"))
pl.DataFrame({"ill": ["no", "yes"] * 500}).write_parquet("visits.parquet")
release = gb.synthesize(
    "visits.parquet",
    schema,
    gb.NoisyPegs(epsilon=1, delta=1e-6),
    rows=1_000,
    out="release",
    engine="spark",
)
print(release.plan.headline())
