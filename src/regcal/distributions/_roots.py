"""Solve many increasing equations at once.

Depends on NumPy only.
"""

from collections.abc import Callable

import numpy as np

from regcal._validation import Array

_MAX_WIDENINGS = 1100
_MAX_STEPS = 200
_SLOW_STEPS = 40

RowFunction = Callable[[np.ndarray, Array], tuple[Array, Array]]


def solve_increasing(function: RowFunction, targets: Array, low: Array, high: Array) -> Array:
    """Return points at which increasing functions reach `targets`.

    Parameters
    ----------
    function : callable
        Takes row numbers (m,) and points (m, n_points); returns values and slopes there.
    targets : ndarray of shape (n_rows, n_points)
        Values to reach; infinite ones give infinite points.
    low, high : ndarray of shape (n_rows, n_points)
        First guesses of a bracket; widened where they do not enclose the solution.

    Returns
    -------
    ndarray of shape (n_rows, n_points)
    """
    low, high = np.array(low, dtype=float), np.array(high, dtype=float)
    infinite = ~np.isfinite(targets)
    low = np.where(infinite, 0.0, low)
    high = np.where(infinite, 0.0, high)
    _widen(function, targets, low, high, infinite)
    solution = _newton_bisection(function, targets, low, high, infinite)
    return np.where(infinite, targets, solution)


def _widen(
    function: RowFunction, targets: Array, low: Array, high: Array, done: np.ndarray
) -> None:
    """Move the ends of brackets outwards, in place, until each encloses its solution."""
    width = np.maximum(high - low, np.finfo(float).tiny)
    for end, direction in ((low, -1.0), (high, 1.0)):
        step = width.copy()
        rows = np.flatnonzero(~done.all(axis=1))
        for _ in range(_MAX_WIDENINGS):
            values, _ = function(rows, end[rows])
            short = (direction * targets[rows] > direction * values) & ~done[rows]
            rows, short = rows[short.any(axis=1)], short[short.any(axis=1)]
            if len(rows) == 0:
                break
            moved = end[rows] + direction * step[rows]
            end[rows] = np.where(short, np.clip(moved, -1e300, 1e300), end[rows])
            step[rows] *= 2.0


def _newton_bisection(
    function: RowFunction, targets: Array, low: Array, high: Array, done: np.ndarray
) -> Array:
    """Newton steps that fall back to bisection when they leave the bracket or are slow."""
    point = 0.5 * (low + high)
    rows = np.flatnonzero(~done.all(axis=1))
    for step in range(_MAX_STEPS):
        values, slopes = function(rows, point[rows])
        with np.errstate(invalid="ignore"):
            error = values - targets[rows]
        low[rows] = np.where(error < 0, point[rows], low[rows])
        high[rows] = np.where(error > 0, point[rows], high[rows])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = point[rows] - error / slopes
        inside = (newton > low[rows]) & (newton < high[rows]) & (step < _SLOW_STEPS)
        spacing = 4 * np.finfo(float).eps * np.maximum(np.abs(low[rows]), np.abs(high[rows]))
        close = np.abs(error) <= 1e-14 * (1 + np.abs(targets[rows]))
        settled = close | (high[rows] - low[rows] <= spacing) | done[rows]
        middle = np.where(settled, point[rows], 0.5 * (low[rows] + high[rows]))
        point[rows] = np.where(inside, newton, middle)
        rows = rows[~settled.all(axis=1)]
        if len(rows) == 0:
            break
    return point
