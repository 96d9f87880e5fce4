"""
Scatter that grows with the level
=================================

Many targets scatter more where they are high: prices, counts, concentrations. A model with one
spread for all rows is too wide for low rows and too narrow for high ones. A map of P(Y <= t) alone
(``pit``) cannot see the difference; a map of P(Y <= t) and t (``gpc``, ``gp-density``) can.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

import regcal
from regcal.plots import DensityDisplay

rng = np.random.default_rng(0)


def rows(n):
    """Draw a feature, and outcomes whose scatter is proportional to their level."""
    x = rng.uniform(0, 4, size=n)
    return x[:, np.newaxis], 1 + x + 0.25 * (1 + x) * rng.normal(size=n)


X, y = rows(400)
X_past, y_past = rows(400)
X_new, y_new = rows(3000)
model = regcal.NormalResidualRegressor(LinearRegression()).fit(X, y)

held_out, before = model.predict_dist(X_past), model.predict_dist(X_new)
results = {"before": before}
for name in ("pit", "gp-density"):
    results[name] = regcal.get_calibrator(name).fit(held_out, y_past).transform(before)
print(regcal.compare(y_new, results))

# %%

fig, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for ax, (name, dist) in zip(axes, results.items(), strict=True):
    DensityDisplay.from_predictions(
        None, dist[:300], x=X_new[:300, 0], data=(X_new[:300, 0], y_new[:300]), name=name, ax=ax
    )

# %%
# Coverage of 90 % intervals, by level. On average all three are near 90 %.

print("               low rows   high rows")
for name, dist in results.items():
    low, high = dist.interval(0.9)
    inside = (low <= y_new) & (y_new <= high)
    lower = X_new[:, 0] < 1
    upper = X_new[:, 0] > 3
    print(f"{name:12} {inside[lower].mean():10.1%} {inside[upper].mean():10.1%}")
