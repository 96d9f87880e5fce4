"""Distributions given by draws: ensembles, MCMC, simulation."""

from collections.abc import Iterator
from functools import cached_property
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri_exp

from regcal._caching import WithoutCaches
from regcal._validation import Array, as_float_array, check_finite, check_positive
from regcal.distributions._kernel_table import KernelSum, KernelTable
from regcal.distributions._logs import log_sum
from regcal.distributions.base import (
    BLOCK_ELEMENTS,
    LOG_HALF,
    Distribution,
    ProbitDistribution,
    log_difference,
    log_normal_density,
)
from regcal.distributions.clipped import Bounded
from regcal.support import find_ends_of_draws, given_ends

# Below this probability the sum of tails is formed in log space.
_SMALL = 1e-200

# From so many kernels of a row on, a table is formed instead: one costs as much as one to some two
# times so many (benchmarks/draws.py, "a table pays"), and is used again.
_KERNELS_PER_TABLE = 2**13

# A quantile is a search, and costs about as many sums (the same table: it pays from 250 to 640
# quantiles times draws on).
_SUMS_PER_QUANTILE = 14

# The table of a batch with up to so many rows is kept: at most 117 MB.
_KEPT_ROWS = 2**13

# So many bandwidths beyond all draws, those further than some bandwidths from the outermost one add
# less than 1e-16 of the tail.
_FAR = 13.0
_FAR_REACH = 3.0

# Temporary values that a point of a table costs.
_WORK_PER_POINT = 1


Places = tuple[np.ndarray, np.ndarray]


