"""A regressor whose predictive distributions are calibrated."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter
from sklearn.utils.parallel import Parallel, delayed

from regcal._inspection import Auditable, FittedCard, check_has_learnt
from regcal._progress import Progress
from regcal._validation import Array, as_float_array
from regcal.adapters import check_can_predict, predict_dist
from regcal.calibrators import AutoCalibrator, Calibrator, calibrator_names, get_calibrator
from regcal.calibrators.agreement import warn_of_gross_errors, warn_of_rounding
from regcal.calibrators.base import fitted_copy, given_support, refuse_censoring_beyond
from regcal.calibrators.few_rows import warn_of_few_rows, warn_of_odd_weights
from regcal.calibrators.held_out import HeldOut
from regcal.calibrators.targets import Targets
from regcal.covariates import Covariates
from regcal.distributions import Distribution, Mixture
from regcal.maps.members import Joints
from regcal.outcomes import Outcomes
from regcal.regressor._answers import at_thresholds, library_of, like_rows
from regcal.regressor._folds import (
    as_weights,
    asked_support,
    check_outcome_data,
    check_support,
    check_table,
    input_tags,
    numbers_of,
    route_metadata,
    router_for,
    rows_together,
    warned_once,
)
from regcal.regressor._guarantee import (
    Guarantee,
    adopt,
    fit_with_guarantee,
    given_guarantee,
    groups_of,
)
from regcal.regressor._quantiles import MultiQuantileRegressor
from regcal.regressor._refit import FoldFitter, fit_fold_models


@dataclass(frozen=True)
class CalibratedModel:
    """A fitted model and the calibrator of its predictions."""

    estimator: Any
    calibrator: Calibrator


@dataclass(frozen=True)
class TrainingRows:
    """The rows of a fit: features, what was seen, and what calibrators may look at."""

    X: Any
    seen: Outcomes
    weights: Array
    covariates: Covariates | None
    groups: np.ndarray | None

    def held_out(self, model: Any, rows: Any) -> HeldOut:
        """Return what a model predicts for rows that it has not seen."""
        return HeldOut(
            predict_dist(model, _safe_indexing(self.X, rows)),
            self.seen[rows],
            self.weights[rows],
            None if self.covariates is None else self.covariates[rows],
            None if self.groups is None else self.groups[rows],
        )


class CalibratedRegressorCV(
    FittedCard, Auditable, RegressorMixin, MetaEstimatorMixin, BaseEstimator
):
    """Calibrate a regressor's predictive distributions on rows it was not trained on.

    Parameters
    ----------
    estimator : estimator
        Anything whose fitted form `predict_dist` understands. Wrap models that only predict a
        number in `NormalResidualRegressor`. A fitted model in a
        `sklearn.frozen.FrozenEstimator` is not fitted again: all rows given to `fit` calibrate
        it, and must not be those it was trained on. A dict from levels to quantile regressors,
        ``{0.1: low, 0.9: high}``, stands for a `MultiQuantileRegressor` of it.
    calibrator : str or Calibrator, default="auto"
        A name that `get_calibrator` knows, or a calibrator. With "auto" the method is chosen
        once, on the held-out predictions of all folds together.
    cv : int or splitter, default=3
        Number of folds, dealt at random as `random_state` says, or a splitter of scikit-learn:
        for rows in time order or in groups that belong together, pass `TimeSeriesSplit` or
        `GroupKFold`.
    ensemble : bool or "auto", default="auto"
        True: every fold's model keeps its own calibrator, fitted on that fold's held-out rows,
        and predictions are the average of them all (the paper); where these rows' outcomes are
        all equal, the fold's model stays as it is, with a warning. False: one calibrator is fitted
        on the held-out predictions of all folds, and the model is fitted again on all rows.
        "auto": what the models say decides. If the one of all rows states spreads that are
        smaller by more than a tenth, on rows that both have seen, it still learns: it is kept
        (False), and calibrated on the predictions of 10 folds, whose models differ less from it;
        with a splitter the fold models are averaged (True) unless they see nine tenths of the
        rows. If not, but medians on held-out rows differ by more than a tenth of the spread, the
        model is unsteady, and averaging steadies it (True). Else they say the same (False).
    n_jobs : int, optional
        Number of models fitted at once, through joblib.
    point : {"mean", "median"}, default="mean"
        What `predict` returns.
    covariates : None, "all", or names or numbers of columns of X, default=None
        Columns that the calibrator looks at beside the predictions, so that they hold for each
        group and along each of them: "auto" and "conditional" can. They may be numbers or
        categories, and have gaps.
    support : {"auto", None} or (low, high), default="auto"
        Ends at which outcomes beyond are seen, such as 0 for rain: found where outcomes pile up,
        none, or given; write an end that there is none of as None. With "auto", a calibrator
        that says otherwise is followed.
    step : float or "auto", optional
        Distance of the values that outcomes are rounded to: 1 for counts. The result then is a
        distribution of these values.
    guarantee : {None, "split", "cross"}, SplitGuarantee or CrossGuarantee, optional
        Prepares intervals and bounds with coverage in finite samples, for `predict_interval` and
        `predict_quantiles` with ``guarantee=True``. "split" holds a part of the rows out of model,
        calibrator and selection, and coverage is proven for exchangeable rows; "cross" holds out
        every row once from copies of them, which takes six fits, and is approximate.
    random_state : int, default=0
        Decides how a number of folds deals the rows.
    verbose : int, default=0
        Whether to tell every step on standard error. With 0, a terminal shows the current step
        of a fit that takes longer than two seconds, and nothing is written elsewhere.

    Attributes
    ----------
    members_ : list of CalibratedModel
        Fitted models (``estimator``) with their calibrators; their distributions are averaged.
        ``FrozenEstimator([member.estimator for member in model.members_])`` is the model without
        calibration, ready to be calibrated again.
    ensemble_ : bool
        The value of `ensemble` that was used.
    support_ : Support
        Ends and step through which outcomes are seen.
    selection_ : AutoCalibrator
        How the method was chosen, if that was asked for; see its ``scores_``.
    guarantee_ : Guarantee
        What was prepared, if `guarantee` asked for it.
    n_features_in_, feature_names_in_
        Number of columns of X, and their names if X was a frame.

    Notes
    -----
    ``score`` is the R² of `predict`, as for every regressor of scikit-learn: it judges one number
    per row, and refuses censored ones. To search and compare by distributions, pass a scorer of
    `regcal.metrics`, such as ``scoring=regcal.metrics.log_score_scorer``, to scikit-learn.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> from regcal import CalibratedRegressorCV
    >>> from regcal.datasets import load_diabetes
    >>> data = load_diabetes()
    >>> model = CalibratedRegressorCV(BayesianRidge(), "scale").fit(data.X, data.y)
    >>> model.predict_quantiles(data.X[:1], [0.05, 0.5, 0.95]).round(-1)
    array([[110., 200., 290.]])
    >>> model.predict_above(data.X[:2], 150.0).round(1)
    array([0.8, 0.1])
    """

    __metadata_request__fit = {"groups": UNUSED}  # noqa: RUF012

    # Whether `fit` takes Outcomes: what trains copies of a model fits others to numbers.
    takes_outcomes = True

    # What files from before there were these parameters have.
    covariates: Any = None
    guarantee: Any = None
    random_state: int = 0
    verbose: int = 0

    def __init__(
        self,
        estimator: Any,
        calibrator: Any = "auto",
        cv: Any = 3,
        ensemble: bool | str = "auto",
        n_jobs: int | None = None,
        *,
        point: str = "mean",
        covariates: Any = None,
        support: Any = "auto",
        step: Any = None,
        guarantee: Any = None,
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble
        self.n_jobs = n_jobs
        self.point = point
        self.covariates = covariates
        self.support = support
        self.step = step
        self.guarantee = guarantee
        self.random_state = random_state
        self.verbose = verbose

    # ----------------------------------------------------------------------------------------- fit

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **fit_params: Any
    ) -> Self:
        """Fit the model on folds and calibrate it on the rows held out.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), Outcomes, or a structured array of (event, time)
            The model itself is fitted to numbers: of an interval, to the end that is known or to
            the middle. Structured arrays are passed on to it as they are.
        sample_weight : array-like of shape (n_rows,), optional
            For the calibrator, and for the estimator if it takes weights.
        groups : array-like of shape (n_rows,), optional
            For splitters that keep groups together, and for all folds inside calibrators.
        **fit_params
            Passed on to the estimator.

        Returns
        -------
        self
        """
        self._check_options()
        if isinstance(self.estimator, Mapping):
            joined = clone(self).set_params(estimator=MultiQuantileRegressor(self.estimator))
            adopt(self, joined.fit(X, y, sample_weight, groups, **fit_params))
            return self
        if isinstance(self.estimator, list | tuple):
            msg = (
                f"estimator is a {type(self.estimator).__name__}. Pass models of quantiles as a "
                "dict from their levels, {0.1: low, 0.9: high}, and others one by one."
            )
            raise TypeError(msg)
        if self.guarantee is not None:
            fit_with_guarantee(self, X, y, sample_weight, groups, fit_params)
            self._warn_of_few_rows()
            return self
        self.__dict__.pop("guarantee_", None)  # of an earlier fit
        X, y, seen = check_outcome_data(self, X, y)
        if len(seen) > 1 and np.ptp(seen.values) == 0:
            msg = (
                f"All {len(seen)} values of y are {seen.values[0]}, so there is no uncertainty to "
                "calibrate. Check that y is the target."
            )
            raise ValueError(msg)
        sample_weight = as_weights(sample_weight, len(y))
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        check_support(self, seen, weights)
        with Progress(type(self).__name__, self.verbose) as progress:
            if isinstance(self.estimator, FrozenEstimator):
                known = self._covariates_of(X), rows_together([], groups)
                rows = TrainingRows(X, seen, weights, *known)
                models, held_out = [self.estimator], [rows.held_out(self.estimator, slice(None))]
                self.ensemble_ = False
            else:
                routing = get_config()["enable_metadata_routing"]
                routed = route_metadata(self, routing, sample_weight, groups, fit_params)
                fitter = FoldFitter(self, X, y, routed, progress)
                fitted = fit_fold_models(fitter, weights, self.cv, self.ensemble)
                known = self._covariates_of(X), rows_together(fitted.folds, groups)
                rows = TrainingRows(X, seen, weights, *known)
                held_out = [rows.held_out(model, test) for model, test in fitted.held_out]
                self.ensemble_ = fitted.refitted is None
                models = fitted.models if self.ensemble_ else [fitted.refitted]
            progress.step("calibrating its predictions")
            self.members_ = self._calibrated(models, held_out)
        self._warn_of_few_rows()
        return self

    def _check_options(self) -> None:
        if self.ensemble not in (True, False, "auto"):
            msg = f'ensemble must be True, False or "auto", got {self.ensemble!r}.'
            raise ValueError(msg)
        self._check_parts()
        if self.point not in ("mean", "median"):
            msg = f'point must be "mean" or "median", got {self.point!r}.'
            raise ValueError(msg)
        given_guarantee(self.guarantee)

    def _check_parts(self) -> None:
        """Refuse what cannot be a calibrator or a model, before anything is fitted."""
        calibrator = self.calibrator
        if isinstance(calibrator, type):
            msg = f"calibrator is the class {calibrator.__name__}. Pass {calibrator.__name__}()."
            raise TypeError(msg)
        if not isinstance(calibrator, str) and not hasattr(calibrator, "transform"):
            msg = (
                f"calibrator must be a name or a calibrator, got {calibrator!r}. Pass one of "
                f'{", ".join(calibrator_names())}; "identity" calibrates nothing.'
            )
            raise TypeError(msg)
        named = isinstance(calibrator, str)
        uses = getattr(
            get_calibrator(calibrator) if named else calibrator, "uses_covariates", False
        )
        if self.covariates is not None and not uses:
            msg = (
                f"The calibrator {calibrator!r} does not look at covariates. Pass "
                'calibrator="auto" or "conditional", or ConditionalCalibrator(calibrator=...) to '
                "put another one on top; or covariates=None."
            )
            raise ValueError(msg)
        if isinstance(self.estimator, type):
            msg = f"estimator is the class {self.estimator.__name__}. Pass an object of it."
            raise TypeError(msg)
        check_can_predict(self.estimator)

    def _covariates_of(self, X: Any) -> Covariates | None:
        if self.covariates is None:
            return None
        return Covariates.chosen(X, self.covariates, getattr(self, "feature_names_in_", None))

    def _calibrated(self, models: list[Any], held_out: list[HeldOut]) -> list[CalibratedModel]:
        """Pair the models with calibrators, one per fold or one for all."""
        pooled = HeldOut.joined(held_out)
        rows = pooled.counted()
        refuse_censoring_beyond(rows)
        # of all outcomes, so that no fold has another
        targets = Targets.of_rows(rows).seen_through(*asked_support(self))
        self.support_ = targets.support
        of_model = " The models themselves were fitted to such outcomes as they are."
        warn_of_gross_errors(rows.seen, targets, stacklevel=3, of_model=of_model)
        held_out = [part.within(targets.credible) for part in held_out]
        pooled = pooled.within(targets.credible)
        calibrator = self._resolved_calibrator(pooled.counted())
        possible = pooled.through(self.support_).n_possible
        warn_of_odd_weights(len(pooled), pooled.weights, stacklevel=3)
        calibrator.warn_of_impossible(possible, len(pooled))
        warn_of_rounding(targets, self.support_, 3)
        parts = [part.counted() for part in (held_out if self.ensemble_ else [pooled])]
        self._warn_of_constant(parts)
        fitted = Parallel(n_jobs=self.n_jobs)(
            delayed(fitted_copy)(calibrator, part, self.support_) for part in parts
        )
        for one, part in zip(fitted, parts, strict=True):
            one.warn_of_disagreement(part, Targets.of_outcomes(part.seen, part.weights))
        return [CalibratedModel(*pair) for pair in zip(models, fitted, strict=True)]

    def _warn_of_few_rows(self) -> None:
        n_rows = sum(member.calibrator.n_rows_seen_ for member in self.members_)
        warn_of_few_rows(n_rows, stacklevel=3)

    def _warn_of_constant(self, parts: list[HeldOut]) -> None:
        names = [f"fold {k}" for k in range(len(parts))] if self.ensemble_ else ["all folds"]
        constant = [
            f"{name} (y = {part.y[0]:g})"
            for name, part in zip(names, parts, strict=True)
            if part.constant
        ]
        if constant:
            msg = (
                f"The held-out targets are all equal in {', '.join(constant)}. They teach no "
                "calibration, so what is predicted there stays as the model says. Pass a smaller "
                "cv, or a splitter that mixes the targets."
            )
            warnings.warn(msg, UserWarning, stacklevel=4)

    def _resolved_calibrator(self, rows: HeldOut) -> Calibrator:
        named = isinstance(self.calibrator, str)
        calibrator = get_calibrator(self.calibrator) if named else self.calibrator
        if self.verbose and calibrator.get_params(deep=False).get("verbose") == 0:
            calibrator = clone(calibrator).set_params(verbose=self.verbose)
        if rows.constant or not isinstance(calibrator, AutoCalibrator):
            self.__dict__.pop("selection_", None)  # of an earlier fit
            return calibrator
        self.selection_ = given_support(clone(calibrator), self.support_)
        return self.selection_.select_rows(rows)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return where metadata given to `fit` go."""
        return router_for(self)

    # ------------------------------------------------------------------------------------- predict

    def predict_dist(self, X: Any) -> Distribution:
        """Return the calibrated predictive distributions.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        Distribution
        """
        bases, known = self.predict_base(X)
        latent = [
            member.calibrator.transform_rows(base, known)
            for member, base in zip(self.members_, bases, strict=True)
        ]
        if len(latent) == 1:
            return self.support_.through(latent[0])
        return self.support_.through(Mixture(latent)._with_joints(Joints.of(self)))

    def predict_base(self, X: Any) -> tuple[list[Distribution], Covariates | None]:
        """Return what the models of all members say before calibration, and the covariates.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        bases : list of Distribution
            One per member.
        covariates : Covariates or None
            The columns that calibrators look at.
        """
        check_has_learnt(self, "members_")
        X = check_table(self, X)
        with warned_once(self, X):
            bases = [predict_dist(member.estimator, X) for member in self.members_]
        return bases, self._covariates_of(X)

    def predict(self, X: Any) -> Array:
        """Return the mean of each row's distribution, or its median if `point` says so."""
        dist = self.predict_dist(X)
        return dist.median() if self.point == "median" else dist.mean()

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the R² of `predict`, for outcomes that are known as numbers."""
        return float(super().score(X, numbers_of(y), sample_weight))

    def predict_quantiles(
        self, X: Any, levels: ArrayLike, guarantee: bool = False, *, sample_weight: Any = None
    ) -> Any:
        """Return quantiles, or one-sided bounds with coverage in finite samples.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        levels : array-like of shape (n_levels,)
            Probabilities between 0 and 1.
        guarantee : bool, default=False
            Whether each is a bound by itself: at levels of 1/2 and more the outcome is at most
            this value with at least that probability, below 1/2 it is at least this value with at
            least the probability 1 - level. Has to be prepared: see the parameter `guarantee`.
        sample_weight : array-like of shape (n_rows,), optional
            With `guarantee`, weights of these rows in the unit of those given to `fit`; needed if
            those differ.

        Returns
        -------
        ndarray of shape (n_rows, n_levels), or a frame
            A pandas frame with the index of `X`, or a polars frame, if `X` is one; the levels are
            its columns.
        """
        columns = np.atleast_1d(_probabilities(levels, "levels"))
        _check_question(guarantee, sample_weight)
        dist = self.predict_dist(X)
        if guarantee:
            values = self._prepared().bounds(dist, columns, sample_weight, self._groups_of(X))
        else:
            values = dist.ppf(columns[np.newaxis, :])
        return like_rows(X, values, columns.tolist())

    def predict_interval(
        self,
        X: Any,
        coverage: ArrayLike = 0.9,
        guarantee: bool = False,
        *,
        sample_weight: Any = None,
    ) -> Any:
        """Return central intervals that hold the outcome with the given probability.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        coverage : float, or array-like of shape (n_coverages,), default=0.9
            One probability, or several at once.
        guarantee : bool, default=False
            Whether coverage is to hold in finite samples. Has to be prepared: see the parameter
            `guarantee`.
        sample_weight : array-like of shape (n_rows,), optional
            With `guarantee`, weights of these rows in the unit of those given to `fit`; needed if
            those differ.

        Returns
        -------
        ndarray of shape (n_rows, 2) or (n_rows, 2, n_coverages), or a frame
            Lower and upper ends. A pandas frame with the index of `X`, or a polars frame, if `X`
            is one, with the columns "lower" and "upper"; of several coverages these are
            (0.9, "lower") in pandas, so that ``frame[0.9]`` is one interval, and "0.9_lower" in
            polars.
        """
        shares = _probabilities(coverage, "coverage")
        _check_question(guarantee, sample_weight)
        dist = self.predict_dist(X)

        def ends(share: float) -> Array:
            if not guarantee:
                return np.column_stack(dist.interval(share))
            groups = self._groups_of(X)
            return np.column_stack(self._prepared().interval(dist, share, sample_weight, groups))

        if shares.ndim == 0:
            return like_rows(X, ends(float(shares)), ["lower", "upper"])
        if shares.ndim > 1 or shares.size == 0:
            msg = f"coverage must be a number or a list of numbers, got shape {shares.shape}."
            raise ValueError(msg)
        values = np.stack([ends(share) for share in shares.tolist()], axis=-1)
        if library_of(X) is None:
            return values
        names = [(share, end) for share in shares.tolist() for end in ("lower", "upper")]
        return like_rows(X, values.transpose(0, 2, 1).reshape(len(values), -1), names)

    def _prepared(self) -> Guarantee:
        check_has_learnt(self, "members_")
        if not hasattr(self, "guarantee_"):
            msg = (
                "Nothing can be promised: all rows were used to fit the model and its calibrator, "
                'so none tells how often intervals hold. Pass guarantee="split" or "cross" to '
                f"{type(self).__name__} and fit it again."
            )
            raise ValueError(msg)
        return self.guarantee_

    def _groups_of(self, X: Any) -> Covariates | None:
        return groups_of(self, X, self._prepared().by)

    def predict_below(self, X: Any, threshold: ArrayLike) -> Any:
        """Return the probability that the outcome is at most `threshold`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        threshold : float, array-like of shape (n_rows,) or (1, n_thresholds)
            One for all rows, one per row, or a row of several for all rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_thresholds), or a series or frame
            Of pandas, with the index of `X`, or of polars, if `X` is a frame of these; the columns
            are thresholds that all rows share, or their numbers.
        """
        return at_thresholds(X, self.predict_dist(X).cdf, threshold, "below")

    def predict_above(self, X: Any, threshold: ArrayLike) -> Any:
        """Return the probability that the outcome exceeds `threshold`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        threshold : float, array-like of shape (n_rows,) or (1, n_thresholds)
            One for all rows, one per row, or a row of several for all rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_thresholds), or a series or frame
            Of pandas, with the index of `X`, or of polars, if `X` is a frame of these; the columns
            are thresholds that all rows share, or their numbers.
        """
        return at_thresholds(X, self.predict_dist(X).sf, threshold, "above")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = input_tags(self.estimator)
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags


def _probabilities(values: ArrayLike, name: str) -> Array:
    if values is None:
        msg = f"{name} is None. Pass a probability such as 0.9, or a list of them."
        raise ValueError(msg)
    return as_float_array(values, name)


def _check_question(guarantee: Any, sample_weight: Any) -> None:
    """Refuse what a question about intervals or bounds cannot mean."""
    if not isinstance(guarantee, bool | np.bool_):
        msg = (
            f"guarantee must be True or False here, got {guarantee!r}. Its kind is chosen before "
            'fit: CalibratedRegressorCV(..., guarantee="split") or "cross".'
        )
        raise ValueError(msg)
    if sample_weight is not None and not guarantee:
        msg = (
            "sample_weight is given without guarantee=True: weights of new rows change what can be "
            "promised of them, and nothing else. Pass guarantee=True as well, or no weights."
        )
        raise ValueError(msg)
