"""
Heavy tails
===========

A normal distribution calls an outcome six standard deviations out nearly impossible. If such
outcomes happen, intervals at high levels fail and the log score collapses. Calibration puts weight
into the tails; here against noise with three degrees of freedom.
"""

import matplotlib.pyplot as plt
import numpy as np

import regcal

rng = np.random.default_rng(0)


def predicted(n):
    """Return a model's distributions, right but for the tails, and outcomes."""
    mean = rng.normal(size=n)
    return regcal.Normal(mean, np.full(n, 1.0)), mean + rng.standard_t(3, size=n) / np.sqrt(3)


held_out, y_past = predicted(1000)
before, y_new = predicted(20_000)
after = {
    name: regcal.get_calibrator(name).fit(held_out, y_past).transform(before)
    for name in ("scale", "pit", "gp-density")
}
print(regcal.compare(y_new, {"before": before, **after}))

# %%
# How often outcomes are beyond the predicted upper quantile, at ever rarer levels. On the dotted
# line the answer is as often as predicted.

rare = np.logspace(-1, -3.5, 26)
fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
ax.plot(rare, rare, ":", color="grey")
for name, dist in {"before": before, **after}.items():
    above = dist.sf(y_new)
    ax.plot(rare, [(above < level).mean() for level in rare], label=name)
ax.set(xscale="log", yscale="log", xlabel="Predicted chance", ylabel="Observed frequency")
ax.invert_xaxis()
ax.legend()
