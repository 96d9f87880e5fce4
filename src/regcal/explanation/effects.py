"""What a correction does to location and spread, in the units of y, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from regcal._validation import Array
from regcal.calibrators import ConditionalCalibrator
from regcal.calibrators.conditional import corrected
from regcal.calibrators.held_out import MAX_ROWS
from regcal.corrections import Blend
from regcal.corrections.additive import Additive
from regcal.covariates import Column, Covariates
from regcal.distributions import Distribution
from regcal.metrics._inputs import standard_error

# Effects are told at so many values of each segment of a number, at quantiles within it.
_N_VALUES = 5

# In so many of all explanations no effect is outside its band.
_SURE = 0.95


@dataclass(frozen=True)
class Part:
    """Predictions, the calibrator that corrects them given covariates, and what it looks at."""

    dist: Distribution
    calibrator: ConditionalCalibrator
    columns: Covariates

    def corrections(self, columns: Covariates) -> tuple[Array, Array]:
        """Return location and spread on the probit scale, for rows with these covariates."""
        if self.calibrator.correction_ is None:
            return np.zeros(len(columns)), np.ones(len(columns))
        return self.calibrator.correction_(columns)

    def predicted(self, columns: Covariates) -> Distribution:
        """Return what is predicted if rows had these covariates."""
        moved = corrected(self.dist, *self.corrections(columns))
        return self.calibrator.calibrator_.transform_latent(moved)

    def take(self, rows: np.ndarray) -> "Part":
        """Return some of the rows."""
        return replace(self, dist=self.dist[rows], columns=self.columns[rows])

    @property
    def n_learnt(self) -> int:
        """From how many rows the correction was learnt."""
        return min(self.calibrator.n_rows_seen_, MAX_ROWS)


@dataclass(frozen=True)
class Errors:
    """Standard errors of locations, in predicted standard deviations, and of log factors."""

    location: Array
    log_factor: Array

    def beside(self, other: "Errors") -> "Errors":
        """Return the errors of both together, which are independent."""
        return Errors(
            np.hypot(self.location, other.location), np.hypot(self.log_factor, other.log_factor)
        )


@dataclass(frozen=True)
class Sizes:
    """Effects with their bands.

    Attributes
    ----------
    shift, log_factor : ndarray of shape (3, n_values)
        Lower end, effect, upper end: in the units of y, and as a log.
    spreads : ndarray of shape (n_values,)
        The shift in predicted standard deviations.
    """

    shift: Array
    log_factor: Array
    spreads: Array

    @classmethod
    def mean(cls, sizes: Sequence["Sizes"]) -> "Sizes":
        """Return the mean of what several parts say."""
        names = ("shift", "log_factor", "spreads")
        return cls(*(np.mean([getattr(one, name) for one in sizes], axis=0) for name in names))


@dataclass(frozen=True)
class RowEffects:
    """What a correction does to each row, if it had each of some values; (n_rows, n_values).

    Attributes
    ----------
    location, log_factor : ndarray
        On the probit scale.
    shift : ndarray
        Of the median, in the units of y.
    slope : ndarray
        Units of y per predicted standard deviation, at the corrected median.
    """

    location: Array
    log_factor: Array
    shift: Array
    slope: Array

    @classmethod
    def of(cls, dist: Distribution, location: Array, factor: Array) -> "RowEffects":
        """Return the effects of corrections of shape (n_rows, n_values)."""
        before, median, after = (dist.from_probit(location + step) for step in (-0.5, 0.0, 0.5))
        shift = median - dist.from_probit(np.zeros((1, 1)))
        return cls(location, np.log(factor), shift, after - before)

    def take(self, rows: np.ndarray) -> "RowEffects":
        """Return those of some rows."""
        parts = (self.location, self.log_factor, self.shift, self.slope)
        return RowEffects(*(one[rows] for one in parts))

    def factor(self, weights: Array) -> Array:
        """Return the mean factor at each value, as its logs have it."""
        return np.exp(np.average(self.log_factor, axis=0, weights=weights))

    def errors(self, weights: Array) -> Errors:
        """Return the errors of means over rows, which are a sample; 0 of a single row."""
        location, log_factor = (
            np.nan_to_num([standard_error(column, weights) for column in values.T])
            for values in (self.location, self.log_factor)
        )
        return Errors(location, log_factor)

    def mean(self, weights: Array, errors: Errors, width: float) -> Sizes:
        """Return the mean effect over rows, with a band so many errors wide on each side."""
        location, log_factor, shift, slope = (
            np.average(one, axis=0, weights=weights)
            for one in (self.location, self.log_factor, self.shift, self.slope)
        )
        steps = width * np.array([[-1.0], [0.0], [1.0]])
        bands = shift + steps * errors.location * slope
        return Sizes(bands, log_factor + steps * errors.log_factor, location)


def width_of(n_segments: int) -> float:
    """Return how many errors wide a band is that holds in so many segments at once.

    Bonferroni's rule: each has its share of what may be outside.
    """
    return float(-ndtri(0.5 * (1.0 - _SURE) / n_segments))


# ------------------------------------------------------------------------------- rows as they are


def rows_as_they_are(part: Part) -> RowEffects:
    """Return what the correction does to the rows of a part, (n_rows, 1)."""
    location, factor = (one[:, np.newaxis] for one in part.corrections(part.columns))
    return RowEffects.of(part.dist, location, factor)


def errors_of_means(factor: Array, n_rows: float | Array) -> Errors:
    """Return the errors of mean and log deviation of so many outcomes, which spread so far."""
    n = np.broadcast_to(n_rows, factor.shape)
    return Errors(factor / np.sqrt(n), np.sqrt(0.5 / n))


# -------------------------------------------------------------------------------- one covariate


def values_of(column: Column, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values of a covariate that stand for its segments, and the segment of each."""
    values, owners = [], []
    for code in np.unique(codes):
        own = column.values[codes == code]
        if column.kind == "number" and not np.isnan(own[0]):
            levels = (np.arange(_N_VALUES) + 0.5) / _N_VALUES
            own = np.quantile(own, levels, method="inverted_cdf")
        found = np.unique(own)
        values.append(found)
        owners.append(np.full(len(found), code))
    return np.concatenate(values), np.concatenate(owners)


