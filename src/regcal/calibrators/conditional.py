"""Calibration given covariates: for whom is the model wrong."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from regcal._validation import Array
from regcal.calibrators.base import Calibrator, given_support
from regcal.calibrators.gp_density import DensityCalibrator
from regcal.calibrators.held_out import HeldOut, deal, without_last_digits
from regcal.calibrators.observed import Observed
from regcal.calibrators.support import Support
from regcal.corrections import (
    AdditiveLearner,
    Correction,
    CrossFitted,
    Learner,
    RegressorLearner,
    Seen,
    cross_fitted,
    trees,
)
from regcal.covariates import Column, Covariates
from regcal.distributions import Distribution, Transformed
from regcal.maps import RowLines

# Corrections are learnt without each of so many parts of the rows in turn. "Three folds" of
# benchmarks/covariates.py: 0.015 nats less. Of many rows, fewer parts are as good, and each takes
# longer.
_N_FOLDS, _MANY_ROWS, _N_FOLDS_OF_MANY = 5, 2000, 3

# Fewer rows than this say nothing about covariates.
_FEWEST_ROWS = 30

_NAMES = ("additive", "trees")


@dataclass(frozen=True)
class LearnerScore:
    """How one way of learning from covariates did on rows it has not learnt from.

    Attributes
    ----------
    name : str
        "none", "additive", "trees", "additive and trees" or "regressors".
    log_score : float
        Mean log density of the outcomes.
    chosen : bool
    """

    name: str
    log_score: float
    chosen: bool


class ConditionalCalibrator(Calibrator):
    """Correct location and spread given covariates, and calibrate what results.

    On the probit scale, where 0 is the predicted median and 1 is a predicted standard deviation,
    outcomes of a calibrated model have the location 0 and the spread 1, whatever else is known of
    a row. This calibrator learns both as functions a(x) and s(x) of covariates and returns
    ``Phi((probit - a(x)) / s(x))``, and another calibrator learns what is still wrong with that.
    Whatever is used to learn or to choose has not seen the row in question.

    Without covariates it looks at the prediction alone: its median and its spread.

    Parameters
    ----------
    learner : {"auto", "additive", "trees"} or (regressor, regressor), default="auto"
        What learns location and spread. "additive": sums of smooth functions of one covariate
        each, with an effect of its own for each category. "trees": scikit-learn's boosted trees,
        which see interactions. A pair of regressors of scikit-learn: the first learns the location,
        the second the mean square about it; both take ``sample_weight``. "auto": a sum of the
        first two, of each the share that suits rows it has not learnt from.
    calibrator : Calibrator, optional
        What comes after; by default `DensityCalibrator`.
    with_prediction : bool, default=True
        Whether median and spread of the prediction are covariates as well, called
        ``"predicted median"`` and ``"predicted spread"``.
    random_state : int, default=0
        Decides which rows form the folds. Equal rows stay together.
    support, step : as in every calibrator

    Attributes
    ----------
    scores_ : list of LearnerScore
        Log scores without and with a correction, on rows it was not learnt from.
    learner_ : str
        What was learnt from covariates, "additive and trees" for example, or "none".
    correction_ : Correction or None
        Location and spread as functions of covariates.
    calibrator_ : Calibrator
        What comes after, fitted.
    origin_ : float
        The smallest outcome, from which predicted medians are told apart: not from 0, which may be
        far from all of them.

    Notes
    -----
    It learns from at most 16 384 rows, a random sample if there are more.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import ConditionalCalibrator, Normal
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(0.0, 10.0, size=400)
    >>> y = rng.normal(np.where(age < 3.0, 2.0, 0.0))
    >>> dist = Normal(np.zeros(400), 1.0)  # which knows nothing of age
    >>> cal = ConditionalCalibrator("additive").fit(dist, y, covariates={"age": age})
    >>> new = Normal([0.0, 0.0], 1.0)
    >>> cal.transform(new, covariates={"age": [1.0, 8.0]}).median().round()
    array([2., 0.])
    """

    _needs_density = True
    uses_covariates = True

    def __init__(
        self,
        learner: Any = "auto",
        calibrator: Calibrator | None = None,
        *,
        with_prediction: bool = True,
        random_state: int = 0,
        support: Any = "auto",
        step: Any = None,
    ) -> None:
        self.learner = learner
        self.calibrator = calibrator
        self.with_prediction = with_prediction
        self.random_state = random_state
        self.support = support
        self.step = step

    def gain(self) -> float:
        """Return what the correction is worth, in nats a row, on rows it was not learnt from."""
        scores = {score.name: score.log_score for score in self.scores_}
        return scores[self.learner_] - scores["none"]

    def _solve(self, observed: Observed) -> None:
        support, self.origin_ = observed.targets.support, observed.targets.low
        rows = observed.modest_rows.merged()
        n_folds = _N_FOLDS if len(rows) < _MANY_ROWS else _N_FOLDS_OF_MANY
        rows, folds = deal(rows, n_folds, self.random_state, support)
        fits = {"none": self._fit_after(rows, None, support)}
        columns = self._columns(rows.dist, rows.covariates)
        learners = self._learners(columns)
        if columns is not None and rows.weights.sum() >= _FEWEST_ROWS:
            seen = probits_of(rows.through(support))
            found = cross_fitted(list(learners.values()), columns, seen, folds)
            fits[" and ".join(learners)] = self._fit_after(rows, found, support)
        self.learner_ = max(fits, key=lambda name: fits[name].log_score)
        self.scores_ = [
            LearnerScore(name, fit.log_score, name == self.learner_) for name, fit in fits.items()
        ]
        self.correction_ = fits[self.learner_].correction
        self.calibrator_ = fits[self.learner_].calibrator

    def _learners(self, columns: Covariates | None) -> dict[str, Learner]:
        learner = self.learner
        if isinstance(learner, str) and learner in ("auto", *_NAMES):
            known = (
                {"additive": AdditiveLearner(), "trees": trees(columns)}
                if columns is not None
                else {}
            )
            return {name: one for name, one in known.items() if learner in ("auto", name)}
        pair = isinstance(learner, tuple | list) and len(learner) == 2
        if pair and all(hasattr(one, "fit") for one in learner):
            return {"regressors": RegressorLearner(*learner)}
        msg = (
            f"learner must be one of auto, {', '.join(_NAMES)}, or a pair of regressors, got "
            f"{learner!r}."
        )
        raise ValueError(msg)

    def _columns(self, dist: Distribution, covariates: Covariates | None) -> Covariates | None:
        """Return the covariates, and those that the predictions themselves are."""
        known = () if covariates is None else covariates.columns
        columns = tuple(map(_without_last_digits, known))
        if self.with_prediction:
            own = _of_prediction(dist, self.origin_)
            _check_names(known, own)
            columns += own
        return Covariates(columns) if columns else None

    def _new_calibrator(self) -> Calibrator:
        """Return a calibrator for what a correction leaves, not fitted."""
        if self.calibrator is None:
            return DensityCalibrator()
        if not isinstance(self.calibrator, Calibrator):
            msg = (
                f"calibrator must be a calibrator, got {self.calibrator!r}. Pass an object, for "
                'example regcal.get_calibrator("scale").'
            )
            raise TypeError(msg)
        return clone(self.calibrator)

    def _fit_after(
        self, rows: HeldOut, found: CrossFitted | None, support: Support
    ) -> "FittedAfter":
        """Return the calibrator of what a correction, learnt without each row, makes of it."""
        moved = rows
        if found is not None:
            moved = rows.predicted(corrected(rows.dist, found.shift, found.factor))
        calibrator = given_support(self._new_calibrator(), support).fit_rows(moved)
        scores = rows.through(support).log_scores(calibrator.transform_latent(moved.dist))
        possible = np.isfinite(scores)
        mean = np.average(scores[possible], weights=rows.weights[possible])
        return FittedAfter(None if found is None else found.correction, calibrator, float(mean))

    def _transform(self, dist: Distribution, covariates: Covariates | None) -> Distribution:
        if self.correction_ is None:
            return self.calibrator_.transform_latent(dist)
        columns = self._columns(dist, covariates)
        assert columns is not None
        return self.calibrator_.transform_latent(corrected(dist, *self.correction_(columns)))


@dataclass(frozen=True)
class FittedAfter:
    """A correction, the calibrator of what it makes, and the score of both."""

    correction: Correction | None
    calibrator: Calibrator
    log_score: float


def corrected(dist: Distribution, shift: Array, factor: Array) -> Distribution:
    """Return predictions moved and stretched on their probit scale, each by its own numbers."""
    return Transformed(dist, RowLines(shift, factor))


def probits_of(rows: HeldOut) -> Seen:
    """Return where outcomes lie on the probit scale of their predictions."""
    low, high = rows.z.copy(), rows.z.copy()
    if not rows.exact.all():
        _, low[~rows.exact], high[~rows.exact] = rows.intervals
    return Seen(low, high, rows.weights)


def _check_names(known: tuple[Column, ...], own: tuple[Column, ...]) -> None:
    taken = {column.name for column in known} & {column.name for column in own}
    if taken:
        msg = (
            f"A covariate is called {sorted(taken)[0]!r}, as one that the prediction itself gives. "
            "Give it another name, or pass with_prediction=False."
        )
        raise ValueError(msg)


def _without_last_digits(column: Column) -> Column:
    """Return a column whose numbers are equal where they should be: else they would have ranks."""
    if column.kind == "category":
        return column
    rounded = without_last_digits(np.ascontiguousarray(column.values))
    return replace(column, values=np.where(column.missing, np.nan, rounded))


def _of_prediction(dist: Distribution, origin: float) -> tuple[Column, Column]:
    """Return median and spread of predictions as covariates; those of each row alone."""
    low, median, high = dist.from_probit(np.array([[-1.0, 0.0, 1.0]])).T
    return (
        Column("predicted median", "number", origin + without_last_digits(median - origin)),
        Column("predicted spread", "number", without_last_digits(0.5 * (high - low))),
    )
