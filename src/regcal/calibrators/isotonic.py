"""Smooth isotonic distributional regression on what the base predicts.

Rows with a larger index, the median that the base predicts, have outcomes that are larger in
distribution: nothing else is assumed (Henzi, Ziegel and Gneiting, 2021; on the output of a model,
Walz, Henzi, Ziegel and Gneiting, 2024).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.optimize import isotonic_regression

from regcal._validation import Array
from regcal.calibrators.base import Calibrator
from regcal.calibrators.cells import (
    Coordinates,
    IntervalCoordinates,
    OutcomeCoordinates,
    Points,
)
from regcal.calibrators.held_out import HeldOut, deal
from regcal.calibrators.judged import SHARE_OF_ALL
from regcal.calibrators.labels import expected_below, known_below, learn_labels
from regcal.calibrators.observed import Observed
from regcal.calibrators.smoothing import BANDWIDTHS, Bandwidths, Smoothing
from regcal.calibrators.start import choose_start
from regcal.calibrators.targets import Targets, power_of_two
from regcal.calibrators.thresholds import dense_thresholds
from regcal.covariates import Covariates
from regcal.distributions import Distribution, Segmented, Transformed
from regcal.maps import Axis, ProbitMap
from regcal.maps.members import Members
from regcal.maps.scale import IDENTITY

# Cells of the index over the range of outcomes, or up to twice as many; groups of rows of nearly
# equal index.
_CELLS, _MAX_GROUPS = 1024, 512

# Parts of the rows, on each of which bandwidths are judged.
_N_FOLDS = 4

# By what rows may be ordered. benchmarks/quality.py, isotonic against "isotonic by median" in 26
# cells of quantile models ("choose" and "paper"): the choice is worth 0.020 nats and 2.4 % of CRPS,
# from -12 % (quantile forest on boston) to +2 % (quantile forest on articles).
_INDICES = ("median", "mean")


@dataclass(frozen=True)
class IndexCoordinates:
    """The index of a row, and the segment that holds its outcome.

    Parameters
    ----------
    thresholds : ndarray
        Ends of the segments.
    index : {"median", "mean"}
    axis : Axis
    width : float
        Of cells of the index on the axis, a power of two; 0 if all targets are equal.
    """

    thresholds: Array
    index: str
    axis: Axis
    width: float

    points_per_row = 1

    @property
    def n_segments(self) -> int:
        """The number of segments."""
        return len(self.thresholds) + 1

    def index_of(self, dist: Distribution) -> Array:
        """Return the number by which rows are ordered: the median where there is no mean."""
        if self.index == "median":
            return dist.median()
        mean = dist.mean()
        lost = ~np.isfinite(mean)
        if lost.any():
            mean[lost] = dist[lost].median()
        return mean

    def segments(self, rows: HeldOut) -> np.ndarray:
        """Return the numbers of the segments that hold outcomes, -1 where nobody knows."""
        segments = np.searchsorted(self.thresholds, rows.y, side="left")
        if not rows.exact.all():
            some = np.flatnonzero(~rows.exact)
            below = known_below(rows.take(some), self.thresholds)
            segments[some] = np.where(np.isnan(below).any(axis=1), -1, (below == 0).sum(axis=1))
        return segments

    def observe(self, rows: HeldOut) -> Points:
        """Return a point per outcome whose segment is known: its index, and a share of 1."""
        index, segments = self.index_of(rows.dist), self.segments(rows)
        values = np.stack([index, np.ones(len(rows))])
        return Points(segments, rows.weights, values).where(segments >= 0)

    def expected(self, rows: HeldOut, latent: Distribution) -> Points:
        """Return points of outcomes whose segment is not known, with their shares of segments."""
        below = expected_below(rows, latent, self.thresholds)
        shares = np.diff(below, axis=1, prepend=0.0, append=1.0)
        index = np.broadcast_to(self.index_of(rows.dist)[:, np.newaxis], shares.shape)
        return Points.of_pairs(rows.weights, np.stack([index, shares]))

    def counts(self, points: Points) -> Array:
        """Return the weights of the outcomes in each segment."""
        weights = points.weights * points.values[1]
        return np.bincount(points.levels, weights, self.n_segments).astype(float)

    def cells(self, points: Points) -> np.ndarray:
        """Return cells of equal width on the axis."""
        if self.width == 0:
            return np.zeros(len(points), dtype=np.int64)
        return np.floor(self.axis(points.values[0]) / self.width).astype(np.int64)

    def follows(self, other: "IndexCoordinates") -> bool:
        """Return whether the segments are the same."""
        return np.array_equal(self.thresholds, other.thresholds)


@dataclass(frozen=True)
class IndexTable:
    """Masses of segments for a number of indices, between which they are interpolated.

    Parameters
    ----------
    coordinates : IndexCoordinates
    places : ndarray of shape (n_groups,)
        Increasing indices.
    masses : ndarray of shape (n_groups, n_segments)
    share : float
        What the recalibrated base counts for.
    start : ProbitMap
        What recalibrates the base.
    """

    coordinates: IndexCoordinates
    places: Array
    masses: Array
    share: float
    start: ProbitMap = IDENTITY

    def at(self, index: Array) -> Array:
        """Return the masses of segments at indices, (n_rows, n_segments)."""
        place = np.interp(index, self.places, np.arange(len(self.places), dtype=float))
        first = place.astype(np.intp)
        place -= first
        low = self.masses.take(first, axis=0)
        masses = self.masses.take(np.minimum(first + 1, len(self.places) - 1), axis=0)
        masses -= low
        masses *= place[:, np.newaxis]
        masses += low
        return masses

    def __call__(self, base: Distribution, log_p: Array) -> Array:
        """Return log masses of segments, given those of the recalibrated base."""
        index = self.coordinates.index_of(as_given(base, self.start))
        with np.errstate(divide="ignore"):
            learnt = np.log((1.0 - self.share) * self.at(index))
        return np.logaddexp(learnt, np.log(self.share) + log_p)

    @classmethod
    def joined(
        cls, parts: Sequence["IndexTable"], counts: Sequence[int], members: Members
    ) -> "JoinedIndexTables | None":
        """Return the tables of all rows, if they order them by the same."""
        if len({part.coordinates.index for part in parts}) > 1:
            return None
        return JoinedIndexTables(tuple(parts), members)


@dataclass(frozen=True)
class JoinedIndexTables:
    """Tables of masses by index, each for the rows that are its own."""

    tables: tuple[IndexTable, ...]
    members: Members

    def take(self, rows: np.ndarray) -> "JoinedIndexTables":
        """Return the tables of some rows."""
        return JoinedIndexTables(self.tables, self.members.take(rows))

    def __call__(self, base: Distribution, log_p: Array) -> Array:
        """Return log masses of segments, given those of the recalibrated base."""
        index = self.tables[0].coordinates.index_of(as_given(base, self.tables[0].start))
        learnt = np.zeros(log_p.shape)
        for table, rows in self.members.each(self.tables):
            masses = table.at(index[rows])
            # segments that make up the number stand before the last
            learnt[rows, : masses.shape[1] - 1], learnt[rows, -1] = masses[:, :-1], masses[:, -1]
        share = self.members.repeated([[table.share] for table in self.tables])
        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log((1.0 - share) * learnt), np.log(share) + log_p)


def recalibrated(base: Distribution, start: ProbitMap) -> Distribution:
    """Return the base as its table is given it."""
    return base if start == IDENTITY else Transformed(base, start)


def as_given(base: Distribution, start: ProbitMap) -> Distribution:
    """Return the base before it was recalibrated."""
    return base if start == IDENTITY else cast(Transformed, base).base


class IsotonicCalibrator(Calibrator):
    """Learn the distribution of outcomes given what the base predicts, without its shape.

    Smooth isotonic distributional regression: rows are ordered by their predicted median or mean,
    and the larger it is, the larger are outcomes in distribution. Of the base only that order is
    used, the tails beyond all outcomes, and a share that vanishes as rows come in; tails and share
    after PIT recalibration or a scale, where that is clearly better.

    Parameters
    ----------
    thresholds : int or array-like, default=192
        Ends of the segments in which outcomes are counted: a number, of which half are equally
        spaced on the axis that suits the targets (see `regcal.maps.Axis`) and half are at
        quantiles, or increasing values.
    index : {"auto", "median", "mean"}, default="auto"
        By what rows are ordered; "auto" takes what has the better log score on rows it did not
        learn from.
    bandwidth : float, optional
        Of the Gaussian kernel that smooths segments, as a share of the range of outcomes on
        their axis. By default there are two, which have the best log score on rows it did not
        learn from: one for each row, and a narrower one for what all rows have together. Of counts
        and other rounded outcomes, all rows together keep the shares of their values.
    support, step : as in every calibrator

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_thresholds,)
    table_ : IndexTable
        Masses of segments by index, and what recalibrates the base.
    index_ : str
        By what rows were ordered.
    bandwidth_, marginal_bandwidth_ : float
        Of the masses of a row, and of those of all rows together.

    References
    ----------
    Henzi, Ziegel and Gneiting (2021), Isotonic distributional regression, Journal of the Royal
    Statistical Society B 83. Walz, Henzi, Ziegel and Gneiting (2024), Easy uncertainty
    quantification (EasyUQ), SIAM Review 66.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import IsotonicCalibrator, Normal
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(1.0, 5.0, 2000)
    >>> dist = Normal(x, np.ones(2000))  # but the spread is a tenth of the mean
    >>> calibrator = IsotonicCalibrator().fit(dist, x * (1 + 0.1 * rng.normal(size=2000)))
    >>> calibrator.transform(Normal([1.5, 4.0], [1.0, 1.0])).std().round(1)
    array([0.2, 0.4])
    """

    def __init__(
        self,
        *,
        thresholds: Any = 192,
        index: str = "auto",
        bandwidth: float | None = None,
        support: Any = "auto",
        step: Any = None,
    ) -> None:
        self.thresholds = thresholds
        self.index = index
        self.bandwidth = bandwidth
        self.support = support
        self.step = step

    def _coordinates(self, targets: Targets) -> tuple[Coordinates, ...]:
        if self.index not in ("auto", *_INDICES):
            msg = f'index must be "auto", "median" or "mean", got {self.index!r}.'
            raise ValueError(msg)
        if isinstance(self.thresholds, int | np.integer):
            thresholds = dense_thresholds(targets, int(self.thresholds))
        else:
            thresholds = targets.thresholds(self.thresholds)
        low, high = targets.axis(np.array(targets.near))
        width = power_of_two((high - low) / _CELLS)
        indices = _INDICES if self.index == "auto" else (self.index,)
        return (
            OutcomeCoordinates(),
            IntervalCoordinates.over(targets),
            *(IndexCoordinates(thresholds, one, targets.axis, width) for one in indices),
        )

    def _solve(self, observed: Observed) -> None:
        outcomes, intervals, *points = observed.points
        indices = [cast(IndexCoordinates, one) for one in observed.coordinates[2:]]
        start = choose_start(outcomes, intervals, observed.targets.support.ends)
        smoothing = _smoothing(indices[0], observed.targets)
        choices = BANDWIDTHS if self.bandwidth is None else _checked_bandwidth(self.bandwidth)
        which, widths = choose_smoothing(smoothing, indices, choices, observed.rows, start)
        index, known = indices[which], points[which]
        self.thresholds_, self.index_ = index.thresholds, index.index
        self.bandwidth_, self.marginal_bandwidth_ = widths.row, widths.all_rows
        share = _share_of_base(observed.targets.weights.sum())

        def learn(expected: list[Points]) -> Callable[[Distribution], Distribution]:
            shares = Points.joined([known, *expected])
            places, masses = isotonic_masses(shares, index)
            kernel = smoothing.kernel_for(index.counts(shares), widths)
            self.table_ = IndexTable(index, places, masses @ kernel, share, start)
            return self.transform_latent

        learn_labels(index, observed.rows, learn)

    def _transform(self, dist: Distribution, covariates: Covariates | None) -> Distribution:
        base = recalibrated(dist, self.table_.start)
        return Segmented(base, self.thresholds_, self.table_, uniform=True)


def _smoothing(index: IndexCoordinates, targets: Targets) -> Smoothing:
    """Return what spreads masses over segments, on their axis."""
    support = targets.support
    low, high = index.axis(np.array(support.ends))
    edges = index.axis(index.thresholds)
    # what lies between all others and an end that is far from them is left as it is
    far = int(targets.near[0] > targets.low), int(targets.near[1] < targets.high)
    return Smoothing(edges, support.step > 0, (float(low), float(high)), far)


def isotonic_masses(points: Points, coordinates: IndexCoordinates) -> tuple[Array, Array]:
    """Return indices and the masses of segments there, whose CDFs fall as the index rises.

    Each threshold has its own weighted isotonic regression of "at most this threshold" on the
    index; solutions for increasing thresholds do not cross.

    Returns
    -------
    places : ndarray of shape (n_groups,)
    masses : ndarray of shape (n_groups, n_segments)
    """
    weights = points.weights * points.values[1]
    groups, places, totals = _groups(points.values[0], weights)
    cells = groups * coordinates.n_segments + points.levels
    shape = (len(places), coordinates.n_segments)
    counts = np.bincount(cells, weights, shape[0] * shape[1]).reshape(shape)
    below = np.cumsum(counts, axis=1)[:, :-1] / totals[:, np.newaxis]
    fitted = [isotonic_regression(one, weights=totals, increasing=False).x for one in below.T]
    cdf = np.clip(np.stack(fitted, axis=1), 0.0, 1.0)
    return places, np.maximum(np.diff(cdf, axis=1, prepend=0.0, append=1.0), 0.0)


def _groups(index: Array, weights: Array) -> tuple[np.ndarray, Array, Array]:
    """Return the group of each point, and the mean index and the weight of groups.

    Equal indices are a group. Of too many, neighbours are joined in groups of nearly equal weight.
    """
    distinct, place = np.unique(index, return_inverse=True)
    totals = np.bincount(place, weights).astype(float)
    if len(distinct) > _MAX_GROUPS:
        middle = np.cumsum(totals) - 0.5 * totals
        joint = np.floor(middle / totals.sum() * _MAX_GROUPS).astype(np.intp)
        place = np.unique(joint, return_inverse=True)[1][place]
        totals = np.bincount(place, weights).astype(float)
    used = totals > 0
    number = np.cumsum(used) - 1
    means = np.bincount(place, weights * index)[used] / totals[used]
    return np.where(used[place], number[place], 0), means, totals[used]


def _checked_bandwidth(bandwidth: Any) -> Array:
    number = isinstance(bandwidth, int | float | np.number) and not isinstance(bandwidth, bool)
    if not (number and 0 < bandwidth < np.inf):
        msg = (
            f"bandwidth must be a positive share of the range of outcomes, got {bandwidth!r}. "
            "Leave it out to have one chosen."
        )
        raise ValueError(msg)
    return np.array([bandwidth], dtype=float)


def choose_smoothing(
    smoothing: Smoothing,
    indices: Sequence[IndexCoordinates],
    choices: Array,
    rows: HeldOut,
    start: ProbitMap,
) -> tuple[int, Bandwidths]:
    """Return which index with which bandwidths has the best log score of rows not learnt from."""
    if len(indices) == len(choices) == 1:
        return 0, Bandwidths(float(choices[0]), float(choices[0]))
    orders = [np.argsort(one.index_of(rows.dist), kind="stable") for one in indices]
    rows, folds = deal(rows, _N_FOLDS, 0)
    widest, found = smoothing.kernel(choices.max()), []
    for k, index in enumerate(indices):
        if k > 0 and np.array_equal(orders[k], orders[0]):
            continue  # it learns the same
        parts = [Trial.of(index, rows, folds == one, start) for one in np.unique(folds)]

        def log_score(widths: Bandwidths, parts: Sequence[Trial | None] = parts) -> float:
            judged = (part for part in parts if part is not None)
            return sum(
                one.log_score(smoothing.kernel_for(one.counts, widths), widest) for one in judged
            )

        widths = smoothing.best(log_score, choices)
        found.append((log_score(widths), k, widths))
    _, which, widths = max(found, key=lambda one: one[0])
    return which, widths


@dataclass(frozen=True)
class Trial:
    """Rows to judge bandwidths by, and the masses of segments that other rows teach.

    Parameters
    ----------
    counts : ndarray of shape (n_segments,)
        Weights of the other rows' outcomes.
    masses : ndarray of shape (n_rows, n_segments)
        As they are learnt at the index of each row, before they are spread.
    segments, covered : ndarray of shape (n_known,), and of shape (n_others, n_segments)
        The segments of outcomes; where nobody knows them, which share of each may hold it.
    known : ndarray of bool, of shape (n_rows,)
    share, base : float and ndarray of shape (n_rows,)
        What the recalibrated base counts for, and what it says.
    weights : ndarray of shape (n_rows,)
    """

    counts: Array
    masses: Array
    segments: np.ndarray
    covered: Array
    known: np.ndarray
    share: float
    base: Array
    weights: Array

    @classmethod
    def of(
        cls, index: IndexCoordinates, rows: HeldOut, own: np.ndarray, start: ProbitMap
    ) -> "Trial | None":
        """Return some rows, judged by the others, if there are any."""
        if own.all():
            return None
        learnt, rows = rows.take(np.flatnonzero(~own)), rows.take(np.flatnonzero(own))
        points = _first_points(index, learnt)
        share = _share_of_base(learnt.weights.sum())
        table = IndexTable(index, *isotonic_masses(points, index), share)
        segments = index.segments(rows)
        known = segments >= 0
        edges = np.concatenate([[-np.inf], index.thresholds, [np.inf]])
        low = np.where(known, edges[segments], rows.seen.lower)
        high = np.where(known, edges[segments + 1], rows.seen.upper)
        return cls(
            index.counts(points),
            table.at(index.index_of(rows.dist)),
            segments[known],
            _covered(edges, low[~known], high[~known]),
            known,
            table.share,
            recalibrated(rows.dist, start).prob(low, high),
            rows.weights,
        )

    def log_score(self, kernel: Array, widest: Array) -> float:
        """Return the total log score, with masses that are spread by a kernel.

        A small share is spread by the widest: one gross error is not to blur all others.
        """
        spread = (1.0 - SHARE_OF_ALL) * self.mixed(kernel) + SHARE_OF_ALL * self.mixed(widest)
        return float(self.weights @ np.log(np.maximum(spread, np.finfo(float).tiny)))

    def mixed(self, kernel: Array) -> Array:
        """Return the probability of what was seen, with masses that are spread by a kernel."""
        own = np.empty(len(self.weights))
        known = self.known
        own[known] = np.einsum("ij,ji->i", self.masses[known], kernel[:, self.segments])
        own[~known] = ((self.masses[~known] @ kernel) * self.covered).sum(axis=1)
        return (1.0 - self.share) * own + self.share * self.base


def _first_points(coordinates: IndexCoordinates, rows: HeldOut) -> Points:
    """Return points of which those of unknown segments are as the base says."""
    points = [coordinates.observe(rows)]
    if points[0].weights.sum() < rows.weights.sum():
        unknown = rows.take(np.flatnonzero(coordinates.segments(rows) < 0))
        points.append(coordinates.expected(unknown, unknown.dist))
    return Points.joined(points)


def _covered(edges: Array, low: Array, high: Array) -> Array:
    """Return what share of each segment lies in intervals, (n_intervals, n_segments)."""
    start, end = np.maximum(edges[:-1], low[:, None]), np.minimum(edges[1:], high[:, None])
    with np.errstate(invalid="ignore"):
        share = np.clip((end - start) / np.diff(edges), 0.0, 1.0)
    return np.where(np.isnan(share) | np.isinf(np.diff(edges)), end > start, share)


def _share_of_base(n_rows: float) -> float:
    """Return what the base counts for: one row of those from which a place of the table is learnt.

    Isotonic regression averages over about n ** (2 / 3) of n rows.
    """
    return 1.0 / (1.0 + n_rows ** (2.0 / 3.0))
