"""
Let auto choose the method
==========================

``auto`` deals the calibration rows into three parts, fits every method without each of them and
scores it there. It averages methods that are better together, or takes the simplest one that is not
clearly worse than the best. Its table of scores tells how clear the choice was.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split

import regcal
from regcal.datasets import load_airfoil, load_concrete, load_diabetes

LOADERS = {"diabetes": load_diabetes, "concrete": load_concrete, "airfoil": load_airfoil}

fig, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained", sharey=True)
for ax, (name, loader) in zip(axes, LOADERS.items(), strict=True):
    data = loader()
    X, X_new, y, y_new = train_test_split(data.X, data.y, random_state=0)
    model = regcal.CalibratedRegressorCV(BayesianRidge(), "auto").fit(X, y)
    scores = model.selection_.scores_
    ax.errorbar(
        [-score.behind for score in scores],
        range(len(scores)),
        xerr=[score.standard_error for score in scores],
        fmt="o",
        capsize=3,
    )
    ax.set(title=name, xlabel="Score relative to the best alone, in nats")
    before = regcal.predict_dist(BayesianRidge().fit(X, y), X_new)
    gain = regcal.log_score(y_new, model.predict_dist(X_new)) - regcal.log_score(y_new, before)
    print(f"{name:9} {model.selection_.chosen_}: gain on new rows {gain.mean():+.3f}")
axes[0].set(yticks=range(len(scores)), yticklabels=[score.name for score in scores])
axes[0].invert_yaxis()
