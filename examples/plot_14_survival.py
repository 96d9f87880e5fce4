"""
Survival times of which many are censored
=========================================

Patients enter a study over six years, some leave it early, and when it ends many are alive. Of
those nobody knows the survival time, only that it is longer than what was seen. Here a boosted
regression, an ordinary model of scikit-learn that knows nothing of censoring, is calibrated with
what is known. The patients are simulated, so that in the end we can look at what the study could
not see.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

import regcal
from regcal.plots import PitHistogramDisplay

rng = np.random.default_rng(0)


def patients(n):
    """Draw features, survival times, and for how long each patient is watched, in months."""
    age, stage, marker = rng.uniform(40, 85, n), rng.integers(1, 4, n), rng.lognormal(size=n)
    treated = rng.integers(0, 2, n)
    scale = np.exp(6.0 - 0.02 * age - 0.5 * stage - 0.3 * np.log1p(marker) + 0.5 * treated)
    survival = scale * rng.weibull(1.3, n)
    watched = np.minimum(rng.uniform(12, 84, n), rng.exponential(120, n))
    return np.column_stack([age, stage, marker, treated]), survival, watched


def seen(survival, watched):
    """Return what is known: the time of those who died, "at least" for the others."""
    return regcal.Outcomes.right_censored(np.minimum(survival, watched), survival <= watched)


X, survival, watched = patients(2000)
X_new, survival_new, watched_new = patients(1000)
past, new = seen(survival, watched), seen(survival_new, watched_new)
print(f"{1 - past.exact_rows.mean():.0%} of {len(past)} patients are censored")

# %%
# Times are positive and skewed, so the model predicts their logarithm. An interval of times is an
# interval of logarithms: nothing is lost. The model itself is fitted to the months that are
# known, as if every patient had died on the last day; the calibrator is told what is known.


def log(outcomes):
    """Return what is known of log survival times."""
    return regcal.Outcomes(np.log(outcomes.lower), np.log(outcomes.upper))


trees = HistGradientBoostingRegressor(max_iter=40, max_depth=3, random_state=0)
model = regcal.NormalResidualRegressor(trees)
calibrated = regcal.CalibratedRegressorCV(model, "gp-density").fit(X, log(past))

before = model.fit(X, log(past).values).predict_dist(X_new)
after = calibrated.predict_dist(X_new)

# %%
# The log score of a censored patient is the log probability of living longer than was seen, so that
# models can be compared on patients whose time nobody knows.

for name, dist in (("before", before), ("after", after)):
    print(f"{name:6} log score {regcal.log_score(log(new), dist).mean():.3f}")

# %%
# The Kaplan-Meier curve estimates from what is known which share is alive. Mean predicted survival
# should follow it, for all patients and within groups: here thirds of them, by predicted risk.


def kaplan_meier(outcomes, months):
    """Return the share alive after each number of months."""
    times = np.unique(outcomes.lower[outcomes.exact_rows])[:, np.newaxis]
    at_risk = (outcomes.lower >= times).sum(axis=1)
    deaths = ((outcomes.lower == times) & outcomes.exact_rows).sum(axis=1)
    alive = np.cumprod(1 - deaths / at_risk)
    return np.append(1.0, alive)[np.searchsorted(times[:, 0], months, side="right")]


months = np.arange(1.0, 73.0)
by_risk = np.array_split(np.argsort(-after.sf(np.log(36.0))), 3)

fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), sharey=True, layout="constrained")
for ax, (name, dist) in zip(axes, (("before", before), ("after", after)), strict=True):
    for third, colour in zip(by_risk, ("C0", "C1", "C2"), strict=True):
        predicted = dist[third].sf(np.log(months)[np.newaxis, :]).mean(axis=0)
        ax.step(months, kaplan_meier(new[third], months), colour, where="post")
        ax.plot(months, predicted, colour, linestyle="--")
    ax.set(xlabel="Months", title=name, ylim=(0, 1))
for colour, label in (("C0", "low risk"), ("C1", "medium risk"), ("C2", "high risk")):
    axes[1].plot([], [], colour, label=label)
axes[1].plot([], [], "k", label="Kaplan-Meier")
axes[1].plot([], [], "k--", label="mean prediction")
axes[0].set(ylabel="P(alive)")
fig.legend(loc="outside lower center", ncols=5)

# %%
# A censored patient's place within the prediction is anywhere between that of the last visit and 1.
# All of it counts alike, and the histogram is level if predictions are calibrated.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for ax, (name, dist) in zip(axes, (("before", before), ("after", after)), strict=True):
    PitHistogramDisplay.from_predictions(log(new), dist, name=name, ax=ax)

# %%
# What the study could not see: who lived for four years. Calibration does not make up for what
# the model lost by taking the last visit for the end; a model of survival times as the base would.

alive = survival_new > 48
for name, dist in (("before", before), ("after", after)):
    said = dist.sf(np.log(48.0))
    brier = np.mean((said - alive) ** 2)
    print(f"{name:6} P(T > 48) {said.mean():.2f}, true {alive.mean():.2f}; Brier score {brier:.3f}")
