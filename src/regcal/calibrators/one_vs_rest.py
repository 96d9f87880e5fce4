"""One-vs-rest calibration of target segments (Section 4 of Song, Kull and Flach, 2018)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.validation import has_fit_parameter

from regcal._caching import WithoutCaches
from regcal._validation import Array, as_float_array
from regcal.binary import BetaCalibrator, BinaryMap
from regcal.calibrators.base import Calibrator
from regcal.calibrators.cells import Coordinates, Points, number_cells
from regcal.calibrators.held_out import HeldOut
from regcal.calibrators.labels import expected_below, known_below, learn_labels
from regcal.calibrators.observed import Observed
from regcal.calibrators.targets import Targets
from regcal.codes import (
    LOG_LIMITS,
    LeastSquaresDecoder,
    OneVsRestCode,
    check_decoder,
    code_matrix,
    decoded,
    log_unions,
    union_labels,
)
from regcal.covariates import Covariates
from regcal.distributions import Distribution, Segmented
from regcal.distributions.primitives import LOG_HALF
from regcal.distributions.segmented import log_segment_masses
from regcal.maps.members import Members
from regcal.maps.spline import count_reached

# Cells in which masses are counted are as wide as 1 / 64 of log p. Maps of other packages that take
# weights always see them: one that jumps from row to row would tell whether rows were merged.
_BITS = 6


@dataclass(frozen=True)
class SegmentCoordinates:
    """The predicted log mass of each union of segments, and whether the outcome fell into it.

    Parameters
    ----------
    thresholds : ndarray
        Ends of the segments.
    matrix : ndarray of shape (n_unions, n_segments)
        The code; see `regcal.codes`.
    """

    thresholds: Array
    matrix: Array

    @property
    def points_per_row(self) -> int:
        """The number of unions."""
        return len(self.matrix)

    @property
    def one_vs_rest(self) -> bool:
        """Whether every union is a segment."""
        return np.array_equal(self.matrix, np.eye(len(self.thresholds) + 1))

    def observe(self, rows: HeldOut) -> Points:
        """Return a point per row and union, with log mass and a share of successes.

        Unions of which nobody knows whether they hold the outcome are left out.
        """
        values = np.empty((2, len(rows), self.points_per_row))
        values[0] = self._log_masses(rows.dist)
        segments = np.searchsorted(self.thresholds, rows.y, side="left")
        values[1] = self.matrix.T[segments]
        if rows.exact.all():
            return Points.of_pairs(rows.weights, values)
        some = np.flatnonzero(~rows.exact)
        values[1, some] = self._known(rows.take(some))
        return Points.of_pairs(rows.weights, values).where(~np.isnan(values[1].ravel()))

    def expected(self, rows: HeldOut, latent: Distribution) -> Points:
        """Return the points that `observe` leaves out, labelled by their expectation."""
        below = expected_below(rows, latent, self.thresholds)
        shares = np.diff(below, axis=1, prepend=0.0, append=1.0)
        values = np.stack([self._log_masses(rows.dist), shares @ self.matrix.T])
        return Points.of_pairs(rows.weights, values).where(np.isnan(self._known(rows).ravel()))

    def _log_masses(self, dist: Distribution) -> Array:
        log_p = log_segment_masses(dist, self.thresholds)
        if self.one_vs_rest:
            return np.clip(log_p, *LOG_LIMITS)
        return log_unions(log_p, self.matrix)

    def _known(self, rows: HeldOut) -> Array:
        """Return 1 and 0 where it is known whether unions hold outcomes, else NaN."""
        below = known_below(rows, self.thresholds)
        ends = (len(rows), 1)
        low, high = (
            np.concatenate(parts, axis=1)
            for parts in ((np.zeros(ends), below), (below, np.ones(ends)))
        )
        # inside: above its low end and below its high one; outside: beyond either
        inside = np.where((low == 0) & (high == 1), 1.0, np.nan)
        return union_labels(np.where((low == 1) | (high == 0), 0.0, inside), self.matrix)

    def cells(self, points: Points) -> np.ndarray:
        """Return cells of log p up to 1/2, and of log(1 - p) beyond."""
        return mass_cells(points.values[0])

    def follows(self, other: "SegmentCoordinates") -> bool:
        """Return whether the unions are the same."""
        same = np.array_equal(self.thresholds, other.thresholds)
        return same and np.array_equal(self.matrix, other.matrix)


def mass_cells(log_p: Array) -> np.ndarray:
    """Return cells of log p up to 1/2, and of log(1 - p) beyond."""
    place = log_p.copy()
    large = np.flatnonzero(log_p > LOG_HALF + 1e-6)  # not 1/2 itself, where many rows may lie
    place[large] = -np.log(-np.expm1(log_p[large]))
    cells = number_cells(place, _BITS)
    # no place is nearer to 0 than that of 1/2: leave out the cells between
    nearest = int(number_cells(np.array([-0.99 * LOG_HALF]), _BITS)[0])
    cells -= np.where(cells < 0, -nearest, nearest)
    return cells


@dataclass(frozen=True)
class SegmentCounts:
    """Per union: log masses with weighted numbers of outcomes inside and in all."""

    log_p: Array
    successes: Array
    trials: Array

    @classmethod
    def of(cls, points: Points, n_unions: int) -> "SegmentCounts":
        """Return a row of points per union; short ones are filled with points of no weight."""
        order = np.argsort(points.levels, kind="stable")
        counts = np.bincount(points.levels, minlength=n_unions)
        filled = np.arange(counts.max()) < counts[:, np.newaxis]
        log_p, trials, rate = np.full(filled.shape, -1.0), *np.zeros((2, *filled.shape))
        log_p[filled], rate[filled] = points.values[:, order]
        trials[filled] = points.weights[order]
        return cls(log_p, trials * rate, trials)

    @property
    def n_trials(self) -> float:
        """The weight of all outcomes."""
        return float(self.trials[0].sum())


def joined_by_base(masses: Array, log_p: Array, n_trials: float | Array) -> Array:
    """Return logs of masses that so many trials gave, after one more distributed as the base says.

    It keeps masses positive where those of the base are.
    """
    with np.errstate(divide="ignore"):
        log_masses = np.log(masses * n_trials)
    return np.logaddexp(log_masses, log_p) - np.log1p(n_trials)


class ColumnMaps(WithoutCaches):
    """One fitted copy of any binary calibrator per union of segments."""

    def __init__(self, binary: Any, counts: SegmentCounts) -> None:
        self.maps = [
            self._fitted(binary, *column)
            for column in zip(counts.log_p, counts.successes, counts.trials, strict=True)
        ]
        self.n_trials = counts.n_trials

    def _fitted(self, binary: Any, log_p: Array, successes: Array, trials: Array) -> Any:
        used = np.flatnonzero(trials)
        p = np.exp(log_p[used])[:, np.newaxis]
        rate = successes[used] / trials[used]
        if has_fit_parameter(binary, "sample_weight"):
            return clone(binary).fit(p, rate, sample_weight=trials[used])
        if np.ptp(trials[used]) > 0:
            msg = (
                f"{type(binary).__name__}.fit takes no sample_weight, so it cannot be used with "
                "weights, nor with more than 2**18 rows × segments. Use a map that takes weights."
            )
            raise TypeError(msg)
        return clone(binary).fit(p, rate)

    def predict_log_columns(self, log_p: Array) -> Array:
        """Return log calibrated masses of unions, (n_rows, n_unions)."""
        p = np.exp(log_p)
        columns = [_predicted(one, p[:, k]) for k, one in enumerate(self.maps)]
        rates = np.clip(np.stack(columns, axis=1), 0.0, 1.0)
        return joined_by_base(rates, log_p, self.n_trials)

    @cached_property
    def knots(self) -> Array | None:
        """Places, heights and slopes after them, (3, n_unions, n_knots), if all are such lines.

        The last knot, which has no slope, is repeated where there are fewer.
        """
        if not all(map(_is_line, self.maps)):
            return None
        lines = [(one.X_thresholds_, one.y_thresholds_) for one in self.maps]
        knots = np.zeros((3, len(lines), max(len(x) for x, _ in lines)))
        for column, (x, y) in enumerate(lines):
            knots[0, column], knots[1, column] = x[-1], y[-1]
            knots[:2, column, : len(x)] = x, y
            knots[2, column, : len(x) - 1] = np.diff(y) / np.diff(x)
        return knots


def _is_line(binary: Any) -> bool:
    """Return whether a map is a line through knots, level beyond them."""
    return type(binary) is IsotonicRegression and binary.out_of_bounds == "clip"


def _predicted(binary: Any, p: Array) -> Array:
    """Return what a fitted map makes of probabilities, (n_rows,)."""
    if _is_line(binary):
        # the same line through its knots, without checks that take as long as a model for a row
        return np.interp(p, binary.X_thresholds_, binary.y_thresholds_)
    predicted = as_float_array(binary.predict(p[:, np.newaxis]), "predictions").ravel()
    if np.isnan(predicted).any():
        first = p[np.isnan(predicted)][0]
        msg = (
            f"{binary!r} predicts no number for probabilities such as {first:.3g}. Use a map that "
            'is known everywhere; IsotonicRegression is with out_of_bounds="clip".'
        )
        raise ValueError(msg)
    return predicted


@dataclass(frozen=True)
class DecodedMaps:
    """Maps of unions of segments, from which masses of segments are decoded.

    Parameters
    ----------
    maps : BinaryMap or ColumnMaps
        One per union.
    matrix : ndarray of shape (n_unions, n_segments)
    decoder : Decoder
    n_trials : float
        The weight of the outcomes that were learnt from.
    """

    maps: Any
    matrix: Array
    decoder: Any
    n_trials: float

    def predict_log_columns(self, log_p: Array) -> Array:
        """Return log calibrated masses of segments, (n_rows, n_segments)."""
        log_rates = self.maps.predict_log_columns(log_unions(log_p, self.matrix))
        masses = decoded(self.decoder, self.matrix, log_rates, self.n_trials)
        return joined_by_base(masses, log_p, self.n_trials)


@dataclass(frozen=True)
class Reweighting:
    """Fitted maps as the function that `Segmented` takes; unlike a method, it can be stored."""

    maps: Any

    def __call__(self, base: Distribution, log_p: Array) -> Array:
        """Return log calibrated masses, (n_rows, n_segments)."""
        return self.maps.predict_log_columns(log_p)

    @classmethod
    def joined(
        cls, parts: Sequence["Reweighting"], counts: Sequence[int], members: Members
    ) -> "RowMaps | RowKnots | None":
        """Return the maps of all rows, if they can be asked at once."""
        maps = [part.maps for part in parts]
        if len(set(counts)) > 1 or len({type(one) for one in maps}) > 1:
            return None
        if isinstance(maps[0], BinaryMap):
            return RowMaps(maps[0], members.stacked([one.coefficients_ for one in maps]))
        return RowKnots.of(maps, members) if isinstance(maps[0], ColumnMaps) else None


@dataclass(frozen=True)
class RowMaps:
    """Maps of segments with coefficients of their own for each row, as `Segmented` takes them.

    Parameters
    ----------
    binary : BinaryMap
        Of their class.
    coefficients : ndarray of shape (n_rows, n_segments, n_coefficients)
    """

    binary: BinaryMap
    coefficients: Array

    def take(self, rows: np.ndarray) -> "RowMaps":
        """Return the maps of some rows."""
        return RowMaps(self.binary, self.coefficients[rows])

    def __call__(self, base: Distribution, log_p: Array) -> Array:
        """Return log calibrated masses, (n_rows, n_segments)."""
        return self.binary.log_rates(log_p, self.coefficients)


@dataclass(frozen=True)
class RowKnots:
    """Lines through knots with their own for each row, as `Segmented` takes them.

    Parameters
    ----------
    knots : ndarray of shape (n_rows, 3, n_segments, n_knots)
        See `ColumnMaps.knots`.
    n_trials : ndarray of shape (n_rows, 1)
    """

    knots: Array
    n_trials: Array

    @classmethod
    def of(cls, maps: Sequence[ColumnMaps], members: Members) -> "RowKnots | None":
        """Return the lines of all rows, if all maps are lines."""
        parts = [one.knots for one in maps]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        columns = np.arange(max(part.shape[-1] for part in known))
        knots = [part.take(columns, axis=-1, mode="clip") for part in known]
        n_trials = members.repeated([[one.n_trials] for one in maps])
        return cls(members.stacked(knots), n_trials)

    def take(self, rows: np.ndarray) -> "RowKnots":
        """Return the lines of some rows."""
        return RowKnots(self.knots[rows], self.n_trials[rows])

    def __call__(self, base: Distribution, log_p: Array) -> Array:
        """Return log calibrated masses, (n_rows, n_segments)."""
        n_knots = self.knots.shape[-1]
        x, y, slope = (self.knots[:, k].reshape(-1, n_knots) for k in range(3))
        p = np.maximum(np.exp(log_p).reshape(-1, 1), x[:, :1])
        last = count_reached(x[:, 1:], p) + np.arange(0, x.size, n_knots)[:, np.newaxis]
        rates = slope.ravel().take(last) * (p - x.ravel().take(last)) + y.ravel().take(last)
        rates = np.minimum(np.maximum(rates, 0.0), 1.0).reshape(log_p.shape)
        return joined_by_base(rates, log_p, self.n_trials)


class OneVsRestCalibrator(Calibrator):
    """Cut the target into segments, calibrate each segment's mass, renormalise.

    The paper's e-logistic and e-beta. Each segment between thresholds has a binary map, learnt
    from the predicted mass of the segment and whether the outcome fell into it. With a `code`,
    unions of segments have one each, and masses are decoded from their probabilities.

    Parameters
    ----------
    binary : object, default=BetaCalibrator()
        A `LogisticCalibrator` or `BetaCalibrator`, or any object with ``fit(p, rate)`` and
        ``predict(p)`` on one column, such as scikit-learn's `IsotonicRegression`.
    thresholds : int, grid or array-like, default=16
        Ends of the segments: a number of thresholds over the paper's range, equally spaced on
        the axis that suits the targets (see `regcal.maps.Axis`) and within their support, a
        grid object from `regcal.grids`, or increasing values. The outer segments are open-ended.
    code : object or array-like of shape (n_unions, n_segments), optional
        What has a map: a `ThresholdCode`, a `DenseCode`, or zeros and ones of your own, a row per
        union of segments. By default each segment.
    decoder : object, optional
        How masses follow from probabilities: a `LeastSquaresDecoder`, which is the default with a
        `code`, or any object with its ``masses``. Those of segments, the identity as a matrix
        included, are renormalised by default.
    shape : {"base", "uniform"}, default="base"
        How the mass of a bounded segment is spread inside it: as the base density is there, or
        evenly as in the paper.
    support, step : as in every calibrator

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_thresholds,)
    maps_ : object
        The fitted maps; with a `BetaCalibrator`, ``maps_.coefficients_`` has a row per segment.
        With a `code` they are ``maps_.maps``.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal, OneVsRestCalibrator
    >>> rng = np.random.default_rng(0)
    >>> dist = Normal(np.zeros(500), np.full(500, 2.0))
    >>> cal = OneVsRestCalibrator(thresholds=32).fit(dist, rng.normal(size=500))
    >>> cal.transform(dist[:1]).std().round(1)
    array([1.])
    """

    # What files from before there were codes have.
    code: Any = None
    decoder: Any = None

    def __init__(
        self,
        binary: Any = None,
        *,
        thresholds: Any = 16,
        code: Any = None,
        decoder: Any = None,
        shape: str = "base",
        support: Any = "auto",
        step: Any = None,
    ) -> None:
        self.binary = binary
        self.thresholds = thresholds
        self.code = code
        self.decoder = decoder
        self.shape = shape
        self.support = support
        self.step = step

    def _coordinates(self, targets: Targets) -> tuple[Coordinates, ...]:
        if self.shape not in ("base", "uniform"):
            msg = f'shape must be "base" or "uniform", got {self.shape!r}.'
            raise ValueError(msg)
        thresholds = targets.thresholds(self.thresholds)
        code = OneVsRestCode() if self.code is None else self.code
        return (SegmentCoordinates(thresholds, code_matrix(code, len(thresholds) + 1)),)

    def _solve(self, observed: Observed) -> None:
        (coordinates,), (known,) = observed.coordinates, observed.points
        segments = cast(SegmentCoordinates, coordinates)
        self.thresholds_ = segments.thresholds

        def learn(expected: list[Points]) -> Callable[[Distribution], Distribution]:
            self.maps_ = self._fitted_maps(Points.joined([known, *expected]), segments)
            return self.transform_latent

        learn_labels(segments, observed.rows, learn)

    def _fitted_maps(self, points: Points, segments: SegmentCoordinates) -> Any:
        binary = BetaCalibrator() if self.binary is None else self.binary
        ours = isinstance(binary, BinaryMap)
        if not ours and has_fit_parameter(binary, "sample_weight"):
            points = points.merged(segments.cells(points))
        counts = SegmentCounts.of(points, segments.points_per_row)
        if ours:
            maps = clone(binary).fit_columns(counts.log_p, counts.successes, counts.trials)
        else:
            maps = ColumnMaps(binary, counts)
        if self.decoder is None and segments.one_vs_rest:
            return maps
        decoder = LeastSquaresDecoder() if self.decoder is None else self.decoder
        check_decoder(decoder)
        return DecodedMaps(maps, segments.matrix, decoder, counts.n_trials)

    def _transform(self, dist: Distribution, covariates: Covariates | None) -> Distribution:
        return Segmented(
            dist,
            self.thresholds_,
            Reweighting(self.maps_),
            uniform=self.shape == "uniform",
        )
