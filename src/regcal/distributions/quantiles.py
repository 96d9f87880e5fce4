"""Distributions given by some of their quantiles."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from regcal._validation import Array, as_float_array, check_finite, check_increasing
from regcal.distributions.base import ProbitDistribution
from regcal.distributions.clipped import Bounded
from regcal.distributions.reading import Reading, warn_of_values_beyond
from regcal.ends import find_ends_of_quantiles, given_ends
from regcal.maps import RationalQuadraticSpline

# Equal neighbours are moved apart by this share of their row's range.
_SMALLEST_GAP = 1e-4

# A tail is at most this many times narrower than the row as a whole: outer quantiles that happen
# to be (nearly) equal do not tell that the tail has no width.
_STEEPEST_TAIL = 5.0

# Where all rows lie on an end and tell no spread, the end is at this probit: P(Y = end) is 1.
_CERTAIN = 38.0


class CrossingQuantilesWarning(UserWarning):
    """Some predicted quantiles decreased with their level and were sorted.

    Examples
    --------
    >>> import warnings
    >>> from regcal import CrossingQuantilesWarning, Quantiles
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", CrossingQuantilesWarning)
    ...     dist = Quantiles([0.1, 0.5, 0.9], [[1.0, 3.0, 2.0]])
    >>> dist.median()
    array([2.])
    """


class Quantiles(Bounded):
    """Distributions through predicted quantiles, smooth between them and normal in the tails.

    On the probit scale a normal distribution is a straight line. Each row is a monotone curve
    with a continuous slope through ``(quantile, probit of its level)``, continued as a straight
    line beyond the outermost levels: normal tails whose spread is that of the outer quantiles.
    Quantiles of a normal distribution therefore give back that distribution.

    An end at which quantiles of several levels are equal, such as the 0 of rain, keeps its point
    mass: P(Y <= low) is the largest level whose quantile is there, and P(Y < high) the smallest.
    In rows without a quantile at an end, what the tail has beyond the end lies on it.

    Parameters
    ----------
    levels : array-like of shape (n_levels,)
        At least two strictly increasing probabilities inside (0, 1).
    values : array-like of shape (n_rows, n_levels)
        Predicted quantiles. A row in which they cross is sorted, with a
        `CrossingQuantilesWarning`; equal neighbours are moved apart by 1e-4 of the row's range,
        so that the density stays finite. A tail is at most 5 times narrower than the normal
        distribution between the row's outermost quantiles.
    support : "auto", None or (low, high), default="auto"
        Ends of the support with a point mass; quantiles beyond them are at them. By default an end
        is the smallest (or largest) of all quantiles if at least 5 % of all probability lies
        between levels whose quantiles are equal to it, 5 times as much as for each of the next
        three values (or if it is the 0 of whole numbers), in at least two rows (one, for 0). None
        is the whole line.

    Attributes
    ----------
    reading : Reading
        What rows take from each other: ends that were found, and the usual spread, for rows whose
        quantiles are all equal. Calibrators remember it of the rows they have learnt from, and
        read new quantiles alike.

    Examples
    --------
    >>> from regcal import Quantiles
    >>> dist = Quantiles([0.1, 0.5, 0.9], [[1.0, 2.0, 4.0], [0.0, 5.0, 6.0]])
    >>> dist.median()
    array([2., 5.])
    >>> dist.cdf([[1.0, 4.0]]).round(3)
    array([[0.1  , 0.9  ],
           [0.145, 0.347]])
    >>> rain = Quantiles([0.1, 0.3, 0.5, 0.9], [[0.0, 0.0, 0.0, 2.0], [0.0, 0.0, 1.0, 4.0]])
    >>> rain.mass(0.0).round(3)
    array([0.5, 0.3])
    """

    _row_fields = ("values", "_spline")

    # files from before there were readings have none
    reading = Reading("quantiles")
    _told = True

    def __init__(self, levels: ArrayLike, values: ArrayLike, *, support: Any = "auto") -> None:
        self.levels = check_increasing(_checked_order(levels), "levels")
        if len(self.levels) < 2 or self.levels[0] <= 0 or self.levels[-1] >= 1:
            msg = (
                "levels must be at least two probabilities strictly between 0 and 1, got "
                f"{self.levels.tolist()}. Write 10 % as 0.1; one quantile alone does not tell the "
                "spread."
            )
            raise ValueError(msg)
        self.values = self._sorted(self._checked_values(values))
        ends = given_ends(support)
        self._told = ends is not None
        self.low, self.high = ends or find_ends_of_quantiles(self.levels, self.values)
        seen = np.clip(self.values[:, [0, -1]], self.low, self.high)
        slopes = np.diff(seen)[:, 0] / np.diff(ndtri(self.levels[[0, -1]]))
        self.reading = Reading.of("quantiles", (self.low, self.high), seen, slopes)
        self._spline = self._curves()

    def _curves(self) -> RationalQuadraticSpline:
        """Return curves through the quantiles, as they are read."""
        usual, probits = self.reading.spread, ndtri(self.levels)
        values = _beyond_ends(self.values, probits, self.low, self.high, usual)
        values = _separate(values, usual * float(probits[-1] - probits[0]))
        levels = np.broadcast_to(probits, values.shape)
        return RationalQuadraticSpline.through(values, levels, steepest_tail=_STEEPEST_TAIL)

    def read(self, reading: Reading) -> Self:
        """Return the same quantiles, read as others were; ends that were given stay.

        Parameters
        ----------
        reading : Reading
            The ``reading`` of other quantiles.

        Returns
        -------
        Quantiles
        """
        if reading == self.reading:
            return self
        again = copy.copy(self)
        if not self._told:
            again.low, again.high = reading.low, reading.high
            warn_of_values_beyond(self.values, reading, "quantiles")
        again.reading = replace(reading, low=again.low, high=again.high)
        spread = bool((self.values[:, -1] > self.values[:, 0]).all())
        if not (self._open and again._open and spread):
            again._spline = again._curves()
        return again

    def _checked_values(self, values: ArrayLike) -> Array:
        array = np.atleast_2d(as_float_array(values, "values"))
        if array.ndim != 2 or array.shape[1] != len(self.levels):
            msg = (
                f"Got quantiles of shape {array.shape} for {len(self.levels)} levels. Pass one row "
                "per distribution and one column per level (transpose if it is the other way)."
            )
            raise ValueError(msg)
        return check_finite(array, "values")

    def _sorted(self, values: Array) -> Array:
        crossing = (np.diff(values) < 0).any(axis=1)
        if crossing.any():
            msg = (
                f"{int(crossing.sum())} of {len(values)} rows have crossing quantiles, the first "
                f"is row {int(np.flatnonzero(crossing)[0])}; they were sorted."
            )
            warnings.warn(msg, CrossingQuantilesWarning, stacklevel=3)
            values = np.sort(values, axis=1)
        return values

    @cached_property
    def latent(self) -> QuantileCurves:
        """The curves through the quantiles; those at an end are spread beyond it."""
        return QuantileCurves(self._spline)

    def __len__(self) -> int:
        return len(self.values)

    def _take(self, rows: np.ndarray) -> Self:
        part = object.__new__(type(self))
        part.levels, part.values = self.levels, self.values[rows]
        part.low, part.high = self.low, self.high
        part.reading, part._told = self.reading, self._told
        part._spline = self._spline.take(rows)
        return part


class QuantileCurves(ProbitDistribution):
    """Distributions whose probits are increasing curves.

    Parameters
    ----------
    spline : RationalQuadraticSpline
        Through ``(quantile, probit of its level)``.
    """

    _explicit = True
    _row_fields = ("spline",)

    def __init__(self, spline: RationalQuadraticSpline) -> None:
        self.spline = spline

    def __len__(self) -> int:
        return len(self.spline.x)

    def _take(self, rows: np.ndarray) -> Self:
        return type(self)(self.spline.take(rows))

    def _probit(self, points: Array) -> Array:
        return self.spline(points)

    def _probit_and_logslope(self, points: Array) -> tuple[Array, Array]:
        return self.spline.value_and_log_slope(points)

    def _from_probit(self, probits: Array) -> Array:
        return self.spline.inverse(probits)

    def _trace(self, probits: Array) -> tuple[Array, Array]:
        return self.spline.inverse_and_slope(probits)

    def _kinks(self) -> Array:
        return self.spline.x

    def _probit_kinks(self) -> Array:
        z = self.spline.z
        # the levels, which rows share
        return z[:1] if (z[:1] == z).all() else z


def _checked_order(levels: ArrayLike) -> Array:
    """Return levels, or say how to sort them: their columns have to follow."""
    array = as_float_array(levels, "levels")
    if array.ndim == 1 and (np.diff(array) < 0).any():
        k = int(np.argmax(np.diff(array) < 0))
        msg = (
            f"levels must be strictly increasing, got {array[k]} before {array[k + 1]} at index "
            f"{k}. Sort them and their columns together: order = np.argsort(levels); "
            "Quantiles(np.asarray(levels)[order], np.asarray(values)[:, order])."
        )
        raise ValueError(msg)
    return array


def _beyond_ends(values: Array, probits: Array, low: float, high: float, usual: float) -> Array:
    """Return quantiles of which those at an end are spread beyond it, where nothing is seen."""
    values = np.clip(values, low, high)
    flat = values[values[:, 0] == values[:, -1], 0]
    if usual == 0 and ((flat > low) & (flat < high)).any():
        msg = (
            f"All {len(values)} rows have equal quantiles at all levels, which leaves no spread: "
            "this is a point forecast. Predict levels further apart, or wrap the model in "
            f"regcal.NormalResidualRegressor. Pass support=({values[0, 0]:g}, None) if outcomes "
            "pile up there."
        )
        raise ValueError(msg)
    at_low, at_high = values <= low, values >= high
    values = _spread(values, at_low, probits, usual, _CERTAIN)
    return _spread(values[:, ::-1], at_high[:, ::-1], probits[::-1], usual, -_CERTAIN)[:, ::-1]


def _spread(values: Array, at_end: np.ndarray, z: Array, usual: float, certain: float) -> Array:
    """Return quantiles, from an end on, of which only the last of those at the end stays there.

    The others follow the straight line through it and the next quantile, or have the usual slope.
    """
    rows = np.flatnonzero(at_end[:, 0])
    end, last = values[rows, 0], at_end[rows].sum(axis=1) - 1
    following = np.minimum(last + 1, len(z) - 1)
    with np.errstate(invalid="ignore"):
        slope = (values[rows, following] - end) / (z[following] - z[last])
    slope = np.where(following > last, slope, usual)
    known = slope > 0
    start = np.where(known, z[last], certain)[:, np.newaxis]
    slope = np.where(known, slope, np.maximum(np.abs(end), 1.0))[:, np.newaxis]
    moved = values.copy()
    line = end[:, np.newaxis] + slope * (z - start)
    moved[rows] = np.where(at_end[rows], line, values[rows])
    return moved


def _separate(values: Array, usual: float) -> Array:
    """Move equal neighbours apart, by a share of the row's range or else of the usual range."""
    ranges = values[:, -1] - values[:, 0]
    ranges = np.where(ranges > 0, ranges, usual)
    resolved = 8 * np.spacing(np.abs(values).max(axis=1))
    gaps = np.maximum(_SMALLEST_GAP * ranges, resolved)
    ramp = gaps[:, np.newaxis] * np.arange(values.shape[1])
    return np.maximum.accumulate(values - ramp, axis=1) + ramp
