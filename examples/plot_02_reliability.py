"""
Reliability before and after
============================

Among all rows for which the model said "30 % that the strength stays below t", the share that did
stay below should be 30 %, whatever t is. One line per threshold t shows whether that holds.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split

import regcal
from regcal.datasets import load_concrete
from regcal.metrics import threshold_calibration_test
from regcal.plots import CoverageDisplay, PitHistogramDisplay, ReliabilityDisplay

data = load_concrete()
X, X_new, y, y_new = train_test_split(data.X, data.y, test_size=0.4, random_state=0)

before = regcal.predict_dist(BayesianRidge().fit(X, y), X_new)
after = regcal.CalibratedRegressorCV(BayesianRidge(), "gpc").fit(X, y).predict_dist(X_new)

fig, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
ReliabilityDisplay.from_predictions(y_new, before, thresholds=8, name="before", ax=axes[0])
ReliabilityDisplay.from_predictions(y_new, after, thresholds=8, name="after", ax=axes[1])

# %%
# The histogram of PIT values and the coverage of intervals look at all thresholds at once. They can
# look fine while single thresholds are wrong: here the errors at low and high strengths cancel.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
PitHistogramDisplay.from_predictions(y_new, before, name="before", ax=axes[0])
CoverageDisplay.from_predictions(y_new, before, name="before", ax=axes[1])

# %%
# A test says what chance explains: ``error`` is what remains beyond it.

for name, dist in (("before", before), ("after", after)):
    test = threshold_calibration_test(y_new, dist, random_state=0)
    print(f"{name}: error {test.error:.3f}, p-value {test.p_value:.3f}")
