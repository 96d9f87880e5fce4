"""Families of scipy, where scipy is slow or has no digits."""

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from rows import GRID

import regcal


def test_skewed_normal_is_scipys():
    """A family whose quantiles scipy finds slowly is right where it matters."""
    frozen = scipy.stats.skewnorm([[3.0], [-2.0]], loc=[[1.0], [0.0]], scale=2.0)
    dist = regcal.ScipyDistribution(scipy.stats.skewnorm([3.0, -2.0], loc=[1.0, 0.0], scale=2.0))

    assert_allclose(dist.logpdf(GRID), frozen.logpdf(GRID))
    assert_allclose(dist.cdf(GRID), frozen.cdf(GRID))
    assert_allclose(dist.cdf(dist.ppf([[0.1, 0.9]])), [[0.1, 0.9]] * 2, rtol=1e-8)
    assert np.isfinite(dist[0].logsf(100.0)).all()


@pytest.mark.parametrize(
    ("frozen", "point", "log_tail"),
    [
        # log of the regularised incomplete gamma function: x^a / Gamma(a + 1) near 0
        (scipy.stats.gamma([50.0]), 1e-6, 50 * np.log(1e-6) - scipy.special.gammaln(51.0)),
        (scipy.stats.gamma([0.5]), 1e-300, None),
        (scipy.stats.lognorm([0.1]), 0.01, None),
    ],
)
def test_lower_tails_at_the_end_of_a_support(frozen, point, log_tail):
    """Next to an end of the support the log probability is right although it underflows."""
    wanted = frozen.logcdf(point) if log_tail is None else log_tail

    assert_allclose(regcal.ScipyDistribution(frozen).logcdf(point), wanted, rtol=1e-6)


def test_upper_tail_of_gamma_beyond_underflow():
    """For a whole shape a the tail is exp(-x) times a polynomial."""
    x = 900.0
    wanted = -x + np.log(1 + x + x**2 / 2)

    assert_allclose(regcal.ScipyDistribution(scipy.stats.gamma([3.0])).logsf(x), wanted, rtol=1e-9)


FAR = np.array([[-30.0, -20.0, -13.0, -9.0, 9.0, 13.0, 20.0, 30.0]])
FAMILIES = {
    "beta": scipy.stats.beta([2.0, 0.5], 5.0, loc=-0.3, scale=3.0),
    "inverse normal": scipy.stats.invgauss([0.5, 2.0]),
    "normal plus exponential": scipy.stats.exponnorm([1.5, 0.2]),
    "one-sided normal": scipy.stats.truncnorm([-1.0, -0.5], np.inf),
    "skewed normal": scipy.stats.skewnorm([4.0]),
    "t": scipy.stats.t([5.0, 30.0], loc=2.0),
    "F": scipy.stats.f([3.0, 5.0], 8.0),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_far_quantiles_are_right_or_an_end(name):
    """Where scipy's root finders fail, with and without a word, the quantile is solved for."""
    dist = regcal.ScipyDistribution(FAMILIES[name])
    start, end = dist._scipy("support")

    quantiles = dist._from_probit(FAR)

    found = np.where((quantiles == start) | (quantiles == end), FAR, dist._probit(quantiles))
    assert_allclose(found, np.broadcast_to(FAR, found.shape), rtol=1e-5)
    assert (np.diff(quantiles) >= 0).all()


def test_far_quantiles_of_a_truncated_normal():
    """P(Y > t) is the normal's, divided by the mass that is left."""
    dist = regcal.ScipyDistribution(scipy.stats.truncnorm([-1.0], np.inf))
    log_left = scipy.special.log_ndtr(1.0)
    wanted = -scipy.special.ndtri_exp(scipy.special.log_ndtr(-FAR[:, 4:]) + log_left)

    assert_allclose(dist._from_probit(FAR[:, 4:]), wanted, rtol=1e-9)


@pytest.mark.parametrize("name", ["identity", "scale", "pit", "e-beta", "gpc"])
def test_ends_are_quantiles_without_a_word(name):
    """The least and the largest level, and levels next to them, need no search."""
    base = regcal.ScipyDistribution(FAMILIES["beta"])
    dist = regcal.get_calibrator(name).fit(base, [0.0, 0.1]).transform(base)

    quantiles = dist.ppf([[0.0, 5e-324, 1e-300, 0.5, 1.0]])

    assert_array_equal(quantiles[:, [0, 4]], [[-0.3, 2.7]] * 2)
    assert_allclose(quantiles[:, 1:3], -0.3, atol=1e-8)
    assert (np.diff(quantiles) >= 0).all()
