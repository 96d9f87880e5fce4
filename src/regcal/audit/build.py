"""Audit predictions: read what is given, search all segments and thresholds, say what is wrong."""

from typing import Any

import numpy as np

from regcal._validation import Array, check_weights
from regcal.audit.costs import DecisionCost, checked_costs, decision_costs
from regcal.audit.evidence import Cells, Labels, add_up, largest_by_chance, share_as_large
from regcal.audit.findings import SIGNIFICANT, Audit, AuditedSegment
from regcal.audit.segments import Segments, make_segments
from regcal.covariates import Covariates
from regcal.distributions import Distribution
from regcal.grids import QuantileGrid
from regcal.metrics._inputs import check_count, checked_outcomes, seen_in_words
from regcal.metrics.calibration import pit_intervals
from regcal.metrics.censoring import Ends
from regcal.metrics.thresholds import expected_labels, thresholds_for, told_by_rows, untold_in_words
from regcal.outcomes import Outcomes

# Where predictions are judged unless said otherwise: at tenths of the outcomes.
_TENTHS = QuantileGrid(9)


def audit(
    y: Any,
    dist: Any,
    covariates: Any = None,
    groups: Any = None,
    thresholds: Any = None,
    costs: Any = None,
    *,
    sample_weight: Any = None,
    n_draws: int = 2000,
    random_state: Any = 0,
) -> Audit:
    """Search for rows whose predictions are wrong: by group, along covariates, at thresholds.

    In each segment and at each threshold t, the predicted P(Y <= t) is compared with how often
    that was so. The largest of all differences, each beside its own chance, is compared with the
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
    >>> y = rng.normal(np.where(region == "south", 0.5, 0.0))
    >>> dist = regcal.Normal(np.zeros(3000), 1.0)
    >>> print(regcal.audit(y, dist, {"region": region}, thresholds=[0.0]))
    Not calibrated in 2 of 4 segments at 1 threshold, 3,000 rows: p < 0.001.
      region = south: P(Y <= 0) was 0.50, observed 0.32 (995 rows), p < 0.001
      all rows: P(Y <= 0) was 0.50, observed 0.45 (3,000 rows), p < 0.001
    """
    outcomes, dist = checked_outcomes(y, dist)
    weights = check_weights(sample_weight, len(outcomes))
    columns, labelled = (
        None if table is None else Covariates.of(table, len(outcomes))
        for table in (covariates, _named_groups(groups))
    )
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
    labels = _labels(outcomes, dist, grid, weights)
    cells = add_up(labels, segments)
    order = _order(outcomes, labels, segments)
    largest = largest_by_chance(labels, segments, cells.steps, order, n_draws, random_state)
    decided: tuple[DecisionCost, ...] = ()
    if costs is not None:
        prices = checked_costs(costs, grid)
        told, unpriced = _told(outcomes, dist, np.array(sorted(prices)))
        untold = np.union1d(untold, unpriced)
        decided = decision_costs(_labels(outcomes, dist, told, weights), segments, prices)
    return _findings(segments, cells, grid, largest, decided, _note(outcomes, untold))


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


def _labels(outcomes: Outcomes, dist: Distribution, thresholds: Array, weights: Array) -> Labels:
    """Return predicted and observed events; what is not known of them is expected."""
    predicted = np.clip(dist.cdf(thresholds[np.newaxis, :]), 0.0, 1.0)
    happened = (outcomes.upper[:, np.newaxis] <= thresholds).astype(np.float64)
    unknown = np.zeros((1, len(thresholds)))
    if not outcomes.exact_rows.all():
        ends, seen = Ends(outcomes, dist), pit_intervals(outcomes, dist)
        for k, t in enumerate(thresholds):
            happened[:, k] = expected_labels(predicted[:, k], happened[:, k], ends.known(t), seen)
        unknown = happened * (1.0 - happened)
    return Labels(
        thresholds, predicted, happened, np.broadcast_to(unknown, happened.shape), weights
    )


def _order(outcomes: Outcomes, labels: Labels, segments: Segments) -> np.ndarray:
    """Return rows by outcome, segments and prediction, so that their given order has no say."""
    sources = np.random.default_rng(0).integers(1, 2**62, segments.codes.shape[1])
    together = (segments.codes * sources).sum(axis=1)
    middle = labels.predicted[:, len(labels.thresholds) // 2]
    return np.lexsort((middle, together, outcomes.upper, outcomes.lower))


def _note(outcomes: Outcomes, untold: Array) -> str:
    if outcomes.exact_rows.all():
        return ""
    return (
        f"{seen_in_words(outcomes)}: where it is not known whether y <= t, they count as the "
        "probability of that given what was seen, so that differences are rather too small"
        f"{untold_in_words(untold)}."
    )


def _findings(
    segments: Segments, cells: Cells, thresholds: Array, largest: Array, costs: Any, note: str
) -> Audit:
    """Return the segments, those that speak most against calibration first."""
    scores, statistics = cells.scores, cells.statistics
    p_values = share_as_large(largest, scores)
    worst = np.abs(scores).argmax(axis=1)
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
            float(thresholds[worst[g]]),
            *(float(one[g, worst[g]]) for one in (predicted, observed)),
            *(float(one[g]) for one in (lower, upper)),
            *(float(one[g, worst[g]]) for one in (statistics, p_values)),
        )
        for g in order
    ]
    return Audit(
        float(p_values.min()),
        tuple(found),
        thresholds,
        predicted[order],
        observed[order],
        statistics[order],
        p_values[order],
        n_rows=int(cells.n_rows[0]),
        costs=costs,
        note=note,
    )
