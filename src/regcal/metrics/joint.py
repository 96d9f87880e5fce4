"""One test of all that predictions say at once: thresholds, coverage, tails and the mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regcal._random import child_generator
from regcal._validation import Array, check_weights
from regcal.distributions import Distribution
from regcal.metrics._inputs import check_count, checked_outcomes
from regcal.metrics.calibration import PitIntervals, pit_intervals
from regcal.metrics.coarsening import Coarsening, SeenLevels
from regcal.metrics.statements import (
    LEVELS,
    Extremes,
    JudgedRows,
    Masses,
    Shares,
    Statements,
    Thresholds,
)
from regcal.metrics.thresholds import DEFAULT_THRESHOLDS, thresholds_for, told_by_rows
from regcal.outcomes import Outcomes

# Values of which P(Y = t) is judged: so many at most, each of at least this share of outcomes.
_MOST_PLACES = 12
_LEAST_SHARE = 0.01

# Simulated PIT values that are held at once.
_MOST_VALUES = 1_000_000

# With fewer than nineteen simulations no score is too large; this is more than any.
_BEYOND_ALL = 40.0

# "Calibrated" is refused to one calibrated model in twenty.
LEVEL = 0.05

# What rows "would have shown" they show so often.
POWER = 0.8


@dataclass(frozen=True)
class Statement:
    """One thing that predictions say, and what was observed of it.

    Attributes
    ----------
    kind : str
        ``"coverage"`` of central intervals, share of outcomes ``"below"`` a low quantile or
        ``"above"`` a high one, ``"bar"`` of the PIT histogram and its ``"shape"``, the frequency of
        y <= t at a ``"threshold"`` and its ``"reliability"`` in bins of P(Y <= t), the frequency of
        a point ``"mass"``, the ``"mean"`` outcome less the predicted one and the ``"slope"`` of
        outcomes on predicted means (both within the range of the outcomes), and the PIT value of
        the ``"lowest"`` outcome and the distance to 1 of that of the ``"highest"``.
    place : float
        Nominal coverage, share beyond the quantile, start of the bar, or threshold.
    observed, expected : float
    lower, upper : float
        Where `observed` lies, and that of all other statements, for 95 of 100 calibrated models.
    p_value : float
        Adjusted for looking at all statements at once.

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.metrics import joint_calibration_test
    >>> test = joint_calibration_test([-1.0, -0.2, 0.2, 1.0], Normal([0.0] * 4, [1.0] * 4))
    >>> one = test.of("coverage", 0.5)
    >>> one.kind, one.place, one.observed
    ('coverage', 0.5, 0.5)
    """

    kind: str
    place: float
    observed: float
    expected: float
    lower: float
    upper: float
    p_value: float


@dataclass(frozen=True)
class Noticed:
    """The smallest errors that these rows would have shown four times in five, or more often.

    Attributes
    ----------
    too_narrow, too_wide : float
        True coverage of intervals that were meant to hold 90 %; nan where even 0 % or 100 % could
        not have been told from it.
    probability : float
        Mean error of P(Y <= t) at the threshold at which it is most in doubt; nan where next to
        nothing was seen.

    Examples
    --------
    Four rows cannot tell that intervals are too wide:

    >>> from regcal import Normal
    >>> from regcal.metrics import joint_calibration_test
    >>> test = joint_calibration_test([-1.0, -0.2, 0.2, 1.0], Normal([0.0] * 4, [1.0] * 4))
    >>> test.noticed.too_wide
    nan
    """

    too_narrow: float
    too_wide: float
    probability: float


@dataclass(frozen=True)
class JointCalibrationTest:
    """Whether any of many statements is further off than chance explains.

    Attributes
    ----------
    p_value : float
        Probability that calibrated predictions look as wrong, in whatever statement they look
        most wrong; never larger than that of a single statement.
    statements : list of Statement
    noticed : Noticed
        The size of errors that these rows could have shown.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.metrics import joint_calibration_test
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> test = joint_calibration_test(y, Normal(np.zeros(500), np.full(500, 1.3)))
    >>> test.calibrated
    False
    >>> wide = test.of("coverage", 0.9)
    >>> bool(wide.observed > wide.upper > 0.9)
    True
    """

    p_value: float
    statements: Sequence[Statement]
    noticed: Noticed

    @property
    def calibrated(self) -> bool:
        """Whether all statements may be true, as far as these rows can tell."""
        return self.p_value >= LEVEL

    @property
    def wrong(self) -> list[Statement]:
        """Statements that are further off than chance explains."""
        return [one for one in self.statements if one.p_value < LEVEL]

    def all_of(self, kind: str) -> list[Statement]:
        """Return the statements of one kind, in the order of their places."""
        return [one for one in self.statements if one.kind == kind]

    def of(self, kind: str, place: float) -> Statement:
        """Return the statement of this kind at one place."""
        return next(one for one in self.all_of(kind) if np.isclose(one.place, place))


def joint_calibration_test(
    y: Any,
    dist: Any,
    thresholds: Any = DEFAULT_THRESHOLDS,
    sample_weight: Any = None,
    *,
    n_simulations: int = 999,
    random_state: Any = 0,
) -> JointCalibrationTest:
    """Test thresholds, coverage, both tails and the mean at once, with one p-value.

    The largest of the standardised statements is compared with that of simulated calibrated rows,
    as many and with the same predictions. Outcomes that are censored or lie on point masses count
    evenly over their intervals of PIT values, as everywhere, and so do simulated ones. The p-value
    is exact, but for thresholds that are taken from the outcomes, and but for censored ones: into
    which interval another outcome of such a row would have fallen is taken from similar rows
    (levels: ``benchmarks/verdict.py``).

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.
    thresholds : int, grid or array-like, default=QuantileGrid(16)
        As calibrators take them. Those beyond what was seen, such as after the end of follow-up,
        are left out; an error says so if none are left.
    sample_weight : array-like of shape (n_rows,), optional
    n_simulations : int, default=999
        Number of simulated calibrated data sets.
    random_state : int, RandomState, Generator or None, default=0

    Returns
    -------
    JointCalibrationTest

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.metrics import joint_calibration_test
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=300)
    >>> test = joint_calibration_test(rng.normal(mean), Normal(mean, np.ones(300)))
    >>> test.calibrated
    True
    >>> print(f"{test.noticed.too_narrow:.2f} {test.noticed.too_wide:.2f}")
    0.82 0.96
    """
    outcomes, dist = checked_outcomes(y, dist)
    weights = check_weights(sample_weight, len(outcomes))
    used = np.flatnonzero(weights)
    rows, dist = _judged_rows(outcomes[used], dist[used], weights[used])
    rng = child_generator(random_state)
    seen = Coarsening.of(rows.outcomes, dist, rows.values, rng)
    shares = Shares(rows, _seen_levels(rows, dist, seen))
    at_thresholds = _thresholds(rows, dist, seen, thresholds)
    sorts: list[Statements] = [shares, at_thresholds, _masses(rows, dist, seen), Extremes(rows)]
    count = check_count(n_simulations, "n_simulations")
    largest = _largest_scores(sorts, len(used), count, rng)
    limit = _limit(largest)
    noticed = Noticed(*shares.noticed(0.9, limit, POWER), at_thresholds.noticed(limit, POWER))
    statements = [one for sort in sorts for one in _stated(sort, largest, limit)]
    return JointCalibrationTest(min(one.p_value for one in statements), statements, noticed)


def _judged_rows(
    outcomes: Outcomes, dist: Distribution, weights: Array
) -> tuple[JudgedRows, Distribution]:
    """Return rows in the order of their PIT values, so that all orders get the same simulations."""
    values = pit_intervals(outcomes, dist)
    order = np.lexsort((weights, values.upto, values.below))
    ordered = PitIntervals(values.below[order], values.upto[order], values.note)
    # As many rows as the weighted ones are worth (Kish).
    scaled = weights[order] * (weights.sum() / (weights @ weights))
    return JudgedRows(outcomes[order], ordered, scaled), dist[order]


def _seen_levels(rows: JudgedRows, dist: Distribution, seen: Coarsening) -> SeenLevels:
    """Return what is seen as one around the ends of shares; masses count where outcomes hit any."""
    if (rows.outcomes.exact_rows & rows.values.spread).any():
        return seen.around_quantiles(LEVELS, dist)
    return seen.around(np.tile(LEVELS, (len(dist), 1)))


def _thresholds(rows: JudgedRows, dist: Distribution, seen: Coarsening, spec: Any) -> Thresholds:
    """Return statements at thresholds, and on the mean from these and from the outcomes' range."""
    weights = rows.weights
    judged = thresholds_for(spec, rows.outcomes, weights)
    judged = judged[told_by_rows(rows.outcomes, dist, judged)]
    others = [thresholds_for(DEFAULT_THRESHOLDS, rows.outcomes, weights), _ends(rows.outcomes)]
    grid = np.unique(np.concatenate([judged, *others]))
    grid = grid[told_by_rows(rows.outcomes, dist, grid)]
    predicted = np.clip(dist.cdf(grid[np.newaxis, :]), 0.0, 1.0)
    return Thresholds(rows, grid, np.searchsorted(grid, judged), seen.around(predicted))


