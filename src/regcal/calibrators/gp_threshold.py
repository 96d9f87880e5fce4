"""GPC: a Gaussian process on (P(Y <= t), t), trained on all rows and thresholds.

Section 5 of Song, Kull and Flach (2018) with three changes: the prior mean is the base model, the
process is expanded in a basis, and pairs are summed in cells, so that all of them are used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from regcal._validation import Array
from regcal.calibrators.axes import MapAxes
from regcal.calibrators.cells import (
    LARGEST,
    Coordinates,
    IntervalCoordinates,
    OutcomeCoordinates,
    Points,
    number_cells,
)
from regcal.calibrators.gp_fitted import ProcessCalibrator, earlier_process
from regcal.calibrators.gp_steps import (
    FlatPrior,
    IdentityPrior,
    Prior,
    fit_map_process,
)
from regcal.calibrators.held_out import HeldOut
from regcal.calibrators.labels import expected_below, known_below, learn_labels
from regcal.calibrators.observed import Observed
from regcal.calibrators.targets import Targets
from regcal.covariates import Covariates
from regcal.distributions import Distribution, Segmented, Transformed
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
from regcal.maps import ProbitMap, Surface

# Cells per threshold in which the process sees pairs, equally wide on the probit axis.
_N_CELLS = 96

# Probits are cut here: the log-likelihood of a pair further out is beyond any use.
_PROBIT_CUT = 37.0

_PRIORS: dict[str, Callable[[Link], Prior]] = {"identity": IdentityPrior, "zero": FlatPrior}


@dataclass(frozen=True)
class PairCoordinates:
    """The base's probit u at each threshold t, and whether Y <= t.

    Parameters
    ----------
    thresholds : ndarray
    """

    thresholds: Array

    @property
    def points_per_row(self) -> int:
        """The number of thresholds."""
        return len(self.thresholds)

    def observe(self, rows: HeldOut) -> Points:
        """Return a point per row and threshold, with u and a share of successes.

        Pairs of which nobody knows whether Y <= t are left out.
        """
        values = np.empty((2, len(rows), self.points_per_row))
        self._probits(rows.dist, out=values[0])
        below, y = values[1], rows.y[:, np.newaxis]
        np.less_equal(y, self.thresholds, out=below)
        if rows.exact.all():
            return Points.of_pairs(rows.weights, values)
        some = np.flatnonzero(~rows.exact)
        below[some] = known_below(rows.take(some), self.thresholds)
        return Points.of_pairs(rows.weights, values).where(~np.isnan(below.ravel()))

    def expected(self, rows: HeldOut, latent: Distribution) -> Points:
        """Return the pairs that `observe` leaves out, labelled by their expectation."""
        values = np.stack([self._probits(rows.dist), expected_below(rows, latent, self.thresholds)])
        unknown = np.isnan(known_below(rows, self.thresholds))
        return Points.of_pairs(rows.weights, values).where(unknown.ravel())

    def _probits(self, dist: Distribution, out: Array | None = None) -> Array:
        return np.clip(dist._probit(self.thresholds[np.newaxis, :]), -LARGEST, LARGEST, out=out)

    def cells(self, points: Points) -> np.ndarray:
        """Return cells as wide as 1 / 64 of the probit."""
        return number_cells(points.values[0], 6)

    def follows(self, other: "PairCoordinates") -> bool:
        """Return whether the thresholds are the same."""
        return np.array_equal(self.thresholds, other.thresholds)


def started_pairs(pairs: Points, start: ProbitMap) -> Points:
    """Return pairs after the base's probit has been mapped, in cells of the probit axis."""
    u = np.clip(start(pairs.values[0]), -_PROBIT_CUT, _PROBIT_CUT)
    place = (np.tanh(0.5 * u) + 1.0) * (0.5 * _N_CELLS)
    cells = np.minimum(place.astype(np.intp), _N_CELLS - 1)
    return Points(pairs.levels, pairs.weights, np.stack([u, pairs.values[1]])).merged(cells)


