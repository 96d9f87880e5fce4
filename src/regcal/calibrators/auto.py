"""The method that chooses among the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

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
from regcal.calibrators.isotonic import dense_thresholds
from regcal.calibrators.labels import known_below
from regcal.calibrators.observed import Observed
from regcal.calibrators.stack import StackCalibrator, weights_for_crps, weights_for_log_score
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
    ("isotonic", {}),
)

# In how many parts the rows are dealt. Each candidate is fitted without each of them.
_N_FOLDS = 3
_FEWEST_ROWS = 10

# An average leaves out candidates of a smaller weight. Without this limit it is no better
# (benchmarks/quality.py, half "choose": limits of 0, 0.02, 0.05, 0.1, 0.2), and slower to ask.
_SMALLEST_WEIGHT = 0.05

# About the log of the smallest positive number.
_IMPOSSIBLE = 700.0

# Points at which CDFs are compared with outcomes for their CRPS.
_N_POINTS = 128


@dataclass(frozen=True)
class CandidateScore:
    """How one candidate did on rows it was not fitted on.

    Attributes
    ----------
    name : str
        Name of the candidate.
    score : float
        Mean log score of the outcomes, or their mean CRPS with a minus sign; NaN if nothing was
        compared.
    behind : float
        By how much the mean is below that of the best candidate.
    standard_error : float
        Of `behind`, from paired differences.
    weight : float
        In what was chosen: 1 for a candidate alone, 0 for those that were not chosen.
    """

    name: str
    score: float
    behind: float
    standard_error: float
    weight: float

    @property
    def chosen(self) -> bool:
        """Whether it is in what was chosen."""
        return self.weight > 0


class AutoCalibrator(Calibrator):
    """Choose a calibrator, or an average of several, by scores on rows they were not fitted on.

    The calibration rows are dealt into three parts; each candidate is fitted without each part in
    turn and scored on it. The weights of an average are those with the best score (stacking;
    Wolpert, 1992; of densities, Yao, Vehtari, Simpson and Gelman, 2018), candidates of small weight
    are left out, and what remains is taken where it is better by more than a standard error than
    the simplest candidate within a standard error of the best. Else that candidate is taken alone.
    With fewer than 10 rows the first candidate is taken without comparison. Of more than 16 384
    rows, it compares on a sample of so many. What was chosen is fitted on all rows.

    Parameters
    ----------
    candidates : sequence of (str, Calibrator), optional
        Names of your own with calibrators, from simple to complex. By default the identity,
        scale, PIT, Gaussian-process, e-beta (with 8 and 32 thresholds) and isotonic calibration.
    objective : {"log_score", "crps"}, default="log_score"
        By which score they are compared.
    random_state : int, default=0
        Decides which rows form the parts. Equal rows stay together, so that a weight of 2 is
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
        Name of the chosen candidate, or of those that are averaged, joined by " + ".
    gain_ : float
        How much better the average is than the best candidate alone; 0 without an average.
    calibrator_ : Calibrator
        What was chosen, fitted on all rows.

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
        objective: str = "log_score",
        random_state: int = 0,
        support: Any = "auto",
        step: Any = None,
    ) -> None:
        self.candidates = candidates
        self.objective = objective
        self.random_state = random_state
        self.support = support
        self.step = step

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = super().__repr__(N_CHAR_MAX)
        return f"{text}: {self.explanation()}" if hasattr(self, "scores_") else text

    def explanation(self) -> str:
        """Return what was chosen, and why, in words."""
        chosen = [score for score in self.scores_ if score.chosen]
        if np.isnan(chosen[0].score):
            return f"chose {chosen[0].name}, as fewer than {_FEWEST_ROWS} rows leave no comparison"
        best = min(self.scores_, key=lambda score: score.behind)
        if len(chosen) > 1:
            shares = [f"{score.weight:.0%} {score.name}" for score in chosen]
            return (
                f"averages {', '.join(shares)}, whose {self._score_name} is {self.gain_:.3f} "
                f"better than that of the best alone, {best.name} with {self._shown(best)}"
            )
        (alone,) = chosen
        if alone is best:
            return f"chose {alone.name}, which has the best {self._score_name}, {self._shown(best)}"
        return (
            f"chose {alone.name}, {self._score_name} {self._shown(alone)}, the simplest within one "
            f"standard error ({alone.standard_error:.3f}) of the best, {best.name} with "
            f"{self._shown(best)}"
        )

    @property
    def _score_name(self) -> str:
        return "CRPS" if self.objective == "crps" else "log score"

    def _shown(self, score: CandidateScore) -> str:
        return f"{-score.score if self.objective == 'crps' else score.score:.3f}"

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
        """Choose by the rows that are kept, and fit what was chosen on all."""
        chosen = self._select(observed.modest_rows, observed.targets.support)
        counts = [len(one._coordinates(observed.targets)) for _, one in self._candidates()]
        ends = np.cumsum([0, *counts])
        which = [
            number
            for k, score in enumerate(self.scores_)
            if score.chosen
            for number in range(ends[k], ends[k + 1])
        ]
        self.calibrator_ = chosen._learn(observed.part(chosen, which))

    def _transform(self, dist: Distribution) -> Distribution:
        return self.calibrator_.transform_latent(dist)

    def _select(self, rows: HeldOut, support: Support) -> Calibrator:
        candidates = self._candidates()
        names = [name for name, _ in candidates]
        folds = deal(rows, _N_FOLDS, self.random_state)
        n_distinct = np.bincount(folds, minlength=_N_FOLDS).min()
        self.gain_ = 0.0
        if rows.weights.sum() < _FEWEST_ROWS or n_distinct < 2 or len(candidates) == 1:
            self.scores_ = _without_comparison(names)
        else:
            judged = [_cross_fitted(one, rows, folds, support) for _, one in candidates]
            kind = _RankedScores if self.objective == "crps" else _LogScores
            scores = kind.of(judged, rows, support)
            self.scores_, self.gain_ = compare(names, scores, rows.weights)
        used = [
            (one, score.weight)
            for one, score in zip(candidates, self.scores_, strict=True)
            if score.chosen
        ]
        self.chosen_ = " + ".join(name for (name, _), _ in used)
        if len(used) == 1:
            return given_support(clone(used[0][0][1]), support)
        parts, weights = zip(*used, strict=True)
        return given_support(StackCalibrator(list(parts), list(weights)), support)

    def _candidates(self) -> list[tuple[str, Calibrator]]:
        if self.objective not in ("log_score", "crps"):
            msg = f'objective must be "log_score" or "crps", got {self.objective!r}.'
            raise ValueError(msg)
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


