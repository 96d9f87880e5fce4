"""Ordinal Dirichlet calibration: all segments at once, each by its own mass and its neighbours'.

Dirichlet calibration of a classifier (Kull, Perello-Nieto, Kängsepp, Silva Filho, Song and Flach,
2019) is a softmax of linear functions of all log masses. Segments have an order, so that here only
a segment and its neighbours matter: a band of the matrix, in which the problem stays convex.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regcal._validation import Array
from regcal.calibrators.base import Calibrator
from regcal.calibrators.cells import Points
from regcal.calibrators.held_out import HeldOut
from regcal.calibrators.labels import expected_below, known_below, learn_labels
from regcal.calibrators.observed import Observed
from regcal.codes import LOG_LIMITS
from regcal.covariates import Covariates
from regcal.distributions import Distribution, Segmented
from regcal.distributions.segmented import log_segment_masses
from regcal.gp import EvidenceSearch, HyperPrior, LaplacePosterior, laplace_posterior
from regcal.gp.likelihood import Evaluation

# What the log mass of a segment gets: shares of that below, its own and that above, a constant.
_N_FEATURES = 4

_IDENTITY = np.array([0.0, 1.0, 0.0, 0.0])

# What a map changes depends on no smaller log masses: an empty segment of a bounded base, or of a
# row that is much narrower than those it was learnt from, says no more than a rare one.
_LEAST = -10.0

# The prior standard deviation of each is the same for all segments, and has the largest evidence:
# of its own share, of the neighbours' and of the constant.
_GROUPS = np.array([1, 0, 1, 2])

# A weak prior on them: a few rows have evidence for anything.
# benchmarks/outlook.py, "strengths": with 5 rows of a model that is right -0.022 nats, at worst
# -0.17, and -0.060 and -0.41 without it; where there is much to mend it costs 0.01 up to 100 rows.
_LIKELY, _WITHIN = (-2.0, -2.0, -2.0), (1.0, 1.0, 1.0)
_SEARCH = EvidenceSearch(
    starts=(_LIKELY,),
    bounds=((-7.0, 3.0),) * 3,
    prior=HyperPrior(_LIKELY, _WITHIN),
    tolerance=0.1,
    gradient_tolerance=0.1,
    longest_step=2.0,
)


@dataclass(frozen=True)
class SegmentRows:
    """Rows with log masses of segments, and shares of segments in what was seen of the outcome.

    Parameters
    ----------
    log_p, shares : ndarray of shape (n_rows, n_segments)
    weights : ndarray of shape (n_rows,)
    """

    log_p: Array
    shares: Array
    weights: Array

    @classmethod
    def joined(cls, parts: Sequence[Points], n_segments: int) -> "SegmentRows":
        """Return the rows of points that are complete: one per row and segment, in order."""
        points = Points.joined(parts)
        log_p, shares = points.values.reshape(2, -1, n_segments)
        return cls(log_p, shares, points.weights[::n_segments])


@dataclass(frozen=True)
class ShareCoordinates:
    """The log mass of each segment, and its share of what was seen of the outcome."""

    thresholds: Array

    def known(self, rows: HeldOut) -> Points:
        """Return the points of rows whose outcome is known to lie in one segment."""
        below = known_below(rows, self.thresholds)
        some = ~np.isnan(below).any(axis=1)
        return self._points(rows.take(some), below[some])

    def expected(self, rows: HeldOut, latent: Distribution) -> Points:
        """Return the points of the others, with shares that are expected under a map."""
        return self._points(rows, expected_below(rows, latent, self.thresholds))

    def _points(self, rows: HeldOut, below: Array) -> Points:
        log_p = np.clip(log_segment_masses(rows.dist, self.thresholds), *LOG_LIMITS)
        shares = np.diff(below, axis=1, prepend=0.0, append=1.0)
        return Points.of_pairs(rows.weights, np.stack([log_p, shares]))


def neighbour_features(log_p: Array) -> Array:
    """Return the log mass below, its own and that above, and 1; (n_rows, n_segments, 4)."""
    log_p = np.maximum(log_p, _LEAST)
    features = np.zeros((*log_p.shape, _N_FEATURES))
    features[:, 1:, 0], features[:, :-1, 2] = log_p[:, :-1], log_p[:, 1:]
    features[:, :, 1], features[:, :, 3] = log_p, 1.0
    return features


class BandedSoftmax:
    """The likelihood of shares of segments, as inference asks for it; see `regcal.gp.Likelihood`.

    Coefficients are added to those of the identity, segment by segment.
    """

    def __init__(self, rows: SegmentRows) -> None:
        self.rows = rows
        self.features = neighbour_features(rows.log_p)

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients."""
        return self.rows.log_p.shape[1] * _N_FEATURES

    def restrict(self, active: np.ndarray) -> "BandedSoftmax":
        """Return the whole: all coefficients matter."""
        return self

    def value(self, coefficients: Array) -> float:
        """Return the log-likelihood."""
        z = self._log_masses(coefficients)
        return float(self.rows.weights @ (self.rows.shares * z).sum(axis=1))

    def evaluate(self, coefficients: Array) -> Evaluation:
        """Return the log-likelihood, its gradient and its negative Hessian."""
        z, weights = self._log_masses(coefficients), self.rows.weights[:, np.newaxis]
        q = np.exp(z)
        value = float(self.rows.weights @ (self.rows.shares * z).sum(axis=1))
        gradient = self._adjoint(weights * (self.rows.shares - q))
        # Σ w F' (diag(q) - q q') F
        outer = self._flat(np.sqrt(weights) * q)
        hessian = -(outer.T @ outer)
        rooted = np.sqrt(weights * q)[:, :, np.newaxis] * self.features
        for k, own in enumerate(np.moveaxis(rooted, 1, 0)):
            place = slice(k * _N_FEATURES, (k + 1) * _N_FEATURES)
            hessian[place, place] += own.T @ own
        return Evaluation(value, gradient, hessian)

    def trace_gradient(self, coefficients: Array, covariance: Array) -> Array:
        """Return the gradient of trace(covariance @ neg_hessian)."""
        # With S = F C F' of a row, the trace is Σ w (q · diag S - q' S q).
        q = np.exp(self._log_masses(coefficients))
        size = (q.shape[1], _N_FEATURES)
        blocks = np.einsum("kfkg->kfg", covariance.reshape(*size, *size))
        own = np.einsum("nkf,kfg,nkg->nk", self.features, blocks, self.features, optimize=True)
        moved = (self._flat(q) @ covariance).reshape(self.features.shape)
        joint = np.einsum("nkf,nkf->nk", moved, self.features)
        change = own - 2.0 * joint
        change -= (q * change).sum(axis=1, keepdims=True)
        return self._adjoint(self.rows.weights[:, np.newaxis] * q * change)

    def _log_masses(self, coefficients: Array) -> Array:
        changes = np.einsum("nkf,kf->nk", self.features, coefficients.reshape(-1, _N_FEATURES))
        z = self.rows.log_p + changes
        z -= z.max(axis=1, keepdims=True)
        return z - np.log(np.exp(z).sum(axis=1, keepdims=True))

    def _flat(self, factors: Array) -> Array:
        """Return features times a number per segment, (n_rows, n_coefficients)."""
        return (factors[:, :, np.newaxis] * self.features).reshape(len(factors), -1)

    def _adjoint(self, values: Array) -> Array:
        return np.einsum("nk,nkf->kf", values, self.features).ravel()


