"""
A decision at a threshold, with costs
=====================================

A patient whose marker will exceed 8 should be treated now. Treating costs 1; not treating a patient
who turns out to exceed it costs 20. The best rule is simple: treat when P(Y > 8) is above 1/20. It
is only the best rule if that probability is right.

The data are simulated: the marker rises with dose and age, and its scatter grows with its level,
which the clinic's linear model does not know.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import BayesianRidge

import regcal
from regcal.plots import ReliabilityDisplay

LIMIT, TREATMENT, MISSED = 8.0, 1.0, 20.0


def patients(n, rng):
    """Draw age and dose in standard units, and the marker."""
    X = rng.normal(size=(n, 2))
    level = np.exp(1.2 + 0.45 * X[:, 0] + 0.35 * X[:, 1])
    return X, rng.gamma(6.0, level / 6.0)


rng = np.random.default_rng(0)
X, y = patients(1500, rng)
X_new, y_new = patients(4000, rng)

before = regcal.predict_dist(BayesianRidge().fit(X, y), X_new)
calibrated = regcal.CalibratedRegressorCV(BayesianRidge(), "gpc").fit(X, y)
after = calibrated.predict_dist(X_new)

# %%
# Is P(Y > 8) right? The lines show its complement, P(Y <= 8), and should lie on the diagonal. The
# decision is made where P(Y <= 8) is 0.95.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
for ax, name, dist in ((axes[0], "before", before), (axes[1], "after", after)):
    ReliabilityDisplay.from_predictions(y_new, dist, thresholds=[LIMIT], name=name, ax=ax)

# %%
# What the rule costs per patient, for any cost of a missed case. The dotted line treats everybody
# or nobody, whichever is cheaper.

ratios = np.linspace(2, 60, 59)


def cost(risk, ratio):
    """Return the mean cost of treating where the risk is worth it."""
    treated = risk > TREATMENT / ratio
    return np.mean(np.where(treated, TREATMENT, ratio * (y_new > LIMIT)))


fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, dist, style in (("before", before, "--"), ("after", after, "-")):
    ax.plot(ratios, [cost(dist.sf(LIMIT), r) for r in ratios], style, label=name)
share = np.mean(y_new > LIMIT)
ax.plot(ratios, np.minimum(TREATMENT, ratios * share), ":", color="grey", label="same for all")
ax.set(xlabel="Cost of a missed case", ylabel="Cost per patient")
ax.legend()

# %%
# At the costs of this clinic:

for name, dist in (("before", before), ("after", after)):
    treated = dist.sf(LIMIT) > TREATMENT / MISSED
    missed = ((y_new > LIMIT) & ~treated).sum()
    print(
        f"{name:7} cost per patient {cost(dist.sf(LIMIT), MISSED):.3f}, "
        f"treated {treated.mean():.1%}, missed {missed} of {(y_new > LIMIT).sum()}"
    )
