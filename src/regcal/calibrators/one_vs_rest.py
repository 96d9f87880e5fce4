"""One-vs-rest calibration of target segments (Section 4 of Song, Kull and Flach, 2018).

Depends on the distributions, binary maps, grids and `_validation`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from regcal._validation import Array
from regcal.binary import BetaCalibrator, BinaryMap
from regcal.calibrators._rows import Rows
from regcal.calibrators._targets import TargetSummary
from regcal.calibrators.base import Calibrator
from regcal.calibrators.summary import Summary, Tally
from regcal.distributions import Distribution, Segmented
from regcal.distributions.base import BLOCK_ELEMENTS, LOG_HALF
from regcal.distributions.segmented import log_segment_masses
from regcal.grids import make_thresholds

# Up to this many (row, segment) pairs every row is its own point; beyond, cells are used.
_MAX_POINTS = 2**18

# Cells are equally wide in log p up to 1/2 and in -log(1 - p) beyond; the ends are cut.
_N_CELLS = 1024
_LOG_LIMIT = 40.0


@dataclass(frozen=True)
class SegmentCounts:
    """Per segment: log masses with weighted numbers of outcomes inside and in all."""

    log_p: Array
    successes: Array
    trials: Array


def count_rows(dist: Distribution, y: Array, weights: Array, thresholds: Array) -> SegmentCounts:
    """Return one point per row and segment."""
    log_p = log_segment_masses(dist, thresholds).T
    trials = np.broadcast_to(weights, log_p.shape)
    successes = np.zeros(log_p.shape)
    successes[np.searchsorted(thresholds, y, side="left"), np.arange(len(y))] = weights
    return SegmentCounts(log_p, successes, trials)


@dataclass(frozen=True)
class SegmentCells:
    """Rows summed in fine cells of logit(p), for each segment.

    Parameters
    ----------
    thresholds : ndarray
        Ends of the segments.
    sums : ndarray of shape (3, n_segments, n_cells)
        Weighted numbers of rows and of outcomes inside, and sums of log p.
    """

    thresholds: Array
    sums: Array

    @classmethod
    def empty(cls, thresholds: Array) -> "SegmentCells":
        """Return cells without rows."""
        return cls(thresholds, np.zeros((3, len(thresholds) + 1, _N_CELLS)))

    def counted(self, rows: Rows, z: Array | None = None) -> "SegmentCells":
        """Return these sums with more rows added."""
        n_segments = len(self.thresholds) + 1
        trials, successes, log_sum = self.sums.reshape(3, -1).copy()
        size = len(trials)
        block = max(1, BLOCK_ELEMENTS // (n_segments * rows.dist._work_per_point))
        for start in range(0, len(rows.y), block):
            part = slice(start, start + block)
            log_p = log_segment_masses(rows.dist[part], self.thresholds)
            log_p = np.clip(log_p, -700.0, -1e-300)
            cells = _cells(log_p) + np.arange(n_segments) * _N_CELLS
            weights = rows.weights[part]
            w = np.broadcast_to(weights[:, np.newaxis], log_p.shape)
            trials += np.bincount(cells.ravel(), w.ravel(), size)
            log_sum += np.bincount(cells.ravel(), (w * log_p).ravel(), size)
            hit = np.searchsorted(self.thresholds, rows.y[part], side="left")
            successes += np.bincount(cells[np.arange(len(hit)), hit], weights, size)
        sums = np.stack([trials, successes, log_sum]).reshape(self.sums.shape)
        return SegmentCells(self.thresholds, sums)

    def __add__(self, other: "SegmentCells") -> "SegmentCells":
        return SegmentCells(self.thresholds, self.sums + other.sums)

    def moved(self, other: "SegmentCells", rows: Rows) -> "SegmentCells":
        """Return itself, or the kept rows counted for other thresholds."""
        same = np.array_equal(self.thresholds, other.thresholds)
        return self if same else other.counted(rows)

    def counts(self) -> SegmentCounts:
        """Return one point per cell, at its mean log mass."""
        trials, successes, log_sum = self.sums
        log_p = np.divide(log_sum, trials, out=np.full(trials.shape, -1.0), where=trials > 0)
        return SegmentCounts(log_p, successes, trials)


def count_cells(dist: Distribution, y: Array, weights: Array, thresholds: Array) -> SegmentCounts:
    """Return one point per segment and fine cell of logit(p), at the cell's mean log mass."""
    return SegmentCells.empty(thresholds).counted(Rows(dist, y, weights)).counts()


def _cells(log_p: Array) -> np.ndarray:
    coordinate = log_p + _LOG_LIMIT
    large = log_p > LOG_HALF
    coordinate[large] = 2 * LOG_HALF + _LOG_LIMIT - np.log(-np.expm1(log_p[large]))
    coordinate *= _N_CELLS / (2 * _LOG_LIMIT)
    return np.clip(coordinate, 0, _N_CELLS - 1, out=coordinate).astype(np.intp)