def fit_pairs(
    pairs: Points,
    thresholds: Array,
    axes: MapAxes,
    prior: Prior,
    kernel: Kernel | None,
    earlier: FittedProcess | None,
    known: FittedProcess | None = None,
) -> FittedProcess:
    """Fit the process to how often Y <= t where the base's probit is u.

    With the hyper-parameters of a known process, if one is passed; else their search begins where
    an earlier one ended.
    """
    u, rate = pairs.values
    n_rows = pairs.weights.sum() / len(thresholds)
    trials = prior.row_share(n_rows, len(thresholds)) * pairs.weights
    successes = np.clip(rate, 0.0, 1.0) * trials
    x, s = axes.probit_axis(u), axes.target_axis(thresholds[pairs.levels])
    columns, offset = prior.columns(u), prior.mean(u)

    def likelihood(basis: HilbertBasis) -> BinomialLikelihood:
        design = TensorDesign.values(basis, x, s, columns)
        return BinomialLikelihood(design, successes, trials, offset, prior.link)

    if known is not None:
        return known.refitted(likelihood(known.basis))
    return fit_map_process(likelihood, n_rows, prior, kernel, earlier)


class GPCalibrator(ProcessCalibrator):
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
    support, step : as in every calibrator

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
        support: Any = "auto",
        step: Any = None,
    ) -> None:
        self.thresholds = thresholds
        self.prior = prior
        self.link = link
        self.kernel = kernel
        self.prediction_thresholds = prediction_thresholds
        self.support = support
        self.step = step

    def _coordinates(self, targets: Targets) -> tuple[Coordinates, ...]:
        return (
            OutcomeCoordinates(),
            IntervalCoordinates.over(targets),
            PairCoordinates(targets.thresholds(self.thresholds)),
        )

    def _solve(self, observed: Observed) -> None:
        if self.prior not in _PRIORS:
            msg = f'prior must be "identity" or "zero", got {self.prior!r}.'
            raise ValueError(msg)
        self.prior_ = _PRIORS[self.prior](Probit() if self.link is None else self.link)
        self.axes_ = self.prior_.axes(observed.targets)
        outcomes, intervals, pairs = observed.points
        coordinates = cast(PairCoordinates, observed.coordinates[2])
        self.thresholds_ = coordinates.thresholds
        self.prediction_thresholds_ = None
        if self.prediction_thresholds is not None:
            self.prediction_thresholds_ = observed.targets.thresholds(self.prediction_thresholds)
        self.start_ = self.prior_.start(outcomes, intervals, observed.targets.support.ends)
        known = started_pairs(pairs, self.start_)
        earlier = earlier_process(observed)
        fitted = (self.thresholds_, self.axes_, self.prior_, self.kernel, earlier)
        process: FittedProcess | None = None

        def learn(expected: list[Points]) -> Callable[[Distribution], Distribution]:
            nonlocal process
            pairs = [known, *(started_pairs(one, self.start_) for one in expected)]
            # Hyper-parameters from the first labels: known ones alone are no fair sample, since
            # censored rows have none beyond where they end; later ones are evidence for the map
            # that they follow from.
            process = self.process_ = fit_pairs(Points.joined(pairs), *fitted, process)
            return lambda dist: Transformed(dist, self._surface())

        learn_labels(coordinates, observed.rows, learn)
        self.map_ = self.prior_.checked(self._surface(), outcomes, intervals, observed.rows)

    def _surface(self) -> Surface:
        return self.prior_.surface(self.process_, self.axes_, self.start_)

    def _transform(self, dist: Distribution, covariates: Covariates | None) -> Distribution:
        calibrated = super()._transform(dist, covariates)
        if self.prediction_thresholds_ is None:
            return calibrated
        # Section 5: the density is the difference quotient between neighbouring thresholds.
        return Segmented(calibrated, self.prediction_thresholds_, keep_masses, uniform=True)
