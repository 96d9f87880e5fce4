"""Sums of normal kernels around many draws, tabulated: the probit of their CDF, piece by piece.

A row's line is cut into boxes as wide as its bandwidth. What the draws of a box add to the CDF
elsewhere is a smooth function of their places in the box, so that a few Chebyshev moments of the
places tell it: the fast multipole method with Chebyshev interpolation (Fong and Darve, 2009).
The probit of the CDF then is a polynomial in each box. Where it is not, which the size of its
last coefficients tells, nothing is claimed, and the sum has to be formed.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import ndtr, ndtri

from regcal._validation import Array
from regcal.maps import count_reached

# Chebyshev moments of the places in a box: 14 bandwidths out, where tails are 1e-44, the sum of
# kernels keeps eight digits, and twelve or more up to ten bandwidths out.
_N_MOMENTS = 24

# Values in a box through which the polynomial of the probit goes, the ends of the box included.
_N_VALUES = 14

# A polynomial whose last two coefficients are larger than this share of its smallest slope is not
# close enough to the probit.
_TOLERANCE = 1e-10

# Boxes beyond the outermost draws: there the probit is about 14, and integrals end at 13.
_MARGIN = 14

# A kernel is all on one side of a box that is further away than this.
_REACH = 15

# A kernel is all on one side of a box that is further away, but for 1e-19 of it.
_NEAR = 9

# Boxes of a row; of one whose draws spread over more of them, those around the median.
_MAX_BOXES = 128

# Rows that are tabulated at a time, so that temporary values stay bounded.
_BLOCK_ROWS = 128

# Where a difference of sums is a share of them below this, it has lost too many digits.
_CANCELLED = 2e-5

# Newton's method ends after so many steps, or after one that is shorter than this share of a box:
# it squares errors.
_NEWTON_STEPS = 8
_LAST_STEP = 1e-7


@dataclass(frozen=True)
class KernelSum:
    """Weighted normal kernels, and what is added to their sums below and above a point.

    Parameters
    ----------
    draws, weights : ndarray of shape (n_rows, n_draws)
    bandwidth : ndarray of shape (n_rows,)
    below, above : ndarray of shape (n_rows,)
        What is taken from the sums of CDFs and of their complements: the shares of the kernels
        that have been cut off at either end.
    mass_below, mass_above : ndarray of shape (n_rows,)
        What is added: point masses at the ends.
    low, high : float
        Ends at which all kernels are cut off.
    """

    draws: Array
    weights: Array
    bandwidth: Array
    below: Array
    above: Array
    mass_below: Array
    mass_above: Array
    low: float = -np.inf
    high: float = np.inf

    def block(self, rows: slice) -> "KernelSum":
        """Return some rows."""
        parts = (self.draws, self.weights, self.bandwidth, self.below, self.above)
        masses = (self.mass_below, self.mass_above)
        return KernelSum(*(part[rows] for part in (*parts, *masses)), self.low, self.high)


@dataclass(frozen=True)
class KernelTable:
    """Probits of rows as polynomials in boxes, and where they hold.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,)
        Their numbers among the rows that were tabulated.
    start, width : ndarray of shape (n_tabulated,)
        Where the first box of each row begins, and how wide boxes are.
    edges : ndarray of shape (n_tabulated, n_boxes + 1)
        Probits between boxes, never decreasing.
    powers : ndarray of shape (n_powers, n_tabulated * n_boxes)
        Coefficients of ``2 * share - 1``, for the share of a box that is behind.
    holds : ndarray of shape (n_tabulated * n_boxes,)
        Whether the polynomial of a box is the probit.
    low, high : float
        Ends beyond which it is not.
    """

    rows: np.ndarray
    start: Array
    width: Array
    edges: Array
    powers: Array
    holds: np.ndarray
    low: float
    high: float

    @classmethod
    def empty(cls, kernels: KernelSum) -> "KernelTable":
        """Return a table of kernels that has yet to be filled."""
        n_rows = len(kernels.draws)
        start, n_boxes = _boxes(kernels)
        edges = np.empty((n_rows, n_boxes + 1))
        powers = np.empty((_N_VALUES, n_rows * n_boxes))
        holds = np.empty(n_rows * n_boxes, dtype=bool)
        parts = start, kernels.bandwidth, edges, powers, holds
        return cls(np.arange(n_rows), *parts, kernels.low, kernels.high)

    def fill(self, kernels: KernelSum) -> None:
        """Tabulate the kernels of these rows."""
        shape = len(self.start), self._n_boxes
        powers, holds = self.powers.reshape(_N_VALUES, *shape), self.holds.reshape(shape)
        for first in range(0, len(self.rows), _BLOCK_ROWS):
            block = slice(first, first + _BLOCK_ROWS)
            rows = self.rows[block]
            probits, known = _probits(kernels.block(block), self.start[rows], self._n_boxes)
            edges = np.concatenate([probits[:, :, 0], probits[:, -1:, -1]], axis=1)
            self.edges[rows] = np.maximum.accumulate(edges, axis=1)
            powers[:, rows], holds[rows] = _polynomials(probits, known)

    def take(self, rows: np.ndarray) -> "KernelTable":
        """Return some rows; what was tabulated is shared."""
        return replace(self, rows=self.rows[rows])

    @property
    def _n_boxes(self) -> int:
        return self.edges.shape[1] - 1

    def _places(self, boxes: np.ndarray) -> np.ndarray:
        """Return where the numbers of a box are, for boxes of shape (n_rows, n_points)."""
        places = np.clip(boxes, 0, self._n_boxes - 1)
        places += (self.rows * self._n_boxes)[:, np.newaxis]
        return places

    def probit(self, points: Array) -> tuple[Array, np.ndarray]:
        """Return probits at (n_rows or 1, n_points), and where they are known."""
        share, places, known = self._located(points)
        return self._value(share, places), known

    def probit_and_slope(self, points: Array) -> tuple[Array, Array, np.ndarray]:
        """Return probits, their derivatives, and where both are known."""
        share, places, known = self._located(points)
        probit, slope = self._value_and_slope(share, places)
        slope *= (2.0 / self.width[self.rows])[:, np.newaxis]
        return probit, slope, known

    def inverse(self, probits: Array) -> tuple[Array, np.ndarray]:
        """Return the points that have these probits, (n_rows, n_points), and where it is known."""
        edges = self.edges[self.rows]
        boxes = count_reached(edges, probits) - 1
        places = self._places(boxes)
        known = (boxes >= 0) & (boxes < self._n_boxes) & self.holds[places]
        share, step = np.zeros(probits.shape), np.zeros(probits.shape)
        for _ in range(_NEWTON_STEPS):
            value, slope = self._value_and_slope(share, places)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = np.where(known, (probits - value) / slope, 0.0)
            share += step
            np.clip(share, -1.0, 1.0, out=share)
            if np.abs(step).max(initial=0.0) < _LAST_STEP:
                break
        known &= np.abs(step) < _LAST_STEP
        row, boxes = self.rows, places - (self.rows * self._n_boxes)[:, np.newaxis]
        across = boxes + 0.5 * (share + 1.0)
        points = self.start[row, np.newaxis] + self.width[row, np.newaxis] * across
        return points, known & (points >= self.low) & (points <= self.high)

    def _located(self, points: Array) -> tuple[Array, np.ndarray, np.ndarray]:
        """Return the place in a box, from -1 to 1, where its numbers are, and if they hold."""
        across = points - self.start[self.rows, np.newaxis]
        across /= self.width[self.rows, np.newaxis]
        inside = (across >= 0) & (across < self._n_boxes)
        across[~inside] = 0.0
        boxes = across.astype(np.intp)
        across -= boxes
        across *= 2.0
        across -= 1.0
        places = self._places(boxes)
        inside &= (points >= self.low) & (points <= self.high)
        return across, places, inside & self.holds.take(places)

    def _value(self, share: Array, places: np.ndarray) -> Array:
        value = self.powers[-1].take(places)
        for power in self.powers[-2::-1]:
            value *= share
            value += power.take(places)
        return value

    def _value_and_slope(self, share: Array, places: np.ndarray) -> tuple[Array, Array]:
        value = self.powers[-1].take(places)
        slope = np.zeros(value.shape)
        for power in self.powers[-2::-1]:
            slope *= share
            slope += value
            value *= share
            value += power.take(places)
        return value, slope


def _boxes(kernels: KernelSum) -> tuple[Array, int]:
    """Return where the boxes of each row start, and how many there are."""
    width = kernels.bandwidth
    lowest, highest = kernels.draws.min(axis=1), kernels.draws.max(axis=1)
    needed = np.ceil((highest - lowest) / width) + 2 * _MARGIN + 1
    n_boxes = int(min(needed.max(), _MAX_BOXES))
    middle = np.median(kernels.draws, axis=1) - 0.5 * n_boxes * width
    start = np.where(needed <= n_boxes, lowest - _MARGIN * width, middle)
    end = kernels.low if np.isfinite(kernels.low) else kernels.high
    if np.isfinite(end):  # between two boxes, so that none has kernels that were cut off
        start = end + np.floor((start - end) / width) * width
    return start, n_boxes


def _probits(kernels: KernelSum, start: Array, n_boxes: int) -> tuple[Array, np.ndarray]:
    """Return probits at the values of boxes, rows × boxes × values, and which boxes are known."""
    moments, left, right = _moments(kernels, start, n_boxes)
    sums = np.zeros((n_boxes, len(start), 2 * _N_VALUES))
    for shift, matrix in _interactions():
        here, there = slice(max(shift, 0), n_boxes + min(shift, 0)), max(-shift, 0)
        if abs(shift) < n_boxes:
            source = moments[there : there + n_boxes - abs(shift)]
            sums[here] += source @ matrix
    total = moments[:, :, 0]
    far = np.zeros((2, n_boxes, len(start)))
    if n_boxes > _REACH + 1:
        far[0, _REACH + 1 :] = np.cumsum(total, axis=0)[: -_REACH - 1]
        far[1, : -_REACH - 1] = np.cumsum(total[::-1], axis=0)[::-1][_REACH + 1 :]
    lower = sums[:, :, :_N_VALUES] + (far[0] + (left - kernels.below))[:, :, np.newaxis]
    upper = sums[:, :, _N_VALUES:] + (far[1] + (right - kernels.above))[:, :, np.newaxis]
    lower += kernels.mass_below[:, np.newaxis]
    upper += kernels.mass_above[:, np.newaxis]
    smaller = np.where(lower < upper, lower, upper)
    probits = ndtri(np.maximum(smaller, 0.0))
    probits = np.where(lower < upper, probits, -probits)
    known = (lower >= _CANCELLED * kernels.below[:, np.newaxis]).all(axis=2)
    known &= (upper >= _CANCELLED * kernels.above[:, np.newaxis]).all(axis=2)
    # kernels outside of the boxes are taken to be all on one side
    known[: _NEAR + 1] &= left == 0
    known[-_NEAR - 1 :] &= right == 0
    return probits.transpose(1, 0, 2), known.T


def _moments(kernels: KernelSum, start: Array, n_boxes: int) -> tuple[Array, Array, Array]:
    """Return Chebyshev moments, boxes × rows × moments, and the weights left and right of boxes."""
    n_rows = len(start)
    across = (kernels.draws - start[:, np.newaxis]) / kernels.bandwidth[:, np.newaxis]
    boxes = np.floor(np.clip(across, -1.0, n_boxes)).astype(np.intp)
    place = 2.0 * (across - boxes) - 1.0
    place[(boxes < 0) | (boxes == n_boxes)] = 0.0
    numbers = ((boxes + 1) * n_rows + np.arange(n_rows)[:, np.newaxis]).ravel()
    moments = np.empty((n_boxes + 2, n_rows, _N_MOMENTS))
    last, current = place * kernels.weights, np.array(kernels.weights)
    place *= 2.0
    for k in range(_N_MOMENTS):
        summed = np.bincount(numbers, current.ravel(), (n_boxes + 2) * n_rows)
        moments[:, :, k] = summed.reshape(n_boxes + 2, n_rows)
        # T_(k + 1) = 2 x T_k - T_(k - 1), from T_0 = 1 and T_(-1) = x
        last, current = current, place * current - last
    return moments[1:-1], moments[0, :, 0], moments[-1, :, 0]


@cache
def _interactions() -> tuple[tuple[int, Array], ...]:
    """Return what moments of a box add to CDFs and complements some boxes on, per distance."""
    n_nodes = 2 * _N_MOMENTS
    nodes = chebyshev.chebpts1(n_nodes)
    # coefficients of the polynomial through values at the nodes
    fit = chebyshev.chebvander(nodes, _N_MOMENTS - 1).T * (2.0 / n_nodes)
    fit[0] *= 0.5
    found = []
    for shift in range(-_REACH, _REACH + 1):
        gaps = shift + 0.5 * (_value_places() - nodes[:, np.newaxis])
        found.append((shift, fit @ np.concatenate([ndtr(gaps), ndtr(-gaps)], axis=1)))
    return tuple(found)


def _value_places() -> Array:
    return chebyshev.chebpts2(_N_VALUES)


@cache
def _interpolation() -> tuple[Array, Array, Array]:
    """Return matrices from values to Chebyshev coefficients, slopes, and powers."""
    fit = np.linalg.inv(chebyshev.chebvander(_value_places(), _N_VALUES - 1))
    unit = np.eye(_N_VALUES)
    powers = np.zeros((_N_VALUES, _N_VALUES))
    slopes = np.zeros((_N_VALUES, _N_VALUES))
    for k in range(_N_VALUES):
        own = chebyshev.cheb2poly(unit[k])
        powers[: len(own), k] = own
        slopes[:, k] = chebyshev.chebval(_value_places(), chebyshev.chebder(unit[k]))
    return fit.T, (slopes @ fit).T, (powers @ fit).T


def _polynomials(probits: Array, known: np.ndarray) -> tuple[Array, np.ndarray]:
    """Return coefficients of powers, powers × rows × boxes, and where they are the probit."""
    to_coefficients, to_slopes, to_powers = _interpolation()
    finite = np.isfinite(probits).all(axis=2)
    probits = np.where(finite[:, :, np.newaxis], probits, 0.0)
    holds = known & finite
    slope = (probits @ to_slopes).min(axis=2)
    last = np.abs(probits @ to_coefficients[:, -2:]).max(axis=2)
    holds &= last < _TOLERANCE * slope
    return (probits @ to_powers).transpose(2, 0, 1), holds
