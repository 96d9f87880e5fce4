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
from scipy.special import ndtr

from regcal._validation import Array
from regcal.calibrators.base import Calibrator
from regcal.calibrators.cells import Coordinates, Points
from regcal.calibrators.held_out import HeldOut, deal
from regcal.calibrators.labels import expected_below, known_below, learn_labels
from regcal.calibrators.observed import Observed
from regcal.calibrators.targets import Targets, power_of_two
from regcal.calibrators.thresholds import dense_thresholds
from regcal.covariates import Covariates
from regcal.distributions import Distribution, Segmented
from regcal.maps import Axis
from regcal.maps.members import Members

# Cells of the index over the range of outcomes, or up to twice as many; groups of rows of nearly
# equal index.
_CELLS, _MAX_GROUPS = 1024, 512

# Bandwidths to choose from, in parts of the range of outcomes on their axis.
_BANDWIDTHS = 2.0 ** np.arange(-9.0, -1.0, 0.5)
_N_FOLDS = 4

# By what rows may be ordered. The first is taken unless the other gains more nats in all. In 26
# cells of quantile models (benchmarks/quality.py, "choose" and "paper") the choice is worth 0.015
# nats and 2.2 % of isotonic's CRPS over the median: from -12 % (quantile forest on boston) to +2 %.
_INDICES = ("median", "mean")
_WORTH_ANOTHER = 1.0

# Times that rows and columns of a kernel are multiplied, and what more than one row weighs.
_SCALINGS, _SEEN_TWICE = 100, 1.5


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
        What the base itself counts for.
    """

    coordinates: IndexCoordinates
    places: Array
    masses: Array
    share: float

    def at(self, index: Array) -> Array:
        """Return the masses of segments at indices, (n_rows, n_segments)."""
        place = np.interp(index, self.places, np.arange(len(self.places), dtype=float))
        first = np.minimum(place.astype(np.intp), max(len(self.places) - 2, 0))
        second = np.minimum(first + 1, len(self.places) - 1)
        share = (place - first)[:, np.newaxis]
        return (1.0 - share) * self.masses[first] + share * self.masses[second]

    def __call__(self, base: Distribution, log_p: Array) -> Array:
        """Return log masses of segments, given those of the base."""
        with np.errstate(divide="ignore"):
            learnt = np.log((1.0 - self.share) * self.at(self.coordinates.index_of(base)))
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
        """Return log masses of segments, given those of the base."""
        index, learnt = self.tables[0].coordinates.index_of(base), np.zeros(log_p.shape)
        for table, rows in self.members.each(self.tables):
            masses = table.at(index[rows])
            # segments that make up the number stand before the last
            learnt[rows, : masses.shape[1] - 1], learnt[rows, -1] = masses[:, :-1], masses[:, -1]
        share = self.members.repeated([[table.share] for table in self.tables])
        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log((1.0 - share) * learnt), np.log(share) + log_p)


class IsotonicCalibrator(Calibrator):
    """Learn the distribution of outcomes given what the base predicts, without its shape.

    Smooth isotonic distributional regression: rows are ordered by their predicted median or mean,
    and the larger it is, the larger are outcomes in distribution. Of the base only that order is
    used, the tails beyond all outcomes, and a share that vanishes as rows come in.

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
        their axis. By default the one with the best log score on rows it did not learn from.
        Of counts and other rounded outcomes, all rows together keep the shares of their values.
    support, step : as in every calibrator

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_thresholds,)
    table_ : IndexTable
        Masses of segments by index.
    index_ : str
        By what rows were ordered.
    bandwidth_ : float

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
        low, high = targets.axis(np.array([targets.low, targets.high]))
        width = power_of_two((high - low) / _CELLS)
        indices = _INDICES if self.index == "auto" else (self.index,)
        return tuple(IndexCoordinates(thresholds, one, targets.axis, width) for one in indices)

    def _solve(self, observed: Observed) -> None:
        rounded = observed.targets.support.step > 0
        smoothings = [
            Smoothing.over(cast(IndexCoordinates, one), rounded=rounded)
            for one in observed.coordinates
        ]
        bandwidths = _BANDWIDTHS if self.bandwidth is None else _checked_bandwidth(self.bandwidth)
        which, self.bandwidth_ = choose_smoothing(smoothings, bandwidths, observed.rows)
        smoothing, known = smoothings[which], observed.points[which]
        index = smoothing.coordinates
        self.thresholds_, self.index_ = index.thresholds, index.index
        kernel = smoothing.kernel_for(known, self.bandwidth_)
        share = _share_of_base(observed.targets.weights.sum())

        def learn(expected: list[Points]) -> Callable[[Distribution], Distribution]:
            places, masses = isotonic_masses(Points.joined([known, *expected]), index)
            self.table_ = IndexTable(index, places, masses @ kernel, share)
            return self.transform_latent

        learn_labels(index, observed.rows, learn)

    def _transform(self, dist: Distribution, covariates: Covariates | None) -> Distribution:
        return Segmented(dist, self.thresholds_, self.table_, uniform=True)


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


