"""What is said about a function of the target is carried back to the target."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

import regcal
from regcal.distributions.changed_targets import of_changed_targets

LOC, SCALE = np.array([0.0, 1.0, -2.0]), np.array([0.5, 0.3, 3.0])
BASE = regcal.Normal(LOC, SCALE)
LEVELS = np.array([[1e-6, 0.05, 0.5, 0.9, 1 - 1e-6]])


@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_logarithm_gives_a_log_normal(unit):
    """CDF, both tails, density, quantiles and mean are those of scipy's log-normal."""
    dist = of_changed_targets(BASE, lambda y: np.log(y / unit), lambda z: unit * np.exp(z))
    exact = scipy.stats.lognorm(SCALE[:, None], scale=unit * np.exp(LOC[:, None]))
    points = exact.ppf(LEVELS)

    assert_allclose(dist.cdf(points), exact.cdf(points), rtol=1e-9)
    assert_allclose(dist.sf(points), exact.sf(points), rtol=1e-9)
    assert_allclose(dist.pdf(points), exact.pdf(points), rtol=1e-6)
    assert_allclose(dist.ppf(LEVELS), points, rtol=1e-6)
    assert_allclose(dist[[2, 0]].mean(), exact.mean()[[2, 0], 0], rtol=1e-4)
    assert_allclose(dist.cdf([[-unit, 0.0]]), 0.0)


def test_decreasing_functions_change_sides():
    """The lower tail of -Y is the upper tail of Y."""
    dist = of_changed_targets(BASE, np.negative, np.negative)
    exact = scipy.stats.norm(-LOC[:, None], SCALE[:, None])
    points = exact.ppf(LEVELS)

    assert_allclose(dist.cdf(points), exact.cdf(points), rtol=1e-9)
    assert_allclose(dist.pdf(points), exact.pdf(points), rtol=1e-6)


@pytest.mark.parametrize(
    ("forward", "inverse"), [(np.sqrt, np.square), (np.log, np.expm1), (np.sign, np.sign)]
)
def test_functions_without_an_inverse(forward, inverse):
    """What does not come back is refused, instead of a mass that silently gets lost."""
    with pytest.raises(ValueError, match="no inverse where the model predicts"):
        of_changed_targets(BASE, forward, inverse)
