"""
Right on the whole, wrong for one group, and put right
======================================================

A city predicts how long repairs of its buildings take, in days. Intervals hold as often as they
should, so the model is used. Then the owners of old buildings complain. The data are simulated:
for buildings from before 1920, repairs take longer and vary twice as much, and the model does not
know the year.
"""

import numpy as np
import pandas as pd

import regcal
from regcal.metrics import interval_coverage
from regcal.plots import AuditDisplay, ExplanationDisplay

rng = np.random.default_rng(0)
n = 4000
buildings = pd.DataFrame(
    {
        "year": rng.choice([1900, 1910, 1935, 1960, 1980, 2000, 2015], n) + rng.integers(0, 10, n),
        "floors": rng.integers(1, 9, n),
        "heating": rng.choice(["gas", "district", "pump"], n, p=[0.5, 0.3, 0.2]),
        "area": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(4.0, 50.0, n)),
    }
)
old = buildings["year"].to_numpy() < 1920
typical = 20.0 + 2.0 * buildings["floors"].to_numpy()
days = typical + np.where(old, 3.0 + 8.0 * rng.normal(size=n), 4.0 * rng.normal(size=n))

# %%
# The model says a normal distribution for every building, and was calibrated on earlier repairs, of
# which the spread is that of all buildings together.

past = slice(0, n // 2)
new = slice(n // 2, n)
said = regcal.Normal(typical, 4.0)
dist = regcal.get_calibrator("gp-density").fit(said[past], days[past]).transform(said[new])
y, table = days[new], buildings[new]
print(f"90 % intervals hold {interval_coverage(y, dist, 0.9):.1%} of all repairs,")
print(f"and {interval_coverage(y[old[new]], dist[old[new]], 0.9):.1%} of those of old buildings")

# %%
# Who would have looked at old buildings, before anybody complained? The audit looks at all columns:
# five ranges of each number, every category, missing values.

audit = regcal.audit(y, dist, table)
print(audit)

# %%
# Each segment is shown with the event that says most against it. Differences of calibrated
# predictions would stay inside the grey bars, in all segments at once.

display = AuditDisplay.from_audit(audit, segments=10)

# %%
# What does it cost? From 45 days on, tenants need another flat. Booking one in advance costs 1, and
# finding one at the last moment costs 6, so that one books where P(Y > 45) is at least 1/6.

audit = regcal.audit(y, dist, table, costs={45.0: (1.0, 6.0)})
audit.cost_table()[["segment", "acted", "predicted", "realised", "standard_error"]].head(6)

# %%
# Put it right: let the calibrator look at the columns. It learns for whom the model is wrong, and
# corrects location and spread there. Nobody tells it that the year matters.

calibrator = regcal.ConditionalCalibrator("additive")
calibrator.fit(said[past], days[past], covariates=buildings[past])
better = calibrator.transform(said[new], covariates=table)
print(f"90 % intervals now hold {interval_coverage(y, better, 0.9):.1%} of all repairs,")
print(f"and {interval_coverage(y[old[new]], better[old[new]], 0.9):.1%} of those of old buildings")
print(regcal.audit(y, better, table))

# %%
# And what was wrong, for those who plan the repairs:

explanation = regcal.explain(calibrator, said[new], y, table, unit="days")
print(explanation)
display = ExplanationDisplay.from_explanation(explanation, covariates=["year", "floors", "heating"])
