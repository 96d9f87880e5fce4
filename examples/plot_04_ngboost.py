"""
NGBoost
=======

NGBoost predicts a mean and a spread for every row. regcal understands its models as they are. Over
all rows its intervals hold about what they should; at single thresholds its probabilities do not.
"""

import matplotlib.pyplot as plt
from ngboost import NGBRegressor
from sklearn.model_selection import train_test_split

import regcal
from regcal.datasets import load_airfoil
from regcal.plots import ReliabilityDisplay

data = load_airfoil()
X, X_new, y, y_new = train_test_split(data.X, data.y, train_size=0.4, random_state=0)

base = NGBRegressor(n_estimators=150, learning_rate=0.03, verbose=False, random_state=0)
before = regcal.predict_dist(base.fit(X, y), X_new)
model = regcal.CalibratedRegressorCV(base, "gp-density", cv=3).fit(X, y)
after = model.predict_dist(X_new)
print(regcal.compare(y_new, {"before": before, "after": after}))

# %%
# Reliability at six thresholds, before and after:

fig, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
for ax, name, dist in ((axes[0], "before", before), (axes[1], "after", after)):
    ReliabilityDisplay.from_predictions(
        y_new, dist, thresholds=regcal.QuantileGrid(6), name=name, ax=ax
    )