class ColumnMaps:
    """One fitted copy of any binary calibrator per segment."""

    def __init__(self, binary: Any, counts: SegmentCounts) -> None:
        self.maps = [
            self._fitted(binary, *column)
            for column in zip(counts.log_p, counts.successes, counts.trials, strict=True)
        ]
        # One pseudo-observation, distributed as the base says, keeps masses positive.
        self.n_trials = float(counts.trials[0].sum())

    def _fitted(self, binary: Any, log_p: Array, successes: Array, trials: Array) -> Any:
        used = np.flatnonzero(trials)
        p = np.exp(log_p[used])[:, np.newaxis]
        rate = successes[used] / trials[used]
        if has_fit_parameter(binary, "sample_weight"):
            return clone(binary).fit(p, rate, sample_weight=trials[used])
        if np.ptp(trials[used]) > 0:
            msg = (
                f"{type(binary).__name__}.fit takes no sample_weight, so it cannot be used with "
                "weights, nor with more than 2**14 rows or 2**18 rows × segments. Use a map that "
                "takes weights."
            )
            raise TypeError(msg)
        return clone(binary).fit(p, rate)

    def predict_log_columns(self, log_p: Array) -> Array:
        """Return log calibrated masses, (n_rows, n_segments)."""
        p = np.exp(log_p)
        columns = [
            np.asarray(one.predict(p[:, k : k + 1]), dtype=float).ravel()
            for k, one in enumerate(self.maps)
        ]
        rates = np.clip(np.stack(columns, axis=1), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            log_rates = np.log(rates * self.n_trials)
        return np.logaddexp(log_rates, log_p) - np.log1p(self.n_trials)


@dataclass(frozen=True)
class Reweighting:
    """Fitted maps as the function that `Segmented` takes; unlike a method, it can be stored."""

    maps: Any

    def __call__(self, log_p: Array) -> Array:
        """Return log calibrated masses, (n_rows, n_segments)."""
        return self.maps.predict_log_columns(log_p)


class OneVsRestCalibrator(Calibrator):
    """Cut the target into segments, calibrate each segment's mass, renormalise.

    The paper's e-logistic and e-beta. Each segment between thresholds has a binary map, learnt
    from the predicted mass of the segment and whether the outcome fell into it.

    Parameters
    ----------
    binary : object, default=BetaCalibrator()
        A `LogisticCalibrator` or `BetaCalibrator`, or any object with ``fit(p, rate)`` and
        ``predict(p)`` on one column, such as scikit-learn's `IsotonicRegression`.
    thresholds : int, grid or array-like, default=16
        Ends of the segments: a number of equally spaced thresholds over the paper's range, a
        grid object from `regcal.grids`, or increasing values. The outer segments are open-ended.
    shape : {"base", "uniform"}, default="base"
        How the mass of a bounded segment is spread inside it: as the base density is there, or
        evenly as in the paper.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_thresholds,)
    maps_ : object
        The fitted maps; with a `BetaCalibrator`, ``maps_.coefficients_`` has a row per segment.

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

    def __init__(self, binary: Any = None, *, thresholds: Any = 16, shape: str = "base") -> None:
        self.binary = binary
        self.thresholds = thresholds
        self.shape = shape

    def _check(self) -> None:
        if self.shape not in ("base", "uniform"):
            msg = f'shape must be "base" or "uniform", got {self.shape!r}.'
            raise ValueError(msg)

    def _fit(self, dist: Distribution, y: Array, weights: Array) -> None:
        self._check()
        self.thresholds_ = make_thresholds(self.thresholds, y, weights)
        pairs = len(y) * (len(self.thresholds_) + 1)
        count = count_rows if pairs <= _MAX_POINTS else count_cells
        self._fit_maps(count(dist, y, weights, self.thresholds_))

    def _tallies(self, targets: TargetSummary) -> tuple[Tally, ...]:
        self._check()
        return (SegmentCells.empty(targets.thresholds(self.thresholds)),)

    def _fit_cells(self, summary: Summary) -> None:
        cells = summary.tallies[0]
        self.thresholds_ = cells.thresholds
        self._fit_maps(cells.counts())

    def _fit_maps(self, counts: SegmentCounts) -> None:
        binary = BetaCalibrator() if self.binary is None else self.binary
        if isinstance(binary, BinaryMap):
            self.maps_ = clone(binary).fit_columns(counts.log_p, counts.successes, counts.trials)
        else:
            self.maps_ = ColumnMaps(binary, counts)

    def _transform(self, dist: Distribution) -> Distribution:
        return Segmented(
            dist,
            self.thresholds_,
            Reweighting(self.maps_),
            uniform=self.shape == "uniform",
        )
