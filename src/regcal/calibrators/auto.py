"""The method that chooses among the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from regcal._inspection import check_has_learnt
from regcal._progress import Progress
from regcal._validation import Array
from regcal.calibrators.base import Calibrator, given_support
from regcal.calibrators.cells import Coordinates
from regcal.calibrators.cross_fitting import cross_fitted, dealt, parts_to_judge
from regcal.calibrators.held_out import HeldOut
from regcal.calibrators.judged import FEW_ROWS, Judged, averaged, best_spread
from regcal.calibrators.observed import Observed
from regcal.calibrators.scale import ScaleCalibrator
from regcal.calibrators.sinh_arcsinh import SinhArcsinhCalibrator
from regcal.calibrators.stack import Prices, StackCalibrator, named_calibrators
from regcal.calibrators.targets import Targets
from regcal.covariates import Covariates
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
# With fewer rows than `FEW_ROWS`, maps of two and of four numbers are candidates as well, which ask
# little of them.
_OF_FEW_ROWS: tuple[tuple[str, Calibrator], ...] = (
    ("location-scale", SinhArcsinhCalibrator(shape=False)),
    ("sinh-arcsinh", SinhArcsinhCalibrator()),
)
_OF_COVARIATES: tuple[tuple[str, dict[str, Any]], ...] = (("conditional", {}),)

# Rows are dealt into three parts, and each candidate is fitted without each of them. So many rows
# are halved, which takes half the time: what methods gain from more rows is small then against
# what tells them apart.
_MANY_ROWS = 1000
_FEWEST_ROWS = 10

# A balance of 1 % of CRPS for 0.02 nats. With prices of CRPS of 0, 1, 2, 5 and 20, the log score of
# new rows was best with 2 on the half "choose" of the development sets (benchmarks/quality.py), and
# CRPS as good as with any.
_OBJECTIVES = {
    "balanced": Prices(log_score=1.0, crps=2.0),
    "log_score": Prices(log_score=1.0, crps=0.0),
    "crps": Prices(log_score=0.0, crps=1.0),
}


@dataclass(frozen=True)
class CandidateScore:
    """How one candidate did on rows it was not fitted on.

    Attributes
    ----------
    name : str
        Name of the candidate.
    log_score : float
        Mean log density of the outcomes; NaN if nothing was compared.
    crps : float
        Mean CRPS of the outcomes, over that of the first candidate, as far as it is known of all
        rows on which side of a threshold they are; 0 where censored rows leave none.
    behind : float
        By how much it is worse than the best candidate, in nats, each with 1 % of all; by CRPS
        alone, in CRPS of the first candidate.
    standard_error : float
        Of `behind`, from paired differences.
    weight : float
        In what was chosen: 1 for a candidate alone, 0 for those that were not chosen.
    """

    name: str
    log_score: float
    crps: float
    behind: float
    standard_error: float
    weight: float

    @property
    def chosen(self) -> bool:
        """Whether it is in what was chosen."""
        return self.weight > 0


class AutoCalibrator(Calibrator):
    """Choose a calibrator, or an average of several, by scores on rows they were not fitted on.

    The calibration rows are dealt into three parts, 1 000 or more into two; each candidate is
    fitted without each part in turn and scored on it. The weights of an average are those with the
    best score (stacking; Wolpert, 1992; of densities, Yao, Vehtari, Simpson and Gelman, 2018): the
    log score, in which 1 % of CRPS counts for 0.02 nats, among averages whose CRPS is no worse than
    the first candidate's. Each candidate is judged with 1 % of the average of all, which bounds
    what a row can cost. Candidates that are worth less than 0.001 nats are left out, so that often
    one is left. The average is taken if it is clearly better than the first candidate, by a paired
    t test whose level all candidates share, or if the rows together are evidence against the
    first one: by a likelihood ratio that, if that one were right, would be so large with the
    probability of this level at most, and in which no row counts for more than half (Wasserman,
    Ramdas and Balakrishnan, 2020). Else the first one is taken. A gain of 0.01 nats is enough where
    rows are so many that it is clearly not a loss of 0.005. With fewer than 100 rows the average
    must be clearly better than the simplest candidate that is not clearly worse than the best,
    which is taken otherwise, and on evidence alone only a factor on the spread, or a shift and a
    factor, are; with more, a factor on the spread of what is taken, unless it is
    the first candidate, is fitted to the same rows, if it is worth 0.001 nats: an average of
    calibrated distributions is too wide (Ranjan and Gneiting, 2010). With fewer than 10 rows the
    first candidate is taken without comparison. Of many rows, it compares on a sample. What was
    chosen is fitted on all rows.

    Parameters
    ----------
    candidates : sequence of (str, Calibrator), optional
        Names of your own with calibrators, from simple to complex. By default the identity,
        scale, PIT, Gaussian-process, e-beta (with 8 and 32 thresholds) and isotonic calibration;
        with fewer than 100 rows a shift and a factor, and sinh-arcsinh calibration; with
        covariates conditional calibration as well.
    objective : {"balanced", "log_score", "crps"}, default="balanced"
        By which scores they are compared: both, or one of them.
    random_state : int, default=0
        Decides which rows form the parts. A row that occurs twice stays together, as a weight of
        2 does; counts, intervals and masses under equal predictions are in all parts.
    verbose : int, default=0
        Whether to tell on standard error which candidate is being compared. With 0, a terminal
        shows it if that takes longer than two seconds, and nothing is written elsewhere.
    support, step : as in every calibrator

    Attributes
    ----------
    scores_ : list of CandidateScore
        One row per candidate, in the order of `candidates`.
    chosen_ : str
        Name of the chosen candidate, or of those that are averaged, joined by " + ".
    gain_ : float
        How much better the average is than the best candidate alone, in the units of `behind`; 0
        without one.
    spread_ : float
        Factor on the spread of what was chosen: averages of calibrated distributions are too wide.
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

    # What files from before there were these have.
    verbose: int = 0
    spread_: float = 1.0

    @property
    def uses_covariates(self) -> bool:  # type: ignore[override]
        """Whether a candidate looks at covariates."""
        if self.candidates is None:
            return True
        return any(
            one.uses_covariates for _, one in named_calibrators(self.candidates, "candidates")
        )

    def __init__(
        self,
        candidates: Sequence[tuple[str, Calibrator]] | None = None,
        *,
        objective: str = "balanced",
        random_state: int = 0,
        verbose: int = 0,
        support: Any = "auto",
        step: Any = None,
    ) -> None:
        self.candidates = candidates
        self.objective = objective
        self.random_state = random_state
        self.verbose = verbose
        self.support = support
        self.step = step

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = super().__repr__(N_CHAR_MAX)
        return f"{text}: {self.explanation()}" if hasattr(self, "scores_") else text

    def explanation(self) -> str:
        """Return what was chosen, and why, in words."""
        check_has_learnt(self, "scores_")
        chosen = [score for score in self.scores_ if score.chosen]
        if np.isnan(chosen[0].log_score):
            return (
                f"chose {chosen[0].name} without a comparison, which takes two candidates and "
                f"{_FEWEST_ROWS} rows that differ in each fold, whose weights sum to as much"
            )
        if self.objective == "crps" and not any(score.behind for score in self.scores_):
            return (
                f"chose {chosen[0].name}, log score {chosen[0].log_score:.3f}, since the CRPS tells"
                " no candidate from another, as where censoring leaves no threshold among the "
                "outcomes that is known to be above or below each of them; the other objectives "
                "compare log scores"
            )
        best = min(self.scores_, key=lambda score: score.behind)
        if len(chosen) > 1:
            shares = [f"{score.weight:.0%} {score.name}" for score in chosen]
            of_crps = self.objective == "crps"
            gain = f"{self.gain_:.2%} of CRPS" if of_crps else f"{self.gain_:.3f} nats"
            return (
                f"averages {', '.join(shares)}, which is {gain} better than the "
                f"best alone, {best.name}, log score {best.log_score:.3f}{self._change_of_spread()}"
            )
        (alone,) = chosen
        if alone is best:
            score = f"{alone.log_score:.3f}{self._change_of_spread()}"
            return f"chose {alone.name}, which has the best score, {score}"
        return (
            f"chose {alone.name}, log score {alone.log_score:.3f}, since nothing is clearly "
            f"better where no row counts for much, not even {best.name} with {best.log_score:.3f}"
        )

    def _change_of_spread(self) -> str:
        if self.spread_ == 1:
            return ""
        which = "narrower" if self.spread_ < 1 else "wider"
        return f", and makes it {abs(self.spread_ - 1):.0%} {which}"

    def select(
        self, dist: Any, y: Any, sample_weight: Any = None, covariates: Any = None
    ) -> Calibrator:
        """Compare the candidates and return the chosen one, not fitted.

        Parameters
        ----------
        dist : Distribution or anything `as_distribution` takes
            Predictions for rows the model has not been trained on.
        y : array-like of shape (n_rows,)
            Their outcomes.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of 2 counts as two rows.
        covariates : frame, mapping or array-like of shape (n_rows, n_columns), optional
            What else is known of the rows.

        Returns
        -------
        Calibrator
        """
        return self.select_rows(self.checked_rows(dist, y, sample_weight, covariates))

    def select_rows(self, rows: HeldOut) -> Calibrator:
        """Return what `select` does, of rows that have been checked.

        Parameters
        ----------
        rows : HeldOut

        Returns
        -------
        Calibrator
        """
        return self._select(Observed.all_of(self, rows))

    def _coordinates(self, targets: Targets) -> tuple[Coordinates, ...]:
        each = _coordinates_of(self._candidates(with_covariates=True), targets)
        return tuple(one for coordinates in each for one in coordinates)

    def _solve(self, observed: Observed) -> None:
        """Choose by the rows that are kept, and fit what was chosen on all."""
        chosen = self._select(observed)
        counts = map(len, _coordinates_of(self._compared(observed), observed.targets))
        ends = np.cumsum([0, *counts])
        which = [
            number
            for k, score in enumerate(self.scores_)
            if score.chosen
            for number in range(ends[k], ends[k + 1])
        ]
        self.calibrator_ = chosen._learn(observed.part(chosen, which))

    def _transform(self, dist: Distribution, covariates: Covariates | None) -> Distribution:
        return self.calibrator_.transform_rows(dist, covariates)

    def _select(self, observed: Observed) -> Calibrator:
        rows, support = observed.modest_rows, observed.targets.support
        candidates = self._compared(observed)
        names = [name for name, _ in candidates]
        n_folds = 2 if rows.weights.sum() >= _MANY_ROWS else 3
        rows, parts = dealt(rows, n_folds, self.random_state, support)
        fewest = np.bincount(parts, minlength=n_folds)[:n_folds].min()
        too_few = rows.weights.sum() < _FEWEST_ROWS or len(rows) < 2 * n_folds or fewest == 0
        self.gain_, self.spread_ = 0.0, 1.0
        if too_few or len(candidates) == 1:
            self.scores_ = _without_comparison(names)
        else:
            judged_parts = parts_to_judge(parts, n_folds)
            answers = []
            with Progress("auto", self.verbose) as progress:
                for k, (name, one) in enumerate(candidates):
                    progress.step(f"comparing {name}, {k + 1} of {len(names)}")
                    answers.append(cross_fitted(one, rows, judged_parts, support))
            prices = _OBJECTIVES[self.objective]
            few_numbers = [k for k, (_, one) in enumerate(candidates) if _has_few_numbers(one)]
            judged = Judged.of(answers, rows, support, prices, few_numbers)
            weights = judged.chosen()
            self.scores_, self.gain_ = _table(names, judged, weights), judged.gain_of(weights)
            if weights[0] < 1 and judged.many_rows:
                average = averaged(answers, weights)
                self.spread_ = best_spread(judged, weights, average, rows, support)
        used = [
            (one, score.weight)
            for one, score in zip(candidates, self.scores_, strict=True)
            if score.chosen
        ]
        self.chosen_ = " + ".join(name for (name, _), _ in used)
        if len(used) == 1 and self.spread_ == 1:
            return given_support(clone(used[0][0][1]), support)
        calibrators, shares = zip(*used, strict=True)
        stack = StackCalibrator(list(calibrators), list(shares), spread=self.spread_)
        return given_support(stack, support)

    def _compared(self, observed: Observed) -> list[tuple[str, Calibrator]]:
        """Return the candidates for what was observed."""
        rows = observed.modest_rows
        return self._candidates(
            with_covariates=rows.covariates is not None,
            few_rows=observed.all_kept and rows.weights.sum() < FEW_ROWS,
        )

    def _candidates(
        self, *, with_covariates: bool, few_rows: bool = False
    ) -> list[tuple[str, Calibrator]]:
        """Return the candidates; those that look at covariates, if there are any, last."""
        if self.objective not in _OBJECTIVES:
            msg = f"objective must be one of {', '.join(_OBJECTIVES)}, got {self.objective!r}."
            raise ValueError(msg)
        if self.candidates is None:
            candidates = default_candidates(with_covariates, few_rows)
        else:
            candidates = named_calibrators(self.candidates, "candidates")
        return candidates


