"""Mapped distributions obey the laws, whatever the base and the map."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from rows import PROBIT_MAPS, bases
from scipy.integrate import quad

from regcal import Histogram, Mixture, Normal, ScipyDistribution
from regcal.distributions import Transformed
from regcal.maps import ScaleMap, Surface


@pytest.fixture(params=list(PROBIT_MAPS))
def probit_map(request):
    return PROBIT_MAPS[request.param]


@pytest.fixture(params=["normal", "gamma", "samples", "stacked"])
def base(request, rng):
    return bases(rng, 8)[request.param]


def test_mapped_distributions_obey_the_laws(base, probit_map):
    """CDF and survival add up, ppf inverts cdf, the density integrates to the mass between."""
    dist = Transformed(base, probit_map)
    levels = np.array([[1e-6, 0.05, 0.3, 0.5, 0.9, 0.999]])
    points = dist.ppf(levels)

    assert_allclose(dist.cdf(points), np.broadcast_to(levels, points.shape), rtol=1e-7)
    assert_allclose(dist.cdf(points) + dist.sf(points), 1.0)
    assert_allclose(dist.cdf([[-np.inf, np.inf]]), np.tile([0.0, 1.0], (len(dist), 1)))
    for row in (0, len(dist) - 1):
        one = dist[row]
        kinks = (
            base[row].from_probit(probit_map.knots[np.newaxis, :])[0]
            if len(probit_map.knots)
            else []
        )
        low, high = points[row, 1], points[row, 4]
        inner = [k for k in kinks if low < k < high]
        mass = quad(lambda t, one=one: one.pdf(t)[0], low, high, points=inner or None, limit=200)[0]
        assert_allclose(mass, 0.85, atol=1e-5)


def test_mapped_moments_match_quantile_averages(base, probit_map):
    """Mean and variance agree with those of a fine grid of quantiles."""
    dist = Transformed(base, probit_map)
    quantiles = dist.ppf(((np.arange(1000) + 0.5) / 1000)[np.newaxis, :])

    assert_allclose(dist.mean(), quantiles.mean(axis=1), rtol=5e-3, atol=5e-3)
    assert_allclose(dist.var(), quantiles.var(axis=1), rtol=5e-2)


def test_mapped_rows_commute_with_slicing(base, probit_map):
    """A row alone gives what it gives in the batch."""
    dist = Transformed(base, probit_map)
    y = dist.median() + 0.1

    assert_allclose(dist[[5, 2]].logpdf(y[[5, 2]]), dist.logpdf(y)[[5, 2]])
    assert_allclose(dist[2:4].crps(y[2:4]), dist.crps(y)[2:4])


def bent_surface() -> Surface:
    """Return a map that moves the far lower tail of some rows by much, and bends all rows."""
    u, t = np.linspace(-6.0, 6.0, 25), np.linspace(-9.0, 9.0, 33)
    tail, middle = np.exp(-0.5 * ((u + 6.0) / 3.0) ** 2), np.exp(-0.5 * (u / 1.5) ** 2)
    h = np.outer(tail, np.where(t > 0, 4.0, 0.0)) + np.outer(middle, 0.8 * np.sin(2.0 * t))
    return Surface(u, t, h, (1.0, 1.0))


@pytest.mark.parametrize("averaged", [False, True])
def test_integrals_of_a_row_do_not_depend_on_the_rows_beside_it(averaged):
    """Also where a few rows need more panels than the others, and are looked at again."""
    loc = np.linspace(-8.0, 8.0, 60)
    dist = Transformed(Normal(loc, np.where(np.arange(60) % 7 == 0, 3.0, 0.3)), bent_surface())
    dist = Mixture([dist, Normal(loc, 1.0)]) if averaged else dist
    y = loc + np.sin(17.0 * loc)
    alone = [dist[[k]] for k in range(60)]

    assert_allclose(dist.crps(y), [one.crps(y[k])[0] for k, one in enumerate(alone)], rtol=1e-12)
    assert_allclose(dist.mean(), [one.mean()[0] for one in alone], rtol=1e-12)
    assert_allclose(dist.var(), [one.var()[0] for one in alone], rtol=1e-12)


def test_support_is_kept():
    """Outside of the base's support the density stays zero."""
    base = ScipyDistribution(scipy.stats.uniform([0.0], [1.0]))

    dist = Transformed(base, PROBIT_MAPS["smooth"])

    assert_allclose(dist.logpdf([[-0.5, 1.5]]), [[-np.inf, -np.inf]])
    assert np.isfinite(dist.logpdf(0.5)).all()


def test_scaled_normal_is_normal():
    """Scaling a normal distribution by 3 gives the normal with three times the spread."""
    dist = Transformed(Normal([1.0], [2.0]), ScaleMap(3.0))
    points = np.array([[-200.0, 0.0, 1.0, 150.0]])

    assert_allclose(dist.logpdf(points), Normal([1.0], [6.0]).logpdf(points), rtol=1e-10)
    assert_allclose(dist.logsf(points), Normal([1.0], [6.0]).logsf(points), rtol=1e-10)
    assert_allclose(dist.crps([4.0]), Normal([1.0], [6.0]).crps([4.0]), rtol=1e-6)


def test_a_base_that_is_a_point_has_no_density_elsewhere():
    """Of no spread there is no logarithm, and none is needed: nothing can happen there."""
    dry = Histogram([0.0, 0.0, 1.0], [[1.0, 0.0]])
    changed = Transformed(dry, ScaleMap(2.0))

    assert_array_equal(changed.logpdf([[0.3, 0.9]]), [[-np.inf, -np.inf]])
    assert_array_equal(changed.cdf([[-1.0, 0.0, 0.3]]), [[0.0, 1.0, 1.0]])
