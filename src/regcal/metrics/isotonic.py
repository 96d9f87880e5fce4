"""Isotonic recalibration at thresholds: reliability without bins, and the parts of the Brier score.

Forecasts are compared with those that isotonic regression makes of them on the same rows
(Dimitriadis, Gneiting and Jordan, 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from regcal._random import child_generator
from regcal._validation import Array
from regcal.metrics._inputs import check_count, check_level
from regcal.metrics.thresholds import (
    DEFAULT_THRESHOLDS,
    Forecasts,
    ReliabilityCurve,
    forecasts_at,
)

# Isotonic fits that are repeated in simulations use at most so many cells of probabilities.
_MAX_CELLS = 500


def isotonic_reliability_curve(
    y: Any,
    dist: Any,
    thresholds: Any = DEFAULT_THRESHOLDS,
    sample_weight: Any = None,
    confidence: float = 0.95,
    *,
    n_points: int = 101,
    n_simulations: int = 200,
    random_state: Any = None,
) -> ReliabilityCurve:
    """Return isotonic reliability per threshold with simulated consistency bands.

    There are no bins to choose: the frequency of y <= t is estimated as a non-decreasing function
    of the predicted probability (Dimitriadis, Gneiting and Jordan, 2021).

    Parameters
    ----------
    y, dist, thresholds, sample_weight
        As in `reliability_curve`, but it has to be known of all rows whether y <= t.
    confidence : float, default=0.95
        Probability that a calibrated line lies inside the band, at each point.
    n_points : int, default=101
        Number of probabilities, equally spaced over [0, 1], at which lines are evaluated.
    n_simulations : int, default=200
        Number of simulated calibrated data sets behind the bands.
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    ReliabilityCurve
        nan outside the range of each threshold's predicted probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.metrics import isotonic_reliability_curve
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=2000)
    >>> y = mean + rng.normal(size=2000)
    >>> curve = isotonic_reliability_curve(
    ...     y, Normal(mean, np.ones(2000)), thresholds=[0.0], n_points=5, random_state=0
    ... )
    >>> bool(abs(curve.observed[0, 2] - 0.5) < 0.1)
    True
    """
    forecasts = forecasts_at(y, dist, thresholds, sample_weight)
    check_count(n_simulations, "n_simulations")
    tail = (1.0 - check_level(confidence, "confidence")) / 2
    grid = np.linspace(0.0, 1.0, check_count(n_points, "n_points"))
    rng = child_generator(random_state)
    lines = [
        _isotonic_line(forecasts, column, grid, tail, n_simulations, rng)
        for column in range(len(forecasts.thresholds))
    ]
    observed, share, lower, upper = (np.stack(part) for part in zip(*lines, strict=True))
    predicted = np.where(np.isnan(observed), np.nan, grid)
    return ReliabilityCurve(
        forecasts.thresholds, predicted, observed, share, lower, upper, confidence
    )


def _isotonic_line(
    forecasts: Forecasts,
    column: int,
    grid: Array,
    tail: float,
    n_simulations: int,
    rng: np.random.Generator,
) -> tuple[Array, Array, Array, Array]:
    """Return one threshold's observed frequency, share of weight, and band, on the grid."""
    q, weights = forecasts.predicted[:, column], forecasts.weights
    cells = IsotonicCells(q, weights, _MAX_CELLS)
    observed = cells.interpolated(forecasts.happened[:, column], grid)
    # A calibrated outcome has y <= t exactly when its uniform PIT value is below q(t).
    simulated = np.stack(
        [cells.interpolated(rng.uniform(size=len(q)) <= q, grid) for _ in range(n_simulations)]
    )
    lower, upper = np.quantile(simulated, [tail, 1 - tail], axis=0)
    nearest = np.rint(q * (len(grid) - 1)).astype(np.intp)
    share = np.bincount(nearest, weights, len(grid)) / weights.sum()
    outside = (grid < q.min() - 1e-12) | (grid > q.max() + 1e-12)
    observed, lower, upper = (np.where(outside, np.nan, v) for v in (observed, lower, upper))
    return observed, share, lower, upper