# ------------------------------------------------------------------------------------------- scores


@dataclass(frozen=True)
class _Judged:
    """What one candidate predicts for rows it was not fitted on, part by part."""

    parts: Sequence[tuple[np.ndarray, Distribution]]

    def gather(self, ask: Callable[[np.ndarray, Distribution], Array], n_rows: int) -> Array:
        """Return what is asked of the rows and predictions of each part, in the order of rows."""
        answers = [(rows, ask(rows, dist)) for rows, dist in self.parts]
        whole = np.empty((n_rows, *answers[0][1].shape[1:]))
        for rows, answer in answers:
            whole[rows] = answer
        return whole


def _cross_fitted(
    candidate: Calibrator, rows: HeldOut, folds: np.ndarray, support: Support
) -> _Judged:
    """Return a candidate's predictions for each part of the rows, fitted without it."""
    if isinstance(candidate, IdentityCalibrator):
        return _Judged([(np.arange(len(rows)), rows.dist)])
    parts = []
    for fold in np.unique(folds):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        fitted = fitted_copy(candidate, rows.take(train), support)
        parts.append((test, fitted.transform_latent(rows.dist[test])))
    return _Judged(parts)


class Scores(Protocol):
    """Scores of candidates on the same rows, and of averages of them."""

    @property
    def rows(self) -> Array:
        """The score of each row, (n_candidates, n_rows)."""
        ...

    def best_weights(self, used: np.ndarray, weights: Array) -> Array:
        """Return the weights of some candidates whose average scores best."""
        ...

    def of_average(self, used: np.ndarray, shares: Array) -> Array:
        """Return the score of each row under an average."""
        ...


