"""Rows that are hard to learn from, and what has to hold all the same."""

import numpy as np
import scipy.optimize
import scipy.stats
from numpy.testing import assert_allclose
from rows import integral_of_density, normal_rows
from scipy.special import ndtri

from regcal import Mixture, Normal, Quantiles, Samples, ScipyDistribution


def _few(n):
    def build(rng):
        return *normal_rows(rng, n), None

    return build


def _all_below(rng):
    dist, _ = normal_rows(rng, 100)
    return dist, dist.loc - 3 - rng.exponential(size=100), None


def _constant_predictions(rng):
    return Normal(np.zeros(100), np.ones(100)), rng.gamma(2.0, size=100), None


def _outlier(rng):
    dist, y = normal_rows(rng, 100)
    y[0] = 1e6
    return dist, y, None


def _scales(rng):
    loc, scale = rng.normal(size=100), 10 ** rng.uniform(-3, 3, 100)
    return Normal(loc, scale), loc + 1.5 * scale * rng.normal(size=100), None


def _unequal_weights(rng):
    return *normal_rows(rng, 30), 10 ** rng.uniform(-8, 4, 30)


def _gamma(rng):
    loc = rng.normal(size=100)
    base = ScipyDistribution(scipy.stats.gamma(np.full(100, 2.0), loc=loc))
    return base, loc + rng.gamma(1.5, size=100), None


def _heavy_tails(rng):
    loc = rng.normal(size=100)
    base = ScipyDistribution(scipy.stats.t(np.full(100, 2.0), loc=loc))
    return base, loc + 1.5 * rng.standard_t(2, size=100), None


def _quantiles(rng):
    loc, levels = rng.normal(size=100), np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    base = Quantiles(levels, loc[:, np.newaxis] + 0.6 * ndtri(levels))
    return base, loc + rng.normal(size=100), None


def _samples(rng):
    loc = rng.normal(size=100)
    base = Samples(loc[:, np.newaxis] + rng.normal(size=(100, 20)))
    return base, loc + rng.gumbel(size=100), None


def _mixture(rng):
    loc = rng.normal(size=100)
    second = rng.random(100) < 0.3
    y = np.where(second, rng.normal(loc + 5, 0.5), rng.normal(loc, 1.0))
    return Mixture([Normal(loc, np.ones(100)), Normal(loc + 5, np.full(100, 0.3))]), y, None


HOSTILE = {
    "2 rows": _few(2),
    "3 rows": _few(3),
    "all below": _all_below,
    "constant predictions": _constant_predictions,
    "outlier": _outlier,
    "scales": _scales,
    "unequal weights": _unequal_weights,
    "gamma": _gamma,
    "heavy tails": _heavy_tails,
    "quantiles": _quantiles,
    "samples": _samples,
    "mixture": _mixture,
}


def assert_valid(dist, base, y):
    """Check that calibrated rows are distributions, as wide as their bases."""
    middle, spread = base.ppf([[0.5]]), np.diff(base.ppf([[0.16, 0.84]])) / 2
    points = middle + spread * np.concatenate([np.linspace(-6, 6, 121), [-30, -15, 15, 30]])
    points = np.sort(np.concatenate([points, y[:, np.newaxis]], axis=1), axis=1)
    levels = np.array([[1e-3, 0.02, 0.2, 0.5, 0.8, 0.98, 0.999]])

    cdf = dist.cdf(points)
    assert ((cdf >= 0) & (cdf <= 1)).all()
    assert (np.diff(cdf) >= -1e-13).all()
    logpdf = dist.logpdf(points)
    assert np.isfinite(logpdf[np.isfinite(base.logpdf(points))]).all()
    assert (logpdf < np.inf).all()
    quantiles = dist.ppf(levels)
    assert (np.diff(quantiles) > 0).all()
    assert_allclose(dist.cdf(quantiles), np.broadcast_to(levels, quantiles.shape), atol=1e-8)
    assert_allclose(integral_of_density(dist), 1.0, atol=1e-4)
