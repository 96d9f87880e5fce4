"""Order statistics of scores, by hand and against what they minimise."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from regcal.calibrators.order_statistics import Scores, fairly_missed


@pytest.mark.parametrize("share", [0.5, 0.9, 0.93])
def test_weights_are_rows(share, rng):
    """A weight of 2 is two rows, and a weight of 0 none."""
    values, weights = rng.normal(size=30), rng.integers(0, 3, size=30)
    repeated = np.repeat(values, weights)

    expected = np.sort(repeated)[int(np.ceil((len(repeated) + 1) * share)) - 1]

    assert Scores(values, weights.astype(float)).reached(share) == expected


def test_new_rows_that_weigh_more_need_more(rng):
    """Tibshirani et al.: the new row's own weight stands for a score beyond all others."""
    scores = Scores(np.arange(1.0, 21.0), np.ones(20))

    assert_array_equal(scores.reached(0.8, np.array([0.0, 1.0, 4.0, 6.0])), [16, 17, 20, np.nan])


def test_weights_beyond_points(rng):
    """By hand, equal scores included."""
    scores = Scores(np.array([2.0, 1.0, 2.0, np.inf]), np.array([1.0, 10.0, 100.0, 1000.0]))

    assert_array_equal(scores.beyond(np.array([0.0, 1.0, 2.0, 3.0])), [1111, 1101, 1000, 1000])


@pytest.mark.parametrize("share", [0.5, 0.8, 0.9])
def test_without_masses_ends_are_those_of_the_order_statistic(share, rng):
    """Every end moves, so that each misses its part."""
    z, weights, new = rng.normal(size=50), rng.uniform(0.5, 2.0, size=50), np.array([0.1, 1.0, 3.0])
    never = np.full(50, np.inf)

    both = fairly_missed([np.maximum(z, 0), np.maximum(-z, 0)], [never, never], weights, share, new)

    assert_array_equal(both, Scores(np.abs(z), weights).reached(share, new))
    alone = fairly_missed([z], [never], weights, share, new)
    assert_array_equal(alone, Scores(z, weights).reached(share, new))


@pytest.mark.parametrize("share", [0.6, 0.8, 0.9])
def test_ends_have_the_least_interval_score(share, rng):
    """Brute force on a grid: up to there it falls, and going on does not make it less."""
    n_rows = 60
    rests = [rng.uniform(0.3, 2.5, size=n_rows), np.full(n_rows, np.inf)]
    z = [np.abs(rng.normal(size=n_rows)), np.abs(rng.normal(size=n_rows))]
    sides = rng.uniform(size=n_rows) < 0.5
    scores = [
        np.where(sides, np.minimum(z[0], rests[0]), 0.0),
        np.where(sides, 0.0, z[1]),
    ]
    weights = rng.uniform(0.5, 2.0, size=n_rows)

    def score(place):
        lengths = sum(np.minimum(place, rest) for rest in rests)
        outside = sum(np.maximum(one - place, 0.0) for one in scores)
        return weights @ (lengths + 2.0 / (1.0 - share) * outside)

    found = fairly_missed(scores, rests, weights, share, np.zeros(1))[0]

    before = np.array([score(place) for place in np.linspace(0.0, found, 400)])
    assert (np.diff(before) < 0).all()
    assert score(found + 1e-6) >= score(found)


def test_what_no_end_reaches_is_nan():
    """Outcomes beyond all that is predicted are missed by every end."""
    scores, never = np.array([0.5, np.inf, np.inf, np.inf]), np.full(4, np.inf)

    assert np.isnan(fairly_missed([scores], [never], np.ones(4), 0.7, np.zeros(1)))
    assert_allclose(fairly_missed([scores], [never], np.ones(4), 0.25, np.zeros(1)), 0.5)


def test_ends_that_always_hold_may_be_anywhere():
    """By hand: of ten outcomes eight are held by every end, and the others from 1 and 2 on."""
    scores, never = np.r_[np.full(8, -np.inf), 1.0, 2.0], np.full(10, np.inf)

    found = [
        fairly_missed([scores], [never], np.ones(10), share, np.zeros(1))[0]
        for share in (0.7, 0.8, 0.85, 0.95)
    ]

    assert_array_equal(found, [-np.inf, -np.inf, 1.0, 2.0])
