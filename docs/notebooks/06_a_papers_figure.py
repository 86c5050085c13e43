# %% [markdown]
# # A figure of a paper
#
# Bowen and Liu (2016), section 4.1: estimating a proportion from synthetic binary data. `studies.run` repeats the experiment; the quick
# setting with 100 repeats takes seconds, the full one a quarter of an hour.

# %%
import altair as alt

from gibbous import studies

ran = studies.run("bowen2016-1", quick=True, reps=100, workers=1)
rows = ran.frame().filter(n=1000, pi=0.15)
rows.select("method", "ln_epsilon", "bias", "rmse").head()

# %% [markdown]
# Root mean squared error over the budget, by method, as in the figure of the paper.

# %%
alt.Chart(alt.Data(values=rows.select("method", "ln_epsilon", "rmse").to_dicts())).mark_line(
    point=True
).encode(
    x=alt.X("ln_epsilon:Q", title="ln epsilon"),
    y=alt.Y("rmse:Q", scale=alt.Scale(type="log"), title="RMSE of the proportion"),
    color="method:N",
).properties(width=460, height=280)

# %% [markdown]
# The full setting beside the figures that the paper prints: [bowen2016-1](../studies/bowen2016-1.md).