@dataclass(frozen=True)
class BandPrior:
    """Prior variances of the coefficients of so many segments: a ridge to the identity."""

    n_segments: int

    def log_variances(self, theta: Any) -> tuple[Array, Array]:
        """Return log prior variances and their gradient in the log standard deviations."""
        groups = np.tile(_GROUPS, self.n_segments)
        return 2.0 * np.asarray(theta)[groups], 2.0 * np.eye(_GROUPS.max() + 1)[groups]

    def active(self, log_variances: Array) -> np.ndarray:
        """Return the places of all coefficients."""
        return np.arange(len(log_variances))


@dataclass(frozen=True)
class BandedMap:
    """Log masses as linear functions of those of the base: what `Segmented` takes.

    Parameters
    ----------
    coefficients : ndarray of shape (n_segments, 4)
        Of the log mass below, its own, that above, and a constant. The identity has 1 for its own
        and 0 for the others.
    """

    coefficients: Array

    def __call__(self, base: Distribution, log_p: Array) -> Array:
        """Return log calibrated masses, (n_rows, n_segments), which need not sum to 1."""
        log_p = np.clip(log_p, *LOG_LIMITS)
        features, changes = neighbour_features(log_p), (self.coefficients - _IDENTITY).T
        # one after the other, so that a row's digits do not depend on the rows beside it
        columns = enumerate(changes)
        return log_p + np.asarray(sum(features[:, :, k] * column for k, column in columns))


