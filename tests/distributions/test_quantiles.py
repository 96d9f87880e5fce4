"""Quantiles against the normal they were taken from."""

import numpy as np
import scipy.optimize
import scipy.stats
from numpy.testing import assert_allclose
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
