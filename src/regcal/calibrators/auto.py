"""The method that chooses among the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from regcal._validation import Array
from regcal.calibrators.base import (
    Calibrator,
    IdentityCalibrator,
    fitted_copy,
    given_support,
)
from regcal.calibrators.cells import Coordinates
from regcal.calibrators.held_out import HeldOut, deal
from regcal.calibrators.observed import Observed
from regcal.calibrators.support import Support
from regcal.calibrators.targets import Targets
from regcal.distributions import Distribution

# From simple to complex. A method that has thresholds enters with several numbers of them.
_METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("identity", {}),
    ("scale", {}),
    ("pit", {}),
    ("gp-density", {}),
    ("gpc", {}),
    ("e-beta", {"thresholds": 8}),
    ("e-beta", {"thresholds": 32}),
)

# With two halves, all candidates are fitted twice on half of the rows, and the chosen one once
# more: at most three times the work of fitting each once.
_N_FOLDS = 2
_FEWEST_ROWS = 10

# About the log of the smallest positive number.
_IMPOSSIBLE = 700.0


@dataclass(frozen=True)
class CandidateScore:
    """How one candidate did on rows it was not fitted on.

    Attributes
    ----------
    name : str
        Name of the candidate.
    log_score : float
        Mean log density of the outcomes; NaN if nothing was compared.
    behind : float
        By how much the mean is below that of the best candidate.
    standard_error : float
        Of `behind`, from paired differences.
    chosen : bool
    """

    name: str
    log_score: float
    behind: float
    standard_error: float
    chosen: bool


class AutoCalibrator(Calibrator):
    """Choose a calibrator by its log score on rows it was not fitted on.

    The calibration rows are halved; each candidate is fitted on one half and scored on the
    other, both ways. The first candidate in the list, which goes from simple to complex, that is
    within one standard error of the best is fitted on all rows. With fewer than 10 rows the
    first candidate is taken without comparison. Of more than 16 384 rows, it compares on a sample
    of so many.

    Parameters
    ----------
    candidates : sequence of (str, Calibrator), optional
        Names of your own with calibrators, from simple to complex. By default the identity,
        scale, PIT, Gaussian-process and e-beta calibration, the last with 8 and 32 thresholds.
    random_state : int, default=0
        Decides which rows form the halves. Equal rows stay together, so that a weight of 2 is
        the same as a row that occurs twice.
    support : {"auto", None} or (low, high), default="auto"
        Ends at which outcomes beyond are seen, such as 0 for rain: found where outcomes pile up,
        none, or given; write an end that there is none of as None.
    step : float or "auto", optional
        Distance of the values that outcomes are rounded to: 1 for counts. The result then is a
        distribution of these values.

    Attributes
    ----------
    scores_ : list of CandidateScore
        One row per candidate, in the order of `candidates`.
    chosen_ : str
        Name of the chosen candidate.
    calibrator_ : Calibrator
        The chosen one, fitted on all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import AutoCalibrator, Normal, get_calibrator
    >>> rng = np.random.default_rng(0)
    >>> dist = Normal(np.zeros(300), np.full(300, 2.0))
    >>> candidates = [(name, get_calibrator(name)) for name in ("identity", "scale", "pit")]
    >>> AutoCalibrator(candidates).fit(dist, rng.normal(size=300)).chosen_
    'scale'
    """

    _needs_density = True

    def __init__(
        self,
        candidates: Sequence[tuple[str, Calibrator]] | None = None,
        *,
        random_state: int = 0,
        support: Any = "auto",
        step: Any = None,
    ) -> None:
        self.candidates = candidates
        self.random_state = random_state
        self.support = support
        self.step = step

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = super().__repr__(N_CHAR_MAX)
        return f"{text}: {self.explanation()}" if hasattr(self, "scores_") else text

    def explanation(self) -> str:
        """Return which candidate was chosen, and why, in words."""
        chosen = next(score for score in self.scores_ if score.chosen)
        if np.isnan(chosen.log_score):
            return f"chose {chosen.name}, as fewer than {_FEWEST_ROWS} rows leave no comparison"
        best = min(self.scores_, key=lambda score: score.behind)
        if best.chosen:
            return f"chose {chosen.name}, which has the best log score, {chosen.log_score:.3f}"
        return (
            f"chose {chosen.name}, log score {chosen.log_score:.3f}, the simplest within one "
            f"standard error ({chosen.standard_error:.3f}) of the best, {best.name} with "
            f"{best.log_score:.3f}"
        )

    def select(self, dist: Any, y: Any, sample_weight: Any = None) -> Calibrator:
        """Compare the candidates and return the chosen one, not fitted.

        Parameters
        ----------
        dist : Distribution or anything `as_distribution` takes
            Predictions for rows the model has not been trained on.
        y : array-like of shape (n_rows,)
            Their outcomes.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of 2 counts as two rows.

        Returns
        -------
        Calibrator
        """
        observed = Observed.all_of(self, HeldOut.checked(dist, y, sample_weight))
        return self._select(observed.modest_rows, observed.targets.support)

    def _coordinates(self, targets: Targets) -> tuple[Coordinates, ...]:
        return tuple(
            one for _, candidate in self._candidates() for one in candidate._coordinates(targets)
        )

    def _solve(self, observed: Observed) -> None:
        """Choose by the rows that are kept, and fit the chosen one on all."""
        chosen = self._select(observed.modest_rows, observed.targets.support)
        counts = [len(one._coordinates(observed.targets)) for _, one in self._candidates()]
        ends = np.cumsum([0, *counts])
        place = next(k for k, score in enumerate(self.scores_) if score.chosen)
        which = slice(ends[place], ends[place + 1])
        self.calibrator_ = chosen._learn(observed.part(chosen, which))

    def _transform(self, dist: Distribution) -> Distribution:
        return self.calibrator_.transform_latent(dist)

    def _select(self, rows: HeldOut, support: Support) -> Calibrator:
        candidates = self._candidates()
        names = [name for name, _ in candidates]
        folds = deal(rows, _N_FOLDS, self.random_state)
        n_distinct = np.bincount(folds, minlength=_N_FOLDS).min()
        if rows.weights.sum() < _FEWEST_ROWS or n_distinct < 2 or len(candidates) == 1:
            self.scores_ = _without_comparison(names)
        else:
            scores = [_cross_fitted(one, rows, folds, support) for _, one in candidates]
            self.scores_ = compare(names, np.stack(scores), rows.weights)
        place = next(k for k, score in enumerate(self.scores_) if score.chosen)
        self.chosen_, chosen = candidates[place]
        return given_support(clone(chosen), support)

    def _candidates(self) -> list[tuple[str, Calibrator]]:
        candidates = default_candidates() if self.candidates is None else list(self.candidates)
        if not candidates:
            msg = "candidates is empty. Pass at least one pair of a name and a calibrator."
            raise ValueError(msg)
        return candidates


def default_candidates() -> list[tuple[str, Calibrator]]:
    """Return the candidates of `AutoCalibrator`, from simple to complex.

    Examples
    --------
    >>> from regcal.calibrators.auto import default_candidates
    >>> [name for name, _ in default_candidates()][:3]
    ['identity', 'scale', 'pit']
    """
    # the registry knows "auto" as well, so it cannot be imported above
    from regcal.calibrators.registry import calibrator_names, get_calibrator

    known = calibrator_names()
    return [
        (" ".join([name, *map(str, options.values())]), get_calibrator(name, **options))
        for name, options in _METHODS
        if name in known
    ]


def _cross_fitted(
    candidate: Calibrator, rows: HeldOut, folds: np.ndarray, support: Support
) -> Array:
    """Return the log score of each outcome under a candidate fitted without its fold.

    That of all candidates is the log density at the same points, and the log probability of the
    same intervals.
    """
    seen = rows.through(support)
    if isinstance(candidate, IdentityCalibrator):
        return seen.log_scores(rows.dist)
    scores = np.empty(len(rows))
    for fold in np.unique(folds):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        fitted = fitted_copy(candidate, rows.take(train), support)
        scores[test] = seen.take(test).log_scores(fitted.transform_latent(rows.dist[test]))
    return scores


def compare(names: Sequence[str], rows: Array, weights: Array) -> list[CandidateScore]:
    """Return the table of scores, with the first candidate within one standard error chosen.

    Parameters
    ----------
    names : sequence of str
        Of the candidates, from simple to complex.
    rows : ndarray of shape (n_candidates, n_rows)
        Log scores.
    weights : ndarray of shape (n_rows,)

    Returns
    -------
    list of CandidateScore
    """
    rows = _without_infinities(rows)
    means = np.average(rows, axis=1, weights=weights)
    best = int(np.argmax(means))
    pairs = [_paired(rows[best] - row, weights) for row in rows]
    chosen = next(k for k, (behind, error) in enumerate(pairs) if behind <= error)
    return [
        CandidateScore(name, float(mean), *pair, chosen=k == chosen)
        for k, (name, mean, pair) in enumerate(zip(names, means, pairs, strict=True))
    ]


def _without_infinities(rows: Array) -> Array:
    """Score an impossible outcome 700 below the candidate that does worst of the others.

    An outcome that is impossible under all candidates does not tell them apart, and scores 0.
    """
    possible = np.isfinite(rows)
    worst = np.where(possible, rows, np.inf).min(axis=0)
    worst = np.where(possible.any(axis=0), worst - _IMPOSSIBLE, 0.0)
    return np.where(possible, rows, worst)


def _paired(differences: Array, weights: Array) -> tuple[float, float]:
    """Return the mean of paired differences and its standard error."""
    total = weights.sum()
    mean = (weights * differences).sum() / total
    variance = (weights * (differences - mean) ** 2).sum() / max(total - 1, 1.0)
    return float(mean), float(np.sqrt(variance / total))


def _without_comparison(names: Sequence[str]) -> list[CandidateScore]:
    return [CandidateScore(name, np.nan, np.nan, np.nan, k == 0) for k, name in enumerate(names)]
