"""What methods start from: nothing, a scale or PIT recalibration, the first that is worth it."""

import numpy as np
import pytest

from regcal.calibrators.cells import NO_INTERVALS, Points
from regcal.calibrators.start import choose_start, total_gain
from regcal.maps import PiecewiseMap, ScaleMap
from regcal.maps.scale import IDENTITY


def outcomes(z):
    """Exact outcomes at probits."""
    return Points.without_levels(np.ones(len(z)), z, z * z)


def test_a_base_that_is_right_stays_as_it_is(rng):
    """Neither a factor nor a map is worth its parameters."""
    assert choose_start(outcomes(rng.normal(size=400)), NO_INTERVALS) == IDENTITY


@pytest.mark.parametrize(("kind", "z"), [(ScaleMap, 2.0), (PiecewiseMap, None)])
def test_the_simplest_map_that_mends_the_base_is_taken(kind, z, rng):
    """A factor for a spread that is wrong, PIT recalibration for a shape."""
    seen = outcomes(z * rng.normal(size=400) if z else rng.exponential(size=400) - 1.0)

    start = choose_start(seen, NO_INTERVALS)

    assert type(start) is kind
    assert start != IDENTITY
    assert total_gain(start, seen, NO_INTERVALS) > 0


def test_without_rows_there_is_nothing_to_mend():
    """As where all outcomes are impossible."""
    assert choose_start(outcomes(np.empty(0)), NO_INTERVALS) == IDENTITY
