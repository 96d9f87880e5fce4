"""Memories of different length, compared."""

import numpy as np
from numpy.testing import assert_allclose

from regcal.online.tracks import can_learn, shared


def test_weights_are_those_of_all_paths_that_may_switch():
    """The recursion sums over all sequences of candidates, row by row."""
    scores = np.array([[-1.0, -0.2], [-0.5, -2.0], [-0.1, -0.3]])  # rows by candidates
    log_weights = np.zeros(2)
    for row, score in enumerate(scores):
        log_weights = shared(log_weights, score, row, row + 1)

    # brute force: the last candidate's weight after switching, over all paths of three rows
    totals = np.zeros(2)
    for path in np.ndindex(2, 2, 2, 2):
        weight = 0.5
        for row in range(3):
            weight *= np.exp(scores[row, path[row]]) if row else 1.0
            stay = row / (row + 1)
            weight *= stay * (path[row] == path[row + 1]) + (1 - stay) / 2
        totals[path[-1]] += weight
    assert_allclose(np.exp(log_weights - np.logaddexp.reduce(log_weights)), totals / totals.sum())


def test_half_lives_that_learn_remember_ten_rows():
    """The sum over all earlier rows, added up."""
    for half_life in (0.5, 6.0, 6.5, 6.6, 7.0, 100.0, np.inf):
        remembered = np.sum(2.0 ** (-np.arange(5000) / half_life))
        assert can_learn(half_life) == (remembered > 10.0)
