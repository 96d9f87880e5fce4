"""GPC: a Gaussian process on (P(Y <= t), t), trained on all rows and thresholds.

Depends on the distributions, the Gaussian-process engine, grids and `_validation`. Section 5 of
Song, Kull and Flach (2018) with three changes: the prior mean is the base model, the process is
expanded in a basis, and pairs are summed in cells, so that all of them are used.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from regcal._validation import Array
from regcal.calibrators.base import Calibrator, IdentityCalibrator
from regcal.calibrators.gp_map import (
    LINEAR_VARIANCES,
    GPMapCalibrator,
    MapAxes,
    fit_map_process,
    limited_weights,
    starting_point,
    target_resolution,
)
from regcal.distributions import Distribution, Segmented
from regcal.distributions.base import BLOCK_ELEMENTS
from regcal.distributions.segmented import keep_masses
from regcal.gp import (
    BinomialLikelihood,
    FittedProcess,
    HilbertBasis,
    Kernel,
    Link,
    Probit,
    TensorDesign,
)
from regcal.grids import make_thresholds

# Cells per threshold, equally wide on the probit axis.
_N_CELLS = 96

# Probits are cut here: the log-likelihood of a pair further out is beyond any use.
_PROBIT_CUT = 37.0


@dataclass(frozen=True)
class PairCounts:
    """Pairs (row, threshold) summed in cells of the probit; arrays of (n_thresholds, n_cells).

    Counts of disjoint sets of rows add up.
    """

    trials: Array
    successes: Array
    probit_sums: Array

    def __add__(self, other: "PairCounts") -> "PairCounts":
        return PairCounts(
            self.trials + other.trials,
            self.successes + other.successes,
            self.probit_sums + other.probit_sums,
        )


def count_pairs(
    dist: Distribution,
    y: Array,
    weights: Array,
    thresholds: Array,
    resolution: float = 0.0,
) -> PairCounts:
    """Count, for each threshold and cell of the base's probit, how often Y <= t.

    A target known only up to a rounding step counts as spread over that step.
    """
    shape = (len(thresholds), _N_CELLS)
    total = PairCounts(np.zeros(shape), np.zeros(shape), np.zeros(shape))
    block = max(1, BLOCK_ELEMENTS // (len(thresholds) * dist._work_per_point))
    for start in range(0, len(dist), block):
        rows = slice(start, start + block)
        total += _count_block(dist[rows], y[rows], weights[rows], thresholds, resolution)
    return total


def _count_block(
    dist: Distribution, y: Array, weights: Array, thresholds: Array, resolution: float
) -> PairCounts:
    shape = (len(thresholds), _N_CELLS)
    u = np.clip(dist._probit(thresholds[np.newaxis, :]), -_PROBIT_CUT, _PROBIT_CUT)
    cells = _cells(u) + _N_CELLS * np.arange(len(thresholds))
    if resolution > 0:
        below = np.clip((thresholds - y[:, np.newaxis]) / resolution + 0.5, 0.0, 1.0)
    else:
        below = (y[:, np.newaxis] <= thresholds).astype(float)

    def summed(values: Array) -> Array:
        weighted = weights[:, np.newaxis] * values
        sums = np.bincount(cells.ravel(), weighted.ravel(), shape[0] * shape[1])
        return sums.reshape(shape).astype(float)

    return PairCounts(summed(np.ones(u.shape)), summed(below), summed(u))


def _cells(u: Array) -> np.ndarray:
    """Return cells equally wide in tanh(u / 2)."""
    place = np.tanh(0.5 * u)
    place += 1.0
    place *= 0.5 * _N_CELLS
    return np.minimum(place.astype(np.intp), _N_CELLS - 1)


class GPCalibrator(GPMapCalibrator):
    """Calibrate P(Y <= t) by a Gaussian process on the base's P(Y <= t) and on t.

    The paper's GPC, with all pairs of rows and thresholds, in a fraction of a second, and with a
    valid distribution as its result.

    Parameters
    ----------
    thresholds : int, grid or array-like, default=64
        Targets t at which it is trained; see `regcal.grids`.
    prior : {"identity", "zero"}, default="identity"
        What the process returns to where there are few data: the base model (recalibrated by
        `PITCalibrator` where that is clearly better), or the paper's 1/2.
    link : Link, default=Probit()
        `regcal.gp.Probit` or `regcal.gp.Logit`.
    kernel : Kernel, default=RBF()
        `regcal.gp.RBF`, `Matern52`, `Matern32` or any object with a spectral density.
    prediction_thresholds : int, grid or array-like, optional
        Without it the density is the exact derivative of the calibrated CDF. With it, the density
        is the paper's: differences between neighbouring thresholds of this grid.

    Attributes
    ----------
    thresholds_ : ndarray
        Targets at which it was trained.
    lengthscales_, sigma_, log_evidence_ : ndarray, float, float
        Hyper-parameters found, and the log evidence of the data.
    process_ : regcal.gp.FittedProcess
        Basis and posterior.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import GPCalibrator, Normal
    >>> rng = np.random.default_rng(0)
    >>> dist = Normal(np.zeros(500), np.full(500, 2.0))
    >>> cal = GPCalibrator().fit(dist, rng.normal(size=500))
    >>> cal.transform(dist[:1]).std().round(1)
    array([1.])
    """

    def __init__(
        self,
        thresholds: Any = 64,
        *,
        prior: str = "identity",
        link: Link | None = None,
        kernel: Kernel | None = None,
        prediction_thresholds: Any = None,
    ) -> None:
        self.thresholds = thresholds
        self.prior = prior
        self.link = link
        self.kernel = kernel
        self.prediction_thresholds = prediction_thresholds

    @property
    def _link(self) -> Link:
        return Probit() if self.link is None else self.link

    def _fit(self, dist: Distribution, y: Array, weights: Array) -> None:
        if self.prior not in ("identity", "zero"):
            msg = f'prior must be "identity" or "zero", got {self.prior!r}.'
            raise ValueError(msg)
        weights = limited_weights(dist, y, weights)
        self.start_ = self._start(dist, y, weights)
        started = self.start_.transform(dist)
        self.axes_ = MapAxes.around(y)
        self.thresholds_ = make_thresholds(self.thresholds, y, weights)
        self.prediction_thresholds_ = None
        if self.prediction_thresholds is not None:
            self.prediction_thresholds_ = make_thresholds(self.prediction_thresholds, y, weights)
        counts = count_pairs(started, y, weights, self.thresholds_, target_resolution(y))
        self.process_ = self._fit_process(counts)
        self.map_ = self._checked_map(dist, y, weights)

    def _start(self, dist: Distribution, y: Array, weights: Array) -> Calibrator:
        if self._zero_prior:
            return IdentityCalibrator().fit(dist, y, weights)
        return starting_point(dist, y, weights)

    def _fit_process(self, counts: PairCounts) -> FittedProcess:
        level, cell = np.nonzero(counts.trials)
        u = counts.probit_sums[level, cell] / counts.trials[level, cell]
        # A row enters once per threshold. With fewer rows than thresholds, that would be too much.
        n_rows = counts.trials.sum() / len(self.thresholds_)
        share = 1.0 if self._zero_prior else min(1.0, n_rows / len(self.thresholds_))
        trials = share * counts.trials[level, cell]
        successes = share * counts.successes[level, cell]
        x, s = self.axes_.probit_axis(u), self.axes_.target_axis(self.thresholds_[level])
        extra, offset = self._extra(u), self._prior_mean(u)

        def likelihood(basis: HilbertBasis) -> BinomialLikelihood:
            design = TensorDesign.values(basis, x, s, extra)
            return BinomialLikelihood(
                design, np.minimum(successes, trials), trials, offset, self._link
            )

        return fit_map_process(
            likelihood,
            n_rows,
            kernel=self.kernel,
            extra_variances=LINEAR_VARIANCES[: extra.shape[1]],
            free=self._zero_prior,
        )

    @property
    def _zero_prior(self) -> bool:
        return self.prior == "zero"

    def _prior_mean(self, u: Array) -> Array:
        if self._zero_prior:
            return np.zeros_like(u)
        # the base's probability on the scale of the link
        return u if isinstance(self._link, Probit) else log_ndtr(u) - log_ndtr(-u)

    def _extra(self, u: Array) -> Array:
        return super()._extra(u)[..., : 0 if self._zero_prior else 2]

    def _tail_slopes(self, variances: tuple[float, float]) -> tuple[float, float]:
        if not isinstance(self._link, Probit):
            return 1.0, 1.0
        return super()._tail_slopes(variances)

    def _transform(self, dist: Distribution) -> Distribution:
        warped = super()._transform(dist)
        if self.prediction_thresholds_ is None:
            return warped
        # Section 5: the density is the difference quotient between neighbouring thresholds.
        return Segmented(warped, self.prediction_thresholds_, keep_masses, uniform=True)
