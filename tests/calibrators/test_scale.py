"""A single factor against the likelihood of others."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtri

from regcal import Normal, Outcomes, ScaleCalibrator, log_score


def normal_quantiles(n):
    """Return n numbers that are distributed as a standard normal variable."""
    return ndtri((np.arange(n) + 0.5) / n)


def test_scale_finds_the_maximum_of_the_likelihood(rng):
    """No other factor has a higher likelihood, up to the single prior row."""
    dist, y = Normal(np.zeros(400), np.ones(400)), rng.normal(0.3, 2.0, 400)
    cal = ScaleCalibrator(prior_rows=1e-9).fit(dist, y)

    def score(factor):
        return log_score(y, Normal(np.zeros(400), np.full(400, factor))).sum()

    assert score(cal.factor_) > max(score(cal.factor_ * 1.001), score(cal.factor_ / 1.001))
    assert_allclose(log_score(y, cal.transform(dist)).sum(), score(cal.factor_))


@pytest.mark.parametrize("wide", [30.0, 1e6])
@pytest.mark.parametrize("y", [normal_quantiles(2000), np.repeat(normal_quantiles(1000), 2)])
def test_prior_rows_do_not_outweigh_many_rows_of_a_base_that_is_far_too_wide(y, wide):
    """They are a twentieth of a per cent of the rows, and count as a few at most."""
    dist = Normal(np.zeros(len(y)), np.full(len(y), wide))
    assert_allclose(wide * ScaleCalibrator().fit(dist, y).factor_, y.std(), rtol=0.02)


@pytest.mark.parametrize("n_rows", [5, 12, 20, 200])
@pytest.mark.parametrize("error", [1e3, 1e9])
@pytest.mark.filterwarnings("ignore::regcal.GrossErrorsWarning")
def test_one_gross_error_at_most_doubles_the_factor(n_rows, error):
    """Of few rows it counts for less than of many."""
    y = np.append(normal_quantiles(n_rows - 1), 0.0)
    dist = Normal(np.zeros(n_rows), np.ones(n_rows))
    without = ScaleCalibrator().fit(dist, y).factor_
    y[-1] = error
    assert without < ScaleCalibrator().fit(dist, y).factor_ < 2.1 * without


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_scale_of_intervals_is_that_of_their_middles(size):
    """Whatever the base says."""
    y = normal_quantiles(400)
    seen = Outcomes(size * np.floor(8.0 * y) / 8.0, size * (np.floor(8.0 * y) + 1.0) / 8.0)
    found = ScaleCalibrator().fit(Normal(np.zeros(400), np.ones(400)), seen).factor_

    assert_allclose(found, size, rtol=0.05)