class Samples(Bounded):
    """Draws from each row's distribution, smoothed by a normal kernel between ends.

    An end that draws pile up at, such as the 0 of rain, keeps its point mass: P(Y = end) is the
    share of a row's draws there, and the kernels of the other draws are cut off at the end. What
    holds none of a row's m draws, an end or all that is between, gets the share of the nearest
    draw's kernel that lies beyond, over m + 1: at most half a draw, and next to nothing far away.

    Parameters
    ----------
    draws : array-like of shape (n_rows, n_draws)
        At least two draws per row.
    bandwidth : float or array-like of shape (n_rows,), optional
        Standard deviation of the kernel. By default Silverman's rule per row:
        ``0.9 * min(std, IQR / 1.34) * n_draws ** -0.2``, with the standard deviation alone where
        the interquartile range is 0. A row whose draws are all equal takes the median of the
        other rows' bandwidths. Draws at an end count once in the rule, and a row moves towards
        that median by the share of its draws that are there.
    support : "auto", None or (low, high), default="auto"
        Ends of the support with a point mass; draws beyond them are at them. By default an end is
        the smallest (or largest) of all draws if at least 2 % of them and 5 draws are equal to it,
        5 times as many as to each of the next three values (or if it is the 0 of whole numbers),
        twice in at least two rows (in one, for 0). Repeats of a Markov chain and values that a
        forest takes from its training rows are no masses. None is the whole line.

    Examples
    --------
    >>> from regcal import Samples
    >>> dist = Samples([[1.0, 2.0, 3.0, 4.0], [5.0, 5.0, 6.0, 7.0]])
    >>> dist.mean()
    array([2.5 , 5.75])
    >>> rain = Samples([[0.0, 0.0, 0.0, 1.2], [0.0, 0.0, 0.4, 2.5], [3.1, 4.0, 4.2, 7.7]])
    >>> rain
    Samples(low=0, rows=3)
    >>> rain.mass(0.0).round(3), rain.cdf(-0.1)
    (array([0.75, 0.5 , 0.  ]), array([0., 0., 0.]))
    """

    _row_fields = ("draws", "bandwidth")

    def __init__(
        self, draws: ArrayLike, bandwidth: ArrayLike | None = None, *, support: Any = "auto"
    ) -> None:
        array = np.atleast_2d(as_float_array(draws, "draws"))
        if array.ndim != 2 or array.shape[1] < 2:
            msg = (
                f"Need at least two draws per row as (n_rows, n_draws), got shape {array.shape}. "
                "Transpose if rows and draws are swapped."
            )
            raise ValueError(msg)
        self.draws = check_finite(array, "draws")
        self.low, self.high = given_ends(support) or find_ends_of_draws(self.draws)
        self.bandwidth = self._bandwidths(bandwidth)
        self._work_per_point = min(self.draws.shape[1], _WORK_PER_POINT)

    def _bandwidths(self, bandwidth: ArrayLike | None) -> Array:
        if bandwidth is None:
            return self._usual_bandwidths()
        given = check_finite(as_float_array(bandwidth, "bandwidth"), "bandwidth")
        given = check_positive(np.atleast_1d(given), "bandwidth")
        if given.ndim != 1 or len(given) not in (1, len(self.draws)):
            msg = (
                f"Got {given.size} bandwidths for {len(self.draws)} rows. "
                "Pass one number, or one per row."
            )
            raise ValueError(msg)
        return np.broadcast_to(given, len(self.draws)).copy()

    def _usual_bandwidths(self) -> Array:
        """Return Silverman's rule; 0 if all rows lie on the ends, with nothing to be smoothed."""
        seen = np.clip(self.draws, self.low, self.high)
        own = silverman(seen) if self._open else silverman_between(seen, self.low, self.high)
        known = own > 0
        if known.any():
            usual = np.median(own[known])
            # draws at an end tell nothing of the spread; by rows alone, two draws that happen to
            # be close make spikes (RainIbk, mean log score: -14.9 instead of -5.8)
            share = 0.0 if self._open else 1.0 - self._inside(seen).mean(axis=1)
            return np.where(known, (1.0 - share) * own + share * usual, usual)
        if self._inside(seen).any():
            first = self.draws[0, 0]
            msg = (
                f"The draws agree in all {len(seen)} rows, as in the first on {first:g}, which "
                "leaves no spread: this is a point forecast. Wrap the model in "
                "regcal.NormalResidualRegressor. Pass bandwidth=, a positive number, to smooth it, "
                f"or support=({first:g}, None) if outcomes pile up there."
            )
            raise ValueError(msg)
        return own

    @cached_property
    def latent(self) -> "SmoothedDraws":
        """The smoothed draws; those at an end are spread beyond it."""
        if self._open:
            return SmoothedDraws.of(Kernels(np.sort(self.draws, axis=1), self.bandwidth))
        ends = self.low, self.high
        return SmoothedDraws.of(BoundedKernels.between(self.draws, self.bandwidth, *ends))

    def __len__(self) -> int:
        return len(self.draws)

    def _take(self, rows: np.ndarray) -> Self:
        part = object.__new__(type(self))
        part.draws, part.bandwidth = self.draws[rows], self.bandwidth[rows]
        part.low, part.high = self.low, self.high
        part._work_per_point = self._work_per_point
        if "latent" in vars(self):
            vars(part)["latent"] = self.latent._take(rows)
        return part

    def _mean_and_var(self) -> tuple[Array, Array]:
        kernels = self.latent.kernels
        if isinstance(kernels, BoundedKernels):
            return kernels.clipped_moments(self.low, self.high)
        return kernels._mean_and_var()


def silverman(draws: Array) -> Array:
    """Return the bandwidth of each row by Silverman's rule, 0 where all draws are equal."""
    quartiles = np.quantile(draws, [0.25, 0.75], axis=1)
    spread = _robust(draws.std(axis=1, ddof=1), quartiles[1] - quartiles[0])
    return np.where(np.ptp(draws, axis=1) > 0, 0.9 * spread * draws.shape[1] ** -0.2, 0.0)


def silverman_between(draws: Array, low: float, high: float) -> Array:
    """Return the same of the draws between two ends, and of each end that has draws, once."""
    draws = np.sort(draws, axis=1)
    start = np.maximum((draws <= low).sum(axis=1) - 1, 0)
    end = draws.shape[1] - 1 - np.maximum((draws >= high).sum(axis=1) - 1, 0)
    n = np.maximum(end - start + 1, 2)
    places = np.arange(draws.shape[1])
    used = (places >= start[:, np.newaxis]) & (places <= end[:, np.newaxis])
    mean = np.where(used, draws, 0.0).sum(axis=1) / n
    square = np.where(used, draws - mean[:, np.newaxis], 0.0) ** 2
    first, third = (_between(draws, start + share * (n - 1)) for share in (0.25, 0.75))
    spread = _robust(np.sqrt(square.sum(axis=1) / (n - 1)), third - first)
    return np.where(_at(draws, end) > _at(draws, start), 0.9 * spread * n**-0.2, 0.0)


