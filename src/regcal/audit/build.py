"""Audit predictions: read what is given, search all segments, say what is wrong."""

from typing import Any

import numpy as np

from regcal._validation import Array, check_same_index, check_weights
from regcal.audit.costs import DecisionCost, checked_costs, decision_costs
from regcal.audit.evidence import EQUAL, Cells, add_up, largest_by_chance, share_as_large
from regcal.audit.findings import SIGNIFICANT, Audit, AuditedSegment
from regcal.audit.segments import Segments, make_segments
from regcal.audit.statements import Labels, checked_coverage, make_labels
from regcal.covariates import Covariates
from regcal.distributions import Distribution
from regcal.grids import QuantileGrid
from regcal.metrics._inputs import check_count, checked_outcomes, seen_in_words
from regcal.metrics.thresholds import thresholds_for, told_by_rows, untold_in_words
from regcal.outcomes import Outcomes

# Where predictions are judged unless said otherwise: at tenths of the outcomes.
_TENTHS = QuantileGrid(9)

# Intervals that are judged unless said otherwise: an inner one for the shape. benchmarks/audit.py,
# "spread": with the outer one alone, or with a third, as many wrong spreads are found.
_COVERAGE = (0.5, 0.9)


def audit(
    y: Any,
    dist: Any,
    covariates: Any = None,
    groups: Any = None,
    thresholds: Any = None,
    costs: Any = None,
    *,
    coverage: Any = _COVERAGE,
    sample_weight: Any = None,
    n_draws: int = 2000,
    random_state: Any = 0,
) -> Audit:
    """Search for rows whose predictions are wrong: by group, along covariates.

    In each segment and at each threshold t, the predicted P(Y <= t) is compared with how often
    that was so, and what central intervals should hold, and leave out on either side, with what
    they did. The largest of all differences, each beside its own chance, is compared with the
    largest that calibrated predictions show, so that the search as a whole has one honest p-value,
    and each segment one that is adjusted for it.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Outcomes of rows that neither model nor calibrator has seen. A censored one counts, where it
        is not known whether y <= t, as the probability of that given what was seen; differences
        are then too small rather than too large.
    dist : Distribution or anything `as_distribution` takes
        The predictions to judge, calibrated or not.
    covariates : frame, mapping or array-like of shape (n_rows, n_columns), optional
        Numbers are cut into five ranges of equally many rows, categories are taken by level, of
        which the rarest beyond 20 are put together, and missing values are a segment of their own.
        Rows go together by their places; tables of pandas whose indexes differ are refused.
    groups : frame, mapping or array-like of shape (n_rows,) or (n_rows, n_columns), optional
        Labels, numbers among them, each of which is a segment; 1 000 at most.
    thresholds : int, grid or array-like, optional
        Where predictions are judged: values, or as calibrators take them. The tenths of the
        outcomes by default. Those beyond what was seen, such as after the end of follow-up, are
        left out, and the note names them; an error says so if none are left.
    costs : pair, mapping or callable, optional
        Costs of acting and of missing: acting costs the first, not acting costs the second if
        Y > t, and the rule is to act where P(Y > t) is at least their ratio. A pair holds for all
        thresholds, a mapping has thresholds of its own, ``{40.0: (1.0, 5.0)}``, and a function is
        called with each threshold.
    coverage : float or sequence of float, default=(0.5, 0.9)
        Of the central intervals that are judged, between 0 and 1: in them shows a wrong spread,
        which cancels at thresholds where medians vary. ``()`` for none. An outcome that is censored
        or lies on a point mass counts evenly over its interval of PIT values.
    sample_weight : array-like of shape (n_rows,), optional
        A weight of 2 is a row that occurs twice; 0 leaves a row out.
    n_draws : int, default=2000
        Draws of the largest difference by chance.
    random_state : int, RandomState, Generator or None, default=0

    Returns
    -------
    Audit
        Prints the worst segments first; ``table()`` has all, `regcal.plots.AuditDisplay` draws
        them, and `regcal.report` takes it for a section of its page.

    Examples
    --------
    >>> import numpy as np
    >>> import regcal
    >>> rng = np.random.default_rng(0)
    >>> region = rng.choice(["north", "south", "west"], 3000)
    >>> spread = np.where(region == "west", 1.4, 1.0)
    >>> y = rng.normal(np.where(region == "south", 0.5, 0.0), spread)
    >>> dist = regcal.Normal(np.zeros(3000), 1.0)
    >>> print(regcal.audit(y, dist, {"region": region}, thresholds=[0.0], coverage=0.9))
    Not calibrated in 3 of 4 segments at 1 threshold and 1 interval, 3,000 rows: p < 0.001.
      region = west: 90 % intervals hold 77 % (1,043 rows), p < 0.001
      region = south: P(Y <= 0) was 0.50, observed 0.32 (995 rows), p < 0.001
      all rows: 10 % lie above the 95 % quantile (3,000 rows), p < 0.001
    """
    given = {"y": y, "dist": dist, "sample_weight": sample_weight}
    outcomes, dist = checked_outcomes(y, dist)
    weights = check_weights(sample_weight, len(outcomes))
    columns, labelled = (
        None if table is None else Covariates.of(table, len(outcomes))
        for table in (covariates, _named_groups(groups))
    )
    check_same_index({**given, "covariates": covariates, "groups": groups})
    if not weights.all():
        used = np.flatnonzero(weights)
        outcomes, dist, weights = outcomes[used], dist[used], weights[used]
        columns, labelled = (
            None if table is None else table.take(used) for table in (columns, labelled)
        )
    check_count(n_draws, "n_draws")
    segments = make_segments(len(outcomes), columns, labelled, weights)
    grid = thresholds_for(_TENTHS if thresholds is None else thresholds, outcomes, weights)
    grid, untold = _told(outcomes, dist, grid)
    labels = make_labels(outcomes, dist, grid, checked_coverage(coverage), weights)
    cells = add_up(labels, segments)
    order = _order(outcomes, labels, segments)
    largest = largest_by_chance(labels, segments, cells.steps, order, n_draws, random_state)
    decided: tuple[DecisionCost, ...] = ()
    if costs is not None:
        prices = checked_costs(costs, grid)
        told, unpriced = _told(outcomes, dist, np.array(sorted(prices)))
        untold = np.union1d(untold, unpriced)
        at_prices = make_labels(outcomes, dist, told, np.empty(0), weights)
        decided = decision_costs(at_prices, segments, prices)
    return _findings(segments, labels, cells, largest, decided, _note(outcomes, labels, untold))


