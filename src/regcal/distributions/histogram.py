"""Distributions given by bins and their masses."""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr

from regcal._validation import Array, as_float_array, check_finite
from regcal.distributions.base import Distribution
from regcal.distributions.clipped import Bounded
from regcal.distributions.primitives import outermost

# Where closed bins hold next to nothing, an open one decays over a thousand times their reach; and
# no faster than what the smallest number lets one tell.
_SMALLEST_FALL, _LARGEST_FALL = 1e-3, 700.0


class Histogram(Bounded):
    """Bins with masses, uniform inside each bin, as tabular foundation models give them.

    Parameters
    ----------
    edges : array-like of shape (n_bins + 1,) or (n_rows, n_bins + 1)
        Strictly increasing. The first may be -inf and the last inf: such an open bin decays
        exponentially, at the rate at which what lies beyond an edge has fallen, on average, from
        one end of the closed bins to the other. For survival times that is the mean hazard. The
        first two may be equal, and the last two, in all rows alike: such a bin is a point mass at
        that end.
    masses : array-like of shape (n_rows, n_bins)
        Probabilities of the bins, summing to 1 in each row.

    Examples
    --------
    >>> from regcal import Histogram
    >>> dist = Histogram([0.0, 1.0, 3.0], [[0.5, 0.5], [0.2, 0.8]])
    >>> dist.cdf(2.0)
    array([0.75, 0.6 ])
    >>> dist.pdf([[0.5, 2.0]])
    array([[0.5 , 0.25],
           [0.2 , 0.4 ]])
    >>> Histogram([0.0, 0.0, 1.0, 3.0], [[0.4, 0.4, 0.2]]).mass(0.0)  # 40 % without rain
    array([0.4])
    >>> alive = Histogram([0.0, 2.0, 5.0, float("inf")], [[0.2, 0.3, 0.5]])
    >>> alive.sf([[5.0, 10.0]])  # half die in 5 years, and half of the others in 5 more
    array([[0.5 , 0.25]])
    """

    _row_fields = ("masses", "edges", "_below", "_above")

    def __init__(self, edges: ArrayLike, masses: ArrayLike) -> None:
        self.masses = _checked_masses(masses)
        n_rows, n_bins = self.masses.shape
        array = _shaped_edges(edges, n_rows, n_bins)
        self.low = _end(array[:, 0], array[:, 1], -np.inf)
        self.high = _end(array[:, -1], array[:, -2], np.inf)
        self.edges = _checked_edges(_without_points(array, self.low, self.high))
        self._prepare()

    @cached_property
    def latent(self) -> Bins:
        """The bins; those without width are open."""
        return Bins(self.edges, self.masses, self._below, self._above)

    def _prepare(self) -> None:
        below = np.cumsum(self.masses, axis=1)
        above = np.cumsum(self.masses[:, ::-1], axis=1)[:, ::-1]
        zero = np.zeros((len(self.masses), 1))
        self._below = np.concatenate([zero, below[:, :-1]], axis=1)
        self._above = np.concatenate([above[:, 1:], zero], axis=1)

    def __len__(self) -> int:
        return len(self.masses)

    def _take(self, rows: np.ndarray) -> Self:
        part = object.__new__(type(self))
        part.masses = self.masses[rows]
        part.edges = self.edges if len(self.edges) == 1 else self.edges[rows]
        part._below, part._above = self._below[rows], self._above[rows]
        part.low, part.high = self.low, self.high
        return part


