"""Four numbers on the probit: against closed forms, another optimiser, and what was drawn."""

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose
from scipy.special import log_ndtr, ndtri

from regcal import Normal, Outcomes, SinhArcsinhCalibrator, log_score
from regcal.maps import SinhArcsinhMap


def standard(n_rows):
    return Normal(np.zeros(n_rows), np.ones(n_rows))


def fitted(y, **options):
    return SinhArcsinhCalibrator(support=None, **options).fit(standard(len(y)), y)


def test_shift_and_factor_are_those_of_the_closed_form(rng):
    """Mean and spread of the outcomes and of so many rows with mean 0 and variance 1."""
    y = rng.normal(0.7, 1.8, size=40)

    own = fitted(y, shape=False, prior_rows=3.0).map_

    shift = y.sum() / 43
    assert_allclose(own.shift, shift, rtol=1e-5)
    assert_allclose(own.factor, np.sqrt(((y**2).sum() + 3) / 43 - shift**2), rtol=1e-5)
    assert (own.skew, own.tail) == (0.0, 1.0)


def test_four_numbers_have_the_largest_likelihood(rng):
    """Another optimiser without gradients, from elsewhere, finds nothing better."""
    y = rng.gamma(2.0, size=70) - 1.0
    cal = fitted(y, prior_rows=1e-9)

    def loss(theta):
        shift, log_factor, skew, log_tail = theta
        own = SinhArcsinhMap(shift, np.exp(log_factor), skew, np.exp(log_tail))
        image, slope = own.image_and_slope(y)
        return 0.5 * (image**2).sum() - np.log(slope).sum()

    options = {"maxfev": 5000, "xatol": 1e-9, "fatol": 1e-9}
    start = [-0.5, -1.0, 0.5, -0.1]
    best = scipy.optimize.minimize(loss, start, method="Nelder-Mead", options=options)

    before = log_score(y, standard(70)).sum() + 0.5 * (y**2).sum()
    assert_allclose(log_score(y, cal.transform(standard(70))).sum(), before - best.fun, atol=1e-4)


def test_what_was_drawn_is_found(rng):
    """Outcomes that a map sends to a standard normal distribution give back the map."""
    true = SinhArcsinhMap(0.3, 1.5, 0.4, 0.8)
    y = true.inverse(rng.normal(size=20_000))

    own = fitted(y).map_

    z = np.linspace(-3, 3, 13)
    assert_allclose(own(true.inverse(z)), z, atol=0.1)


def test_intervals_count_with_their_probability(rng):
    """Half of the outcomes censored at 0: the likelihood is that of the censored normal."""
    y = rng.normal(0.4, 1.3, size=80)
    seen = Outcomes.right_censored(np.minimum(y, 0.5), y < 0.5)

    cal = SinhArcsinhCalibrator(shape=False, prior_rows=1e-9, support=None)
    own = cal.fit(standard(80), seen).map_

    def loss(theta):
        x = (np.minimum(y, 0.5) - theta[0]) * np.exp(-theta[1])
        return -np.where(y < 0.5, -0.5 * x * x - theta[1], log_ndtr(-x)).sum()

    best = scipy.optimize.minimize(loss, [0.0, 0.0], method="Nelder-Mead").x
    assert_allclose([own.shift, np.log(own.factor)], best, atol=1e-3)


@pytest.mark.filterwarnings("ignore::regcal.GrossErrorsWarning")
def test_pull_to_the_identity_and_gross_errors(rng):
    """Many prior rows leave all as it is, and one outlier moves the middle little."""
    y = rng.normal(size=30)
    y[0] = 1e6

    pulled, free = fitted(y, prior_rows=1e9).map_, fitted(y, shape=False).map_

    z = ndtri([0.05, 0.5, 0.95])
    assert_allclose(pulled(z), z, atol=1e-3)
    assert abs(free.shift) < 0.6
    assert 0.7 < free.factor < 2.0


@pytest.mark.parametrize(("skew", "tail"), [(0.0, 1.0), (0.7, 0.6), (-0.4, 1.5), (1.0, 1.0)])
def test_smallest_slope(skew, tail):
    """No slope on a fine grid is smaller, and one is next to equal."""
    own = SinhArcsinhMap(0.2, 1.3, skew, tail)
    slopes = own.image_and_slope(np.linspace(-20, 20, 100_001))[1]

    assert_allclose(own.smallest_slope, slopes.min(), rtol=1e-6)
    assert own.smallest_slope <= slopes.min() * (1 + 1e-12)


@pytest.mark.parametrize("prior_rows", [0.0, -1.0, np.inf])
def test_prior_rows_must_pull(prior_rows):
    """A number that pulls nowhere is refused."""
    with pytest.raises(ValueError, match="prior_rows must be positive"):
        fitted(np.arange(5.0), prior_rows=prior_rows)
