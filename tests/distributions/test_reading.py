"""What batches of draws and quantiles tell of their rows, and how that merges."""

import functools
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import regcal
from regcal.distributions.reading import Reading

PARTS = [
    Reading("draws", 0.0, np.inf, 0.0, 4.0, 1.0, 3),
    Reading("draws", -np.inf, np.inf, 0.5, 6.0, 2.0, 1),
    Reading("draws", 0.0, 9.0, 0.0, 9.0, 0.0, 0),
]
BELOW = Reading("draws", -np.inf, np.inf, -1.0, 2.0, 5.0, 1)


def test_the_order_of_batches_does_not_matter():
    """Ends stay where nothing lies beyond; spreads count by rows."""
    for order in itertools.permutations(PARTS):
        whole = functools.reduce(Reading.merge, order)

        assert (whole.low, whole.high, whole.least, whole.most) == (0.0, 9.0, 0.0, 9.0)
        assert_allclose([whole.spread, whole.n_rows], [5 / 4, 4])


@pytest.mark.parametrize("place", range(4))
def test_values_beyond_an_end_remove_it_for_good(place):
    """Whenever they come."""
    order = [*PARTS[:place], BELOW, *PARTS[place:]]

    assert functools.reduce(Reading.merge, order).low == -np.inf


def test_ends_that_were_given_are_told_though_nothing_lies_on_them():
    """A season without dry days does not lose them, nor does it take None back."""
    wet = np.random.default_rng(0).uniform(1.0, 2.0, (5, 8))
    given = regcal.Samples(wet, support=(0.0, None)).reading
    none = regcal.Samples(np.zeros((3, 8)), bandwidth=1.0, support=None).reading

    assert given.merge(regcal.Samples(wet).reading).low == 0.0
    assert none.low == -np.inf


def test_the_spread_of_several_batches_is_the_median_of_all_rows(rng):
    """Batches of unequal size tell what their rows tell in one."""
    draws = rng.gamma(rng.uniform(0.5, 20.0, (90, 1)), size=(90, 8))
    parts = [regcal.Samples(draws[rows]).reading for rows in np.split(np.arange(90), [10, 25])]

    assert functools.reduce(Reading.merge, parts) == regcal.Samples(draws).reading