class Bins(Distribution):
    """Bins with masses, uniform inside each bin; outer ones may be open.

    Parameters
    ----------
    edges : ndarray of shape (1 or n_rows, n_bins + 1)
    masses : ndarray of shape (n_rows, n_bins)
    below, above : ndarray of shape (n_rows, n_bins)
        Probabilities below and above each bin.
    """

    _row_fields = ("edges", "masses", "_below", "_above")

    def __init__(self, edges: Array, masses: Array, below: Array, above: Array) -> None:
        self.edges, self.masses = edges, masses
        self._below, self._above = below, above

    def __len__(self) -> int:
        return len(self.masses)

    def _take(self, rows: np.ndarray) -> Self:
        edges = self.edges if len(self.edges) == 1 else self.edges[rows]
        return type(self)(edges, self.masses[rows], self._below[rows], self._above[rows])

    def _locate(self, points: Array) -> np.ndarray:
        """Return the bin of each point; those outside get the end bins."""
        bins = np.zeros((len(self), points.shape[1]), dtype=np.intp)
        for b in range(1, self.edges.shape[1] - 1):
            bins += points > self.edges[:, b : b + 1]
        return bins

    def _at(self, table: Array, bins: np.ndarray) -> Array:
        table = np.broadcast_to(table, (len(self), table.shape[1]))
        return np.take_along_axis(table, bins, axis=1)

    def _bin_geometry(self) -> tuple[Array, Array]:
        """Return the finite anchor and the width (or decay scale) of each bin."""
        left, right = self.edges[:, :-1], self.edges[:, 1:]
        low, high = np.isinf(left[0, 0]), np.isinf(right[0, -1])
        if not (low or high):
            return left, right - left
        left, right = (np.repeat(e, len(self) // len(e), axis=0) for e in (left, right))
        closed = slice(int(low), self.masses.shape[1] - int(high))
        reach = right[:, closed][:, -1] - left[:, closed][:, 0]
        inside = self.masses[:, closed].sum(axis=1)
        if low:
            left[:, 0] = right[:, 0] - reach / _log_fall(inside, self.masses[:, 0])
        if high:
            right[:, -1] = left[:, -1] + reach / _log_fall(inside, self.masses[:, -1])
        return left, right - left

    def _log_shares(self, points: Array, bins: np.ndarray) -> tuple[Array, Array, Array]:
        """Return log shares of the point's bin below and above it, and log density within it."""
        anchor, width = (self._at(part, bins) for part in self._bin_geometry())
        points = np.broadcast_to(points, bins.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip((points - anchor) / width, 0.0, 1.0)
            log_below, log_above = np.log(share), np.log1p(-share)
            outside = (points < anchor) | (points > anchor + width)
            log_density = np.where(outside, -np.inf, -np.log(width))
            if np.isinf(self.edges[0, 0]):
                reach = (points - anchor) / width - 1.0
                open_low = bins == 0
                log_below = np.where(open_low, reach, log_below)
                log_above = np.where(open_low, np.log(-np.expm1(np.minimum(reach, 0))), log_above)
                log_density = np.where(open_low, reach - np.log(width), log_density)
            if np.isinf(self.edges[0, -1]):
                reach = (anchor - points) / width
                open_high = bins == self.masses.shape[1] - 1
                log_above = np.where(open_high, reach, log_above)
                log_below = np.where(open_high, np.log(-np.expm1(np.minimum(reach, 0))), log_below)
                log_density = np.where(open_high, reach - np.log(width), log_density)
        return log_below, log_above, log_density

    def _logcdf(self, points: Array) -> Array:
        bins = self._locate(points)
        log_below, _, _ = self._log_shares(points, bins)
        return self._log_sum(self._below, bins, log_below, last=-1)

    def _logsf(self, points: Array) -> Array:
        bins = self._locate(points)
        _, log_above, _ = self._log_shares(points, bins)
        return self._log_sum(self._above, bins, log_above, last=0)

    def _log_sum(self, outer: Array, bins: np.ndarray, log_share: Array, last: int) -> Array:
        """Return the log of the mass of outer bins and of a share of the own one."""
        beyond, mass = self._at(outer, bins), self._at(self.masses, bins)
        # masses that add up to next to 1, in the same order, are a whole at the last edge
        whole = outer[:, last] + self.masses[:, last]
        with np.errstate(divide="ignore"):
            several = np.log(beyond + mass * np.exp(log_share))
            logs = np.where(beyond > 0, several, np.log(mass) + log_share)
        return np.minimum(logs - np.log(whole)[:, np.newaxis], 0.0)

    def _logpdf(self, points: Array) -> Array:
        bins = self._locate(points)
        _, _, log_density = self._log_shares(points, bins)
        with np.errstate(divide="ignore"):
            return np.log(self._at(self.masses, bins)) + log_density

    def _ppf(self, levels: Array) -> Array:
        with np.errstate(divide="ignore"):
            return self._quantile(levels, 1.0 - levels, np.log(levels), np.log1p(-levels))

    def _from_probit(self, probits: Array) -> Array:
        lower, upper = log_ndtr(probits), log_ndtr(-probits)
        return self._quantile(ndtr(probits), ndtr(-probits), lower, upper)

    def _quantile(self, lower: Array, upper: Array, log_lower: Array, log_upper: Array) -> Array:
        """Return the points with the given probabilities below and above them.

        Open bins go by logarithms: far out the probabilities themselves are 0.
        """
        shape = (len(self), lower.shape[1])
        lower, upper = np.broadcast_to(lower, shape), np.broadcast_to(upper, shape)
        bins = self._bins_of(lower, upper)
        anchor, width = (self._at(part, bins) for part in self._bin_geometry())
        mass = self._at(self.masses, bins)
        with np.errstate(divide="ignore", invalid="ignore"):
            below = np.clip((lower - self._at(self._below, bins)) / mass, 0.0, 1.0)
            above = np.clip((upper - self._at(self._above, bins)) / mass, 0.0, 1.0)
            reach = np.where(below < 0.5, below, 1.0 - above)
            if np.isinf(self.edges[0, 0]):
                log_below = np.minimum(log_lower - np.log(mass), 0.0)
                reach = np.where(bins == 0, 1.0 + log_below, reach)
            if np.isinf(self.edges[0, -1]):
                log_above = np.minimum(log_upper - np.log(mass), 0.0)
                reach = np.where(bins == self.masses.shape[1] - 1, -log_above, reach)
        return anchor + width * reach

    def _bins_of(self, lower: Array, upper: Array) -> np.ndarray:
        """Return the bin of each level, always one that has mass."""
        bins = np.zeros(lower.shape, dtype=np.intp)
        for b in range(1, self.masses.shape[1]):
            start, rest = self._below[:, b : b + 1], self._above[:, b - 1 : b]
            bins += np.where(start < 0.5, lower > start, upper < rest)
        return np.clip(bins, *outermost(self.masses > 0))

    def _kinks(self) -> Array:
        anchor, width = self._bin_geometry()
        return np.concatenate([anchor, anchor[:, -1:] + width[:, -1:]], axis=1)


def _log_fall(inside: Array, beyond: Array) -> Array:
    """Return the log of how many times less lies beyond the closed bins than from their start."""
    times = np.divide(inside, beyond, out=np.full(len(inside), np.inf), where=beyond > 0)
    return np.clip(np.log1p(times), _SMALLEST_FALL, _LARGEST_FALL)


def _checked_masses(masses: ArrayLike) -> Array:
    array = np.atleast_2d(as_float_array(masses, "masses"))
    if array.ndim != 2:
        msg = f"masses must be (n_rows, n_bins), got shape {array.shape}."
        raise ValueError(msg)
    check_finite(array, "masses")
    if (array < 0).any():
        row = int(np.argwhere(array < 0)[0][0])
        msg = f"masses must not be negative, row {row} has {array[row].min()}."
        raise ValueError(msg)
    totals = array.sum(axis=1)
    wrong = np.abs(totals - 1.0) > 1e-6
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        msg = (
            f"masses must sum to 1 in each row, row {row} sums to {totals[row]:.6g}. "
            "Divide by masses.sum(axis=1, keepdims=True)."
        )
        raise ValueError(msg)
    return array / totals[:, np.newaxis]


def _shaped_edges(edges: ArrayLike, n_rows: int, n_bins: int) -> Array:
    array = np.atleast_2d(as_float_array(edges, "edges"))
    if array.ndim != 2 or array.shape[1] != n_bins + 1 or array.shape[0] not in (1, n_rows):
        msg = (
            f"Got edges of shape {array.shape} for masses of shape ({n_rows}, {n_bins}). "
            f"Pass {n_bins + 1} edges, shared or one set per row."
        )
        raise ValueError(msg)
    return array


def _end(outer: Array, inner: Array, none: float) -> float:
    """Return where the outer bin is a point, the same in all rows, or that there is none."""
    points = np.isfinite(outer) & (outer == inner)
    if not points.any():
        return none
    if not points.all() or np.ptp(outer) > 0:
        msg = (
            f"The outer bin is the point {outer[points][0]:g} in {int(points.sum())} of "
            f"{len(outer)} rows. A point mass must be at the same place in all rows: give the "
            "others a bin without width there too, with a mass of 0."
        )
        raise ValueError(msg)
    return float(outer[0])


def _without_points(edges: Array, low: float, high: float) -> Array:
    """Return edges with open bins in place of points."""
    open_ended = edges.copy()
    if np.isfinite(low):
        open_ended[:, 0] = -np.inf
    if np.isfinite(high):
        open_ended[:, -1] = np.inf
    return open_ended


def _checked_edges(array: Array) -> Array:
    check_finite(array[:, 1:-1], "inner edges")
    if np.isnan(array).any() or (array[:, 0] == np.inf).any() or (array[:, -1] == -np.inf).any():
        msg = "The outer edges must be finite, or -inf for the first and inf for the last."
        raise ValueError(msg)
    for column in (0, -1):
        infinite = np.isinf(array[:, column])
        if infinite.any() and not infinite.all():
            msg = "An outer edge must be infinite in all rows or in none."
            raise ValueError(msg)
    if (np.diff(array) <= 0).any():
        row = int(np.argwhere(np.diff(array) <= 0)[0][0])
        msg = f"edges must be strictly increasing, row {row} is not. Sort and merge equal edges."
        raise ValueError(msg)
    n_finite = int(np.isfinite(array[0]).sum())
    if n_finite < 2:
        msg = "At least two edges must be finite, otherwise no bin has a width."
        raise ValueError(msg)
    return array
