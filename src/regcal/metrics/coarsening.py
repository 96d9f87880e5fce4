"""How coarsely rows are seen: which interval of PIT values stands for all values inside.

Simulated outcomes of a calibrated model must be seen as the real ones are. At a point mass that is
known: all PIT values between P(Y < y) and P(Y <= y) are seen as one. Of a censored row its own
interval is known; what an outcome elsewhere would have looked like is taken from other rows, whose
intervals begin or end nearby. Where these are numbers, or there are none, it would have been one.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from regcal._validation import Array
from regcal.distributions import Distribution
from regcal.metrics.calibration import PitIntervals
from regcal.outcomes import Outcomes

# Intervals that are laid to either side of a row's own. Where more would find room they are so
# narrow that numbers are no different (benchmarks/verdict.py, "frequent visits").
_NEIGHBOURS = 8

# One beside is as wide as one that begins there, or as one of so many that begin next to it, above
# and below.
_NEARBY = 8
_SAME = 1e-9

# Intervals of a smaller probability count as if they had this one.
_LEAST_CHANCE = 0.01


@dataclass(frozen=True)
class SeenLevels:
    """For each row and level, the interval of PIT values that is seen as one and holds the level.

    A value within counts as `share` of one that is up to the level. Where none holds the level, low
    and high ends are the level itself.

    Parameters
    ----------
    levels, low, high : ndarray of shape (n_rows, n_levels)
    """

    levels: Array
    low: Array
    high: Array

    @cached_property
    def spread(self) -> np.ndarray:
        """Whether an interval holds the level, rows × levels."""
        return self.high > self.low

    @cached_property
    def share(self) -> Array:
        """Which part of an interval is up to the level; 0 where there is none."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (self.levels - self.low) / (self.high - self.low)
        return np.where(self.spread, share, 0.0)

    def of_rows(self, rows: np.ndarray) -> "SeenLevels":
        """Return the same of some rows."""
        return SeenLevels(self.levels[rows], self.low[rows], self.high[rows])

    def counts(self, uniforms: Array, k: int, weights: Array) -> Array:
        """Return sums of weights, simulations × columns, of values that are up to level k.

        Parameters
        ----------
        uniforms : ndarray of shape (n_simulations, n_rows)
        k : int
        weights : ndarray of shape (n_rows, n_columns)
        """
        share, some = self.share[:, k, np.newaxis], np.flatnonzero(self.spread[:, k])
        sums = (uniforms <= self.low[:, k]).astype(np.float64) @ (weights * (1.0 - share))
        if len(some):
            within = (uniforms[:, some] <= self.high[some, k]).astype(np.float64)
            sums += within @ (weights * share)[some]
        return sums

    def covariances(self, j: int, k: int) -> Array:
        """Return each row's covariance of being up to level j and up to level k.

        Values up to the lower level are up to both: min(p, q) - p q, less what one interval that
        holds both levels leaves open.
        """
        p, q = self.levels[:, j], self.levels[:, k]
        together = np.minimum(p, q)
        same = self.spread[:, j] & (self.low[:, j] == self.low[:, k])
        same &= self.high[:, j] == self.high[:, k]
        low, width = self.low[same, j], (self.high - self.low)[same, j]
        together[same] = low + (p[same] - low) * (q[same] - low) / width
        return together - p * q

    def sum_variances(self, widths: Array) -> Array:
        """Return each row's variance of the sum over levels, in increasing order, times widths.

        For levels p <= q the covariance is p (1 - q), less (p - a) (b - q) / (b - a) if the
        interval from a to b holds both.
        """
        variances, upto, inside = np.zeros((3, len(self.levels)))
        spread, share = self.spread, self.share
        for k, width in enumerate(widths):
            q, low, high = self.levels[:, k], self.low[:, k], self.high[:, k]
            if k > 0:
                inside *= (low == self.low[:, k - 1]) & (high == self.high[:, k - 1])
            rest = np.where(spread[:, k], 1.0 - share[:, k], 0.0)
            variances += width * (2.0 * upto + width * q) * (1.0 - q)
            variances -= width * (2.0 * inside + width * (q - low)) * rest
            upto += width * q
            inside += width * (q - low)
        return variances


