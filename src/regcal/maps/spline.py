"""Monotone rational-quadratic splines, linear beyond the outer knots.

The formulas are those of Gregory and Delbourgo (1982): a spline is strictly increasing, has a
continuous positive derivative and a closed-form inverse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regcal._validation import Array
from regcal.maps.base import for_rows

Pair = tuple[Array, Array]

# So many comparisons take less time than the steps of a bisection, and so many rows one by one.
_FEW, _FEW_ROWS = 2**12, 8


class Pieces:
    """Increasing curves between two knots each, straight beyond them.

    Where a share s of a piece's width is behind, its height is
    ``first + s * (lead + more * s) / (1 + bend * s * (1 - s))``, with the slope at the start, per
    width, for a lead.

    Parameters
    ----------
    table : ndarray of shape (6, ...)
        Starts, inverse widths, first heights, leads, what is more, bends.
    """

    def __init__(self, table: Array) -> None:
        self.table = table
        self.start, self.per_width, self.first, self.lead, self.more, self.bend = table

    @classmethod
    def between(cls, places: Pair, heights: Pair, slopes: Pair) -> Pieces:
        """Return the pieces between pairs of knots."""
        width, rise = places[1] - places[0], heights[1] - heights[0]
        pieces = cls(np.empty((6, *slopes[0].shape)))
        pieces.start[...], pieces.first[...] = places[0], heights[0]
        np.divide(1.0, width, out=pieces.per_width)
        lead, bend = pieces.lead, pieces.bend
        np.multiply(slopes[0], width, out=lead)
        np.multiply(slopes[1], width, out=bend)
        bend += lead
        bend /= rise
        bend -= 2.0
        np.subtract(rise, lead, out=pieces.more)
        return pieces

    def take(self, number: np.ndarray) -> Pieces:
        """Return a piece for each number; pieces are counted row by row of the arrays."""
        return Pieces(self.table.reshape(len(self.table), -1).take(number, axis=1))

    def _share(self, place: Array) -> tuple[Array, Array, Array, Array]:
        """Return the shares of pieces behind and before places, what is beyond, denominators."""
        beyond = place - self.start
        beyond *= self.per_width
        s = np.minimum(np.maximum(beyond, 0.0), 1.0)
        beyond -= s
        rest = 1.0 - s
        return s, rest, beyond, self._denominator(s, rest)

    def _denominator(self, s: Array, rest: Array) -> Array:
        denominator = rest * s
        denominator *= self.bend
        denominator += 1.0
        return denominator

    def value(self, place: Array) -> Array:
        """Return the heights; on straight lines beyond the ends."""
        s, _, beyond, denominator = self._share(place)
        return self._value(s, beyond, denominator)

    def value_and_slope(self, place: Array) -> Pair:
        """Return the heights, and the slopes there."""
        s, rest, beyond, denominator = self._share(place)
        return self._value(s, beyond, denominator), self._slope(s, rest, denominator)

    def _value(self, s: Array, beyond: Array, denominator: Array) -> Array:
        height = self.more * s
        height += self.lead
        height *= s
        height /= denominator
        height += self.first
        if np.count_nonzero(beyond):
            height += np.where(beyond < 0, self.lead, self._trail) * beyond
        return height

    def _slope(self, s: Array, rest: Array, denominator: Array) -> Array:
        rise = self._rise
        slope = self.bend + 2.0
        slope *= rise
        slope -= self.lead
        slope *= s
        rise *= 2.0
        rise *= rest
        slope += rise
        slope *= s
        rest *= rest
        rest *= self.lead
        slope += rest
        denominator *= denominator
        slope /= denominator
        slope *= self.per_width
        return slope

    @property
    def _rise(self) -> Array:
        return self.lead + self.more

    @property
    def _trail(self) -> Array:
        """The slope at the end, per width."""
        return (self.bend + 2.0) * self._rise - self.lead

    def inverse(self, height: Array) -> Array:
        """Return the places at which heights are reached."""
        s, beyond = self._share_at(height)
        s += beyond
        return self.start + s / self.per_width

    def inverse_and_slope(self, height: Array) -> Pair:
        """Return the places at which heights are reached, and the slope of the inverse there."""
        s, beyond = self._share_at(height)
        rest = 1.0 - s
        slope = self._slope(s, rest, self._denominator(s, rest))
        s += beyond
        return self.start + s / self.per_width, 1.0 / slope

    def _share_at(self, height: Array) -> Pair:
        """Return the share of the piece behind the place of each height, and what is beyond it."""
        gap = height - self.first
        inside = np.maximum(gap, 0.0)
        np.minimum(inside, self._rise, out=inside)
        a = inside * self.bend
        b = self.lead - a
        a += self.more
        a *= inside
        a *= 4.0
        a += b * b
        np.maximum(a, 0.0, out=a)
        b += np.sqrt(a, out=a)
        s = np.divide(inside, b, out=b)
        s *= 2.0
        gap -= inside
        if np.count_nonzero(gap):
            gap /= np.where(gap < 0, self.lead, self._trail)
        return s, gap


def count_reached(knots: Array, values: Array, *, strictly: bool = False) -> np.ndarray:
    """Return how many of its row's sorted knots each value reaches, or strictly, passes.

    Few are compared with all knots at once, which spares the steps of a bisection.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.maps import count_reached
    >>> count_reached(np.array([[0.0, 1.0], [5.0, 6.0]]), np.array([[1.0, 5.5]]))
    array([[2, 2],
           [0, 1]])
    """
    reaches = np.greater if strictly else np.greater_equal
    n_rows, n_knots = knots.shape
    if n_rows * n_knots * values.shape[1] <= _FEW:
        return reaches(values[:, :, None], knots[:, None, :]).sum(axis=2, dtype=np.intp)
    reached = np.zeros((n_rows, values.shape[1]), dtype=np.intp)
    if n_rows <= _FEW_ROWS:
        for row, own in enumerate(for_rows(values, n_rows)):
            reached[row] = knots[row].searchsorted(own, side="left" if strictly else "right")
        return reached
    flat, before = knots.ravel(), (np.arange(n_rows) * n_knots - 1)[:, np.newaxis]
    step = 1 << n_knots.bit_length() >> 1
    while step:
        trial = reached + step
        further = trial <= n_knots
        np.minimum(trial, n_knots, out=trial)
        trial += before
        further &= reaches(values, flat.take(trial))
        reached += step * further
        step >>= 1
    return reached


@dataclass(frozen=True)
class RationalQuadraticSpline:
    """Increasing curves through ``(x[i, k], z[i, k])`` with slopes ``d[i, k]`` at the knots.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.maps import RationalQuadraticSpline
    >>> x, z = np.array([[0.0, 1.0, 3.0]]), np.array([[0.0, 2.0, 3.0]])
    >>> curve = RationalQuadraticSpline.through(x, z, steepest_tail=5.0)
    >>> curve(np.array([[0.0, 1.0, 5.0]]))
    array([[0., 2., 4.]])
    """

    x: Array
    z: Array
    d: Array

    @classmethod
    def through(cls, x: Array, z: Array, *, steepest_tail: float) -> RationalQuadraticSpline:
        """Choose slopes as the weighted harmonic mean of the secants at both sides of a knot.

        The straight lines beyond the outer knots have the slope of the outer secants, but at most
        `steepest_tail` times that of the curve as a whole.
        """
        widths = np.diff(x)
        secants = np.diff(z) / widths
        # Fritsch and Butland (1984)
        left, right = widths[:, :-1], widths[:, 1:]
        w_left, w_right = left + 2 * right, 2 * left + right
        inner = (w_left + w_right) / (w_left / secants[:, :-1] + w_right / secants[:, 1:])
        steepest = steepest_tail * (z[:, -1:] - z[:, :1]) / (x[:, -1:] - x[:, :1])
        ends = np.minimum(secants[:, :1], steepest), np.minimum(secants[:, -1:], steepest)
        return cls(x, z, np.concatenate([ends[0], inner, ends[1]], axis=1))

    def take(self, rows: np.ndarray) -> RationalQuadraticSpline:
        """Return the curves of some rows."""
        return RationalQuadraticSpline(self.x[rows], self.z[rows], self.d[rows])

    def _at(self, knots: Array, values: Array) -> Pieces:
        """Return the piece of each value; those outside get the end ones."""
        n_rows, n_knots = knots.shape
        if (knots[1:] == knots[:1]).all():
            k = np.searchsorted(knots[0, 1:-1], values, side="right")
        else:
            k = count_reached(knots[:, 1:-1], values)
        tables, rows = (self.x, self.z, self.d), np.arange(n_rows)[:, np.newaxis]
        if values.shape[1] < n_knots:
            k = k + rows * n_knots
            flat = [table.ravel() for table in tables]
            return Pieces.between(*((table.take(k), table.take(k + 1)) for table in flat))
        pieces = Pieces.between(*((table[:, :-1], table[:, 1:]) for table in tables))
        return pieces.take(k + rows * (n_knots - 1))

    def __call__(self, points: Array) -> Array:
        """Return the heights at `points` of shape (n_rows or 1, n_points)."""
        return self._at(self.x, points).value(points)

    def value_and_log_slope(self, points: Array) -> Pair:
        """Return the heights, and the logs of the slopes, at `points`."""
        height, slope = self._at(self.x, points).value_and_slope(points)
        return height, np.log(slope)

    def inverse(self, heights: Array) -> Array:
        """Return the points at which the curves reach `heights`."""
        return self._at(self.z, heights).inverse(heights)

    def inverse_and_slope(self, heights: Array) -> Pair:
        """Return the points at which the curves reach `heights`, and the slope of the inverse."""
        return self._at(self.z, heights).inverse_and_slope(heights)
