"""
Electricity demand in time order
================================

Tomorrow's demand must be predicted from the past, so calibration rows have to come after the rows
the model was trained on: ``TimeSeriesSplit`` instead of random folds. The hourly demand here is
simulated: a daily shape, a seasonal drift, noise that is larger in the evening, and now and then a
spike.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import TimeSeriesSplit

import regcal

rng = np.random.default_rng(0)
hours = np.arange(24 * 200)
hour, day = hours % 24, hours // 24
evening = np.exp(-0.5 * ((hour - 19) / 2.0) ** 2)
load = 50 + 12 * np.sin((hour - 9) / 24 * 2 * np.pi) + 6 * evening + 5 * np.sin(day / 60)
spikes = rng.exponential(6.0, len(hours)) * (rng.uniform(size=len(hours)) < 0.15 * evening)
demand = load + rng.normal(size=len(hours)) * (1.0 + 2.5 * evening) + spikes
X = np.column_stack([hour, day % 7, np.roll(demand, 24), np.roll(demand, 168)])[168:]
y = demand[168:]

split = len(y) - 24 * 28  # the last four weeks are the future
point = HistGradientBoostingRegressor(max_iter=60, random_state=0)
base = regcal.NormalResidualRegressor(point, cv=TimeSeriesSplit(4))
model = regcal.CalibratedRegressorCV(base, "gpc", cv=TimeSeriesSplit(4))
model.fit(X[:split], y[:split])

before = regcal.predict_dist(base.fit(X[:split], y[:split]), X[split:])
after = model.predict_dist(X[split:])
future = y[split:]
print(regcal.compare(future, {"before": before, "after": after}))

# %%
# Three days with 90 % intervals. One spread for all hours is too wide at night and too narrow in
# the evening; the calibrated intervals breathe, because high demand is where the noise is.

shown = slice(24 * 5, 24 * 8)
fig, axes = plt.subplots(2, 1, figsize=(9, 6), sharex=True, sharey=True, layout="constrained")
for ax, (name, dist) in zip(axes, (("before", before), ("after", after)), strict=True):
    low, high = dist[shown].interval(0.9)
    ax.fill_between(np.arange(72), low, high, alpha=0.3, label="90 % interval")
    ax.plot(future[shown], "k.", markersize=4, label="demand")
    ax.set(ylabel="Demand", title=name)
axes[0].legend(loc="upper left")
axes[1].set(xlabel="Hour")

# %%
# How likely is a demand above 75, hour by hour?

fig, ax = plt.subplots(figsize=(9, 3), layout="constrained")
ax.plot(before[shown].sf(75.0), "--", label="before")
ax.plot(after[shown].sf(75.0), label="after")
ax.set(xlabel="Hour", ylabel="P(demand > 75)")
ax.legend()