def default_candidates(
    with_covariates: bool = False, few_rows: bool = False
) -> list[tuple[str, Calibrator]]:
    """Return the candidates of `AutoCalibrator`, from simple to complex.

    Parameters
    ----------
    with_covariates : bool, default=False
        Whether rows have covariates.
    few_rows : bool, default=False
        Whether there are fewer than 100 rows.

    Returns
    -------
    list of (str, Calibrator)

    Examples
    --------
    >>> from regcal.calibrators.auto import default_candidates
    >>> [name for name, _ in default_candidates()][:3]
    ['identity', 'scale', 'pit']
    """
    # the registry knows "auto" as well, so it cannot be imported above
    from regcal.calibrators.registry import calibrator_names, get_calibrator

    known = calibrator_names()
    named = [
        (" ".join([name, *map(str, options.values())]), get_calibrator(name, **options))
        for name, options in (*_METHODS, *(_OF_COVARIATES if with_covariates else ()))
        if name in known
    ]
    return [*named[:2], *_OF_FEW_ROWS, *named[2:]] if few_rows else named


def _coordinates_of(
    candidates: Sequence[tuple[str, Calibrator]], targets: Targets
) -> list[tuple[Coordinates, ...]]:
    """Return in which coordinates each candidate looks at rows."""
    try:
        return [one._coordinates(targets) for _, one in candidates]
    except ValueError as error:
        if targets.low < targets.high:
            raise
        msg = (
            f"All targets equal {targets.low:g}, so there is no range that every candidate could "
            "learn on. Calibrate with rows whose outcomes differ, or name a method that needs no "
            'range: "scale", "pit" or "identity".'
        )
        raise ValueError(msg) from error


def _has_few_numbers(candidate: Calibrator) -> bool:
    """Return whether a calibrator fits a factor, or a shift and a factor."""
    if isinstance(candidate, SinhArcsinhCalibrator):
        return not candidate.shape
    return isinstance(candidate, ScaleCalibrator)


def _table(names: Sequence[str], judged: Judged, weights: Array) -> list[CandidateScore]:
    logs = np.average(judged.logs, axis=1, weights=judged.weights)
    return [
        CandidateScore(name, float(log), float(crps), *behind, float(weight))
        for name, log, crps, behind, weight in zip(
            names, logs, judged.relative_crps, judged.behind(), weights, strict=True
        )
    ]


def _without_comparison(names: Sequence[str]) -> list[CandidateScore]:
    nan = np.nan
    return [CandidateScore(name, nan, nan, nan, nan, float(k == 0)) for k, name in enumerate(names)]
