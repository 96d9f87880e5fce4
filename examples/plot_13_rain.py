"""
Rain from an ensemble
=====================

A weather model is run eleven times, from slightly different beginnings, and each run says how much
rain will fall tomorrow. Half of the time it is none. Two questions matter: how likely is no rain at
all, and how likely is more than 5 mm? The forecasts here are simulated with the usual faults: the
runs agree too much with each other, and they drizzle when it stays dry.
"""

import matplotlib.pyplot as plt
import numpy as np

import regcal
from regcal.metrics import brier_score
from regcal.plots import PitHistogramDisplay, ReliabilityDisplay

rng = np.random.default_rng(0)


def simulated(n):
    """Draw what eleven runs say of each day, and how much rain falls; the unit is mm."""
    weather = rng.normal(-0.2, 1.6, n)  # there is rain where it is positive
    said = weather + 0.4 + 0.5 * rng.normal(size=n)
    runs = said[:, np.newaxis] + 0.7 * rng.normal(size=(n, 11))
    rain = weather + 0.9 * rng.normal(size=n)
    return 2 * np.maximum(runs, 0.0) ** 2, 2 * np.maximum(rain, 0.0) ** 2


past_runs, past_rain = simulated(2000)
runs, rain = simulated(1000)
print(f"no rain: {(rain == 0).mean():.0%} of days, {(runs == 0).mean():.0%} of what runs say")

# %%
# ``regcal.Samples`` finds that the runs pile up at 0, and keeps a probability there: the share of
# runs that stay dry. The calibrator finds the same in the outcomes. Nothing has to be said.

before = regcal.Samples(runs)
calibrator = regcal.get_calibrator("gp-density").fit(regcal.Samples(past_runs), past_rain)
after = calibrator.transform(before)
print(before)
print(calibrator.support_.described())

# %%
# The probability of exactly 0 mm is ``mass(0.0)``. On average it should be the share of dry days,
# and nothing should lie below 0.

for name, dist in (("before", before), ("after", after)):
    print(
        f"{name:6}  P(no rain) {dist.mass(0.0).mean():.2f}, seen {(rain == 0).mean():.2f}; "
        f"Brier score {brier_score(rain, dist, 0.0).mean():.3f}; "
        f"largest P(Y < 0) {dist.cdf(-1e-6).max():.0f}"
    )

# %%
# On average is not enough: among all days with a predicted 30 %, 30 % should be dry.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
for ax, (name, dist) in zip(axes, (("before", before), ("after", after)), strict=True):
    ReliabilityDisplay.from_predictions(rain, dist, thresholds=[0.0, 5.0], name=name, ax=ax)

# %%
# A dry day's place within its own forecast is not one number but any from 0 to P(no rain). All of
# it counts alike, and the histogram is level if forecasts are calibrated.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for ax, (name, dist) in zip(axes, (("before", before), ("after", after)), strict=True):
    PitHistogramDisplay.from_predictions(rain, dist, name=name, ax=ax)

# %%
# What happens without an end? ``support=None`` is the whole line. Then a density has to describe
# the zeros: it gets a peak there, and half of the peak is rain that is less than none.

wide = regcal.Samples(runs, support=None)
past = regcal.Samples(past_runs, support=None)
ignoring = regcal.get_calibrator("gp-density", support=None).fit(past, past_rain).transform(wide)
print(f"P(Y < -0.01 mm) {ignoring.cdf(-0.01).mean():.2f}")
print(f"Brier score of no rain {brier_score(rain, ignoring, 0.0).mean():.3f}")

# %%
# One day, as CDFs. The jump at 0 is the probability of no rain.

day = int(np.argmin(np.abs(before.mass(0.0) - 0.5)))
amounts = np.linspace(-1.0, 10.0, 600)
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for name, dist, style in (("ensemble", before, "--"), ("calibrated", after, "-")):
    ax.plot(amounts, dist[day].cdf(amounts[np.newaxis, :])[0], style, label=name)
ax.set(xlabel="Rain, t (mm)", ylabel="P(Y ≤ t)", ylim=(0, 1))
ax.legend(loc="lower right")
