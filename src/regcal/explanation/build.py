"""Explain a fitted calibrator: find what looks at covariates, ask it, and say what it answers."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from regcal._random import child_generator
from regcal._validation import Array, check_weights
from regcal.audit.segments import Segments, make_segments
from regcal.calibrators import (
    AutoCalibrator,
    Calibrator,
    ConditionalCalibrator,
    StackCalibrator,
    Support,
)
from regcal.covariates import Column, Covariates
from regcal.distributions import Distribution, as_distribution
from regcal.explanation.effects import (
    Part,
    Sizes,
    along,
    errors_of_means,
    rows_as_they_are,
    values_of,
    width_of,
)
from regcal.explanation.findings import (
    CovariateEffect,
    ExplainedSegment,
    Explanation,
    cost_along,
)
from regcal.explanation.importance import importances
from regcal.metrics._inputs import checked_outcomes
from regcal.regressor import CalibratedRegressorCV

# Beyond these numbers of rows a random part is used: means over rows and scores change little.
_MOST_ROWS, _MOST_ASKED = 2000, 200

_BANDS = (
    "Ranges hold in all segments at once, with probability 0.95: they are those of the mean of a "
    "segment's own calibration rows, beside that of the given rows."
)


def explain(
    model: Any,
    X: Any,
    y: Any = None,
    covariates: Any = None,
    *,
    sample_weight: Any = None,
    unit: str = "",
    random_state: Any = 0,
) -> Explanation:
    """Say where a model was wrong, as covariates tell: by how much, for whom, and how sure it is.

    What a `ConditionalCalibrator` has learnt is put into the units of y: by how much outcomes lie
    above predicted medians, and how many times as far as predicted they spread about the corrected
    median. Sentences and table tell the mean over the rows of each segment, as they are. The
    effects of covariates tell the mean over all rows, if one covariate had other values and the
    others stayed as they are (partial dependence; for additive terms, the term itself).

    Parameters
    ----------
    model : CalibratedRegressorCV or Calibrator
        Fitted with covariates.
    X : array-like or frame of shape (n_rows, n_features)
        Rows of which the explanation speaks; for a calibrator, the predictions that it corrects.
    y : array-like of shape (n_rows,), or Outcomes, optional
        Their outcomes, if neither model nor calibrator has seen them, for the importance of
        covariates.
    covariates : frame, mapping or array-like of shape (n_rows, n_columns), optional
        For a calibrator, those of the rows. A model takes them from `X`.
    sample_weight : array-like of shape (n_rows,), optional
        A weight of 2 is a row that occurs twice; 0 leaves a row out.
    unit : str, default=""
        What y is measured in, for sentences.
    random_state : int, RandomState, Generator or None, default=0
        For the choice of rows where there are many, and for importances.

    Returns
    -------
    Explanation
        Prints sentences; ``table()`` has all segments, `regcal.plots.ExplanationDisplay` draws
        them, and `regcal.report` takes it for a section of its page.

    Notes
    -----
    Of averages that `auto` makes, what looks at covariates is explained. What a calibrator on top
    of it does to all rows alike is not part of the explanation.

    Examples
    --------
    >>> import numpy as np
    >>> import regcal
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(0.0, 10.0, 800)
    >>> y = rng.normal(scale=np.where(age > 8.0, 3.0, 1.0))
    >>> dist = regcal.Normal(np.zeros(800), 1.0)
    >>> calibrator = regcal.ConditionalCalibrator("additive").fit(dist, y, covariates={"age": age})
    >>> explanation = regcal.explain(calibrator, dist, y, covariates={"age": age})
    >>> explanation.sentences()[0]
    'for age >= 8.155 the model was 2... times too sure (2... to ...)'
    >>> explanation.covariates[0].name
    'age'
    """
    parts, support = _parts(model, X, covariates)
    if all(part.calibrator.correction_ is None for part in parts):
        return Explanation((), (), "none", 0.0, 0, 0, "", unit)
    weights = check_weights(sample_weight, len(parts[0].dist))
    rng = child_generator(random_state)
    used = np.flatnonzero(weights)
    segments = make_segments(len(used), parts[0].columns[used], None, weights[used])
    rows = _some(np.arange(len(used)), _MOST_ROWS, rng)
    some = [part.take(used[rows]) for part in parts]
    worth: dict[str, tuple[float, float]] = {}
    if y is not None:
        outcomes, _ = checked_outcomes(y, parts[0].dist)
        worth = importances(some, support, outcomes[used[rows]], weights[used[rows]], rng)
    given = GivenRows(some, weights[used[rows]], segments, rows)
    effects = _covariate_effects(given, _some(np.arange(len(rows)), _MOST_ASKED, rng), worth)
    found = _explained_segments(given)
    return Explanation(
        found,
        tuple(sorted(effects, key=lambda one: -cost_along(found, one.name))),
        " and ".join(sorted({part.calibrator.learner_ for part in parts} - {"none"})),
        float(np.mean([part.calibrator.gain() for part in parts])),
        len(used),
        len(rows) if worth else 0,
        _BANDS,
        unit,
    )


def _some(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return at most so many rows, in their order."""
    if len(rows) <= count:
        return rows
    return np.sort(rng.choice(rows, size=count, replace=False))


