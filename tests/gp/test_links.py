"""Links against differences and integrals, near and far out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, special, stats

from regcal.gp import Logit, Probit

LINKS = [Probit(), Logit()]


@pytest.mark.parametrize("link", LINKS)
def test_link_derivatives(link):
    """First to third derivative agree with differences, across the switch to the far tail."""
    eta = np.array([-60.0, -50.01, -49.99, -8.0, -1.0, 0.0, 0.7, 5.0])
    at, h = link.derivatives(eta), 1e-4
    above, below = link.derivatives(eta + h), link.derivatives(eta - h)

    assert_allclose(at.first, (above.value - below.value) / (2 * h), rtol=1e-6)
    assert_allclose(at.second, -(above.first - below.first) / (2 * h), rtol=1e-6, atol=1e-10)
    assert_allclose(at.third, -(above.second - below.second) / (2 * h), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("link", LINKS)
def test_links_are_finite_far_out(link):
    """Nothing overflows at a thousand standard deviations, and curvatures are not negative."""
    at = link.derivatives(np.array([-1e3, -60.0, -40.0, 40.0, 1e3]))

    assert np.all(np.isfinite(at))
    assert np.all(at.second >= 0)


@pytest.mark.parametrize(
    ("link", "cdf"), [(Probit(), special.ndtr), (Logit(), special.expit)], ids=["probit", "logit"]
)
@pytest.mark.parametrize(("mean", "variance"), [(0.3, 0.0), (1.2, 0.5), (-2.0, 30.0)])
def test_averaged_probability(link, cdf, mean, variance):
    """The averaged probability is the integral over the predictor."""
    sd = np.sqrt(variance)
    exact, _ = integrate.quad(
        lambda z: cdf(mean + sd * z) * stats.norm.pdf(z), -12, 12, points=[0, 0.4], epsabs=1e-12
    )

    assert_allclose(link.average(mean, variance), exact, atol=1e-10)
