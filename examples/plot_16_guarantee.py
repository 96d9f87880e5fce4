"""
A regulator's interval
======================

A supplier of concrete has to state, for every mix, an interval that holds the strength in at least
90 % of deliveries, and a lower bound that 95 % of them reach. A regulator checks. An estimate is
not enough: the supplier wants to know that the rule behind it keeps its word, with the few rows it
has.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import regcal
from regcal.datasets import load_concrete

data = load_concrete()
rng = np.random.default_rng(0)
base = make_pipeline(FunctionTransformer(np.log1p), BayesianRidge())


def deliveries():
    """Return rows for one supplier, 120 known ones, and all others, which come later."""
    order = rng.permutation(len(data))
    return order[:120], order[120:]


# %%
# With ``guarantee="split"`` some rows are held out of everything: the model, its calibrator, and
# the choice of a method. Where their outcomes lie within their predictions moves the levels of
# intervals.

known, later = deliveries()
model = regcal.CalibratedRegressorCV(base, "scale", support=(0, None), guarantee="split")
model.fit(data.X[known], data.y[known])
print(model.guarantee_)

interval = model.predict_interval(data.X[later[:3]], 0.9, guarantee=True)
bound = model.predict_quantiles(data.X[later[:3]], [0.05], guarantee=True)
for (low, high), least in zip(interval, bound[:, 0], strict=True):
    print(f"90 % between {low:.0f} and {high:.0f} MPa; 95 % reach {least:.0f} MPa")

# %%
# Does it keep its word? One supplier proves nothing: the promise is about the rule. So let 100
# suppliers follow it, with 120 rows each, and compare it with the model's own spread.


def share_held(ends, y):
    """Return the share of outcomes inside."""
    return np.mean((ends[:, 0] <= y) & (y <= ends[:, 1]))


shares = {"the model alone": [], "promised": []}
for _ in range(100):
    known, later = deliveries()
    model.fit(data.X[known], data.y[known])
    X, y = data.X[later], data.y[later]
    alone = regcal.predict_dist(clone(base).fit(data.X[known], data.y[known]), X)
    shares["the model alone"].append(share_held(np.column_stack(alone.interval(0.9)), y))
    shares["promised"].append(share_held(model.predict_interval(X, 0.9, guarantee=True), y))

for name, values in shares.items():
    print(f"{name}: 90 % intervals hold {np.mean(values):.1%} over 100 suppliers")

# %%
# Over suppliers it holds. A single one may be lucky or not with the rows held out: with 60 of them,
# coverage differs by about 0.04 from supplier to supplier, and only more rows help against that.

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
bins = np.linspace(0.7, 1.0, 31)
for name, values in shares.items():
    ax.hist(values, bins=bins, alpha=0.6, label=name)
ax.axvline(0.9, color="black", linewidth=1)
ax.set(xlabel="share of later deliveries inside", ylabel="suppliers")
ax.legend()
plt.show()

# %%
# The regulator asks for young concrete in particular. Coverage over all mixes may hide it; with
# ``by`` it holds for each group by itself, and each group needs rows enough. Of what follows, one
# group had luck with its rows and the other had none: what is promised holds on average.

age = data.feature_names.index("age")
X = np.column_stack([data.X, data.X[:, age] <= 28])
known, later = rng.permutation(len(data))[:300], np.arange(len(data))
by_age = regcal.CalibratedRegressorCV(
    base, "scale", guarantee=regcal.SplitGuarantee(rows=0.5, by=[X.shape[1] - 1])
)
by_age.fit(X[known], data.y[known])
later = np.setdiff1d(later, known)
ends = by_age.predict_interval(X[later], 0.9, guarantee=True)
for young in (1.0, 0.0):
    rows = X[later, -1] == young
    width = np.diff(ends[rows]).mean()
    words = "up to 28 days" if young else "older"
    print(
        f"{words}: {share_held(ends[rows], data.y[later][rows]):.1%} inside, {width:.0f} MPa wide"
    )

# %%
# And what nobody can promise with these rows is said, not drawn as an infinite line.

try:
    by_age.predict_interval(X[later[:1]], 0.999, guarantee=True)
except ValueError as error:
    print(error)
