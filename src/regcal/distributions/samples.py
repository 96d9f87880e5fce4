"""Distributions given by draws: ensembles, MCMC, simulation."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from regcal._caching import WithoutCaches
from regcal._validation import Array, as_float_array, check_finite, check_positive
from regcal.distributions._kernel_table import KernelTable
from regcal.distributions._kernels import BoundedKernels, Kernels
from regcal.distributions.base import (
    BLOCK_ELEMENTS,
    Distribution,
    ProbitDistribution,
)
from regcal.distributions.clipped import Bounded
from regcal.distributions.reading import Reading, warn_of_values_beyond
from regcal.ends import find_ends_of_draws, given_ends

# From so many kernels of a row on, a table is formed instead: one costs as much as one to some two
# times so many (benchmarks/draws.py, "a table pays"), and is used again.
_KERNELS_PER_TABLE = 2**13

# A quantile is a search, and costs about as many sums (the same table: it pays from 250 to 640
# quantiles times draws on).
_SUMS_PER_QUANTILE = 14

# The table of a batch with up to so many rows is kept: at most 117 MB.
_KEPT_ROWS = 2**13

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

    Attributes
    ----------
    reading : Reading
        What rows take from each other: ends that were found, and the usual bandwidth. Calibrators
        remember it of the rows they have learnt from, and read new draws alike.

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

    # files from before there were readings have none
    reading = Reading("draws")
    _told = True, True

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
        ends = given_ends(support)
        self._told = ends is not None, bandwidth is not None
        self.low, self.high = ends or find_ends_of_draws(self.draws)
        own = self._silverman() if bandwidth is None else self._checked_bandwidths(bandwidth)
        self.reading = Reading.of("draws", (self.low, self.high), self.draws, own)
        self.bandwidth = self._blended(own) if bandwidth is None else own
        self._work_per_point = min(self.draws.shape[1], _WORK_PER_POINT)

    def _checked_bandwidths(self, bandwidth: ArrayLike) -> Array:
        given = check_finite(as_float_array(bandwidth, "bandwidth"), "bandwidth")
        given = check_positive(np.atleast_1d(given), "bandwidth")
        if given.ndim != 1 or len(given) not in (1, len(self.draws)):
            msg = (
                f"Got {given.size} bandwidths for {len(self.draws)} rows. "
                "Pass one number, or one per row."
            )
            raise ValueError(msg)
        return np.broadcast_to(given, len(self.draws)).copy()

    def _silverman(self) -> Array:
        """Return the bandwidth that each row tells by itself, 0 where it tells none."""
        seen = np.clip(self.draws, self.low, self.high)
        return silverman(seen) if self._open else silverman_between(seen, self.low, self.high)

    def _blended(self, own: Array) -> Array:
        """Return bandwidths with the usual one; 0 if all rows lie on the ends, unsmoothed."""
        known, usual = own > 0, self.reading.spread
        if usual > 0:
            # draws at an end tell nothing of the spread; by rows alone, two draws that happen to
            # be close make spikes (RainIbk, mean log score: -14.9 instead of -5.8)
            share = 0.0 if self._open else 1.0 - self._inside(self.draws).mean(axis=1)
            return np.where(known, (1.0 - share) * own + share * usual, usual)
        if self._inside(self.draws[~known]).any():
            first = self.draws[0, 0]
            msg = (
                f"The draws agree in all {len(own)} rows, as in the first on {first:g}, which "
                "leaves no spread: this is a point forecast. Wrap the model in "
                "regcal.NormalResidualRegressor. Pass bandwidth=, a positive number, to smooth it, "
                f"or support=({first:g}, None) if outcomes pile up there."
            )
            raise ValueError(msg)
        return own

    def read(self, reading: Reading) -> Self:
        """Return the same draws, read as others were; what was given with them stays.

        Parameters
        ----------
        reading : Reading
            The ``reading`` of other draws.

        Returns
        -------
        Samples
        """
        if reading == self.reading or all(self._told):
            return self
        again = copy.copy(self)
        ends_told, bandwidth_told = self._told
        if not ends_told:
            again.low, again.high = reading.low, reading.high
            warn_of_values_beyond(self.draws, reading, "draws")
        again.reading = replace(reading, low=again.low, high=again.high)
        plain = self._open and again._open and bool((np.ptp(self.draws, axis=1) > 0).all())
        if not (plain or bandwidth_told):
            again.bandwidth = again._blended(again._silverman())
        elif "latent" in vars(self) and plain:
            vars(again)["latent"] = self.latent
        return again

    @cached_property
    def latent(self) -> SmoothedDraws:
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
        part.reading, part._told = self.reading, self._told
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

    def __init__(self, kernels: Kernels) -> None:
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
    def of(cls, kernels: Kernels) -> SmoothedDraws:
        """Return all rows of kernels."""
        return cls(SharedTable(kernels), np.arange(len(kernels)))

    @cached_property
    def kernels(self) -> Kernels:
        """The kernels of the rows."""
        return self.table.kernels[self.rows]

    @cached_property
    def curves(self) -> KernelCurves:
        """The same distributions, tabulated."""
        return KernelCurves(self.kernels, self.table.of(self.rows))

    def __len__(self) -> int:
        return len(self.rows)

    def _take(self, rows: np.ndarray) -> SmoothedDraws:
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

    def __init__(self, kernels: Kernels, table: KernelTable) -> None:
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

    def _sums(self, points: Array, known: np.ndarray) -> Iterator[tuple[Places, Array, Kernels]]:
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


def _in_blocks(kernels: Kernels, wanted: np.ndarray) -> Iterator[tuple[Places, Kernels]]:
    """Yield rows and columns of what is wanted, some at a time, and the kernels of each."""
    rows, columns = np.nonzero(wanted)
    block = max(1, BLOCK_ELEMENTS // kernels._work_per_point)
    for start in range(0, len(rows), block):
        some = slice(start, start + block)
        yield (rows[some], columns[some]), kernels._take(rows[some])
