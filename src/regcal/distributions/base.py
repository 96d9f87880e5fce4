"""The base class of all batches of univariate predictive distributions.

A subclass describes itself either on the probability scale (`_logcdf`, `_logsf`, `_logpdf`) or on
the probit scale (`ProbitDistribution`: ``z(t) = Phi^-1(cdf(t))``, its log slope and its inverse).
Everything else is derived, by the underscored methods of `primitives`. The public ones here apply
the shape rule and keep memory bounded.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri

from regcal._inspection import notebook_card
from regcal._random import RandomState, as_generator
from regcal._validation import Array, as_float_array, check_coverage, refuse_masked
from regcal.distributions.primitives import (
    FAR_TAIL,
    LOG_SQRT_2PI,
    Primitives,
    log_normal_density,
    mass_between,
    signed_tails,
)
from regcal.maps.members import Members

# Elements of a temporary array: 2**16 doubles are 512 kB, which stay in the cache.
BLOCK_ELEMENTS = 2**16

# Blocks of rows to integrate over are larger, up to so many rows and points: an integral takes a
# hundred steps, whose cost beside arithmetic rows share. benchmarks/latency.py, averages of three,
# Quantiles: with half of it the CRPS of stack takes 4.6 instead of 3.6 times the CDF, that of
# e-beta 6.3 instead of 5.1. Larger ones leave the cache: with blocks of 256 rows instead of 128,
# that of scale takes 6.6 instead of 4.9.
_FEW_ROWS, _FEW_POINTS = 256, 40_000

# Up to so many rows are integrated over at once without counting their panels, which takes 3 % of
# the time that a mean of one row of an averaged stack does.
_ONE_BLOCK = 8


class Distribution(Primitives):
    """A batch of univariate predictive distributions, one per row.

    Points follow one rule in every method: a scalar is the same point for all rows, a 1-D array
    is one point per row, a 2-D array is rows × points, and ``(1, K)`` is a grid that all rows
    share.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> dist = Normal([0.0, 1.0], [1.0, 1.0])
    >>> len(dist), dist[1:].mean()
    (2, array([1.]))
    >>> dist.cdf(0.0).round(2)  # the same point for all rows
    array([0.5 , 0.16])
    >>> dist.cdf([0.0, 1.0])  # one point per row
    array([0.5, 0.5])
    >>> dist.cdf(np.array([[0.0, 1.0]])).round(2)  # a grid for all rows
    array([[0.5 , 0.84],
           [0.16, 0.5 ]])
    """

    # How many temporary values one point costs, for the memory budget.
    _work_per_point = 1

    # How many threads work on blocks of rows.
    _n_threads = 1

    # Attributes with an entry per row, for classes whose batches can be joined in one.
    _row_fields: tuple[str, ...] = ()

    @classmethod
    def _joint(cls, parts: Sequence[Any], members: Members) -> Distribution | None:
        """Return one batch that answers for the rows of parts of this class, if there is one."""
        return None

    def _row_work(self, n_points: int) -> int:
        """Return how many temporary values a row with so many points costs."""
        return n_points * self._work_per_point

    def _block_of(self, n_rows: int, n_points: int) -> int:
        """Return how many of the rows, with so many points, keep temporaries within the budget."""
        if n_rows == 1:
            return 1
        return max(1, BLOCK_ELEMENTS // max(1, self._row_work(n_points)))

    def __getitem__(self, key: Any) -> Self:
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if (start, stop, step) == (0, len(self), 1):
                return self  # all rows, with what is known of them already
            return self._take(np.arange(start, stop, step))
        refuse_masked(key, "rows")
        return self._take(np.atleast_1d(np.arange(len(self))[key]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join([*self._details(), f'rows={len(self)}'])})"

    def _repr_html_(self) -> str:
        return notebook_card(self)

    def _details(self) -> list[str]:
        """Return what tells this batch from others of its class, in a few words each."""
        return []

    def _kind(self) -> str:
        """Return the class with its details, for the text of a batch that is made of this one."""
        details = ", ".join(self._details())
        return f"{type(self).__name__}({details})" if details else type(self).__name__

    # ------------------------------------------------------------------------------ the shape rule

    def _as_points(self, points: ArrayLike, name: str = "points") -> tuple[Array, bool]:
        """Return points as (n_rows or 1, n_points), and whether to drop the points axis again."""
        array = as_float_array(points, name)
        if np.count_nonzero(np.isnan(array)):
            msg = f"{name} holds {int(np.isnan(array).sum())} NaN(s). Remove those rows first."
            raise ValueError(msg)
        if array.ndim == 0:
            return array.reshape(1, 1), True
        if array.ndim == 1 and len(array) == len(self):
            return array[:, np.newaxis], True
        if array.ndim == 2 and array.shape[0] in (1, len(self)):
            return array, False
        if array.ndim == 1:
            msg = (
                f"Got {len(array)} {name} for {len(self)} distributions. Pass one per "
                f"distribution, or a shared grid as a row: {name}[np.newaxis, :]."
            )
        else:
            msg = (
                f"Got {name} of shape {array.shape} for {len(self)} distributions. Pass a scalar, "
                f"one per distribution, ({len(self)}, K), or (1, K) for a shared grid."
            )
        raise ValueError(msg)

    def _as_levels(self, levels: ArrayLike) -> tuple[Array, bool]:
        array, flat = self._as_points(levels, "levels")
        if np.count_nonzero((array < 0) | (array > 1)):
            first = array[(array < 0) | (array > 1)][0]
            msg = f"levels must be probabilities between 0 and 1, got {first}. Write 90 % as 0.9."
            raise ValueError(msg)
        return array, flat

    def _evaluate(self, method: str, points: Array, flat: bool) -> Array:
        """Call a primitive in blocks of rows, so that temporaries stay within the budget."""
        n_rows, n_points = len(self), points.shape[1]
        if n_rows == 0:
            return np.empty(0) if flat else np.empty((0, n_points))
        block = self._block_of(n_rows, n_points)
        if block >= n_rows:
            values = getattr(self, method)(points)
            if values.shape != (n_rows, n_points):
                values = np.broadcast_to(values, (n_rows, n_points))
        else:
            values = np.empty((n_rows, n_points))

            def fill(rows: slice) -> None:
                part = points if len(points) == 1 else points[rows]
                values[rows] = getattr(self[rows], method)(part)

            self._each(fill, [slice(start, start + block) for start in range(0, n_rows, block)])
        values = values[:, 0] if flat else values
        return values if values.flags.writeable else values.copy()

    def _each(self, function: Callable[[slice], Any], blocks: Sequence[slice]) -> list[Any]:
        """Return what a function returns of each block of rows."""
        if self._n_threads == 1 or len(blocks) < 2:
            return list(map(function, blocks))
        with ThreadPoolExecutor(self._n_threads) as pool:
            return list(pool.map(function, blocks))

    # -------------------------------------------------------------------------------------- public

    def in_threads(self, n_jobs: int = -1) -> Self:
        """Return the same distributions, which answer for many rows in several threads.

        They share all arrays with these, and all numbers are the same. Blocks of rows are dealt to
        the threads, so that a few thousand rows gain nothing.

        Parameters
        ----------
        n_jobs : int, default=-1
            Number of threads, as joblib counts: -1 for as many as there are processors.

        Returns
        -------
        Distribution

        Examples
        --------
        >>> import numpy as np
        >>> from regcal import Normal
        >>> dist = Normal(np.zeros(10**6), 1.0)
        >>> bool((dist.in_threads(2).cdf(0.5) == dist.cdf(0.5)).all())
        True
        """
        return self._with_threads(effective_n_jobs(n_jobs))

    def _with_threads(self, count: int) -> Self:
        if count == self._n_threads:
            return self
        same = copy.copy(self)
        same._n_threads = count
        return same

    def cdf(self, points: ArrayLike) -> Array:
        """Return P(Y <= t)."""
        return self._evaluate("_cdf", *self._as_points(points))

    def sf(self, points: ArrayLike) -> Array:
        """Return P(Y > t), accurate in the upper tail."""
        return self._evaluate("_sf", *self._as_points(points))

    def logcdf(self, points: ArrayLike) -> Array:
        """Return log P(Y <= t), accurate in the far lower tail."""
        return self._evaluate("_logcdf", *self._as_points(points))

    def logsf(self, points: ArrayLike) -> Array:
        """Return log P(Y > t), accurate in the far upper tail."""
        return self._evaluate("_logsf", *self._as_points(points))

    def pdf(self, points: ArrayLike) -> Array:
        """Return the density; at a point mass, the mass."""
        return self._evaluate("_pdf", *self._as_points(points))

    def logpdf(self, points: ArrayLike) -> Array:
        """Return the log density, finite wherever it is positive; at a point mass, that of it."""
        return self._evaluate("_logpdf", *self._as_points(points))

    def mass(self, points: ArrayLike) -> Array:
        """Return P(Y = t): 0 but at point masses."""
        return np.exp(self._evaluate("_logmass", *self._as_points(points)))

    def probit(self, points: ArrayLike) -> Array:
        """Return the standard normal quantile of P(Y <= t), accurate in both far tails."""
        return self._evaluate("_probit", *self._as_points(points))

    def logslope(self, points: ArrayLike) -> Array:
        """Return the log of the derivative of `probit`."""
        return self._evaluate("_logslope", *self._as_points(points))

    def probit_and_logslope(self, y: Array) -> tuple[Array, Array]:
        """Return `probit` and `logslope` at checked points, one a row, at the cost of one."""
        points, n_rows = y[:, np.newaxis], len(y)
        z, logslope = np.empty((2, n_rows))
        block = self._block_of(n_rows, 1)
        for start in range(0, n_rows, block):
            rows = slice(start, start + block)
            part = self if block >= n_rows else self[rows]
            first, second = part._probit_and_logslope(points[rows])
            z[rows], logslope[rows] = first[:, 0], second[:, 0]
        return z, logslope

    def from_probit(self, probits: ArrayLike) -> Array:
        """Return the quantiles at standard normal quantiles, the inverse of `probit`."""
        return self._evaluate("_from_probit", *self._as_points(probits, "probits"))

    def ppf(self, levels: ArrayLike) -> Array:
        """Return quantiles: the points below which the given probabilities lie."""
        return self._evaluate("_ppf", *self._as_levels(levels))

    def isf(self, levels: ArrayLike) -> Array:
        """Return the points above which the given probabilities lie, accurate in the upper tail.

        ``isf(level)`` is ``ppf(1 - level)``, also where ``1 - level`` is rounded to 1.
        """
        shares, flat = self._as_levels(levels)
        return self._evaluate("_from_probit", -ndtri(shares), flat)

    def interval(self, coverage: float) -> tuple[Array, Array]:
        """Return the lower and upper ends of the central interval with this probability."""
        share = check_coverage(coverage)
        ends = self.ppf(np.array([[0.5 - share / 2, 0.5 + share / 2]]))
        return ends[:, 0], ends[:, 1]

    def prob(self, low: ArrayLike, high: ArrayLike) -> Array:
        """Return P(low < Y <= high), accurate in the tails."""
        lows, flat = self._as_points(low, "low")
        highs, flat_high = self._as_points(high, "high")
        lows, highs = np.broadcast_arrays(lows, highs)
        if (lows > highs).any():
            first = tuple(np.argwhere(lows > highs)[0])
            msg = (
                f"low must not exceed high, got low = {lows[first]} and high = {highs[first]}. "
                "Swap the two arguments."
            )
            raise ValueError(msg)
        both = np.stack([lows, highs], axis=-1).reshape(len(lows), -1)
        masses = self._evaluate("_pair_masses", both, False)[:, ::2]
        return masses[:, 0] if flat and flat_high else masses

    def _pair_masses(self, pairs: Array) -> Array:
        tails = self._signed_tail(pairs)
        return np.repeat(mass_between(tails[:, ::2], tails[:, 1::2]), 2, axis=1)

    def logprob(self, low: ArrayLike, high: ArrayLike) -> Array:
        """Return log P(low <= Y <= high) of one interval per row, ends included."""
        ends = [self._as_points(end, name)[0] for end, name in ((low, "low"), (high, "high"))]
        pairs = np.concatenate([np.broadcast_to(end, (len(self), 1)) for end in ends], axis=1)
        return self._evaluate("_logprob_of_pair", pairs, False)[:, 0]

    def _logprob_of_pair(self, pairs: Array) -> Array:
        between = self._log_mass_between(pairs[:, :1], pairs[:, 1:])
        return np.repeat(np.logaddexp(between, self._logmass(pairs[:, :1])), 2, axis=1)

    def mean(self) -> Array:
        """Return the expected value of each row."""
        return self._moments[0].copy()

    def var(self) -> Array:
        """Return the variance of each row."""
        return self._moments[1].copy()

    def std(self) -> Array:
        """Return the standard deviation of each row."""
        return np.sqrt(self.var())

    def median(self) -> Array:
        """Return the median of each row."""
        return self._evaluate("_ppf", np.full((1, 1), 0.5), True)

    def crps(self, y: ArrayLike) -> Array:
        """Return the continuous ranked probability score of one outcome per row."""
        return self.interval_crps(y, y)

    def interval_crps(
        self, low: ArrayLike, high: ArrayLike, start: float = -np.inf, end: float = np.inf
    ) -> Array:
        """Return the CRPS of outcomes known to lie in [low, high], over thresholds in a region.

        It is the integral over t of cdf(t)^2 below `low` and of sf(t)^2 above `high`, as far as t
        lies between `start` and `end`.
        """
        ends = [self._as_points(one, name)[0] for one, name in ((low, "low"), (high, "high"))]
        columns = [np.broadcast_to(column, (len(self), 1))[:, 0] for column in ends]
        columns += [np.full(len(self), float(limit)) for limit in (start, end)]

        def scores(rows: slice) -> Array:
            return self[rows]._crps(*(c[rows] for c in columns))

        parts = self._each(scores, self._integral_blocks())
        return np.concatenate(parts or [np.empty(0)])

    def sample(self, size: int = 1, random_state: Any = None) -> Array:
        """Draw `size` values per row, as an array of shape (n_rows, size)."""
        levels = as_generator(random_state).uniform(size=(len(self), check_size(size)))
        return self._evaluate("_ppf", levels, False)

    def rvs(
        self, size: int | tuple[int, ...] | None = None, random_state: RandomState = None
    ) -> Array:
        """Draw as scipy does: the values of `sample`, with the rows on the last axis.

        Parameters
        ----------
        size : tuple of int, optional
            Shape of the result, which ends with the number of rows; without, one draw per row.
        random_state : int, RandomState or Generator, optional

        Returns
        -------
        ndarray of shape `size`

        Examples
        --------
        >>> from regcal import Normal
        >>> dist = Normal([0.0, 100.0], [1.0, 1.0])
        >>> dist.rvs(random_state=0).shape, dist.rvs(size=(1000, 2), random_state=0).shape
        ((2,), (1000, 2))
        """
        n_rows = len(self)
        shape = (n_rows,) if size is None else tuple(np.atleast_1d(size).tolist())
        if shape[-1] != n_rows:
            msg = (
                f"size={size} does not end with the number of rows, which is {n_rows}. Pass "
                f"size=({size}, {n_rows}), or call sample({size}), which has a row of draws for "
                "each row."
                if isinstance(size, int | np.integer)
                else f"size={size} does not end with the number of rows, which is {n_rows}."
            )
            raise ValueError(msg)
        return self.sample(int(np.prod(shape[:-1])), random_state).T.reshape(shape)

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        parts = self._each(lambda rows: self[rows]._mean_and_var(), self._integral_blocks())
        mean, var = zip(*parts, strict=True) if parts else ([np.empty(0)], [np.empty(0)])
        return np.concatenate(mean), np.concatenate(var)

    def _n_panels(self) -> int:
        """Return about how many panels an integral over a row has."""
        kinks = None if self._explicit else self[:1]._kinks()
        return 64 + (0 if kinks is None else kinks.shape[1])

    def _integral_blocks(self) -> list[slice]:
        n_rows = len(self)
        if n_rows <= _ONE_BLOCK:
            return [slice(0, n_rows)] if n_rows else []
        n_points = 3 * self._n_panels()
        block = min(4 * self._block_of(n_rows, n_points), _FEW_ROWS, -(-_FEW_POINTS // n_points))
        return [slice(start, start + block) for start in range(0, n_rows, block)]


class ProbitDistribution(Distribution):
    """A distribution that knows its probit ``z(t)``, the log slope of it and its inverse."""

    @abstractmethod
    def _probit(self, points: Array) -> Array: ...

    @abstractmethod
    def _probit_and_logslope(self, points: Array) -> tuple[Array, Array]: ...

    def _logpdf(self, points: Array) -> Array:
        z, logslope = self._probit_and_logslope(points)
        return log_normal_density(z) + logslope

    def _cdf(self, points: Array) -> Array:
        return ndtr(self._probit(points))

    def _sf(self, points: Array) -> Array:
        return ndtr(-self._probit(points))

    def _logcdf(self, points: Array) -> Array:
        return log_ndtr(self._probit(points))

    def _logsf(self, points: Array) -> Array:
        return log_ndtr(-self._probit(points))

    def _signed_tail(self, points: Array) -> Array:
        return signed_tails(self._probit(points))


class SidedDistribution(Distribution):
    """A distribution that knows its cdf, sf and density better than its probit."""

    @abstractmethod
    def _sides_and_density(self, points: Array) -> Array: ...

    def _probit_and_logslope(self, points: Array) -> tuple[Array, Array]:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            lower, upper, density = self._sides_and_density(points)
            tail = np.minimum(lower, upper)
            z = np.copysign(ndtri(tail), lower - upper)
            # nothing is known of a slope that is not a number
            slope = np.fmax(np.log(density) + (0.5 * z * z + LOG_SQRT_2PI), -np.inf)
        far = tail < FAR_TAIL
        if np.count_nonzero(far):
            rows = np.flatnonzero(far.any(axis=1))
            own = points if len(points) == 1 else points[rows]
            z[rows], slope[rows] = self._take(rows)._far_probit_and_logslope(own)
        return z, slope


def checked_base(dist: Any) -> Distribution:
    """Return distributions that others are made of, or say what was passed instead."""
    if not isinstance(dist, Distribution):
        msg = (
            f"dist must be a Distribution, got {type(dist).__name__}. Pass one, such as "
            "regcal.Normal(loc, scale), or regcal.as_distribution of what a model returned."
        )
        raise TypeError(msg)
    return dist


def check_size(size: int) -> int:
    """Return a number of draws, or say that it is none."""
    if not isinstance(size, int | np.integer) or size < 0:
        msg = f"size must be a whole number of draws per row, got {size!r}."
        raise ValueError(msg)
    return int(size)
