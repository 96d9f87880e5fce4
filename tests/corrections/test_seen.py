"""Outcomes on the probit scale: what is expected of intervals, and what is typical."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from regcal.corrections import Seen

ENDS = [
    (-np.inf, -0.3),
    (0.4, np.inf),
    (-1.0, 2.0),
    (3.0, 3.5),
    (5.0, np.inf),
    (-np.inf, -8.0),
    (-np.inf, np.inf),
]


@pytest.mark.parametrize(("shift", "factor"), [(0.0, 1.0), (0.7, 2.5), (-1.5, 0.4)])
def test_moments_are_those_of_truncated_normal_distributions(shift, factor):
    """Mean and mean square agree with scipy's, one-sided intervals and far ones included."""
    low, high = np.array(ENDS).T
    n = len(ENDS)
    mean, square = Seen(low, high, np.ones(n)).moments(np.full(n, shift), np.full(n, factor))
    a, b = (low - shift) / factor, (high - shift) / factor
    truth = [stats.truncnorm(*ends, loc=shift, scale=factor) for ends in zip(a, b, strict=True)]

    assert_allclose(mean, [one.mean() for one in truth], rtol=1e-6)
    assert_allclose(square, [one.moment(2) for one in truth], rtol=1e-5)


def test_moments_stay_inside_of_narrow_and_far_intervals():
    """Where differences of probabilities have no digits left, means are within the ends."""
    low = np.array([1.0, 40.0, -60.0, 0.0])
    high = np.array([1.0 + 1e-9, 41.0, -59.0, 1e-13])
    mean, square = Seen(low, high, np.ones(4)).moments(np.zeros(4), np.ones(4))

    assert ((low <= mean) & (mean <= high)).all()
    assert_allclose(square, mean**2, rtol=1e-3)


def test_typical_size_ignores_gross_errors(rng):
    """A tenth of the rows far out moves location and size little."""
    z = 3.0 + 2.0 * rng.normal(size=2000)
    z[:200] = 1e6
    middle, size = Seen(z, z, np.ones(2000)).typical()

    assert abs(middle - 3.0) < 0.5
    assert abs(size - 2.0) < 0.6


def test_outcomes_in_other_units_end_six_sizes_out():
    """Points are cut; intervals stay open, and those beyond begin at the limit."""
    seen = Seen(
        np.array([50.0, 1.0, 40.0, -np.inf]), np.array([50.0, 1.0, np.inf, -40.0]), np.ones(4)
    )
    near = seen.in_units_of(1.0, 2.0)

    assert_allclose(near.low, [6.0, 0.0, 6.0, -np.inf])
    assert_allclose(near.high, [6.0, 0.0, np.inf, -6.0])