@dataclass(frozen=True)
class _LogScores:
    """Log scores, (n_candidates, n_rows).

    That of all candidates is the log density at the same points, and the log probability of the
    same intervals.
    """

    rows: Array

    @classmethod
    def of(cls, judged: Sequence[_Judged], rows: HeldOut, support: Support) -> "_LogScores":
        seen = rows.through(support)

        def ask(places: np.ndarray, dist: Distribution) -> Array:
            return seen.take(places).log_scores(dist)

        return cls(_without_infinities(np.stack([one.gather(ask, len(rows)) for one in judged])))

    def best_weights(self, used: np.ndarray, weights: Array) -> Array:
        return weights_for_log_score(self.rows[used], weights)

    def of_average(self, used: np.ndarray, shares: Array) -> Array:
        return np.logaddexp.reduce(self.rows[used] + np.log(shares)[:, np.newaxis], axis=0)


@dataclass(frozen=True)
class _RankedScores:
    """CRPS with a minus sign, from CDFs at points: (n_candidates, n_rows, n_points).

    Where nobody knows on which side of a point an outcome lies, it does not count.
    """

    differences: Array

    @classmethod
    def of(cls, judged: Sequence[_Judged], rows: HeldOut, support: Support) -> "_RankedScores":
        targets = Targets.of_outcomes(rows.seen, rows.weights)
        targets = targets.seen_through((support.low, support.high), None)
        points = dense_thresholds(targets, _N_POINTS)
        lengths = np.sqrt(np.gradient(points))
        known = known_below(rows, points)

        def ask(places: np.ndarray, dist: Distribution) -> Array:
            return (dist.cdf(points[np.newaxis, :]) - known[places]) * lengths

        found = np.stack([one.gather(ask, len(rows)) for one in judged])
        return cls(np.where(np.isnan(found), 0.0, found))

    @property
    def rows(self) -> Array:
        return -(self.differences**2).sum(axis=2)

    def best_weights(self, used: np.ndarray, weights: Array) -> Array:
        return weights_for_crps(self.differences[used], weights)

    def of_average(self, used: np.ndarray, shares: Array) -> Array:
        return -(np.tensordot(shares, self.differences[used], axes=1) ** 2).sum(axis=1)


def compare(
    names: Sequence[str], scores: Scores, weights: Array
) -> tuple[list[CandidateScore], float]:
    """Return the table of scores, and what an average gains on the best candidate if it is chosen.

    Parameters
    ----------
    names : sequence of str
        Of the candidates, from simple to complex.
    scores : Scores
    weights : ndarray of shape (n_rows,)

    Returns
    -------
    scores : list of CandidateScore
    gain : float
        0 if a candidate is chosen alone.
    """
    rows = scores.rows
    means = np.average(rows, axis=1, weights=weights)
    best = int(np.argmax(means))
    pairs = [_paired(rows[best] - row, weights) for row in rows]
    alone = next(k for k, (behind, error) in enumerate(pairs) if behind <= error)
    used, shares = _average(scores, weights)
    average = scores.of_average(used, shares)
    ahead, error = _paired(average - rows[alone], weights)
    gain = 0.0
    chosen = np.eye(len(rows))[alone]
    if len(used) > 1 and ahead > error:
        chosen = np.zeros(len(rows))
        chosen[used] = shares
        gain = float(np.average(average, weights=weights) - means[best])
    table = [
        CandidateScore(name, float(mean), *pair, float(share))
        for name, mean, pair, share in zip(names, means, pairs, chosen, strict=True)
    ]
    return table, gain


def _average(scores: Scores, weights: Array) -> tuple[np.ndarray, Array]:
    """Return the candidates of the best average without those of small weight, and their shares."""
    used = np.arange(len(scores.rows))
    while True:
        shares = scores.best_weights(used, weights)
        large = shares >= _SMALLEST_WEIGHT
        if large.all() or len(used) == 1:
            return used, shares
        used = used[large]


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
    return [
        CandidateScore(name, np.nan, np.nan, np.nan, float(k == 0)) for k, name in enumerate(names)
    ]
