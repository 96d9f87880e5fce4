"""
A report for those who were not there
=====================================

``regcal.report`` writes one HTML page: a verdict in words, scores with standard errors, figures
that answer to the mouse, and an explorer of single rows. It needs no server and no network: send
it by mail. The figures below are the same ones, drawn by matplotlib.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split

import regcal
from regcal.datasets import load_diabetes
from regcal.plots import CoverageDisplay, PitHistogramDisplay, ReliabilityDisplay

data = load_diabetes()
X, X_new, y, y_new = train_test_split(data.X, data.y, test_size=0.4, random_state=0)
before = regcal.predict_dist(BayesianRidge().fit(X, y), X_new)
after = regcal.CalibratedRegressorCV(BayesianRidge(), "gpc").fit(X, y).predict_dist(X_new)

with tempfile.TemporaryDirectory() as folder:
    file = regcal.report(
        y_new, after, before, Path(folder) / "report.html", target_name="progression"
    )
    print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB")

# %%
# The table of scores in the report is the one that ``regcal.compare`` returns.

print(regcal.compare(y_new, {"before": before, "after": after}))

# %%

fig, axes = plt.subplots(2, 3, figsize=(12.5, 8.4), layout="constrained")
for row, (name, dist) in zip(axes, (("before", before), ("after", after)), strict=True):
    ReliabilityDisplay.from_predictions(
        y_new, dist, thresholds=[100, 150, 200], name=name, ax=row[0]
    )
    PitHistogramDisplay.from_predictions(y_new, dist, name=name, ax=row[1])
    CoverageDisplay.from_predictions(y_new, dist, name=name, ax=row[2])
