"""
Draws from a Bayesian model
===========================

Probabilistic programs return draws: a matrix with a row per case and a column per draw. Here the
draws come from a Bayesian linear regression that believes in normal noise, while the real noise is
skewed. ``regcal.Samples`` smooths the draws into a distribution; nothing else changes.
"""

import numpy as np

import regcal
from regcal.plots import RowDisplay

rng = np.random.default_rng(0)


def problem(n):
    """Draw features, and outcomes with waiting-time noise."""
    X = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    return X, X @ [4.0, 1.0, -0.5] + rng.exponential(1.5, size=n)


def posterior_predictive(X, y, X_new, n_draws=400):
    """Return draws under a flat prior on coefficients and log spread."""
    n, p = X.shape
    inverse = np.linalg.inv(X.T @ X)
    centre = inverse @ X.T @ y
    residual = y - X @ centre
    variance = residual @ residual / rng.chisquare(n - p, size=n_draws)
    root = np.linalg.cholesky(inverse)
    coefficients = centre + np.sqrt(variance)[:, np.newaxis] * (
        rng.normal(size=(n_draws, p)) @ root.T
    )
    noise = np.sqrt(variance) * rng.normal(size=(len(X_new), n_draws))
    return X_new @ coefficients.T + noise


X, y = problem(300)
X_past, y_past = problem(500)
X_new, y_new = problem(1000)

held_out = regcal.Samples(posterior_predictive(X, y, X_past))
before = regcal.Samples(posterior_predictive(X, y, X_new))
after = regcal.get_calibrator("pit").fit(held_out, y_past).transform(before)
print(regcal.compare(y_new, {"draws": before, "calibrated": after}))

# %%
# One case: the calibrated density is skewed, as the outcomes are. In the middle, calibrated against
# uncalibrated probabilities.

RowDisplay.from_predictions(y_new, {"draws": before, "calibrated": after}, row=3)