class DirichletCalibrator(Calibrator):
    """Cut the target into segments and calibrate all their masses together.

    Ordinal Dirichlet calibration: the new log mass of a segment is a linear function of its own
    log mass and of those of its neighbours, up to a sum of 1. How far it may be from the base is
    chosen by evidence.

    Parameters
    ----------
    thresholds : int, grid or array-like, default=16
        Ends of the segments: a number of thresholds over the paper's range, equally spaced on
        the axis that suits the targets (see `regcal.maps.Axis`) and within their support, a
        grid object from `regcal.grids`, or increasing values. The outer segments are open-ended.
    support, step : as in every calibrator

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_thresholds,)
    map_ : BandedMap
        ``map_.coefficients`` has a row per segment: the shares of the log mass below, of its own
        and of that above, and a constant.
    deviations_ : ndarray of shape (3,)
        Prior standard deviations of own shares, of neighbours' and of constants.

    References
    ----------
    Kull, Perello-Nieto, Kängsepp, Silva Filho, Song and Flach (2019), Beyond temperature scaling:
    obtaining well-calibrated multiclass probabilities with Dirichlet calibration, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import DirichletCalibrator, Normal
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000)
    >>> dist = Normal(x, np.full(2000, 2.0))  # too low by a half and twice too wide
    >>> cal = DirichletCalibrator(thresholds=32).fit(dist, x + 0.5 + rng.normal(size=2000))
    >>> new = cal.transform(Normal([0.0], [2.0]))
    >>> new.mean().round(1), new.std().round(1)
    (array([0.5]), array([1.]))
    """

    def __init__(self, thresholds: Any = 16, *, support: Any = "auto", step: Any = None) -> None:
        self.thresholds = thresholds
        self.support = support
        self.step = step

    def _solve(self, observed: Observed) -> None:
        self.thresholds_ = observed.targets.thresholds(self.thresholds)
        coordinates = ShareCoordinates(self.thresholds_)
        rows = observed.modest_rows.through(observed.targets.support)
        known, n_segments = coordinates.known(rows), len(self.thresholds_) + 1
        posterior: LaplacePosterior | None = None

        def learn(expected: list[Points]) -> Callable[[Distribution], Distribution]:
            nonlocal posterior
            likelihood = BandedSoftmax(SegmentRows.joined([known, *expected], n_segments))
            # strengths from the first labels: later ones are evidence for the map they follow from
            posterior = fit_band(likelihood, BandPrior(n_segments), posterior)
            self.map_ = band_of(posterior)
            self.deviations_ = np.exp(posterior.theta)
            return self.transform_latent

        learn_labels(coordinates, rows, learn)

    def _transform(self, dist: Distribution, covariates: Covariates | None) -> Distribution:
        return Segmented(dist, self.thresholds_, self.map_)


def fit_band(
    likelihood: BandedSoftmax, prior: BandPrior, known: LaplacePosterior | None
) -> LaplacePosterior:
    """Return the coefficients with the strengths of largest evidence, or with known ones."""
    if known is not None:
        return laplace_posterior(likelihood, prior, known.theta, known)
    return _SEARCH.run(likelihood, prior)


def band_of(posterior: LaplacePosterior) -> BandedMap:
    """Return the map of coefficients that are added to the identity."""
    changes = posterior.coefficients.reshape(-1, _N_FEATURES)
    return BandedMap(changes + _IDENTITY)
