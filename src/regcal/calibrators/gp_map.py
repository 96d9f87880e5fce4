"""What the two Gaussian-process calibrators share: coordinates, the averaged map, inspection.

Depends on the distributions, the Gaussian-process engine and `_validation`.

Notation (docs/notation.md): u = probit of the base's P(Y <= t), h = the Gaussian process,
eta = the calibrated probit. The process lives on two bounded axes, x(u) and s(t).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri, ndtri_exp
from sklearn.utils.validation import check_is_fitted

from regcal._validation import Array, as_float_array
from regcal.calibrators.base import Calibrator, IdentityCalibrator
from regcal.calibrators.pit import PITCalibrator
from regcal.calibrators.scale import ScaleCalibrator
from regcal.calibrators.summary import Summary
from regcal.distributions import Distribution
from regcal.distributions.probit_mapped import ProbitMap
from regcal.distributions.warped import SMALLEST_SLOPE, Warped, WarpMap, is_gentle
from regcal.gp import (
    EvidenceSearch,
    FittedProcess,
    HilbertBasis,
    HyperPrior,
    Kernel,
    Link,
    Probit,
    fit_process,
)
from regcal.gp.laplace import LaplaceLikelihood

# Beyond this many standard deviations the process is frozen and eta goes on as a straight line.
LARGEST_PROBIT = 6.0

# Most basis functions per axis. With few rows there are fewer: no more than rows, if these are
# more than the fewest.
_LARGEST_SIZES, _FEWEST = (20, 32), 10

# A length-scale that a basis of n functions resolves is at least this over n.
_FUNCTIONS_PER_LENGTHSCALE = 2.3

# Weak prior on the logarithms of sigma and the two length-scales: without signal the evidence is
# flat, and short length-scales would only cost time.
_HYPER_PRIOR = HyperPrior(mean=(0.0, math.log(0.5), math.log(0.5)), sd=(1.5, 1.0, 1.0))

# A map that loses more than this per row, on at most so many of its own rows, is dropped: what it
# started from is left.
_LARGEST_LOSS = 0.05
_CHECKED_ROWS = 5000

# No outcome counts for more than so many rows, or this share of all, whichever is more.
_LARGEST_WEIGHT, _LARGEST_SHARE = 5.0, 0.05

# From here on, a map with a prior of 1/2 fades into the identity.
_FADING_PROBIT = 3.0

# Beyond all outcomes, tails are no heavier than a Pareto tail with this index: the mean excess over
# a probit is at most the probit divided by the index less one. Outcomes further out than the
# farthest probit do not make them heavier still.
_TAIL_INDEX = 4.0
_FARTHEST_PROBIT = 20.0

# Prior variances of the linear terms: the constant and the slope in u.
LINEAR_VARIANCES = (1.0, 1.0)

# Half of the targets' range is added at both sides, as in the paper.
_MARGIN = 0.5


@dataclass(frozen=True)
class MapAxes:
    """The box of the map: targets between `low` and `high`, probits up to `LARGEST_PROBIT`.

    Parameters
    ----------
    low, high : float
        Range of targets.
    """

    low: float
    high: float

    @classmethod
    def around(cls, y: Array) -> "MapAxes":
        """Return axes over the targets' range, widened at both sides."""
        return cls.between(float(y.min()), float(y.max()))

    @classmethod
    def between(cls, low: float, high: float) -> "MapAxes":
        """Return axes over the range of targets between two values, widened at both sides."""
        if low == high:
            msg = (
                f"All targets equal {low}, so there is no range to learn a map on. "
                "Calibrate with rows whose outcomes differ."
            )
            raise ValueError(msg)
        extra = _MARGIN * (high - low)
        return cls(low - extra, high + extra)

    @property
    def halfwidth(self) -> float:
        """Half of the range of targets."""
        return 0.5 * (self.high - self.low)

    def probit_axis(self, u: Array) -> Array:
        """Return the bounded coordinate of a probit."""
        return np.tanh(0.5 * np.clip(u, -LARGEST_PROBIT, LARGEST_PROBIT))

    def probit_axis_slope(self, u: Array) -> Array:
        """Return d x / d u, 0 where the process is frozen."""
        inside = np.abs(u) <= LARGEST_PROBIT
        return np.where(inside, 0.5 * (1.0 - np.tanh(0.5 * u) ** 2), 0.0)

    def target_axis(self, t: Array) -> Array:
        """Return the coordinate of a target, within [-1, 1]."""
        return np.clip((t - self.low) / self.halfwidth - 1.0, -1.0, 1.0)


