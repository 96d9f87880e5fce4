"""Whether a model that is fitted on all rows says what its fold models say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.utils import _safe_indexing

from regcal._progress import Progress
from regcal._validation import Array
from regcal._weighted import weighted_median
from regcal.adapters import predict_dist
from regcal.regressor._folds import Fold, fit_copy, fit_folds, make_folds

# Models whose spreads differ by a smaller share, and whose medians by a smaller share of the
# spread, say the same: a 90 % interval whose spread is stated a tenth too small holds 86 %. Of
# shares of 0.03 to 0.15, this had the best log score of new rows (benchmarks/averaging.py).
_SAME = 0.1

# With so many folds, their models see nine tenths of the rows. benchmarks/averaging.py: where the
# spread falls by more than a tenth, 0.08 nats better than with 3 folds, with 5 folds 0.04.
_MANY_FOLDS = 10

# So many rows of each fold are looked at.
_MOST_ROWS = 1000


@dataclass(frozen=True)
class Change:
    """What changes from the models of folds to the model that has seen all rows.

    Parameters
    ----------
    spread : float
        The stated spread over that of fold models, on rows that both have seen; its median.
    moved : float
        The distance of predicted medians on rows held out, in spreads of fold models; its median.
    """

    spread: float
    moved: float

    @classmethod
    def between(
        cls, models: Sequence[Any], refitted: Any, folds: Sequence[Fold], X: Any, weights: Array
    ) -> "Change":
        """Compare the models of folds with the one that was fitted on all rows."""
        ratios, moves, seen, held_out = [], [], [], []
        for model, fold in zip(models, folds, strict=True):
            train, test = (_some(rows[weights[rows] > 0]) for rows in fold)
            before, after = (_spread_and_median(one, X, train)[0] for one in (model, refitted))
            ratios.append(after / before)
            seen.append(weights[train])
            spread, median = _spread_and_median(model, X, test)
            moves.append(np.abs(_spread_and_median(refitted, X, test)[1] - median) / spread)
            held_out.append(weights[test])
        return cls(_median(ratios, seen, 1.0), _median(moves, held_out, 0.0))

    @property
    def learns(self) -> bool:
        """Whether the model is still much surer with more rows."""
        return self.spread < 1.0 - _SAME

    @property
    def unsteady(self) -> bool:
        """Whether the model says something else for other rows, without being surer."""
        return self.moved > _SAME and not self.learns


@dataclass(frozen=True)
class FoldModels:
    """Models fitted without each fold, and the one of all rows unless they are averaged."""

    folds: list[Fold]
    models: list[Any]
    refitted: Any | None

    @property
    def held_out(self) -> list[tuple[Any, np.ndarray]]:
        """Each fold's model, and the rows that it has not seen."""
        return [(model, test) for model, (_, test) in zip(self.models, self.folds, strict=True)]


@dataclass(frozen=True)
class FoldFitter:
    """Fits copies of an estimator, and says so.

    Parameters
    ----------
    owner : CalibratedRegressorCV
        Has the estimator, the number of jobs and the random state.
    X, y
        All rows.
    routed : Bunch
        What `fit` and the splitter are given.
    progress : Progress
    """

    owner: Any
    X: Any
    y: Any
    routed: Any
    progress: Progress

    def folds(self, cv: Any) -> list[Fold]:
        """Return pairs of training and held-out row numbers."""
        return make_folds(cv, self.X, self.y, self.routed.splitter.split, self.owner.random_state)

    def fit_on(self, folds: list[Fold]) -> list[Any]:
        """Return a model for each fold."""
        self.progress.step(f"fitting the model on {len(folds)} folds")
        owner, to_fit = self.owner, self.routed.estimator.fit
        return fit_folds(owner.estimator, self.X, self.y, folds, to_fit, owner.n_jobs)

    def fit_on_all(self) -> Any:
        """Return the model of all rows."""
        self.progress.step(f"fitting the model on all {len(self.y)} rows")
        return fit_copy(self.owner.estimator, self.X, self.y, self.routed.estimator.fit)


def fit_fold_models(
    fitter: FoldFitter, weights: Array, cv: Any, ensemble: bool | str
) -> FoldModels:
    """Fit models on folds and, unless they are averaged, one on all rows.

    With ``ensemble="auto"``, what they say decides: models that still learn are refitted, with
    more folds if need be and if folds are a number; unsteady ones are averaged, and so are those
    that learn on folds of a splitter, since no calibrator is known that belongs to the refit.
    """
    folds = fitter.folds(cv)
    models = fitter.fit_on(folds)
    if ensemble != "auto" and ensemble:
        return FoldModels(folds, models, None)
    refitted = fitter.fit_on_all()
    if ensemble != "auto":
        return FoldModels(folds, models, refitted)
    change = Change.between(models, refitted, folds, fitter.X, weights)
    n_rows = len(weights)
    if change.learns and isinstance(cv, int | np.integer):
        n_folds = max(int(cv), min(_MANY_FOLDS, n_rows // 2))
        if n_folds > cv:
            folds = fitter.folds(n_folds)
            models = fitter.fit_on(folds)
    elif change.unsteady or (change.learns and not _nearly_all(folds, n_rows)):
        refitted = None
    return FoldModels(folds, models, refitted)


def _nearly_all(folds: Sequence[Fold], n_rows: int) -> bool:
    """Return whether the models of folds see as many rows as those of many folds."""
    return bool(np.mean([len(train) for train, _ in folds]) >= (1 - 1 / _MANY_FOLDS) * n_rows)


def _some(rows: np.ndarray) -> np.ndarray:
    """Return rows at equal steps, of which there are at most `_MOST_ROWS`."""
    return rows[:: max(1, -(-len(rows) // _MOST_ROWS))]


def _spread_and_median(model: Any, X: Any, rows: np.ndarray) -> tuple[Array, Array]:
    """Return half the distance of the quantiles at probits -1 and 1, and the median."""
    levels = ndtr(np.array([[-1.0, 0.0, 1.0]]))
    low, middle, high = predict_dist(model, _safe_indexing(X, rows)).ppf(levels).T
    spread = np.where(high > low, 0.5 * (high - low), np.nan)
    return spread, middle


def _median(parts: Sequence[Array], weights: Sequence[Array], default: float) -> float:
    """Return the weighted median of what is known, or a default if nothing is."""
    values, shares = np.concatenate(parts), np.concatenate(weights)
    known = np.isfinite(values)
    return weighted_median(values[known], shares[known]) if known.any() else default
