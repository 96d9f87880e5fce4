"""Tail probabilities of sums of independent events with different probabilities.

Events are put together by their probability, from rare to nearly certain, and each part is a
binomial. The tail of their sum is Lugannani and Rice's saddle-point
approximation with a correction for steps (Daniels, 1987), which holds for one event where a
thousandth was expected as well as for large counts.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import expit, ndtr, ndtri

from regcal._validation import Array

# Where probabilities are put together. Within a part all are tiny, or differ so little that their
# mean has a variance within 2 % of theirs.
PARTS = (0.0, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, np.inf)

# Scores end here: probabilities of 1e-300 have no use, and 0 has no normal score.
LARGEST_SCORE = 37.0

# Newton's steps, of which six are enough unless the sum is at its very end; and the largest tilt:
# it makes an event of 1e-30 certain.
_MOST_STEPS = 60
_LARGEST_TILT = 80.0

# Steps of a search for the count that has a score; eight are enough for all but the smallest.
_POSITIONS = 16

# Means are met to this share of their distance from the nearer end; scores have four digits.
_TOLERANCE = 1e-6

# Tilts below this are 0: the tail is then one half, but for skewness.
_NO_TILT = 1e-4

# Sums move in visible steps where their standard deviation is less than so many of them; with
# more, what is attained of a level is within 5 % of it.
_FEW_STEPS = 4.0

# Steps that are looked at, in standard deviations: no draw is that far out.
_FAR = 6.0


@dataclass(frozen=True)
class EventCounts:
    """Numbers of events: sums of binomials, one for each range of probabilities.

    Attributes
    ----------
    trials, probabilities : ndarray of shape (n_parts, ...)
        Probabilities are between 0 and 1, and not at these ends.

    Examples
    --------
    Four events or more, of ten with probability 0.1, are 0.0128 likely:

    >>> import numpy as np
    >>> from scipy.special import ndtr
    >>> ten = EventCounts(np.array([[10.0]]), np.array([[0.1]]))
    >>> ndtr(-ten.tail_scores(np.array([3.5 - 1.0]))).round(4)
    array([0.0129])
    """

    trials: Array
    probabilities: Array

    @property
    def variance(self) -> Array:
        """Variance of the count."""
        return (self.trials * self.probabilities * (1.0 - self.probabilities)).sum(axis=0)

    def scores(self, excess: Array, step: Array) -> Array:
        """Return normal scores of counts that exceed their mean by so much.

        Their tail probability is that of the excess, of which the excess itself counts half
        ("mid-p"), as half of the possible outcomes within a step are beyond it.
        """
        return _middle(*(self.tail_scores(excess + half * step, step) for half in (-0.5, 0.5)))

    def tail_scores(self, excess: Array, step: Array | float = 1.0) -> Array:
        """Return normal scores of the probability to exceed the mean by more than so much.

        An excess in the middle between two that are possible leaves no doubt which are beyond.
        """
        place = (self.trials * self.probabilities).sum(axis=0) + excess
        scores = np.where(place > 0, LARGEST_SCORE, -LARGEST_SCORE)
        inside = (place > 0) & (place < self.trials.sum(axis=0))
        trials, probabilities = (
            np.broadcast_to(one, (len(one), *place.shape))[:, inside]
            for one in (self.trials, self.probabilities)
        )
        steps = np.broadcast_to(step, place.shape)[inside]
        found = _tail_scores(trials, probabilities, place[inside], steps)
        scores[inside] = np.clip(found, -LARGEST_SCORE, LARGEST_SCORE)
        return scores

    def excess_at(self, score: float, step: Array) -> Array:
        """Return the excess whose score is `score`, by false position."""
        mean = (self.trials * self.probabilities).sum(axis=0)
        low, high = -mean - step, self.trials.sum(axis=0) - mean + step
        below = np.full(mean.shape, -LARGEST_SCORE - score)
        above = np.full(mean.shape, LARGEST_SCORE - score)
        excess = np.clip(score * np.sqrt(self.variance), low, high)
        for _ in range(_POSITIONS):
            gap = self.scores(excess, step) - score
            is_low = gap < 0
            # the end that stays counts half, so that both ends move (the Illinois rule)
            below, above = np.where(is_low, gap, 0.5 * below), np.where(is_low, 0.5 * above, gap)
            low, high = np.where(is_low, excess, low), np.where(is_low, high, excess)
            excess = low - below * (high - low) / np.where(above > below, above - below, 1.0)
        return excess


def _tail_scores(trials: Array, probabilities: Array, place: Array, step: Array) -> Array:
    """Return r + log(u / r) / r, with r and u of the tilt at which the mean is `place`."""
    log_p, log_rest = np.log(probabilities), np.log1p(-probabilities)
    tilt = _tilt(trials, log_p - log_rest, place)
    cumulant = (trials * np.logaddexp(log_rest, log_p + tilt)).sum(axis=0)
    tilted = expit(log_p - log_rest + tilt)
    variance = (trials * tilted * (1.0 - tilted)).sum(axis=0)
    third = (trials * tilted * (1.0 - tilted) * (1.0 - 2.0 * tilted)).sum(axis=0)
    root = np.copysign(np.sqrt(2.0 * np.maximum(tilt * place - cumulant, 0.0)), tilt)
    # a step that is more than all variance has an infinite slope: its score is the largest
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slope = 2.0 / step * np.sinh(0.5 * step * tilt) * np.sqrt(variance)
        scores = root + np.log(slope / root) / root
        middle = tilt * np.sqrt(variance) + third / (6.0 * variance**1.5)
    scores = np.where(np.abs(tilt) < _NO_TILT, middle, scores)
    return np.where(variance > 0, scores, np.copysign(LARGEST_SCORE, tilt))


def _tilt(trials: Array, logits: Array, place: Array) -> Array:
    """Return s at which sum n expit(logit p + s) = place, by Newton's steps within bounds.

    They are those of the logits of both sides, of which the left one is s itself, but for a
    constant, if all probabilities are equal.
    """
    total = trials.sum(axis=0)
    wanted = np.log(place / (total - place))
    low, high = np.full(place.shape, -_LARGEST_TILT), np.full(place.shape, _LARGEST_TILT)
    tilt = np.zeros(place.shape)
    for _ in range(_MOST_STEPS):
        tilted = expit(logits + tilt)
        reached, rest = (trials * tilted).sum(axis=0), (trials * (1.0 - tilted)).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.log(reached / rest) - wanted
            slope = total / reached / rest * (trials * tilted * (1.0 - tilted)).sum(axis=0)
            newton = tilt - gap / slope
        if (np.abs(gap) <= _TOLERANCE).all():
            break
        low, high = np.where(gap < 0, tilt, low), np.where(gap < 0, high, tilt)
        inside = (newton >= low) & (newton <= high)
        tilt = np.where(inside, newton, 0.5 * (low + high))
    return tilt


def _middle(at_least: Array, more: Array) -> Array:
    """Return the normal score of the mean of two tail probabilities, given as scores."""
    above, below = (0.5 * (ndtr(sign * at_least) + ndtr(sign * more)) for sign in (-1.0, 1.0))
    with np.errstate(divide="ignore"):
        scores = np.where(above < below, -ndtri(above), ndtri(below))
    return np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)


@dataclass(frozen=True)
class Steps:
    """Scores that small counts can have, and between which normal draws they are.

    Attributes
    ----------
    cells : ndarray of shape (n_small,)
        Which counts they are.
    cuts : ndarray of shape (n_small, n_steps - 1)
    scores : ndarray of shape (n_small, n_steps)
    """

    cells: np.ndarray
    cuts: Array
    scores: Array

    @classmethod
    def of(cls, counts: EventCounts, excess: Array, step: Array) -> Self:
        """Return the steps of those counts that have few: whole ones from what was seen."""
        spread = np.sqrt(counts.variance)
        cells = np.flatnonzero((spread > 0) & (spread < _FEW_STEPS * step))
        if not len(cells):
            return cls(cells, np.empty((0, 0)), np.empty((0, 0)))
        excess, step, spread = (one[cells, np.newaxis] for one in (excess, step, spread))
        n_steps = int(np.ceil((_FAR * spread / step).max())) + 2
        # from the possible value that is next to the mean
        start = excess - np.round(excess / step) * step
        places = start + step * np.arange(-n_steps, n_steps + 1)
        ends = np.concatenate([places - 0.5 * step, places[:, -1:] + 0.5 * step], axis=1)
        few = EventCounts(
            counts.trials[:, cells, np.newaxis], counts.probabilities[:, cells, np.newaxis]
        )
        tails = few.tail_scores(ends, step)
        return cls(cells, tails[:, 1:-1], _middle(tails[:, :-1], tails[:, 1:]))

    def taken(self, draws: Array) -> Array:
        """Return draws of which those of small counts became the scores that these can have."""
        for cell, cuts, scores in zip(self.cells, self.cuts, self.scores, strict=True):
            draws[:, cell] = scores[np.searchsorted(cuts, draws[:, cell])]
        return draws