def _robust(std: Array, quartile_range: Array) -> Array:
    robust = quartile_range / 1.34
    return np.where(robust > 0, np.minimum(std, robust), std)


def _at(draws: Array, places: np.ndarray) -> Array:
    places = np.clip(places, 0, draws.shape[1] - 1)
    return np.take_along_axis(draws, places[:, np.newaxis], axis=1)[:, 0]


def _between(draws: Array, places: Array) -> Array:
    """Return sorted draws at places that may lie between two of them."""
    whole = np.floor(places).astype(np.intp)
    below, above = _at(draws, whole), _at(draws, whole + 1)
    return below + (places - whole) * (above - below)


class SharedTable(WithoutCaches):
    """A table of kernels that is filled row by row, when rows are asked for.

    Parts of a batch share it, so that no row is tabulated twice.

    Parameters
    ----------
    kernels : Kernels
        Of all rows.
    """

    def __init__(self, kernels: "Kernels") -> None:
        self.kernels = kernels
        self._filled = np.zeros(len(kernels), dtype=bool)
        self._lock = Lock()

    @cached_property
    def _table(self) -> KernelTable:
        return KernelTable.empty(self.kernels.sums())

    def of(self, rows: np.ndarray) -> KernelTable:
        """Return the table of some rows."""
        with self._lock:
            table = self._table
        missing = np.unique(rows[~self._filled[rows]])
        if len(missing):  # another thread may fill them as well, with the same numbers
            table.take(missing).fill(self.kernels._take(missing).sums())
            self._filled[missing] = True
        return table.take(rows)


class SmoothedDraws(Distribution):
    """Kernels around draws: summed at a few points, and looked up in a table at many.

    Parameters
    ----------
    table : SharedTable
    rows : ndarray
        Numbers of the rows in the table.
    """

    def __init__(self, table: SharedTable, rows: np.ndarray) -> None:
        self.table, self.rows = table, rows

    @classmethod
    def of(cls, kernels: "Kernels") -> "SmoothedDraws":
        """Return all rows of kernels."""
        return cls(SharedTable(kernels), np.arange(len(kernels)))

    @cached_property
    def kernels(self) -> "Kernels":
        """The kernels of the rows."""
        return self.table.kernels[self.rows]

    @cached_property
    def curves(self) -> "KernelCurves":
        """The same distributions, tabulated."""
        return KernelCurves(self.kernels, self.table.of(self.rows))

    def __len__(self) -> int:
        return len(self.rows)

    def _take(self, rows: np.ndarray) -> "SmoothedDraws":
        if len(self.table.kernels) > _KEPT_ROWS:
            return SmoothedDraws.of(self.kernels._take(rows))
        return SmoothedDraws(self.table, self.rows[rows])

    def _row_work(self, n_points: int) -> int:
        if self._summed(n_points):
            return n_points * self._n_kernels
        return _WORK_PER_POINT * n_points

    def _summed(self, n_points: int) -> bool:
        return n_points * self._n_kernels < _KERNELS_PER_TABLE

    @property
    def _n_kernels(self) -> int:
        return self.table.kernels._work_per_point

    def _at(self, points: Array) -> Distribution:
        """Return what evaluates these points fastest."""
        return self.kernels if self._summed(points.shape[1]) else self.curves

    def _cdf(self, points: Array) -> Array:
        return self._at(points)._cdf(points)

    def _sf(self, points: Array) -> Array:
        return self._at(points)._sf(points)

    def _logcdf(self, points: Array) -> Array:
        return self._at(points)._logcdf(points)

    def _logsf(self, points: Array) -> Array:
        return self._at(points)._logsf(points)

    def _signed_tail(self, points: Array) -> Array:
        return self._at(points)._signed_tail(points)

    def _logpdf(self, points: Array) -> Array:
        return self._at(points)._logpdf(points)

    def _probit(self, points: Array) -> Array:
        return self._at(points)._probit(points)

    def _probit_and_logslope(self, points: Array) -> tuple[Array, Array]:
        return self._at(points)._probit_and_logslope(points)

    def _log_mass_between(self, low: Array, high: Array) -> Array:
        return self.kernels._log_mass_between(low, high)

    def _from_probit(self, probits: Array) -> Array:
        # one quantile goes the way of two, so that it is an end of an interval to the last digit
        n_sums = _SUMS_PER_QUANTILE * max(probits.shape[1], 2)
        return (self.kernels if self._summed(n_sums) else self.curves)._from_probit(probits)

    def _kinks(self) -> Array:
        return self.kernels._kinks()


