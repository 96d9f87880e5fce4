"""
Binned outputs of a tabular foundation model
============================================

Some networks for tables, TabPFN among them, treat regression as classification into many bins and
return a probability per bin. A random forest classifier on binned targets stands in for such a
network here, because it gives the same kind of output and needs no download: edges and a matrix of
masses. With the real one, pass its own edges and its softmax.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import regcal
from regcal.datasets import load_airfoil
from regcal.plots import PitHistogramDisplay, RowDisplay

data = load_airfoil()
X, X_rest, y, y_rest = train_test_split(data.X, data.y, train_size=0.5, random_state=0)
X_past, X_new, y_past, y_new = train_test_split(X_rest, y_rest, train_size=0.5, random_state=0)

inner = np.linspace(y.min(), y.max(), 41)[1:-1]
edges = np.concatenate([[-np.inf], inner, [np.inf]])  # open-ended outer bins
network = RandomForestClassifier(200, min_samples_leaf=2, random_state=0)
network.fit(X, np.digitize(y, inner))


def bins(X):
    """Return the masses of all bins, also of those that no training row fell into."""
    masses = np.zeros((len(X), len(edges) - 1))
    masses[:, network.classes_] = network.predict_proba(X)
    return 0.999 * masses + 0.001 / masses.shape[1]  # no bin is impossible


held_out = regcal.Histogram(edges, bins(X_past))
before = regcal.Histogram(edges, bins(X_new))
after = regcal.get_calibrator("gp-density").fit(held_out, y_past).transform(before)
print(regcal.compare(y_new, {"bins": before, "calibrated": after}))

# %%
# The classifier hedges: it spreads its masses wider than the outcomes need.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
PitHistogramDisplay.from_predictions(y_new, before, name="before", ax=axes[0])
PitHistogramDisplay.from_predictions(y_new, after, name="after", ax=axes[1])

# %%
# One row: the bins remain visible in the density, as the calibrated distribution is built on them.

RowDisplay.from_predictions(y_new, {"bins": before, "calibrated": after}, row=5)
