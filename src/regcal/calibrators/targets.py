"""Range and distribution of outcomes, which merge: what thresholds and axes are laid out by."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from regcal._validation import Array, check_column, check_weights
from regcal.grids import make_thresholds

# More distinct outcomes than this are merged in cells, whose width is a power of two.
_MAX_VALUES = 2**14

# Values closer than this share of the range differ in their last digits only.
_SMALLEST_GAP = 1e-10

# Ranges that are not known beforehand are rounded outwards to multiples of a power of two, about
# this part of the range.
_PARTS = 64


def _empty() -> Array:
    return np.empty(0)


@dataclass(frozen=True)
class Targets:
    """Range and distribution of outcomes; those of disjoint sets of rows merge.

    Distinct values are kept with their weights while there are at most 16 384 of them. Beyond, they
    are merged in cells whose width is a power of two, so that the order in which outcomes come
    does not matter.

    Parameters
    ----------
    values, weights : ndarray
        Distinct outcomes, or the means of cells, in increasing order.
    low, high : float
        Smallest and largest outcome.
    step : float
        Width of the cells; 0 while values are distinct outcomes.

    Examples
    --------
    >>> from regcal.calibrators import Targets
    >>> targets = Targets.of([3.0, 1.0]).merge(Targets.of([7.0, 3.0]))
    >>> targets.low, targets.high, targets.values
    (1.0, 7.0, array([1., 3., 7.]))
    """

    values: Array = field(default_factory=_empty)
    weights: Array = field(default_factory=_empty)
    low: float = np.inf
    high: float = -np.inf
    step: float = 0.0

    @classmethod
    def of(cls, y: Any, sample_weight: Any = None) -> Self:
        """Return the targets of some rows; rows of weight 0 do not count."""
        targets = check_column(y, "y")
        weights = check_weights(sample_weight, len(targets))
        used = weights > 0
        return cls.of_checked(targets[used], weights[used])

    @classmethod
    def of_checked(cls, y: Array, weights: Array, step: float = 0.0, ends: Any = None) -> Self:
        """Return the targets of outcomes, or of cells of a width between two ends."""
        low, high = (float(y.min()), float(y.max())) if ends is None else ends
        if step == 0:
            y, weights = _merged(y, weights, step)
        if step > 0 or len(y) > _MAX_VALUES:
            step = power_of_two((high - low) / _MAX_VALUES)
            y, weights = _merged(y, weights, step)
        return cls(y, weights, low, high, step)

    def merge(self, other: "Targets") -> "Targets":
        """Return the targets of both sets of rows."""
        if not len(other.values):
            return self
        if not len(self.values):
            return other
        return self.of_checked(
            np.concatenate([self.values, other.values]),
            np.concatenate([self.weights, other.weights]),
            max(self.step, other.step),
            (min(self.low, other.low), max(self.high, other.high)),
        )

    @property
    def resolution(self) -> float:
        """The distance between neighbouring values of rounded outcomes, 0 if there is none.

        The tenth percentile of the gaps between distinct values: the step of a rounded outcome,
        next to nothing for a continuous one. Values that differ in their last digits are equal.
        """
        gaps = np.diff(self.values)
        gaps = gaps[gaps > _SMALLEST_GAP * (self.high - self.low)]
        return float(np.quantile(gaps, 0.1)) if self.step == 0 and len(gaps) else 0.0

    def rounded(self) -> "Targets":
        """Return the same with a slightly larger range, which changes rarely as rows are added."""
        if self.low >= self.high:
            return self
        part = power_of_two((self.high - self.low) / _PARTS)
        low, high = part * np.floor(self.low / part), part * np.ceil(self.high / part)
        return type(self)(self.values, self.weights, float(low), float(high), self.step)

    def thresholds(self, spec: Any) -> Array:
        """Return thresholds as ``regcal.grids.make_thresholds`` does from all outcomes."""
        values = self.values.copy()
        values[0], values[-1] = self.low, self.high
        return make_thresholds(spec, values, self.weights)

    def share_below(self, points: Array) -> Array:
        """Return the share of weight at or below each point."""
        shares = np.concatenate([[0.0], np.cumsum(self.weights)]) / self.weights.sum()
        return shares[np.searchsorted(self.values, points, side="right")]


def power_of_two(width: float) -> float:
    """Return the smallest power of two that is at least `width`; 0 for 0."""
    return float(2.0 ** np.ceil(np.log2(width))) if width > 0 else 0.0


def _merged(y: Array, weights: Array, step: float) -> tuple[Array, Array]:
    """Return the weighted mean of each cell, or distinct values, with total weights."""
    cells = np.floor(y / step) if step > 0 else y
    kept, place = np.unique(cells, return_inverse=True)
    total = np.bincount(place, weights).astype(float)
    return (np.bincount(place, weights * y) / total if step > 0 else kept), total