# ------------------------------------------------------------------------------ what is to be asked


def _parts(model: Any, X: Any, covariates: Any) -> tuple[list[Part], Support]:
    """Return all that looks at covariates, with the predictions that it corrects."""
    if isinstance(model, CalibratedRegressorCV):
        if covariates is not None:
            msg = "A model takes covariates from X. Pass covariates only with a calibrator."
            raise ValueError(msg)
        bases, known = model.predict_base(X)
        calibrators = [member.calibrator for member in model.members_]
    elif isinstance(model, Calibrator):
        check_is_fitted(model, "n_rows_seen_")
        dist = as_distribution(X)
        bases, known, calibrators = [dist], model._read(covariates, len(dist)), [model]
    else:
        msg = (
            f"Cannot explain a {type(model).__name__}. Pass a fitted CalibratedRegressorCV, or a "
            "fitted calibrator with predictions and covariates."
        )
        raise TypeError(msg)
    if not any(calibrator.uses_covariates for calibrator in calibrators):
        msg = (
            f"{type(calibrators[0]).__name__} does not look at covariates, so it has nothing to "
            'say about them. Fit "conditional" or "auto" with covariates, or use regcal.audit, '
            "which searches any predictions."
        )
        raise ValueError(msg)
    pairs = [
        _part(one, base, known)
        for calibrator, base in zip(calibrators, bases, strict=True)
        for one in _conditional(calibrator)
    ]
    return [part for part in pairs if part is not None], model.support_


def _conditional(calibrator: Calibrator) -> list[ConditionalCalibrator]:
    """Return what looks at covariates inside a calibrator that was chosen or averaged."""
    if isinstance(calibrator, ConditionalCalibrator):
        return [calibrator]
    if isinstance(calibrator, AutoCalibrator):
        return _conditional(calibrator.calibrator_)
    if isinstance(calibrator, StackCalibrator):
        return [one for part in calibrator.parts_ for one in _conditional(part)]
    return []


def _part(
    calibrator: ConditionalCalibrator, dist: Distribution, known: Covariates | None
) -> Part | None:
    own = None if known is None or calibrator.columns_ is None else calibrator.columns_.read(known)
    columns = calibrator._columns(dist, own)
    return None if columns is None else Part(dist, calibrator, columns)


# -------------------------------------------------------------------------------- what is answered


