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

# Chebyshev moments of the places in a box: 13 bandwidths out, where tails are 1e-38, the sum of
# kernels keeps eight digits, and twelve or more up to ten bandwidths out.
_N_MOMENTS = 24

# Values in a box through which the polynomial of the probit goes, the ends of the box included.
_N_VALUES = 14

# A polynomial whose last two coefficients are larger than this share of its smallest slope is not
# close enough to the probit.
_TOLERANCE = 1e-10

# Boxes beyond the outermost draws: there the probit is about 13, where integrals end.
_MARGIN = 13

# A kernel is all on one side of a box that is further away than this: in the outermost box, those
# within three bandwidths of the outermost draw count, and others add less than 1e-17 of its tail.
_REACH = 17

# Where the CDF is no tail, this is far enough, but for 1e-19 of a kernel.
_NEAR = 9

# Boxes of a row; of one whose draws spread over more of them, those around the median.
_MAX_BOXES = 128

# Rows that are tabulated at a time, so that temporary values stay bounded.
_BLOCK_ROWS = 128

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
        Draws in increasing order.
    bandwidth : ndarray of shape (n_rows,)
    cut_off : ndarray of shape (n_rows, 2)
        What is taken from the sums of CDFs and of their complements: the shares of the kernels
        beyond the low end, and beyond the high one.
    masses : ndarray of shape (n_rows, 2)
        What is added to them: the masses at the ends.
    ends : tuple of float
        The low and the high end, at which all kernels are cut off; maybe infinite.
    """

    draws: Array
    weights: Array
    bandwidth: Array
    cut_off: Array
    masses: Array
    ends: tuple[float, float]

    def block(self, rows: slice) -> "KernelSum":
        """Return some rows."""
        kernels = self.draws[rows], self.weights[rows], self.bandwidth[rows]
        return KernelSum(*kernels, self.cut_off[rows], self.masses[rows], self.ends)


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
    ends : tuple of float
        The low and the high end, beyond which it is not.
    """

    rows: np.ndarray
    start: Array
    width: Array
    edges: Array
    powers: Array
    holds: np.ndarray
    ends: tuple[float, float]

    @classmethod
    def empty(cls, kernels: KernelSum) -> "KernelTable":
        """Return a table of kernels that has yet to be filled."""
        n_rows = len(kernels.draws)
        start, n_boxes = _boxes(kernels)
        edges = np.empty((n_rows, n_boxes + 1))
        powers = np.empty((_N_VALUES, n_rows * n_boxes))
        holds = np.empty(n_rows * n_boxes, dtype=bool)
        parts = start, kernels.bandwidth, edges, powers, holds
        return cls(np.arange(n_rows), *parts, kernels.ends)

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
        return points, known & self._between_ends(points)

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
        return across, places, inside & self._between_ends(points) & self.holds.take(places)

    def _between_ends(self, points: Array) -> np.ndarray:
        low, high = self.ends
        return (points >= low) & (points <= high)

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
    lowest, highest = kernels.draws[:, 0], kernels.draws[:, -1]
    needed = np.ceil((highest - lowest) / width) + 2 * _MARGIN + 1
    n_boxes = int(min(needed.max(), _MAX_BOXES))
    middle = kernels.draws[:, kernels.draws.shape[1] // 2] - 0.5 * n_boxes * width
    start = np.where(needed <= n_boxes, lowest - _MARGIN * width, middle)
    low, high = kernels.ends
    end = low if np.isfinite(low) else high
    if np.isfinite(end):  # between two boxes, so that points beside it are in a box of their own
        start = end + np.floor((start - end) / width) * width
    return start, n_boxes


def _probits(kernels: KernelSum, start: Array, n_boxes: int) -> tuple[Array, np.ndarray]:
    """Return probits at the values of boxes, rows × boxes × values, and which boxes are known."""
    moments, outside = _moments(kernels, start, n_boxes)
    tails = _tails(moments) + outside[:, np.newaxis, :, np.newaxis]
    # a kernel outside of the boxes is taken to be all on one side
    known = np.ones((n_boxes, len(start)), dtype=bool)
    known[: _NEAR + 1] &= outside[0] == 0
    known[-_NEAR - 1 :] &= outside[1] == 0
    # a mass is at least what is cut off over the number of draws, so that digits are not lost
    tails += (kernels.masses - kernels.cut_off).T[:, np.newaxis, :, np.newaxis]
    lower, upper = tails
    probits = ndtri(np.maximum(np.minimum(lower, upper), 0.0))
    np.negative(probits, out=probits, where=lower >= upper)
    return probits.transpose(1, 0, 2), known.T


def _tails(moments: Array) -> Array:
    """Return sums of CDFs and of complements, 2 × boxes × rows × values, from moments of boxes."""
    n_boxes, n_rows, _ = moments.shape
    sums = np.zeros((n_boxes, n_rows, 2 * _N_VALUES))
    for shift, matrix in _interactions():
        if abs(shift) < n_boxes:
            first = max(-shift, 0)
            source = moments[first : first + n_boxes - abs(shift)]
            sums[first + shift : first + shift + len(source)] += source @ matrix
    tails = np.stack([sums[:, :, :_N_VALUES], sums[:, :, _N_VALUES:]])
    weights = moments[:, :, :1]
    tails[0, _REACH + 1 :] += np.cumsum(weights, axis=0)[: -_REACH - 1]
    tails[1, : -_REACH - 1] += np.cumsum(weights[::-1], axis=0)[::-1][_REACH + 1 :]
    return tails


def _moments(kernels: KernelSum, start: Array, n_boxes: int) -> tuple[Array, Array]:
    """Return Chebyshev moments, boxes × rows × moments, and weights below and above all boxes."""
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
    return moments[1:-1], moments[[0, -1], :, 0]


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
    """Return matrices from values to Chebyshev coefficients, and from them to slopes and powers."""
    fit = np.linalg.inv(chebyshev.chebvander(_value_places(), _N_VALUES - 1))
    slopes, powers = np.zeros((2, _N_VALUES, _N_VALUES))
    for k, unit in enumerate(np.eye(_N_VALUES)):
        slopes[k] = chebyshev.chebval(_value_places(), chebyshev.chebder(unit))
        powers[k, : k + 1] = chebyshev.cheb2poly(unit[: k + 1])
    return np.asarray(fit.T, dtype=np.float64), slopes, powers


def _polynomials(probits: Array, known: np.ndarray) -> tuple[Array, np.ndarray]:
    """Return coefficients of powers, powers × rows × boxes, and where they are the probit."""
    to_coefficients, to_slopes, to_powers = _interpolation()
    finite = np.asarray(np.isfinite(probits).all(axis=2))
    # from small coefficients to powers: from values, rounding would be multiplied by thousands
    coefficients = np.where(finite[:, :, np.newaxis], probits, 0.0) @ to_coefficients
    slope = (coefficients @ to_slopes).min(axis=2)
    holds = known & finite & (np.abs(coefficients[:, :, -2:]).max(axis=2) < _TOLERANCE * slope)
    return (coefficients @ to_powers).transpose(2, 0, 1), holds
