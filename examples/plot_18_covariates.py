"""
A covariate that explains overconfidence
========================================

A lab predicts the strength of concrete. On the whole its intervals hold. But the older a sample,
the less the recipe says about it, and the model, which knows the recipe only, is as sure of old
samples as of young ones. The data are simulated: the scatter grows with the age, and there are two
more columns that do not matter.
"""

import numpy as np
import pandas as pd

import regcal
from regcal.metrics import interval_coverage
from regcal.plots import ExplanationDisplay

rng = np.random.default_rng(2)
n = 3000
samples = pd.DataFrame(
    {
        "age": rng.gamma(2.0, 30.0, n).round(),
        "plant": rng.choice(["east", "north", "west"], n),
        "batch": rng.integers(1, 200, n),
    }
)
recipe = rng.uniform(20.0, 60.0, n)
spread = 3.0 * np.exp((samples["age"].to_numpy() - 60.0) / 100.0)
strength = recipe + spread * rng.normal(size=n)
said = regcal.Normal(recipe, np.sqrt(np.mean(spread**2)))

# %%
# Without covariates all rows get the same correction: intervals hold on the whole, too often for
# young samples and too rarely for old ones.

past, new = slice(0, n // 2), slice(n // 2, n)
y, table = strength[new], samples[new]
without = regcal.get_calibrator("gp-density").fit(said[past], strength[past]).transform(said[new])
old = table["age"].to_numpy() > 90.0


def coverage(dist):
    """Say how often 90 % intervals hold."""
    rows = {"all": slice(None), "young": ~old, "old": old}
    return {name: round(interval_coverage(y[k], dist[k], 0.9), 3) for name, k in rows.items()}


print(coverage(without))

# %%
# With covariates it learns location and spread as functions of all columns. Which of them matter,
# it finds out by itself.

calibrator = regcal.ConditionalCalibrator("additive")
calibrator.fit(said[past], strength[past], covariates=samples[past])
within = calibrator.transform(said[new], covariates=table)
print(coverage(within))
print(regcal.compare(y, {"without": without, "with": within}))

# %%
# What was wrong? Sentences speak of the rows of a segment, what costs most first.

explanation = regcal.explain(calibrator, said[new], y, table, unit="MPa")
print(explanation)

# %%
# Above, by how much outcomes lie above predicted medians: nothing to see. Below, the factor on the
# spread: above 1 the model was too sure. Points are the rows of a segment, the line is what a
# covariate does by itself.

display = ExplanationDisplay.from_explanation(explanation, covariates=["age", "plant", "batch"])

# %%
# The same as a table, in the units of y:

columns = ["segment", "n_rows", "shift", "factor", "factor_lower", "factor_upper"]
explanation.table()[columns].head(9).round(2)

# %%
# An audit of new rows finds nothing in these data. It is no proof: of the seeds 0 to 3, the first
# gives data in which 8 % of all rows lie above their 95 % quantile, and p is 0.002.

print(regcal.audit(y, within, table))