@dataclass(frozen=True)
class Coarsening:
    """Intervals of PIT values, rows × intervals, each seen as one; those of no width are none."""

    below: Array
    upto: Array

    @classmethod
    def of(
        cls,
        outcomes: Outcomes,
        dist: Distribution,
        values: PitIntervals,
        rng: np.random.Generator,
    ) -> Self:
        """Return the intervals of censored rows, and those beside."""
        rows = np.flatnonzero(~outcomes.exact_rows)
        if not len(rows):
            return cls(*np.zeros((2, len(outcomes), 0)))
        below, upto = np.zeros((2, len(outcomes), 1 + 2 * _NEIGHBOURS))
        below[rows, 0], upto[rows, 0] = values.below[rows], values.upto[rows]
        for first, side in ((1, 1.0), (1 + _NEIGHBOURS, -1.0)):
            ends = _ends_beyond(outcomes, values.upto - values.below, side, rng)
            reached = values.upto[rows] if side > 0 else values.below[rows]
            for k, end in enumerate(ends.T):
                known = np.flatnonzero(~np.isnan(end))
                there = reached.copy()
                there[known] = _probability(dist[rows[known]], end[known], side)
                low, high = np.minimum(reached, there), np.maximum(reached, there)
                below[rows, first + k], upto[rows, first + k] = low, high
                reached = there
        return cls(below, upto)

    def around(self, levels: Array) -> SeenLevels:
        """Return what is seen as one around levels of PIT values, rows × levels."""
        low, high = levels.copy(), levels.copy()
        for below, upto in zip(self.below.T, self.upto.T, strict=True):
            row, k = np.nonzero((below[:, np.newaxis] < levels) & (levels < upto[:, np.newaxis]))
            low[row, k], high[row, k] = below[row], upto[row]
        return SeenLevels(levels, low, high)

    def around_quantiles(self, levels: Array, dist: Distribution) -> SeenLevels:
        """Return the same with point masses at the quantiles of these levels."""
        seen = self.around(np.broadcast_to(levels, (len(dist), len(levels))))
        points = dist.ppf(levels[np.newaxis, :])
        masses, upto = dist.mass(points), dist.cdf(points)
        on_mass = (masses > 0) & ~seen.spread
        low = np.where(on_mass, np.minimum(upto - masses, seen.levels), seen.low)
        high = np.where(on_mass, np.maximum(upto, seen.levels), seen.high)
        return SeenLevels(seen.levels, low, high)


def _probability(dist: Distribution, ends: Array, side: float) -> Array:
    """Return P(Y <= end) of intervals above, and P(Y < end) of intervals below."""
    upto = np.clip(dist.cdf(ends), 0.0, 1.0)
    return upto if side > 0 else np.clip(upto - dist.mass(ends), 0.0, 1.0)


@dataclass(frozen=True)
class _Neighbours:
    """Intervals that were seen, by where they begin; outwards is upwards here.

    A wide interval is seen more often than a narrow one, because more outcomes fall into it. To be
    taken for one beside another it counts the less, by the probability that it was given.
    """

    starts: Array
    widths: Array
    upto: Array  # sums of weights
    numbers: Array

    @classmethod
    def of(cls, outcomes: Outcomes, chances: Array, side: float) -> Self:
        """Return them for one side of the line."""
        lower, upper = _outwards(outcomes, side)
        begun = np.flatnonzero(np.isfinite(lower) & ~outcomes.exact_rows)
        order = begun[np.argsort(lower[begun], kind="stable")]
        weights = 1.0 / np.maximum(chances[order], _LEAST_CHANCE)
        upto = np.concatenate([[0.0], np.cumsum(weights)])
        numbers = np.sort(lower[outcomes.exact_rows])
        return cls(lower[order], (upper - lower)[order], upto, numbers)

    def next_width(self, ends: Array, shares: Array) -> Array:
        """Return the width of an interval from each end on, and nan where a number is nearer."""
        distance = np.abs(_nearest(self.starts, ends) - ends)
        first = np.searchsorted(self.starts, ends - distance)
        last = np.searchsorted(self.starts, ends + distance, side="right")
        alone = distance > _SAME * (1.0 + np.abs(ends))
        first = np.maximum(first - alone * _NEARBY, 0)
        last = np.minimum(last + alone * _NEARBY, len(self.starts))
        weight = self.upto[first] + shares * (self.upto[last] - self.upto[first])
        chosen = np.clip(np.searchsorted(self.upto, weight, side="right") - 1, first, last - 1)
        numbers = np.abs(_nearest(self.numbers, ends) - ends) < distance
        return np.where(numbers, np.nan, self.widths[chosen])


def _outwards(outcomes: Outcomes, side: float) -> tuple[Array, Array]:
    return (outcomes.lower, outcomes.upper) if side > 0 else (-outcomes.upper, -outcomes.lower)


def _ends_beyond(
    outcomes: Outcomes, chances: Array, side: float, rng: np.random.Generator
) -> Array:
    """Return ends of intervals laid beside those of censored rows, rows × neighbours, outwards.

    They end, with nan, at the end of the line and where a number is nearer than any interval.
    """
    near, end = _Neighbours.of(outcomes, chances, side), _outwards(outcomes, side)[1]
    end = end[~outcomes.exact_rows]
    shares, ends = rng.random((_NEIGHBOURS, len(end))), np.full((len(end), _NEIGHBOURS), np.nan)
    for k in range(_NEIGHBOURS if len(near.starts) else 0):
        on = np.flatnonzero(np.isfinite(end))
        ends[on, k] = end[on] + near.next_width(end[on], shares[k, on])
        end = ends[:, k]
    return side * ends


def _nearest(sorted_values: Array, points: Array) -> Array:
    """Return the value that is nearest to each point; infinity if there is none."""
    padded = np.concatenate([[-np.inf], sorted_values, [np.inf]])
    place = np.searchsorted(sorted_values, points)
    below, above = padded[place], padded[place + 1]
    return np.where(points - below < above - points, below, above)