def _masses(rows: JudgedRows, dist: Distribution, seen: Coarsening) -> Masses:
    """Return statements on the values that most outcomes on point masses have."""
    on_mass = rows.outcomes.exact_rows & rows.values.spread
    values, place_of = np.unique(rows.outcomes.lower[on_mass], return_inverse=True)
    counts = np.bincount(place_of, rows.weights[on_mass], len(values))
    # Continuous predictions that were drawn have masses everywhere, and outcomes on none twice.
    frequent = np.flatnonzero(counts >= _LEAST_SHARE * rows.total)
    places = np.sort(values[frequent[np.argsort(-counts[frequent], kind="stable")][:_MOST_PLACES]])
    grid = places[np.newaxis, :]
    masses = dist.mass(grid)
    return Masses(rows, places, masses, seen.around(dist.cdf(grid) - 0.5 * masses))


def _ends(outcomes: Outcomes) -> Array:
    known = np.concatenate([outcomes.lower, outcomes.upper])
    known = known[np.isfinite(known)]
    return np.array([known.min(), known.max()])


def _largest_scores(
    sorts: Sequence[Statements], n_rows: int, count: int, rng: np.random.Generator
) -> Array:
    """Return the largest score of each simulation of calibrated rows, in increasing order."""
    block = max(1, _MOST_VALUES // n_rows)
    largest = np.empty(count)
    for start in range(0, count, block):
        uniforms = rng.random((min(block, count - start), n_rows))
        scores = np.concatenate([sort.simulated(uniforms) for sort in sorts], axis=1)
        largest[start : start + len(uniforms)] = scores.max(axis=1)
    return np.sort(largest)


def _limit(largest: Array) -> float:
    """Return the score up to which p-values are at least `LEVEL`."""
    exceeding = int(np.ceil(LEVEL * (1 + len(largest)) - 1e-9)) - 1
    return float(largest[-exceeding]) if exceeding > 0 else _BEYOND_ALL


def _stated(sort: Statements, largest: Array, limit: float) -> list[Statement]:
    """Return the statements of one sort with their bands and p-values."""
    # Equal counts may differ in their last digit: those are at least as large.
    exceeding = len(largest) - np.searchsorted(largest, sort.scores() - 1e-9)
    p_values = (1.0 + exceeding) / (1.0 + len(largest))
    bands = sort.bands(limit + 1e-9)
    columns = (sort.places, bands.observed, bands.expected, bands.lower, bands.upper, p_values)
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    return [Statement(kind, *row) for kind, row in zip(sort.kinds, numbers, strict=True)]
