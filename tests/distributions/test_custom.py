"""Distributions of functions against scipy's normal."""

import numpy as np
import scipy.optimize
import scipy.stats
from numpy.testing import assert_allclose

import regcal


def test_upper_tail_of_functions_comes_from_the_density():
    """Without sf, P(Y > t) is still right where 1 - cdf has no digits."""
    normal = scipy.stats.norm()
    dist = regcal.CustomDistribution(
        lambda t, rows: normal.cdf(t), 1, pdf=lambda t, rows: normal.pdf(t)
    )
    points = np.array([[4.0, 4.8, 6.0, 9.0, 20.0, 37.0]])

    assert_allclose(dist.logsf(points), normal.logsf(points), rtol=1e-7)
