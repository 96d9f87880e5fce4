"""
Quantile forest
===============

A quantile forest predicts quantiles. regcal asks it for a set of levels, makes a distribution of
them, with tails, and calibrates that.

Forests are very sure of some rows, and sometimes wrong: an outcome where they saw no density at all
would dominate everything that is learned. A little of the overall distribution, mixed in before
calibration, leaves room for surprise.
"""

import matplotlib.pyplot as plt
import numpy as np
from quantile_forest import RandomForestQuantileRegressor
from sklearn.model_selection import train_test_split

import regcal
from regcal.datasets import load_concrete
from regcal.plots import PitHistogramDisplay

data = load_concrete()
X, X_rest, y, y_rest = train_test_split(data.X, data.y, train_size=0.5, random_state=0)
X_past, X_new, y_past, y_new = train_test_split(X_rest, y_rest, train_size=0.5, random_state=0)

forest = RandomForestQuantileRegressor(n_estimators=100, random_state=0).fit(X, y)
held_out, before = regcal.predict_dist(forest, X_past), regcal.predict_dist(forest, X_new)


def with_room(dist, share=0.05):
    """Mix in a little of the overall distribution."""
    overall = regcal.Normal(np.full(len(dist), y.mean()), np.full(len(dist), y.std()))
    return regcal.Mixture([dist, overall], [1 - share, share])


calibrator = regcal.get_calibrator("pit").fit(with_room(held_out), y_past)
after = calibrator.transform(with_room(before))
print(regcal.compare(y_new, {"before": before, "after": after}))

# %%
# Outcomes beyond the forest's outer quantiles are more frequent than it says: they pile up at both
# ends of the histogram.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
PitHistogramDisplay.from_predictions(y_new, before, name="before", ax=axes[0])
PitHistogramDisplay.from_predictions(y_new, after, name="after", ax=axes[1])
