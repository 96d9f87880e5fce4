"""Families of scipy, where scipy is slow or has no digits."""

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from numpy.testing import assert_allclose
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
