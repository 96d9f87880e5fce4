"""
A model that is wrong about every row
=====================================

Half of the rows follow x, the other half ignore it. A linear model predicts one normal
distribution per row: nearly right on average, wrong everywhere. Calibration learns from held-out
rows where the outcomes really are. This is the toy problem of Song, Kull and Flach (2018).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import BayesianRidge

import regcal
from regcal.datasets import ToyMixture
from regcal.plots import DensityDisplay

toy = ToyMixture()
train, past = toy.sample(600, random_state=0), toy.sample(600, random_state=1)
model = BayesianRidge().fit(train.X, train.y)

# %%
# The calibrator sees what the model said about rows it had not seen, and what happened. ``gpc`` is
# the paper's Gaussian-process method; ``gp-density`` is regcal's own.

held_out = regcal.predict_dist(model, past.X)
gpc = regcal.get_calibrator("gpc").fit(held_out, past.y)
density = regcal.get_calibrator("gp-density").fit(held_out, past.y)

# %%
# Where the colour is dark, outcomes are said to be likely. The white line is the mean.

x = np.linspace(-0.98, 0.98, 150)
said = regcal.predict_dist(model, x[:, np.newaxis])
truth = regcal.Mixture(
    [
        regcal.Normal(x, np.full(150, toy.noise)),
        regcal.Normal(np.full(150, toy.flat), np.full(150, toy.noise)),
    ]
)
panels = {
    "the truth": truth,
    "the model": said,
    "calibrated by gpc": gpc.transform(said),
    "by gp-density": density.transform(said),
}
fig, axes = plt.subplots(2, 2, figsize=(9, 7.5), layout="constrained")
for ax, (name, dist) in zip(axes.flat, panels.items(), strict=True):
    DensityDisplay.from_predictions(
        None, dist, x=x, data=(past.X[:200, 0], past.y[:200]), name=name, ax=ax
    )

# %%
# On new rows, the mean log score tells how much was gained. The last line is what one would get by
# knowing the truth.

new = toy.sample(2000, random_state=2)
before = regcal.predict_dist(model, new.X)
for name, dist in {
    "model": before,
    "gpc": gpc.transform(before),
    "gp-density": density.transform(before),
}.items():
    print(f"{name:11} {regcal.log_score(new.y, dist).mean():7.3f}")
print(f"{'truth':11} {toy.logpdf(new.X[:, 0], new.y).mean():7.3f}")
