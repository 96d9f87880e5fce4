"""Quantiles against the normal they were taken from."""

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from rows import GRID

import regcal


def test_quantiles_of_a_normal_give_back_that_normal():
    """On the probit scale a normal is a straight line, tails included."""
    levels = np.array([0.02, 0.3, 0.5, 0.9])
    loc, scale = np.array([[0.0], [3.0]]), np.array([[1.0], [0.5]])
    exact = regcal.Normal(loc[:, 0], scale[:, 0])
    dist = regcal.Quantiles(levels, scipy.stats.norm.ppf(levels, loc, scale))

    assert_allclose(dist.logpdf(GRID * 10), exact.logpdf(GRID * 10), rtol=1e-10)
    assert_allclose(dist.logsf(40.0), exact.logsf(40.0), rtol=1e-10)
    assert_allclose(dist.mean(), loc[:, 0], atol=1e-9)
    assert_allclose(dist.var(), scale[:, 0] ** 2, rtol=1e-8)


# ----------------------------------------------------------------------------- masses at ends

LEVELS = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])


def clipped_normal(loc, low=-np.inf, high=np.inf):
    values = scipy.stats.norm.ppf(LEVELS, np.asarray(loc)[:, np.newaxis], 1.0)
    return np.clip(values, low, high)


def test_quantiles_of_a_clipped_normal_give_back_its_masses():
    """The mass is the largest level at the end; between the ends nothing is changed."""
    loc = np.array([-0.2, 0.4, 1.2, -1.3, 9.0])
    dist = regcal.Quantiles(LEVELS, clipped_normal(loc, 0.0))
    exact = regcal.Normal(loc, np.ones(5))

    assert repr(dist) == "Quantiles(low=0, rows=5)"
    assert_allclose(dist.mass(0.0)[:4], [0.4, 0.2, 0.05, 0.8])
    assert_allclose(dist.logpdf(0.0)[4], exact.logcdf(0.0)[4])  # from its normal tail
    assert_allclose(
        dist.cdf(clipped_normal(loc, 0.01)), np.maximum(LEVELS, dist.cdf(0.01)[:, None])
    )
    assert_array_equal(dist.ppf([[0.01, 0.05]])[[0, 1, 3]], 0.0)
    assert_allclose(dist.ppf(LEVELS[np.newaxis]), clipped_normal(loc, 0.0), atol=1e-9)


def test_rows_at_an_end_have_the_usual_tail_beyond_it():
    """All that is known of such a row is that its largest level lies there."""
    values = clipped_normal([-9.0, 0.0, 0.3, 2.5, 9.0], 0.0, 3.0)
    dist = regcal.Quantiles(LEVELS, values)

    assert_allclose(dist.mass([[0.0, 3.0]])[[0, 4], [0, 1]], 0.95)
    assert 0.1 < dist.ppf(0.99)[0] < 2.0


def test_quantiles_that_all_lie_on_an_end_are_certain():
    """A dry week tells no spread."""
    dist = regcal.Quantiles(LEVELS, np.zeros((3, 6)))

    assert_array_equal(dist.mass(0.0), 1.0)
    assert_array_equal(dist.ppf([[0.0, 0.999]]), 0.0)
    assert_allclose(dist.mean(), 0.0)
    told = regcal.Quantiles(LEVELS, np.full((3, 6), 5.0), support=(None, 5.0))
    assert_array_equal(told.mass(5.0), 1.0)
    with pytest.raises(ValueError, match="All 3 rows have equal quantiles"):
        regcal.Quantiles(LEVELS, np.full((3, 6), 5.0))
    with pytest.raises(ValueError, match="All 4 rows have equal quantiles"):
        regcal.Quantiles(LEVELS, np.repeat([[0.0], [0.0], [0.0], [4.0]], 6, axis=1))


def test_equal_quantiles_inside_are_moved_apart():
    """Without a mass at an end, ties leave the density finite as before."""
    dist = regcal.Quantiles(
        LEVELS, [[0.0, 1.0, 1.0, 1.0, 2.0, 3.0], [0.5, 1.0, 1.2, 2.0, 2.1, 2.2]]
    )

    assert dist._ends() == ()
    assert np.isfinite(dist.logpdf([[0.0, 1.0, 2.0]])).all()