class KernelCurves(ProbitDistribution):
    """Kernels around draws by a table of their probits, and by sums where it says nothing.

    Parameters
    ----------
    kernels : Kernels
    table : KernelTable
    """

    def __init__(self, kernels: "Kernels", table: KernelTable) -> None:
        self.kernels, self.table = kernels, table

    def __len__(self) -> int:
        return len(self.kernels)

    def _take(self, rows: np.ndarray) -> Self:
        return type(self)(self.kernels._take(rows), self.table.take(rows))

    def _probit(self, points: Array) -> Array:
        z, known = self.table.probit(points)
        for places, at, part in self._sums(points, known):
            z[places] = part._probit(at)[:, 0]
        return z

    def _probit_and_logslope(self, points: Array) -> tuple[Array, Array]:
        z, slope, known = self.table.probit_and_slope(points)
        logslope = np.log(np.where(known, slope, 1.0))
        for places, at, part in self._sums(points, known):
            found = part._probit_and_logslope(at)
            z[places], logslope[places] = (values[:, 0] for values in found)
        return z, logslope

    def _from_probit(self, probits: Array) -> Array:
        probits = np.broadcast_to(probits, (len(self), probits.shape[1]))
        t, known = self.table.inverse(probits)
        for places, part in _in_blocks(self.kernels, ~known):
            t[places] = part._from_probit(probits[places][:, np.newaxis])[:, 0]
        return t

    def _sums(self, points: Array, known: np.ndarray) -> Iterator[tuple[Places, Array, "Kernels"]]:
        """Yield rows and columns that the table does not know, their points, and kernels."""
        if known.all():
            return
        points = np.broadcast_to(points, known.shape)
        sides = self.kernels.beyond(points)
        for side in (-1, 0, 1):
            wanted = ~known & (sides == side)
            if wanted.any():
                kernels = self.kernels.outermost(side) if side else self.kernels
                for places, part in _in_blocks(kernels, wanted):
                    yield places, points[places][:, np.newaxis], part


