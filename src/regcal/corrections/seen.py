"""Outcomes on the probit scale, of which an interval may be all that is known."""

from dataclasses import dataclass, replace

import numpy as np

from regcal._validation import Array
from regcal._weighted import MEDIAN_SIZE, weighted_median
from regcal.gp import interval_derivatives

# Outcomes further out count as if they were so many typical sizes out: a gross error must not
# decide what is learnt of all others.
FARTHEST = 6.0


@dataclass(frozen=True)
class Seen:
    """Outcomes under their predictions: 0 is the predicted median, 1 a standard deviation above.

    Parameters
    ----------
    low, high : ndarray of shape (n_rows,)
        Between which probits an outcome lies; equal for one that is known.
    weights : ndarray of shape (n_rows,)

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.corrections import Seen
    >>> seen = Seen(np.array([0.5, 0.0]), np.array([0.5, np.inf]), np.ones(2))
    >>> mean, square = seen.moments(np.zeros(2), np.ones(2))
    >>> mean.round(3), square.round(3)
    (array([0.5 , 0.798]), array([0.25, 1.  ]))
    """

    low: Array
    high: Array
    weights: Array

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def known(self) -> bool:
        """Whether every outcome is a number."""
        return bool((self.low == self.high).all())

    def moments(self, shift: Array, factor: Array) -> tuple[Array, Array]:
        """Return mean and mean square of each outcome, if Z has this location and spread.

        Those of a normal distribution that is cut to the interval (Tobin, 1958).
        """
        open_rows = np.flatnonzero(self.low < self.high)
        mean, square = self.low.copy(), self.low**2
        if len(open_rows):
            a, s = shift[open_rows], factor[open_rows]
            low, high = (self.low[open_rows] - a) / s, (self.high[open_rows] - a) / s
            first, second = _cut_moments(low, high)
            mean[open_rows] = a + s * first
            square[open_rows] = a**2 + 2.0 * a * s * first + s**2 * second
        return mean, square

    def typical(self) -> tuple[float, float]:
        """Return the median of the outcomes, and the size of a typical difference from it."""
        n = len(self)
        values = self.moments(np.zeros(n), np.ones(n))[0]
        middle = weighted_median(values, self.weights)
        size = weighted_median(np.abs(values - middle), self.weights) / MEDIAN_SIZE
        if size == 0:  # more than half are equal
            size = float(np.sqrt(self.weights @ (values - middle) ** 2 / self.weights.sum()))
        return middle, size or 1.0

    def in_units_of(self, origin: float, unit: float) -> "Seen":
        """Return the outcomes about another origin in another unit, none of them far out."""
        ends = ((end - origin) / unit for end in (self.low, self.high))
        low, high = ends
        points = low == high
        cut_low, cut_high = np.clip(low, -FARTHEST, FARTHEST), np.clip(high, -FARTHEST, FARTHEST)
        return replace(
            self,
            low=np.where(points, cut_low, np.minimum(low, FARTHEST)),
            high=np.where(points, cut_high, np.maximum(high, -FARTHEST)),
        )


def _cut_moments(low: Array, high: Array) -> tuple[Array, Array]:
    """Return mean and mean square of a standard normal variable between two values."""
    a, b = (np.where(np.isfinite(end), end, 0.0) for end in (low, high))
    pull_a, pull_b = interval_derivatives(low, high).first
    with np.errstate(invalid="ignore", over="ignore"):
        mean, square = -pull_a - pull_b, 1.0 - a * pull_a - b * pull_b
    # where these have no digits left, the interval is narrow, or far out
    middle = np.where(np.isneginf(low), b, np.where(np.isposinf(high), a, 0.5 * (a + b)))
    kept = (low <= mean) & (mean <= high) & (square >= mean**2) & np.isfinite(square)
    return np.where(kept, mean, middle), np.where(kept, square, middle**2)
