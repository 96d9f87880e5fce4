"""Which knots are reached, against a search in each row."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from regcal.maps import count_reached


@pytest.mark.parametrize(("n_rows", "n_values"), [(4, 3), (4, 2000), (12, 2000)])
@pytest.mark.parametrize(("strictly", "side"), [(False, "right"), (True, "left")])
def test_counts_are_those_of_a_search(rng, n_rows, n_values, strictly, side):
    """Few and many values and rows are counted alike, and ties as they are asked for."""
    knots = np.sort(rng.integers(0, 9, (n_rows, 7)), axis=1).astype(float)
    values = rng.integers(-1, 11, (n_rows, n_values)).astype(float)
    wanted = [np.searchsorted(*pair, side=side) for pair in zip(knots, values, strict=True)]

    assert_array_equal(count_reached(knots, values, strictly=strictly), wanted)