def _in_blocks(kernels: "Kernels", wanted: np.ndarray) -> Iterator[tuple[Places, "Kernels"]]:
    """Yield rows and columns of what is wanted, some at a time, and the kernels of each."""
    rows, columns = np.nonzero(wanted)
    block = max(1, BLOCK_ELEMENTS // kernels._work_per_point)
    for start in range(0, len(rows), block):
        some = slice(start, start + block)
        yield (rows[some], columns[some]), kernels._take(rows[some])


class Kernels(Distribution):
    """Normal kernels around the draws of each row.

    Parameters
    ----------
    draws : ndarray of shape (n_rows, n_kernels)
        In increasing order.
    bandwidth : ndarray of shape (n_rows,)
        Standard deviations of the kernels.
    n_draws : int, optional
        How many draws there are, if these are some of them.
    """

    _row_fields: tuple[str, ...] = ("draws", "bandwidth")

    def __init__(self, draws: Array, bandwidth: Array, n_draws: int | None = None) -> None:
        self.draws, self.bandwidth = draws, bandwidth
        self.n_draws = n_draws or draws.shape[1]
        self._work_per_point = draws.shape[1]

    def __len__(self) -> int:
        return len(self.draws)

    def _take(self, rows: np.ndarray) -> Self:
        part = object.__new__(type(self))
        vars(part).update(self.__getstate__())
        for name in self._row_fields:
            setattr(part, name, getattr(self, name)[rows])
        return part

    def sums(self) -> KernelSum:
        """Return the kernels as they are tabulated."""
        none = np.zeros((len(self), 2))
        weights = np.full(self.draws.shape, 1.0 / self.n_draws)
        return KernelSum(self.draws, weights, self.bandwidth, none, none, (-np.inf, np.inf))

    def beyond(self, points: Array) -> np.ndarray:
        """Return -1 where points are so far below all draws that only the lowest count, 1 above."""
        far = _FAR * self.bandwidth[:, np.newaxis]
        above = (points > self.draws[:, -1:] + far).astype(np.intp)
        return above - (points < self.draws[:, :1] - far)

    def outermost(self, side: int) -> "Kernels":
        """Return the kernels that count far below all draws, or far above them."""
        near = _FAR_REACH * self.bandwidth
        if side < 0:
            count = (self.draws < (self.draws[:, 0] + near)[:, np.newaxis]).sum(axis=1).max()
            return self._columns(slice(int(count)))
        count = (self.draws > (self.draws[:, -1] - near)[:, np.newaxis]).sum(axis=1).max()
        return self._columns(slice(-int(count), None))

    def _columns(self, columns: slice) -> "Kernels":
        return Kernels(self.draws[:, columns], self.bandwidth, self.n_draws)

    def _standardised(self, points: Array) -> Array:
        """Return (point - draw) / bandwidth of shape (n_rows, n_points, n_draws)."""
        gaps = points[:, :, np.newaxis] - self.draws[:, np.newaxis, :]
        return gaps / self.bandwidth[:, np.newaxis, np.newaxis]

    def _cdf(self, points: Array) -> Array:
        return ndtr(self._standardised(points)).sum(axis=2) / self.n_draws

    def _sf(self, points: Array) -> Array:
        return ndtr(-self._standardised(points)).sum(axis=2) / self.n_draws

    def _logcdf(self, points: Array) -> Array:
        return self._log_mean_tail(self._standardised(points))

    def _logsf(self, points: Array) -> Array:
        return self._log_mean_tail(-self._standardised(points))

    def _log_mean_tail(self, z: Array) -> Array:
        probability = ndtr(z).sum(axis=2) / self.n_draws
        small = probability < _SMALL
        with np.errstate(divide="ignore"):
            logs = np.log(probability)
        if small.any():
            logs[small] = log_sum(log_ndtr(z[small]), axis=-1) - np.log(self.n_draws)
        return logs

    def _log_mass_between(self, low: Array, high: Array) -> Array:
        # a valley between draws is a far tail of each kernel
        masses = self._kernel_masses(low, high)
        return log_sum(masses, axis=2) - np.log(self.n_draws)

    def _kernel_masses(self, low: Array, high: Array) -> Array:
        """Return the log probability of each kernel between points."""
        ends = (self._standardised(t) for t in (low, high))
        return log_difference(*((log_ndtr(z), log_ndtr(-z)) for z in ends))

    def _logpdf(self, points: Array) -> Array:
        with np.errstate(invalid="ignore"):
            logs = log_sum(log_normal_density(self._standardised(points)), axis=2)
        logs = np.where(np.isinf(points), -np.inf, logs)
        return logs - np.log(self.n_draws * self.bandwidth)[:, np.newaxis]

    def _bracket(self, probits: Array) -> tuple[Array, Array]:
        shift = self.bandwidth[:, np.newaxis] * probits
        shift = np.where(np.isfinite(shift), shift, 0.0)
        return self.draws[:, :1] + shift, self.draws[:, -1:] + shift

    def _mean_and_var(self) -> tuple[Array, Array]:
        return self.draws.mean(axis=1), self.draws.var(axis=1) + self.bandwidth**2

    def _kinks(self) -> Array:
        # panels between order statistics, so that separate clusters of draws are resolved
        step = max(1, self.draws.shape[1] // 64)
        return self.draws[:, ::step]


class BoundedKernels(Kernels):
    """Weighted kernels, each cut off at both ends of its own interval.

    Those of draws are cut off at the ends of the support. What lies on an end is spread beyond it:
    half a kernel with the end as its centre.

    Parameters
    ----------
    draws : ndarray of shape (n_rows, n_kernels)
        Centres of the kernels.
    bandwidth : ndarray of shape (n_rows,)
    log_weights : ndarray of shape (n_rows, n_kernels)
        Of the kernels before they are cut off.
    lower, upper : ndarray of shape (n_kernels,)
        Between which the kernels are, those of all rows alike.
    """

    _row_fields = ("draws", "bandwidth", "log_weights")

    def __init__(
        self, draws: Array, bandwidth: Array, log_weights: Array, lower: Array, upper: Array
    ) -> None:
        super().__init__(draws, bandwidth)
        self.log_weights, self.lower, self.upper = log_weights, lower, upper

    @classmethod
    def between(cls, draws: Array, bandwidth: Array, low: float, high: float) -> "BoundedKernels":
        """Return what draws say between ends; with a bandwidth of 0 all of them are at ends."""
        draws = np.sort(np.clip(draws, low, high), axis=1)
        log_masses = _log_masses(draws, bandwidth, low, high)
        inside = (draws > low) & (draws < high)
        centres = inside | ~inside.any(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            log_shares = np.log(centres / centres.sum(axis=1, keepdims=True))
        draws = np.insert(draws, [0, draws.shape[1]], [low, high], axis=1)
        logs = [log_masses[:, :1], log_masses[:, 1:2] + log_shares, log_masses[:, 2:]]
        lower, upper = np.full((2, draws.shape[1]), [[low], [high]])
        lower[0], upper[0], lower[-1], upper[-1] = -np.inf, low, high, np.inf
        used = lower < upper  # there is nothing beyond an infinite end
        kernels = cls(
            draws[:, used],
            np.where(bandwidth > 0, bandwidth, 1.0),
            np.concatenate(logs, axis=1)[:, used],
            lower[used],
            upper[used],
        )
        kernels.log_weights -= kernels._kernel_masses(*np.array([[[-np.inf]], [[np.inf]]]))[:, 0]
        return kernels

    def _columns(self, columns: slice) -> "Kernels":
        parts = self.draws[:, columns], self.bandwidth, self.log_weights[:, columns]
        return BoundedKernels(*parts, self.lower[columns], self.upper[columns])

    def sums(self) -> KernelSum:
        """Return the kernels between the ends as they are tabulated."""
        low, high = self._ends_of_kernels
        ends = np.isfinite([low, high])
        inner = slice(int(ends[0]), self.draws.shape[1] - int(ends[1]))
        draws, weights = self.draws[:, inner], self._weights[:, inner]
        scale = self.bandwidth[:, np.newaxis]
        below = (weights * ndtr((low - draws) / scale)).sum(axis=1)
        above = (weights * ndtr((draws - high) / scale)).sum(axis=1)
        # half of the kernel around an end is spread beyond it
        masses = 0.5 * ends * self._weights[:, [0, -1]]
        cut_off = np.stack([below, above], axis=1)
        return KernelSum(draws, weights, self.bandwidth, cut_off, masses, (low, high))

    @property
    def _ends_of_kernels(self) -> tuple[float, float]:
        """The ends at which kernels of draws are cut off: the second is one, the first may not."""
        return float(self.lower[1]), float(self.upper[1])

    def _from_probit(self, probits: Array) -> Array:
        probits = np.broadcast_to(probits, (len(self), probits.shape[1]))
        points, beyond = self._beyond_ends(probits)
        inside = super()._from_probit(np.where(beyond, np.inf, probits))
        return np.where(beyond, points, inside)

    def _beyond_ends(self, probits: Array) -> tuple[Array, np.ndarray]:
        """Return quantiles beyond ends, on halves of kernels around them, and which are there."""
        points, beyond = np.zeros(probits.shape), np.zeros(probits.shape, dtype=bool)
        for end, column, sign in zip(self._ends_of_kernels, (0, -1), (1.0, -1.0), strict=True):
            if np.isfinite(end):
                share = log_ndtr(sign * probits) - self.log_weights[:, [column]]
                here = share < LOG_HALF
                own = end + sign * self.bandwidth[:, np.newaxis] * ndtri_exp(np.minimum(share, 0.0))
                points, beyond = np.where(here, own, points), beyond | here
        return points, beyond

    def _standardised(self, points: Array) -> Array:
        """Return (point - centre) / bandwidth, for the point of the interval that is nearest."""
        near = np.clip(points[:, :, np.newaxis], self.lower, self.upper)
        return (near - self.draws[:, np.newaxis, :]) / self.bandwidth[:, np.newaxis, np.newaxis]

    def _cdf(self, points: Array) -> Array:
        return self._tail(points, 1.0)

    def _sf(self, points: Array) -> Array:
        return self._tail(points, -1.0)

    def _logcdf(self, points: Array) -> Array:
        return self._log_tail(points, 1.0)

    def _logsf(self, points: Array) -> Array:
        return self._log_tail(points, -1.0)

    def _tail(self, points: Array, sign: float) -> Array:
        """Return P(Y <= t) for a positive sign and P(Y > t) for a negative one."""
        places = points, np.array([[-sign * np.inf]])
        here, start = (ndtr(sign * self._standardised(t)) for t in places)
        return np.minimum(((here - start) * self._weights[:, np.newaxis, :]).sum(axis=2), 1.0)

    @property
    def _weights(self) -> Array:
        return np.exp(self.log_weights)

    def _log_tail(self, points: Array, sign: float) -> Array:
        probability = self._tail(points, sign)
        small = probability < _SMALL
        with np.errstate(divide="ignore"):
            logs = np.log(probability)
        if small.any():
            end = np.array([[-sign * np.inf]])
            ends = (end, points) if sign > 0 else (points, end)
            logs = np.where(small, self._log_mass_between(*ends), logs)
        return logs

    def _log_mass_between(self, low: Array, high: Array) -> Array:
        masses = self._kernel_masses(low, high) + self.log_weights[:, np.newaxis, :]
        return np.minimum(log_sum(masses, axis=2), 0.0)

    def _logpdf(self, points: Array) -> Array:
        places = points[:, :, np.newaxis]
        within = (places >= self.lower) & (places <= self.upper)
        logs = self.log_weights[:, np.newaxis, :] + log_normal_density(self._standardised(points))
        logs = log_sum(np.where(within, logs, -np.inf), axis=2)
        return logs - np.log(self.bandwidth)[:, np.newaxis]

    def _mean_and_var(self) -> tuple[Array, Array]:
        return self._moments_of(self.lower, self.upper)

    def clipped_moments(self, low: float, high: float) -> tuple[Array, Array]:
        """Return mean and variance when what is spread beyond the ends is seen at them."""
        return self._moments_of(np.maximum(self.lower, low), np.minimum(self.upper, high))

    def _moments_of(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Return mean and variance with other intervals; one without width is a point mass."""
        scale = self.bandwidth[:, np.newaxis]
        start, end = ((side - self.draws) / scale for side in (self.lower, self.upper))
        masses = self._weights * (ndtr(end) - ndtr(start))
        spread = np.where(lower < upper, self._weights, 0.0)
        # E (Z; start < Z < end) and E (Z^2; start < Z < end) of a standard normal Z
        first = _density(start) - _density(end)
        second = ndtr(end) - ndtr(start) + _density(start, start) - _density(end, end)
        centre = self.draws.mean(axis=1)
        gaps = self.draws - centre[:, np.newaxis]
        shift = (masses * gaps + spread * scale * first).sum(axis=1)
        square = masses * gaps**2 + spread * (2.0 * gaps * scale * first + scale**2 * second)
        return centre + shift, square.sum(axis=1) - shift**2

    def _kinks(self) -> Array:
        return np.concatenate([super()._kinks(), self.draws[:, -1:]], axis=1)


def _density(z: Array, factor: Array | float = 1.0) -> Array:
    """Return the standard normal density times a factor, 0 at infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(z), factor * np.exp(log_normal_density(z)), 0.0)


def _log_masses(draws: Array, bandwidth: Array, low: float, high: float) -> Array:
    """Return log probabilities of the low end, of what is between, and of the high end.

    They are shares of the draws. What has none gets the share of the nearest draw's kernel that
    lies beyond, as if it were one of m + 1 draws: an outcome may be where no draw is, and how far
    the draws are from an end tells how rare that is.
    """
    n_draws = draws.shape[1]
    below, above = (draws <= low).sum(axis=1), (draws >= high).sum(axis=1)
    counts = np.stack([below, n_draws - below - above, above], axis=1)
    gaps = np.stack(
        [draws.min(axis=1) - low, np.zeros(len(draws)), high - draws.max(axis=1)], axis=1
    )
    scale = bandwidth[:, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = np.where(scale > 0, log_ndtr(-gaps / scale) - np.log(n_draws + 1), -np.inf)
        beyond = np.where(counts > 0, -np.inf, beyond)
        rest = np.log1p(-np.exp(beyond).sum(axis=1, keepdims=True))
        return np.where(counts > 0, np.log(counts / n_draws) + rest, beyond)
