"""GPC as the paper has it, through scikit-learn's Gaussian process classifier.

The reference for `GPCalibrator`: the same model on a few thousand pairs, cubic in their number.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from regcal._progress import Progress
from regcal._validation import Array
from regcal.calibrators.axes import LARGEST_PROBIT, MapAxes
from regcal.calibrators.base import Calibrator
from regcal.calibrators.gp_steps import faded_surface
from regcal.calibrators.observed import Observed
from regcal.covariates import Covariates
from regcal.distributions import Distribution, Segmented, Transformed, as_distribution
from regcal.distributions.segmented import keep_masses
from regcal.maps import Surface
from regcal.maps.axis import LINEAR

# Nodes of the table from which the valid distribution is made.
_TABLE = (97, 129)

# Points that the classifier predicts at a time: its kernel matrix is (points, pairs).
_BLOCK = 2000


@dataclass(frozen=True)
class RepairReport:
    """How far the raw CDFs of the classifier are from valid ones.

    Attributes
    ----------
    decreasing_rows : float
        Share of rows whose CDF decreases somewhere.
    decreasing_steps : float
        Share of steps between prediction thresholds in which it decreases.
    mass_below, mass_above : float
        Mean probability outside the prediction thresholds, which the raw method loses.
    mean_change : float
        Mean absolute difference between the raw and the valid CDF at the thresholds.
    """

    decreasing_rows: float
    decreasing_steps: float
    mass_below: float
    mass_above: float
    mean_change: float


class PaperGPCalibrator(Calibrator):
    """The paper's GPC on a sample of pairs, with scikit-learn's classifier.

    Slow by nature: its cost grows with the cube of the number of pairs. `GPCalibrator` is the
    same idea on all pairs. Of more than 16 384 rows, the pairs are drawn from a sample of so many.

    Parameters
    ----------
    thresholds : int, grid or array-like, default=32
        Targets t at which it is trained.
    n_pairs : int, default=5000
        At most so many pairs (row, threshold) are drawn, uniformly.
    prediction_thresholds : int, grid or array-like, default=1024
        Targets between which the density is a difference quotient.
    kernel : scikit-learn kernel, default=ConstantKernel() * RBF()
        On (q(t), t) with t standardised; its hyper-parameters are optimised within their bounds.
    random_state : int, RandomState or None
        Draws the pairs.
    verbose : int, default=0
        Whether to tell on standard error what is being fitted. With 0, a terminal shows it if
        that takes longer than two seconds, and nothing is written elsewhere.
    support, step : as in every calibrator

    Attributes
    ----------
    classifier_ : GaussianProcessClassifier

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal, PaperGPCalibrator
    >>> rng = np.random.default_rng(0)
    >>> dist = Normal(np.zeros(100), np.full(100, 2.0))
    >>> cal = PaperGPCalibrator(n_pairs=100, random_state=0).fit(dist, rng.normal(size=100))
    >>> raw = cal.raw_cdf(dist[:1])
    >>> raw.shape
    (1, 1024)
    """

    # What files from before there was this parameter have.
    verbose: int = 0

    def __init__(
        self,
        thresholds: Any = 32,
        *,
        n_pairs: int = 5000,
        prediction_thresholds: Any = 1024,
        kernel: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        support: Any = "auto",
        step: Any = None,
    ) -> None:
        self.thresholds = thresholds
        self.n_pairs = n_pairs
        self.prediction_thresholds = prediction_thresholds
        self.kernel = kernel
        self.random_state = random_state
        self.verbose = verbose
        self.support = support
        self.step = step

    def _solve(self, observed: Observed) -> None:
        held_out = observed.modest_rows
        if not held_out.seen.exact_rows.all():
            msg = (
                f"{int((~held_out.seen.exact_rows).sum())} outcomes are intervals, of which the "
                "paper's classifier knows no labels. Use gpc, or drop those rows knowingly."
            )
            raise ValueError(msg)
        self.axes_ = MapAxes.around(observed.targets, LINEAR)
        self.thresholds_ = observed.targets.thresholds(self.thresholds)
        self.prediction_thresholds_ = observed.targets.thresholds(self.prediction_thresholds)
        rows, columns = self._drawn_pairs(len(held_out), held_out.weights)
        targets = self.thresholds_[columns]
        features = self._features(held_out.dist[rows].cdf(targets), targets)
        labels = held_out.y[rows] <= targets
        if labels.all() or not labels.any():
            msg = (
                f"All {len(labels)} drawn pairs have the same label. Draw more pairs, or pass "
                "thresholds inside the range of the targets."
            )
            raise ValueError(msg)
        # imported here, as few fit this one
        from sklearn.gaussian_process import GaussianProcessClassifier
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel

        kernel = ConstantKernel() * RBF() if self.kernel is None else self.kernel
        with Progress("gpc-paper", self.verbose) as progress, warnings.catch_warnings():
            progress.step(f"fitting the classifier on {len(labels)} pairs")
            # the optimiser may stop early or at a bound; the fit is still the paper's
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.classifier_ = GaussianProcessClassifier(kernel, random_state=0).fit(
                features, labels
            )
        self.map_ = self._tabulated()

    def _drawn_pairs(self, n_rows: int, weights: Array) -> tuple[np.ndarray, np.ndarray]:
        rng = check_random_state(self.random_state)
        n_thresholds = len(self.thresholds_)
        wanted = min(int(self.n_pairs), n_rows * n_thresholds)
        share = np.repeat(weights / weights.sum() / n_thresholds, n_thresholds)
        pairs = rng.choice(n_rows * n_thresholds, size=wanted, replace=False, p=share)
        return np.divmod(pairs, n_thresholds)

    def _features(self, q: Array, t: Array) -> Array:
        return np.column_stack([np.ravel(q), self.axes_.target_axis(np.ravel(t))])

    def _probability(self, q: Array, t: Array) -> Array:
        features = self._features(q, t)
        blocks = [features[i : i + _BLOCK] for i in range(0, len(features), _BLOCK)]
        return np.concatenate([self.classifier_.predict_proba(b)[:, 1] for b in blocks])

    def raw_cdf(self, dist: Any) -> Array:
        """Return the classifier's P(Y <= t) at the prediction thresholds, as the paper has it.

        It need not increase with t, nor reach 0 and 1.
        """
        check_is_fitted(self, "classifier_")
        dist = as_distribution(dist)
        grid = np.broadcast_to(
            self.prediction_thresholds_, (len(dist), len(self.prediction_thresholds_))
        )
        return self._probability(dist.cdf(grid), grid).reshape(grid.shape)

    def raw_pdf(self, dist: Any, y: Any) -> Array:
        """Return difference quotients of the raw CDF around each outcome; they may be negative.

        Outcomes beyond the prediction thresholds get 0.
        """
        dist, grid = as_distribution(dist), self.prediction_thresholds_
        y = np.asarray(y, dtype=float)
        k = np.clip(np.searchsorted(grid, y, side="left") - 1, 0, len(grid) - 2)
        ends = np.stack([grid[k], grid[k + 1]], axis=1)
        cdf = self._probability(dist.cdf(ends), ends).reshape(ends.shape)
        density = (cdf[:, 1] - cdf[:, 0]) / (ends[:, 1] - ends[:, 0])
        return np.where((y < grid[0]) | (y > grid[-1]), 0.0, density)

    def repair_report(self, dist: Any) -> RepairReport:
        """Say how much of the raw CDFs had to be changed to make them valid."""
        dist = as_distribution(dist)
        raw = self.raw_cdf(dist)
        falls = np.diff(raw, axis=1) < 0
        valid = self.transform(dist).cdf(self.prediction_thresholds_[np.newaxis, :])
        return RepairReport(
            decreasing_rows=float(falls.any(axis=1).mean()),
            decreasing_steps=float(falls.mean()),
            mass_below=float(raw[:, 0].mean()),
            mass_above=float(1.0 - raw[:, -1].mean()),
            mean_change=float(np.abs(valid - raw).mean()),
        )

    def calibration_map(self, t: Any, q: Any) -> Array:
        """Return the classifier's probability of Y <= t where the base says q, broadcast."""
        check_is_fitted(self, "classifier_")
        t, q = np.broadcast_arrays(np.asarray(t, dtype=float), np.asarray(q, dtype=float))
        return self._probability(q, t).reshape(t.shape)

    def _tabulated(self) -> Surface:
        """Tabulate the classifier on the probit scale, where it can be made increasing."""
        u = np.linspace(-LARGEST_PROBIT, LARGEST_PROBIT, _TABLE[0])
        t = np.linspace(*self.axes_.places, _TABLE[1])
        probability = self.calibration_map(self.axes_.axis.inverse(t), ndtr(u)[:, np.newaxis])
        eta = ndtri(np.clip(probability, 1e-12, 1 - 1e-12))
        return faded_surface(u, t, eta, self.axes_)

    def _transform(self, dist: Distribution, covariates: Covariates | None) -> Distribution:
        calibrated = Transformed(dist, self.map_)
        return Segmented(calibrated, self.prediction_thresholds_, keep_masses, uniform=True)
