# %% [markdown]
# # Comparing mechanisms
#
# Methods side by side on one table, at equal proven cost. On confidential records a comparison is itself
# confidential; here the records are made up.

# %%
import altair as alt
import numpy as np
import polars as pl

import gibbous as gb

rng = np.random.default_rng(4)
n = 4_000
a = rng.integers(0, 4, n)
b = np.where(rng.random(n) < 0.8, a, rng.integers(0, 4, n))
c = np.where(rng.random(n) < 0.6, b % 2, rng.integers(0, 2, n))
names = ("a", "b", "c")
table = pl.DataFrame({k: [str(x) for x in v] for k, v in zip(names, (a, b, c), strict=True)})
schema = gb.Schema(
    tuple(
        gb.Column(k, "nominal", levels=tuple(str(x) for x in range(m)))
        for k, m in zip(names, (4, 4, 2), strict=True)
    ),
    gb.Unit("row"),
)

# %%
rows = []
for name in ("adaptive_gibbs", "noisy_pegs", "laplace"):
    for epsilon in (0.1, 1, 10):
        given = {"epsilon": epsilon} | ({} if name == "laplace" else {"delta": 1e-6})
        made = gb.synthesize(
            table, schema, name, rows=n, seed=7, ledger=gb.Ledger.ephemeral(), **given
        )
        found = gb.evaluate(table, made, schema, only=["tv2"])
        rows.append({"method": name, "epsilon": epsilon, "tv2": found["tv2"].value})
pl.DataFrame(rows).pivot("epsilon", index="method", values="tv2")

# %%
chart = alt.Chart(alt.Data(values=rows)).mark_line(point=True)
chart.encode(
    x=alt.X("epsilon:Q", scale=alt.Scale(type="log")),
    y=alt.Y("tv2:Q", title="mean distance of pairs"),
    color="method:N",
).properties(width=420, height=240)

# %% [markdown]
# `gb.compare` and `gibbous compare` do this over repeats, with intervals and a risk-utility map.