@dataclass(frozen=True)
class Smoothing:
    """Spreads masses over neighbouring segments by a Gaussian kernel on the axis.

    Segments that are open-ended keep what they have: beyond an end of the support, or nothing.

    Parameters
    ----------
    coordinates : IndexCoordinates
    edges : ndarray
        Places of the thresholds on the axis.
    rounded : bool
        Whether segments hold values rather than parts of a density.
    """

    coordinates: IndexCoordinates
    edges: Array
    rounded: bool = False

    @classmethod
    def over(cls, coordinates: IndexCoordinates, *, rounded: bool = False) -> "Smoothing":
        """Return the smoothing of segments."""
        return cls(coordinates, coordinates.axis(coordinates.thresholds), rounded)

    def kernel_for(self, points: Points, bandwidth: float) -> Array:
        """Return the kernel for masses that were learnt from points.

        That of values spreads the masses of an index, and keeps those of all rows together.
        """
        kernel = self.kernel(bandwidth)
        counts = np.bincount(points.levels, points.weights * points.values[1], len(kernel))
        return keeping(kernel, counts.astype(float)) if self.rounded else kernel

    def kernel(self, bandwidth: float) -> Array:
        """Return what part of the mass of each segment (rows) goes to each segment (columns)."""
        kernel = np.eye(self.coordinates.n_segments)
        if len(self.edges) < 3:
            return kernel
        centres = 0.5 * (self.edges[1:] + self.edges[:-1])
        width = bandwidth * (self.edges[-1] - self.edges[0])
        below = ndtr((self.edges[np.newaxis, :] - centres[:, np.newaxis]) / width)
        inner = np.diff(below, axis=1)
        kernel[1:-1, 1:-1] = inner / inner.sum(axis=1, keepdims=True)
        return kernel


def keeping(kernel: Array, counts: Array) -> Array:
    """Return a kernel that leaves masses in proportion to counts, but for rare ones, as they are.

    Rows and columns are multiplied until they sum to the counts (Sinkhorn, 1967), by which a
    kernel that keeps distributions in their order goes on to do so. As large a share as the values
    that were seen once have is spread as ever, since so much of what comes was not seen at all
    (Good, 1953). benchmarks/outcomes.py, "counts": without it P(Y <= k) is off by up to 0.065
    instead of 0.005 (articles), CRPS 0.913 instead of 0.901.
    """
    used = np.flatnonzero(counts > 0)
    if len(used) == 0:
        return kernel
    wanted = counts[used] / counts.sum()
    part = kernel[np.ix_(used, used)]
    rows = np.ones(len(used))
    for _ in range(_SCALINGS):
        columns = wanted / (rows @ part)
        rows = wanted / (part @ columns)
    balanced = kernel.copy()
    balanced[used] = 0.0
    balanced[np.ix_(used, used)] = rows[:, np.newaxis] * part * columns / wanted[:, np.newaxis]
    unseen = wanted[counts[used] < _SEEN_TWICE].sum()
    return (1.0 - unseen) * balanced + unseen * kernel


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
    smoothings: list[Smoothing], bandwidths: Array, rows: HeldOut
) -> tuple[int, float]:
    """Return which smoothing of which bandwidth has the best log score of rows not learnt from.

    Of smoothings that are about as good the first, as where both indices have the same order.
    """
    if len(smoothings) == len(bandwidths) == 1:
        return 0, float(bandwidths[0])
    orders = [np.argsort(one.coordinates.index_of(rows.dist), kind="stable") for one in smoothings]
    gains = np.full((len(smoothings), len(bandwidths)), -np.inf)
    for k, smoothing in enumerate(smoothings):
        if k == 0 or not np.array_equal(orders[k], orders[0]):  # else it learns the same
            gains[k] = _gains(smoothing, bandwidths, rows)
    which = int(np.argmax(gains.max(axis=1) - _WORTH_ANOTHER * (np.arange(len(gains)) > 0)))
    return which, float(bandwidths[np.argmax(gains[which])])


def _gains(smoothing: Smoothing, bandwidths: Array, rows: HeldOut) -> Array:
    """Return the log score of each bandwidth, on rows that masses were not learnt from."""
    coordinates = smoothing.coordinates
    rows, folds = deal(rows, _N_FOLDS, 0)
    segments = coordinates.segments(rows)
    gains = np.zeros(len(bandwidths))
    for fold in np.unique(folds):
        others, own = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if len(others):
            learnt = rows.take(others)
            table, known = _first_table(coordinates, learnt), coordinates.observe(learnt)
            kernels = [smoothing.kernel_for(known, bandwidth) for bandwidth in bandwidths]
            gains += _log_scores(table, kernels, rows.take(own), segments[own])
    return gains


def _first_table(coordinates: IndexCoordinates, rows: HeldOut) -> IndexTable:
    """Return a table whose unknown segments are as the base says."""
    points = [coordinates.observe(rows)]
    if points[0].weights.sum() < rows.weights.sum():
        unknown = rows.take(np.flatnonzero(coordinates.segments(rows) < 0))
        points.append(coordinates.expected(unknown, unknown.dist))
    share = _share_of_base(rows.weights.sum())
    return IndexTable(coordinates, *isotonic_masses(Points.joined(points), coordinates), share)


def _log_scores(
    table: IndexTable, kernels: list[Array], rows: HeldOut, segments: np.ndarray
) -> Array:
    """Return the total log score of rows, with the masses of a table smoothed by each kernel."""
    masses = table.at(table.coordinates.index_of(rows.dist))
    edges = np.concatenate([[-np.inf], table.coordinates.thresholds, [np.inf]])
    known = segments >= 0
    low = np.where(known, edges[segments], rows.seen.lower)
    high = np.where(known, edges[segments + 1], rows.seen.upper)
    base = table.share * rows.dist.prob(low, high)
    covered = _covered(edges, low[~known], high[~known])
    totals = []
    for kernel in kernels:
        own = np.empty(len(rows))
        own[known] = np.einsum("ij,ji->i", masses[known], kernel[:, segments[known]])
        own[~known] = ((masses[~known] @ kernel) * covered).sum(axis=1)
        mixed = np.maximum((1.0 - table.share) * own + base, np.finfo(float).tiny)
        totals.append(rows.weights @ np.log(mixed))
    return np.array(totals)


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
