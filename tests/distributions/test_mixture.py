"""Mixtures by hand and against scoringrules."""

import numpy as np
import scipy.optimize
import scipy.stats
import scoringrules
from numpy.testing import assert_allclose
from rows import GRID

import regcal
from regcal.distributions._quadrature import integrate


def test_mixture_of_normals_by_hand():
    """Densities and probabilities are weighted sums."""
    weights = np.array([0.3, 0.7])
    dist = regcal.Mixture([regcal.Normal([0.0], 1.0), regcal.Normal([4.0], 0.5)], weights)
    parts = [scipy.stats.norm(0.0, 1.0), scipy.stats.norm(4.0, 0.5)]

    for method in ("cdf", "sf", "pdf"):
        wanted = sum(w * getattr(p, method)(GRID) for w, p in zip(weights, parts, strict=True))
        assert_allclose(getattr(dist, method)(GRID), wanted, rtol=1e-12)
    assert_allclose(dist.logsf(60.0), np.log(0.3) + parts[0].logsf(60.0), rtol=1e-12)


def test_quantiles_of_equal_components_are_theirs():
    """A mixture of one thing is that thing, and takes no long search."""
    part = regcal.Normal([5.0, -3e7], [1.0, 2.0])

    assert_allclose(regcal.Mixture([part, part]).ppf(0.01), part.ppf(0.01))


def test_crps_of_a_mixture_against_scoringrules(rng):
    """Narrow and wide components, near and far."""
    loc, scale = np.array([0.0, 3.0, 30.0]), np.array([1.0, 0.01, 2.0])
    weights, y = np.array([0.2, 0.5, 0.3]), np.linspace(-5, 40, 10)
    parts = [regcal.Normal(np.full(10, m), s) for m, s in zip(loc, scale, strict=True)]
    wanted = [scoringrules.crps_mixnorm(one, loc, scale, weights) for one in y]

    assert_allclose(regcal.crps(y, regcal.Mixture(parts, weights)), wanted, rtol=1e-6)


def test_crps_of_mixtures_of_quantiles_by_many_points(rng):
    """Curves bend at each quantile, and no panel may hide that."""
    levels, y = np.linspace(0.03, 0.97, 9), rng.normal(size=60)
    z = scipy.stats.norm.ppf(levels)
    widths, bends = rng.uniform(0.7, 1.3, (3, 60, 1)), rng.uniform(0.0, 0.15, (3, 60, 1))
    values = rng.normal(scale=0.2, size=(3, 60, 1)) + z * (widths + bends * np.abs(z))
    parts = [regcal.Quantiles(levels, part) for part in values]
    probits = np.sort(np.concatenate([np.linspace(-9.0, 9.0, 601), z]))[np.newaxis, :]
    dist, column = regcal.Mixture(parts), y[:, np.newaxis]
    edges = np.concatenate([*(part.from_probit(probits) for part in parts), column], axis=1)

    wanted = integrate(
        lambda t: np.where(t < column, dist.cdf(t), dist.sf(t)) ** 2, np.sort(edges, axis=1)
    )

    assert_allclose(dist.crps(y), wanted, rtol=1e-6)


def test_quantiles_of_mixtures_of_mixtures(rng):
    """They are those of all components with the products of weights, of each row and level."""
    parts = [regcal.Normal(rng.normal(size=3), rng.uniform(0.5, 2.0, 3)) for _ in range(4)]
    inner = rng.dirichlet(np.ones(2), 3)
    nested = regcal.Mixture([regcal.Mixture(parts[:2], inner), parts[2], parts[3]], [0.6, 0.4, 0.0])
    flat = regcal.Mixture(parts[:3], np.column_stack([0.6 * inner, np.full(3, 0.4)]))
    levels = np.array([[0.0, 1e-12, 0.05, 0.5, 0.9, 1.0]])

    assert_allclose(nested.ppf(levels), flat.ppf(levels), rtol=1e-12)
    assert_allclose(nested.cdf(nested.ppf(levels)), np.repeat(levels, 3, axis=0), rtol=1e-12)