class IsotonicCells:
    """Isotonic regression of events on probabilities, prepared for many vectors of events."""

    def __init__(self, predicted: Array, weights: Array, max_cells: float = np.inf) -> None:
        values, cell_of = np.unique(predicted, return_inverse=True)
        if len(values) > max_cells:
            cell_of = (cell_of * int(max_cells)) // len(values)
        self._cell_of, self._row_weights = cell_of, weights
        self.weight = np.bincount(cell_of, weights)
        self.predicted = np.bincount(cell_of, weights * predicted) / self.weight

    def fitted(self, happened: np.ndarray) -> Array:
        """Return the isotonic frequency in each cell."""
        rate = np.bincount(self._cell_of, self._row_weights * happened) / self.weight
        return np.clip(isotonic_regression(rate, weights=self.weight).x, 0.0, 1.0)

    def fitted_rows(self, happened: np.ndarray) -> Array:
        """Return the isotonic frequency of each row."""
        return self.fitted(happened)[self._cell_of]

    def interpolated(self, happened: np.ndarray, grid: Array) -> Array:
        """Return the isotonic frequency at given probabilities."""
        return np.interp(grid, self.predicted, self.fitted(happened))


@dataclass(frozen=True)
class BrierDecomposition:
    """The mean Brier score per threshold and its parts.

    ``score = miscalibration - discrimination + uncertainty`` holds exactly.

    Attributes
    ----------
    thresholds : ndarray of shape (n_thresholds,)
    score : ndarray of shape (n_thresholds,)
        Mean Brier score; smaller is better.
    miscalibration : ndarray of shape (n_thresholds,)
        What isotonic recalibration on these very rows would gain; 0 is best. Positive by chance
        also for calibrated models.
    discrimination : ndarray of shape (n_thresholds,)
        What recalibrated forecasts gain over a constant one; larger is better.
    uncertainty : ndarray of shape (n_thresholds,)
        Score of the best constant forecast; a property of the outcomes.

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.metrics import brier_decomposition
    >>> dist = Normal([-1.0, -1.0, 1.0, 1.0], [1.0] * 4)
    >>> parts = brier_decomposition([-2.0, -1.0, 2.0, 1.0], dist, thresholds=[0.0])
    >>> parts.score.round(3), parts.uncertainty
    (array([0.025]), array([0.25]))
    """

    thresholds: Array
    score: Array
    miscalibration: Array
    discrimination: Array
    uncertainty: Array


def brier_decomposition(
    y: Any, dist: Any, thresholds: Any = DEFAULT_THRESHOLDS, sample_weight: Any = None
) -> BrierDecomposition:
    """Split the Brier score at each threshold into miscalibration, discrimination, uncertainty.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets; it has to be known of all rows whether y <= t.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.
    thresholds : int, grid or array-like, default=QuantileGrid(16)
        As calibrators take them.
    sample_weight : array-like of shape (n_rows,), optional

    Returns
    -------
    BrierDecomposition

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.metrics import brier_decomposition
    >>> dist = Normal([-1.0, -1.0, 1.0, 1.0], [1.0] * 4)
    >>> parts = brier_decomposition([-2.0, 1.0, 1.0, 2.0], dist, thresholds=[0.0])
    >>> parts.uncertainty, parts.discrimination
    (array([0.1875]), array([0.0625]))
    """
    forecasts = forecasts_at(y, dist, thresholds, sample_weight)
    weights, happened = forecasts.weights, forecasts.happened

    def mean_squared(predicted: Array) -> Array:
        return np.average((predicted - happened) ** 2, axis=0, weights=weights)

    columns = zip(forecasts.predicted.T, happened.T, strict=True)
    recalibrated = np.stack([IsotonicCells(q, weights).fitted_rows(h) for q, h in columns], axis=1)
    score, best = mean_squared(forecasts.predicted), mean_squared(recalibrated)
    uncertainty = mean_squared(np.average(happened, axis=0, weights=weights))
    return BrierDecomposition(
        forecasts.thresholds, score, score - best, uncertainty - best, uncertainty
    )