@dataclass(frozen=True)
class GivenRows:
    """Some of the given rows: parts, weights, and the segments of all rows.

    Parameters
    ----------
    parts : list of Part
    weights : ndarray of shape (n_rows,)
    segments : Segments
        Of all rows that were given.
    rows : ndarray of shape (n_rows,)
        Which of them these are.
    """

    parts: list[Part]
    weights: Array
    segments: Segments
    rows: np.ndarray

    @property
    def codes(self) -> np.ndarray:
        """Segments of these rows."""
        return self.segments.codes[self.rows]

    @property
    def counts(self) -> np.ndarray:
        """How many of all rows are in each segment."""
        return np.bincount(self.segments.codes.ravel(), minlength=len(self.segments))

    @property
    def shares(self) -> Array:
        """Which share of the weight of these rows is in each segment."""
        repeated = np.repeat(self.weights, self.codes.shape[1])
        totals = np.bincount(self.codes.ravel(), repeated, minlength=len(self.segments))
        return totals / self.weights.sum()

    @property
    def width(self) -> float:
        """The width of bands, in errors."""
        return width_of(len(self.segments))


def _explained_segments(given: GivenRows) -> tuple[ExplainedSegment, ...]:
    """Return the mean effect on the rows of each segment, as they are."""
    effects = [rows_as_they_are(part) for part in given.parts]
    shares, counts = given.shares, given.counts
    found = []
    for g, label in enumerate(given.segments.labels):
        rows, source = np.nonzero(given.codes == g)
        if len(rows) == 0:  # of a rare one, none is among these rows
            continue
        weights = given.weights[rows]
        sizes = []
        for part, effect in zip(given.parts, effects, strict=True):
            own = effect.take(rows)
            learnt = errors_of_means(own.factor(weights), part.n_learnt * shares[g])
            sizes.append(own.mean(weights, learnt.beside(own.errors(weights)), given.width))
        centre = _centre(given.parts[0].columns.columns[source[0] - 1], rows) if g else np.nan
        found.append(_segment(given.segments.sources[g], label, int(counts[g]), centre, sizes))
    return tuple(found)


def _centre(column: Column, rows: np.ndarray) -> float:
    """Return the median of a number, or the place of a category."""
    values = column.values[rows]
    if column.kind == "number":
        return float(np.median(values))
    return float(values[0]) if np.ptp(values) == 0 and values[0] >= 0 else np.nan


def _segment(
    covariate: str, label: str, n_rows: int, centre: float, sizes: list[Sizes]
) -> ExplainedSegment:
    mean = Sizes.mean(sizes)
    lower, shift, upper = mean.shift[:, 0].tolist()
    factor_lower, factor, factor_upper = np.exp(mean.log_factor[:, 0]).tolist()
    return ExplainedSegment(
        covariate,
        label,
        n_rows,
        shift,
        lower,
        upper,
        factor,
        factor_lower,
        factor_upper,
        float(mean.spreads[0]),
        centre,
    )


def _covariate_effects(
    given: GivenRows, asked: np.ndarray, worth: dict[str, tuple[float, float]]
) -> list[CovariateEffect]:
    """Return the mean effect on some of the rows, if a covariate had other values."""
    parts, weights = [part.take(asked) for part in given.parts], given.weights[asked]
    effects = []
    for k, column in enumerate(given.parts[0].columns.columns):
        values, owners = values_of(column, given.codes[:, k + 1])
        probe, shares = replace(column, values=values), given.shares[owners]
        sizes = Sizes.mean([along(part, probe, shares, weights, given.width) for part in parts])
        effects.append(_effect(probe, sizes, *worth.get(column.name, (np.nan, np.nan))))
    return effects


def _effect(
    column: Column, sizes: Sizes, importance: float, standard_error: float
) -> CovariateEffect:
    known = np.flatnonzero(~column.missing)
    values = column.values[known]
    labels = tuple(str(column.levels[k]) for k in values) if column.kind == "category" else ()
    return CovariateEffect(
        column.name,
        column.kind,
        values.astype(float),
        labels,
        sizes.shift[:, known],
        np.exp(sizes.log_factor[:, known]),
        importance,
        standard_error,
    )
