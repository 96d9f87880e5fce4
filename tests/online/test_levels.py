"""Levels that follow outcomes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtri

from regcal.online.levels import LEVELS, RATES, AdaptiveLevels


def test_levels_of_uniform_values_stay_near(rng):
    """Calibrated predictions ask for what is wanted."""
    levels = AdaptiveLevels()
    levels.follow(rng.uniform(size=3000))

    assert_allclose(levels.at(LEVELS), LEVELS, atol=0.1)


@pytest.mark.parametrize("hostile", [False, True])
def test_the_share_below_is_the_level_whatever_comes(hostile, rng):
    """The bound of the docstring holds for every level and for values that try to break it."""
    levels, below = AdaptiveLevels(), np.zeros(len(LEVELS))
    n_rows = 2000
    for row in range(n_rows):
        pit = 1.0 if hostile and row % 400 < 200 else rng.uniform() ** 3
        below += min(ndtri(pit), 8.0) <= levels.places
        levels.follow(np.array([pit]))

    assert (np.abs(below / n_rows - LEVELS) <= (16.0 + RATES) / (RATES * n_rows)).all()
    assert hostile or np.abs(below / n_rows - LEVELS).max() < 0.1


def test_levels_between_lie_between_and_ends_stay():
    """Levels that are not followed are interpolated; 0 and 1 ask for everything."""
    levels = AdaptiveLevels()
    levels.follow(np.full(50, 0.99))
    asked = np.array([0.0, 0.05, 0.07, 0.1, 1.0])

    told = levels.at(asked)

    assert (np.diff(told) > 0).all()
    assert told[0] == 0
    assert told[-1] == 1
