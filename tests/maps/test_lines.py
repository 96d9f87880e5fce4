"""Lines of the probit, one per row."""

import numpy as np
from numpy.testing import assert_allclose

import regcal
from regcal.distributions import Transformed
from regcal.maps import RowLines


def test_normal_distributions_are_moved_and_stretched(rng):
    """Loc + shift * scale and factor * scale, whatever is asked."""
    loc, scale = rng.normal(size=20), rng.uniform(0.5, 2.0, 20)
    shift, factor = rng.normal(size=20), rng.uniform(0.2, 5.0, 20)
    moved = Transformed(regcal.Normal(loc, scale), RowLines(shift, factor))
    truth = regcal.Normal(loc + shift * scale, factor * scale)
    points, levels = np.linspace(-30.0, 30.0, 13), np.array([1e-12, 0.1, 0.5, 0.99])

    for method in ("cdf", "logcdf", "logsf", "logpdf"):
        ask = getattr(moved, method), getattr(truth, method)
        assert_allclose(*(one(points[np.newaxis, :]) for one in ask), rtol=1e-9)
    assert_allclose(moved.ppf(levels[np.newaxis, :]), truth.ppf(levels[np.newaxis, :]), rtol=1e-9)
    assert_allclose(moved.mean(), truth.mean(), rtol=1e-6, atol=1e-9)
    assert_allclose(moved.std(), truth.std(), rtol=1e-6)


def test_lines_are_sliced_with_their_rows(rng):
    """Row numbers, masks and slices."""
    lines = RowLines(rng.normal(size=5), rng.uniform(1.0, 2.0, 5))
    moved = Transformed(regcal.Normal(np.zeros(5), 1.0), lines)

    for rows in ([3, 1], slice(1, 4), np.array([True, False, True, False, True])):
        assert_allclose(moved[rows].cdf(0.3), moved.cdf(0.3)[rows])
