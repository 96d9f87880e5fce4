"""Predicted against realised cost of decisions at thresholds.

Acting costs c whatever happens; not acting costs m if Y > t. The cheapest rule is to act where
P(Y > t) >= c / m, if that probability is right. What it should cost on average is then known before
any outcome is, and what it did cost shows whether the probabilities can be decided by.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from regcal._validation import Array, as_float_array
from regcal.audit.evidence import sums_by_code
from regcal.audit.segments import Segments
from regcal.audit.statements import Labels


@dataclass(frozen=True)
class DecisionCost:
    """What the rule at one threshold should have cost in one segment, and what it did cost.

    Attributes
    ----------
    covariate, segment : str
    threshold : float
    n_rows : int
    acted : float
        Share of the rows, by weight, in which the rule says to act.
    predicted, realised : float
        Cost per row.
    standard_error : float
        Of their difference.

    Examples
    --------
    >>> import regcal
    >>> dist = regcal.Normal([0.0, 0.0, 9.0, 9.0], 1.0)
    >>> costs = {5.0: (1.0, 4.0)}
    >>> audit = regcal.audit([0.0, 9.0, 9.0, 9.0], dist, {"x": [1, 1, 2, 2]}, costs=costs)
    >>> for cost in audit.costs:
    ...     print(cost.segment, round(cost.predicted, 2), cost.realised)
    x = 1 0.0 2.0
    all rows 0.5 1.5
    x = 2 1.0 1.0
    """

    covariate: str
    segment: str
    threshold: float
    n_rows: int
    acted: float
    predicted: float
    realised: float
    standard_error: float

    @property
    def difference(self) -> float:
        """Realised less predicted cost per row."""
        return self.realised - self.predicted

    def __str__(self) -> str:
        return (
            f"{self.segment}: deciding at t = {self.threshold:.4g} should have cost "
            f"{self.predicted:.4g} a row and cost {self.realised:.4g} "
            f"(difference {self.difference:+.3g} ± {self.standard_error:.2g}, {self.n_rows:,} rows)"
        )


def checked_costs(costs: Any, thresholds: Array) -> dict[float, tuple[float, float]]:
    """Return the costs of acting and of missing by threshold.

    Parameters
    ----------
    costs : mapping, callable or pair
        A mapping from thresholds to pairs; a function of a threshold that returns a pair; or a
        pair for all of `thresholds`.
    thresholds : ndarray of shape (n_thresholds,)
    """
    if isinstance(costs, Mapping):
        if not costs:
            msg = "costs is empty. Pass {threshold: (cost of acting, cost of missing)}."
            raise ValueError(msg)
        return {_threshold(t): _pair(pair) for t, pair in costs.items()}
    if isinstance(costs, Callable):  # type: ignore[arg-type]
        return {float(t): _pair(costs(float(t))) for t in thresholds}
    return dict.fromkeys(map(float, thresholds), _pair(costs))


def _threshold(value: Any) -> float:
    array = as_float_array(value, "a threshold of costs")
    if array.ndim or not np.isfinite(array):
        msg = f"A threshold of costs must be one finite number, got {value!r}."
        raise ValueError(msg)
    return float(array)


def _pair(pair: Any) -> tuple[float, float]:
    values = as_float_array(pair, "costs")
    if values.shape != (2,) or not np.isfinite(values).all() or not 0 < values[0] < values[1]:
        msg = (
            f"costs are pairs (cost of acting, cost of missing) with 0 < acting < missing, got "
            f"{pair!r}. If missing costs no more than acting, nobody acts: there is no decision."
        )
        raise ValueError(msg)
    return float(values[0]), float(values[1])


def decision_costs(
    labels: Labels, segments: Segments, costs: dict[float, tuple[float, float]]
) -> tuple[DecisionCost, ...]:
    """Return what decisions cost in every segment, the worst predicted first."""
    acting, missing = np.array([costs[float(t)] for t in labels.places]).T
    w, risk = labels.weights[:, np.newaxis], 1.0 - labels.predicted
    act = risk >= acting / missing
    predicted = np.where(act, acting, missing * risk)
    realised = np.where(act, acting, missing * (1.0 - labels.happened))
    gap = realised - predicted
    said = np.where(act, 0.0, missing**2 * np.maximum(risk * (1.0 - risk) - labels.unknown(), 0.0))
    rows = [np.ones_like(w), w, w**2]
    columns = [w * act, w * predicted, w * realised, w**2 * said, w**2 * gap, w**2 * gap**2]
    sums = sums_by_code(segments.codes, len(segments), np.concatenate(rows + columns, axis=1))
    n_rows, weight, squared = (one[:, np.newaxis] for one in sums[:, :3].T)
    acted, should, did, noise, first, second = np.split(sums[:, 3:], len(columns), axis=1)
    acted, should, did = acted / weight, should / weight, did / weight
    mean = did - should
    seen = second - 2.0 * mean * first + mean**2 * squared
    # chance by what predictions say, or by what was seen where that is more
    errors = np.sqrt(np.maximum(noise, seen)) / weight
    with np.errstate(divide="ignore", invalid="ignore"):
        surprise = np.nan_to_num(np.abs(mean) / errors)
    order = np.argsort(-surprise.ravel(), kind="stable")
    return tuple(
        DecisionCost(
            segments.sources[g],
            segments.labels[g],
            float(labels.places[k]),
            int(n_rows[g, 0]),
            *(float(table[g, k]) for table in (acted, should, did, errors)),
        )
        for g, k in zip(*np.unravel_index(order, surprise.shape), strict=True)
    )