def along(part: Part, column: Column, shares: Array, weights: Array, width: float) -> Sizes:
    """Return the mean effect on all rows if one covariate had each of the values of a column.

    Parameters
    ----------
    part : Part
    column : Column
    shares : ndarray of shape (n_values,)
        How many of all rows are in the segment of each value, as a share.
    weights : ndarray of shape (n_rows,)
    width : float
        Of bands, in errors.
    """
    asked = part.corrections(_with_values(part.columns, column))
    location, factor = (one.reshape(len(column), -1).T for one in asked)
    effects = RowEffects.of(part.dist, location, factor)
    errors = _errors_along(part, column, effects.factor(weights), shares)
    return effects.mean(weights, errors, width)


def _with_values(columns: Covariates, column: Column) -> Covariates:
    """Return all rows once for each value of a column, which takes the place of their own."""
    n = len(columns)
    whole = columns.take(np.tile(np.arange(n), len(column)))
    changed = replace(column, values=np.repeat(column.values, n))
    return Covariates(tuple(changed if one.name == column.name else one for one in whole.columns))


def _errors_along(part: Part, column: Column, factor: Array, shares: Array) -> Errors:
    """Return the errors of a part along a covariate: that of all rows' mean, and its own."""
    alone = errors_of_means(factor, part.n_learnt * shares)
    correction = part.calibrator.correction_
    if correction is None:
        return alone
    together, unit = errors_of_means(factor, part.n_learnt), correction.unit
    location = unit * _error_of_blend(correction.shift, column, alone.location / unit)
    log_factor = _error_of_blend(correction.log_factor, column, alone.log_factor)
    return together.beside(Errors(location, log_factor))


def _error_of_blend(blend: Blend, column: Column, alone: Array) -> Array:
    """Return how sure a sum of regressions is along a covariate.

    Additive terms know their posterior deviation. What other learners say of a segment is taken to
    be as sure as the mean of the segment's own rows.
    """
    total = np.zeros(len(column))
    for part, share in zip(blend.parts, blend.shares, strict=True):
        known = [one.error(column) for one in part.parts if isinstance(one, Additive)]
        total += share * (np.mean(known, axis=0) if known else alone)
    return total