def _told(outcomes: Outcomes, dist: Distribution, thresholds: Array) -> tuple[Array, Array]:
    """Return thresholds at which rows tell how often y <= t, and the others."""
    told = told_by_rows(outcomes, dist, thresholds)
    return thresholds[told], thresholds[~told]


def _named_groups(groups: Any) -> Any:
    """Return groups of which a single column without a name is called "group"."""
    if groups is None or isinstance(groups, Covariates | dict) or hasattr(groups, "columns"):
        return groups
    if getattr(groups, "name", None) is None and np.ndim(groups) == 1:
        return {"group": groups}
    return groups


def _order(outcomes: Outcomes, labels: Labels, segments: Segments) -> np.ndarray:
    """Return rows by outcome, segments and prediction, so that their given order has no say."""
    sources = np.random.default_rng(0).integers(1, 2**62, segments.codes.shape[1])
    together = (segments.codes * sources).sum(axis=1)
    middle = labels.predicted[:, np.count_nonzero(labels.at_thresholds) // 2]
    return np.lexsort((middle, together, outcomes.upper, outcomes.lower))


def _note(outcomes: Outcomes, labels: Labels, untold: Array) -> str:
    """Return what was done with rows of which events are not simply true or false."""
    if outcomes.exact_rows.all():
        parted = int(labels.unknown().any(axis=1).sum())
        if parted == 0:
            return ""
        rows = f"{parted:,} of {len(outcomes):,} outcomes"
        return f"{rows} lie on point masses in which an interval ends: the part inside counts."
    return (
        f"{seen_in_words(outcomes)}: where it is not known whether y <= t, or whether an interval "
        "holds y, they count as the probability of that given what was seen, so that differences "
        "are rather too small"
        f"{untold_in_words(untold)}."
    )


def _findings(
    segments: Segments, labels: Labels, cells: Cells, largest: Array, costs: Any, note: str
) -> Audit:
    """Return the segments, those that speak most against calibration first."""
    scores, statistics = cells.scores, cells.statistics
    p_values = share_as_large(largest, scores)
    worst = _worst(scores, statistics)
    each = np.arange(len(worst))
    predicted, observed = (
        one / cells.weight[:, np.newaxis] for one in (cells.predicted, cells.happened)
    )
    reached = float(np.quantile(largest, 1.0 - SIGNIFICANT, method="higher"))
    lower, upper = (one / cells.weight for one in cells.by_chance(reached, worst))
    order = np.lexsort((-np.abs(statistics[each, worst]), -np.abs(scores[each, worst])))
    found = [
        AuditedSegment(
            segments.sources[g],
            segments.labels[g],
            int(cells.n_rows[g]),
            float(cells.weight[g]),
            labels.kinds[worst[g]],
            float(labels.places[worst[g]]),
            *(float(one[g, worst[g]]) for one in (predicted, observed)),
            *(float(one[g]) for one in (lower, upper)),
            *(float(one[g, worst[g]]) for one in (statistics, p_values)),
        )
        for g in order
    ]
    return Audit(
        float(p_values.min()),
        tuple(found),
        labels.kinds,
        labels.places,
        predicted[order],
        observed[order],
        statistics[order],
        p_values[order],
        n_rows=int(cells.n_rows[0]),
        costs=costs,
        note=note,
    )


def _worst(scores: Array, statistics: Array) -> np.ndarray:
    """Return the statement with the largest score; of equal ones that of the largest sum."""
    sizes = np.abs(scores)
    equal = sizes >= sizes.max(axis=1, keepdims=True) - EQUAL
    return np.asarray(np.where(equal, np.abs(statistics), -1.0).argmax(axis=1))
