"""Tails of sums of events against their exact distribution."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, ndtri

from regcal.audit.tails import LARGEST_SCORE, PARTS, EventCounts, Steps


def distribution_of(probabilities):
    """Return the exact distribution of the number of events."""
    masses = np.ones(1)
    for p in probabilities:
        masses = np.convolve(masses, [1.0 - p, p])
    return masses


def counts_of(probabilities):
    parts = [probabilities[(probabilities >= a) & (probabilities < b)] for a, b in pairwise(PARTS)]
    trials = np.array([[float(len(part))] for part in parts])
    return EventCounts(trials, np.array([[part.mean() if len(part) else 0.5] for part in parts]))


rng = np.random.default_rng(0)
EVENTS = {
    "even": np.full(20, 0.5),
    "rare": np.full(50, 0.002),
    "rare and one likely": np.r_[np.full(1000, 1e-6), 0.3],
    "any": rng.uniform(size=20),
    "sharp": expit(rng.normal(0.0, 5.0, 60)),
    "few": rng.uniform(size=4),
    "many": rng.uniform(size=500) ** 3,
    "nearly certain": 1.0 - np.full(80, 0.004),
}


@pytest.mark.parametrize("probabilities", EVENTS.values(), ids=EVENTS)
def test_scores_are_those_of_the_exact_tail(probabilities):
    """Normal scores are right to two hundredths of themselves, far out and for single events."""
    masses, mean = distribution_of(probabilities), probabilities.sum()
    for count in np.flatnonzero(masses > 1e-9):
        above, below = (
            masses[part].sum() + 0.5 * masses[count]
            for part in (slice(count + 1, None), slice(0, count))
        )
        exact = -ndtri(above) if above < below else ndtri(below)
        score = counts_of(probabilities).scores(np.array([count - mean]), np.ones(1))[0]
        assert_allclose(score, exact, rtol=0.02, atol=0.03)


def test_what_cannot_be_has_the_largest_score():
    """More events than rows, or fewer than none."""
    one = counts_of(np.array([0.3, 0.4]))

    assert one.tail_scores(np.array([5.0]))[0] == LARGEST_SCORE
    assert one.tail_scores(np.array([-5.0]))[0] == -LARGEST_SCORE


@pytest.mark.parametrize("score", [-3.0, -0.5, 0.8, 3.5])
def test_excess_has_its_score(score):
    """The search for an excess inverts scores."""
    counts = counts_of(EVENTS["many"])
    excess = counts.excess_at(score, np.ones(1))

    assert_allclose(counts.scores(excess, np.ones(1)), score, atol=1e-5)


def test_steps_have_the_exact_probabilities():
    """Normal draws become the scores of counts as often as these counts occur."""
    p = EVENTS["few"]
    steps = Steps.of(counts_of(p), np.array([2.0 - p.sum()]), np.ones(1))
    levels = (np.arange(20_000) + 0.5) / 20_000
    taken = steps.taken(ndtri(levels)[:, np.newaxis])
    scores, counted = np.unique(taken, return_counts=True)

    assert len(scores) == 5
    assert_allclose(counted / 20_000, distribution_of(p), atol=0.01)
    exact = counts_of(p).scores(np.arange(5) - p.sum(), np.ones(5))
    assert_allclose(scores, exact, atol=1e-6)


def test_large_counts_have_no_steps():
    """Where a step is small beside the spread, draws stay as they are."""
    draws = rng.normal(size=(5, 1))
    steps = Steps.of(counts_of(rng.uniform(size=400)), np.zeros(1), np.ones(1))

    assert len(steps.cells) == 0
    assert_allclose(steps.taken(draws.copy()), draws)