class GPMapCalibrator(Calibrator):
    """Base of the calibrators whose map is a Gaussian process on (u, t).

    A subclass sets `axes_`, `process_` and `map_`. The prior mean is the base model or, where
    that is clearly better, the base model after scaling or PIT recalibration (`start_`).
    """

    start_: Calibrator
    axes_: MapAxes
    process_: FittedProcess
    map_: WarpMap

    @property
    def _link(self) -> Link:
        """The function that turns the process into a probability."""
        return Probit()

    @property
    def _start_map(self) -> ProbitMap | None:
        """What is done to the base's probit first."""
        return getattr(self.start_, "map_", None)

    @property
    def _zero_prior(self) -> bool:
        """Whether the process returns to 1/2 instead of the base model."""
        return False

    def _prior_mean(self, u: Array) -> Array:
        """Return the prior mean on the link scale: the base model."""
        return u

    def _extra(self, u: Array) -> Array:
        """Return the columns of the linear terms, a constant and u."""
        return np.stack([np.ones_like(u), u], axis=-1)

    def _tail_slopes(self, variances: tuple[float, float]) -> tuple[float, float]:
        """Return d eta / d u below and above the box, given the variances at its ends."""
        slope = 1.0 + float(self.process_.posterior.coefficients[1])
        return slope / np.sqrt(1.0 + variances[0]), slope / np.sqrt(1.0 + variances[1])

    @property
    def lengthscales_(self) -> Array:
        """Length-scales on the probit and the target axis, in units of half their range."""
        return self.process_.lengthscales

    @property
    def sigma_(self) -> float:
        """Prior standard deviation of the process, on the link scale."""
        return self.process_.sigma

    @property
    def log_evidence_(self) -> float:
        """Laplace approximation of the log marginal likelihood."""
        return self.process_.posterior.log_evidence

    def calibration_map(self, t: Any, q: Any, *, return_std: bool = False) -> Any:
        """Return the calibrated probability of Y <= t where the base says q.

        This is the map itself, before it is made increasing along a row's path.

        Parameters
        ----------
        t, q : array-like
            Thresholds and base probabilities; they are broadcast.
        return_std : bool, default=False
            Also return the posterior standard deviation of the process, on the link scale.

        Returns
        -------
        ndarray, or a pair of them
        """
        check_is_fitted(self, "process_")
        t, q = np.broadcast_arrays(as_float_array(t, "t"), as_float_array(q, "q"))
        if ((q < 0) | (q > 1)).any():
            msg = f"q must be probabilities between 0 and 1, got {q[(q < 0) | (q > 1)][0]}."
            raise ValueError(msg)
        with np.errstate(divide="ignore"):
            u = ndtri_exp(np.log(q.ravel()))
        if self._start_map is not None:
            u = self._start_map(u)
        u = np.clip(u, -LARGEST_PROBIT, LARGEST_PROBIT)
        mean, variance = self.process_.moments(
            self.axes_.probit_axis(u), self.axes_.target_axis(t.ravel()), self._extra(u)
        )
        averaged = self._link.average(self._prior_mean(u) + mean, variance).reshape(t.shape)
        return (averaged, np.sqrt(variance).reshape(t.shape)) if return_std else averaged

    def _averaged_map(self) -> WarpMap:
        """Tabulate eta - u, averaged over the posterior, on a grid that resolves the process."""
        axes, process = self.axes_, self.process_
        x_scale, s_scale = process.lengthscales
        u = np.linspace(-LARGEST_PROBIT, LARGEST_PROBIT, int(np.clip(24 / x_scale, 48, 320)) + 1)
        t = np.linspace(axes.low, axes.high, int(np.clip(8 / s_scale, 32, 160)) + 1)
        extra = self._extra(u)[:, np.newaxis, :]
        grid = axes.probit_axis(u), axes.target_axis(t), extra
        mean, variance = process.mean_grid(*grid), process.variance_grid(*grid)
        eta = self._link.average_probit(self._prior_mean(u)[:, np.newaxis] + mean, variance)
        if self._zero_prior:
            return WarpMap(u, t, fade_out(u, eta - u[:, np.newaxis]), (1.0, 1.0))
        start = self._start_map
        if start is not None and not is_gentle(start, LARGEST_PROBIT):
            start = None
        slopes = self._tail_slopes((float(variance[0].mean()), float(variance[-1].mean())))
        low, high = (max(slope, SMALLEST_SLOPE) for slope in slopes)
        return WarpMap(u, t, eta - u[:, np.newaxis], (low, high), start)

    def _checked_map(self, dist: Distribution, y: Array, weights: Array) -> WarpMap:
        """Return the averaged map, or none if it does worse on the very rows it was learnt from."""
        averaged = self._averaged_map()
        if self._zero_prior:
            return averaged
        outcomes = self.start_.transform(dist).probit(y)
        averaged = with_bounded_tails(averaged, outcomes, weights.sum())
        rows = np.arange(0, len(y), max(1, len(y) // _CHECKED_ROWS))
        started = self.start_.transform(dist[rows])
        with np.errstate(invalid="ignore"):
            gain = self._warped(dist[rows], averaged).logpdf(y[rows]) - started.logpdf(y[rows])
        gain = np.where(np.isfinite(gain), gain, 0.0)
        if np.average(gain, weights=weights[rows]) > -_LARGEST_LOSS:
            return averaged
        return replace(averaged, h=np.zeros_like(averaged.h), slopes=(1.0, 1.0))

    def _warped(self, dist: Distribution, averaged: WarpMap) -> Distribution:
        # a gentle start is part of the map, which is faster; any other is applied before
        return Warped(dist if averaged.start else self.start_.transform(dist), averaged)

    def _transform(self, dist: Distribution) -> Distribution:
        return self._warped(dist, self.map_)


def fit_map_process(
    likelihood_for: Callable[[HilbertBasis], LaplaceLikelihood],
    n_rows: float,
    *,
    kernel: Kernel | None,
    extra_variances: tuple[float, ...],
    free: bool = False,
) -> FittedProcess:
    """Fit the process of a map learnt from so many rows; `free` leaves out the prior and limit."""
    share = 1.0 if free else min(1.0, math.sqrt(n_rows / math.prod(_LARGEST_SIZES)))
    first, second = (max(_FEWEST, int(share * size)) for size in _LARGEST_SIZES)
    shortest = [math.log(_FUNCTIONS_PER_LENGTHSCALE / size) for size in (first, second)]
    search = EvidenceSearch(
        bounds=((-5.0, 4.0), (shortest[0], 1.5), (shortest[1], 1.5)),
        prior=None if free else _HYPER_PRIOR,
        tolerance=0.01,
        gradient_tolerance=0.03,
        max_evaluations=30,
    )
    return fit_process(
        likelihood_for,
        kernel=kernel,
        extra_variances=extra_variances,
        search=search,
        largest_sizes=(first, second),
        warn=False,
    )


def with_bounded_tails(warp: WarpMap, outcomes: Array, n_rows: float) -> WarpMap:
    """Return the map with steeper tails where no outcome was, if they are too heavy.

    A straight line learnt in the middle may be nearly flat, and says nothing about what is far
    beyond all outcomes, whose probits and number are given.
    """
    outcomes = outcomes[np.isfinite(outcomes)]
    if len(outcomes) == 0:
        return warp
    # where the calibrated probit of the last outcome is eta, the mean excess is 1 / (eta * slope)
    last_eta = -ndtri(0.5 / (max(n_rows, 1.0) + 1.0))
    eta, slopes = warp.h + warp.u[:, np.newaxis], []
    for side, tail in zip((-1.0, 1.0), warp.slopes, strict=True):
        last = float(np.clip((side * outcomes).max(), 1.0, _FARTHEST_PROBIT))
        slope = (_TAIL_INDEX - 1.0) / (last_eta * last)
        beyond = side * warp.u > last
        if beyond.any():
            edge = np.flatnonzero(~beyond)[-1 if side > 0 else 0]
            line = eta[edge] + slope * (warp.u[beyond] - warp.u[edge])[:, np.newaxis]
            eta[beyond] = side * np.maximum(side * eta[beyond], side * line)
        slopes.append(max(tail, slope))
    return replace(warp, h=eta - warp.u[:, np.newaxis], slopes=(slopes[0], slopes[1]))


def limited_weights(dist: Distribution, y: Array, weights: Array) -> Array:
    """Return weights with which no single outcome, however often repeated, rules the map.

    A map that may bend anywhere would otherwise put all its mass there.
    """
    _, index = np.unique(np.column_stack([dist.probit(y), y]), axis=0, return_inverse=True)
    index = index.ravel()
    total = np.bincount(index, weights).astype(float)
    limited = total
    while limited.max() > (limit := max(_LARGEST_WEIGHT, _LARGEST_SHARE * limited.sum())) * 1.001:
        limited = np.minimum(limited, limit)
    # together they count for at most five times their effective number (Kish, 1965)
    effective = limited.sum() ** 2 / (limited**2).sum()
    limited = limited * min(1.0, _LARGEST_WEIGHT * effective / limited.sum())
    return weights * (limited / total)[index]


def fade_out(u: Array, h: Array) -> Array:
    """Return a map that fades into the identity where the base says nearly 0 or nearly 1.

    A classifier whose prior is 1/2 never reaches 0 and 1, so that mass would be left at infinity.
    """
    share = np.clip((LARGEST_PROBIT - np.abs(u)) / (LARGEST_PROBIT - _FADING_PROBIT), 0.0, 1.0)
    return (share**2 * (3.0 - 2.0 * share))[:, np.newaxis] * h


def weight_share(summary: Summary) -> float | None:
    """Return the factor by which `limited_weights` reduces all weights of a summary's rows.

    None if it would reduce those of single outcomes, which cells do not tell apart.
    """
    rows = summary.rows
    total = rows.weights.sum()
    _, index = np.unique(
        np.column_stack([rows.dist.probit(rows.y), rows.y]), axis=0, return_inverse=True
    )
    shares = np.bincount(index.ravel(), rows.weights) / total
    if shares.max() > max(_LARGEST_SHARE, _LARGEST_WEIGHT / summary.total_weight):
        return None
    # the sum over outcomes of their squared weights: rows with themselves, and with equal rows
    pairs = (shares**2).sum() - ((rows.weights / total) ** 2).sum()
    squares = summary.squared_weight + max(pairs, 0.0) * summary.total_weight**2
    return min(1.0, _LARGEST_WEIGHT * summary.total_weight / squares)


def starting_point(dist: Distribution, y: Array, weights: Array) -> Calibrator:
    """Return PIT recalibration, a scale or the identity: the first that is worth its parameters."""
    z = dist.probit(y)
    with np.errstate(divide="ignore"):
        scored = np.isfinite(dist.logpdf(y))
    possible = np.isfinite(z)
    start = choose_start(z[possible], weights[possible], weights.sum(), scored[possible])
    start.n_rows_seen_ = len(y)
    return start


def choose_start(
    z: Array, weights: Array, total: float, scored: np.ndarray | bool = True
) -> Calibrator:
    """Return the starting point of rows whose outcomes have the probits z.

    The price of a parameter is that of the Bayesian information criterion. Rows that are not
    `scored` have no density to compare.
    """
    scale, pit = (cal.fit_probits(z, weights) for cal in (ScaleCalibrator(), PITCalibrator()))
    price = 0.5 * np.log(total)

    def gain(calibrator: ScaleCalibrator | PITCalibrator) -> float:
        image, slope = calibrator.map_.image_and_slope(z)
        gains = 0.5 * (z - image) * (z + image) + np.log(slope)
        return float(np.sum(weights * np.where(scored, gains, 0.0)))

    if gain(pit) - gain(scale) > price * len(pit.map_.knots):
        return pit
    return scale if gain(scale) > price else IdentityCalibrator()


def target_resolution(y: Array) -> float:
    """Return the distance between neighbouring values of rounded targets.

    The tenth percentile of the gaps between distinct values: the step of a rounded target, next
    to nothing for a continuous one.
    """
    gaps = np.diff(np.unique(y))
    return float(np.quantile(gaps, 0.1)) if len(gaps) else 0.0
