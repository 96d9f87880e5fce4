"""
Quantile forest
===============

A quantile forest predicts quantiles. regcal asks it for a set of levels, makes a distribution of
them, with tails, and calibrates that.
"""

import matplotlib.pyplot as plt
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
after = regcal.get_calibrator("gp-density").fit(held_out, y_past).transform(before)
print(regcal.compare(y_new, {"before": before, "after": after}))

# %%
# Outcomes beyond the forest's outer quantiles are more frequent than it says: they pile up at both
# ends of the histogram.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
PitHistogramDisplay.from_predictions(y_new, before, name="before", ax=axes[0])
PitHistogramDisplay.from_predictions(y_new, after, name="after", ax=axes[1])
