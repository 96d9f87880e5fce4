"""Solve many increasing equations at once."""

from collections.abc import Callable

import numpy as np

from regcal._validation import Array
from regcal.maps.base import for_rows

_MAX_WIDENINGS = 60
_FARTHEST = 1e300
_MAX_STEPS = 200
_SLOW_STEPS = 40
_TOLERANCE = 1e-13

# The largest error from which a step may be the last, without a look at what it leaves. One row of
# averaged gpc takes 3 looks instead of 4 with 1e-7; for it, quantiles of 1030 rows miss their
# levels by up to 8e-13 (averaged isotonic; else 3e-14) instead of 3e-14.
_LAST_STEP = 5e-7
_EPS = float(np.finfo(float).eps)

Function = Callable[[np.ndarray, Array], tuple[Array, Array]]


def solve_increasing(function: Function, targets: Array, low: Array, high: Array) -> Array:
    """Return points at which increasing functions reach `targets`.

    Parameters
    ----------
    function : callable
        Takes row numbers (m,) and points (m, 1); returns values and slopes there.
    targets : ndarray of shape (n_rows, n_points)
        Values to reach; infinite ones give infinite points, and those that are not reached within
        1e300 give that.
    low, high : ndarray of shape (n_rows, n_points)
        First guesses of a bracket; widened where they do not enclose the solution.

    Returns
    -------
    ndarray of shape (n_rows, n_points)
    """
    rows, columns = np.nonzero(np.isfinite(targets))
    wanted = targets[rows, columns]

    def evaluate(which: np.ndarray, points: Array) -> tuple[Array, Array]:
        values, slopes = function(rows[which], points[:, np.newaxis])
        return values[:, 0], slopes[:, 0]

    solution = np.array(targets)
    if len(rows):
        ends = _widened(evaluate, wanted, low[rows, columns], high[rows, columns])
        solution[rows, columns] = _newton_bisection(evaluate, wanted, *ends)
    return solution


def _widened(evaluate: Function, targets: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Return brackets whose ends were moved outwards until each encloses its solution."""
    low, high = np.array(low), np.array(high)
    spacing = _EPS * np.maximum(np.abs(low), np.abs(high))
    first_step = np.maximum(high - low, np.maximum(spacing, np.finfo(float).tiny))
    for end, direction in ((low, -1.0), (high, 1.0)):
        step = first_step.copy()
        left = np.arange(len(targets))
        for widening in range(_MAX_WIDENINGS):
            values, _ = evaluate(left, end[left])
            short = direction * targets[left] > direction * values
            left = left[short & (direction * end[left] < _FARTHEST)]
            if len(left) == 0:
                break
            end[left] = np.clip(end[left] + direction * step[left], -_FARTHEST, _FARTHEST)
            with np.errstate(over="ignore"):
                step[left] *= 2.0 ** (1 + widening)
    return low, high


def _newton_bisection(evaluate: Function, targets: Array, low: Array, high: Array) -> Array:
    """Newton steps that fall back to bisection when they leave the bracket or are slow."""
    point = _middle(low, high)
    left = np.arange(len(targets))
    for step in range(_MAX_STEPS):
        at = point[left]
        values, slopes = evaluate(left, at)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            error = values - targets[left]
            newton = at - error / slopes
        low[left] = np.where(error < 0, at, low[left])
        high[left] = np.where(error > 0, at, high[left])
        lowest, highest = low[left], high[left]
        spacing = 4 * _EPS * np.maximum(np.abs(lowest), np.abs(highest))
        close = np.abs(error) <= _TOLERANCE * (1 + np.abs(targets[left]))
        settled = close | (highest - lowest <= spacing)
        inside = (newton > lowest) & (newton < highest) & (step < _SLOW_STEPS)
        point[left] = np.where(inside, newton, np.where(settled, at, _middle(lowest, highest)))
        left = left[~settled]
        if len(left) == 0:
            break
    return point


def solve_between(
    function_of: Callable[[np.ndarray | None], Callable[[Array], tuple[Array, Array]]],
    targets: Array,
    low: Array,
    high: Array,
    start: Array,
) -> Array:
    """Return points at which increasing functions reach `targets`, of all rows at once.

    Parameters
    ----------
    function_of : callable
        Takes row numbers, or None for all, and returns a function that takes points of these rows,
        (n_rows, n_points), and returns values and the logs of slopes there.
    targets : ndarray of shape (n_rows, n_points)
        Finite values to reach.
    low, high : ndarray of shape (n_rows, n_points)
        Between which they are reached.
    start : ndarray of shape (n_rows, n_points)
        First guesses.

    Returns
    -------
    ndarray of shape (n_rows, n_points)
    """
    search, rows = _Search(targets, low, high, start), np.arange(len(low))
    solution, function = np.empty(low.shape), function_of(None)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for step in range(_MAX_STEPS):
            n_settled = np.count_nonzero(search.settled)
            if n_settled == search.settled.size:
                break
            if n_settled and len(rows) > 1:
                left = ~np.all(search.settled, axis=1)
                if 2 * np.count_nonzero(left) < len(rows):
                    # the others have what they need
                    solution[rows] = search.point
                    rows = rows[left]
                    search.keep(left)
                    function = function_of(rows)
            search.move(*function(search.point), step)
    solution[rows] = search.point
    return solution


class _Search:
    """Points on their way to where functions reach targets, between bounds; (n_rows, n_points)."""

    def __init__(self, targets: Array, low: Array, high: Array, start: Array) -> None:
        self.low, self.high = low.copy(), high.copy()
        self.point = np.minimum(np.maximum(start, low), high)
        self.targets = for_rows(targets, len(low))
        self.unit = 1.0 + np.abs(self.targets)
        self.spacing = 4 * _EPS * np.maximum(np.abs(low), np.abs(high))
        self.settled = high - low <= self.spacing
        self.before = np.full(low.shape, _TOLERANCE)
        self.last, self.slopes = self.point, self.unit

    def keep(self, rows: np.ndarray) -> None:
        """Leave other rows out."""
        for name, values in vars(self).items():
            setattr(self, name, values[rows])

    def move(self, values: Array, logslopes: Array, number: int) -> None:
        """Go to the next points by a step of this number, from values and logs of slopes here."""
        point, low, high, done = self.point, self.low, self.high, self.settled
        error = values - self.targets
        slopes = np.exp(logslopes)
        step = error / slopes
        if number > 0:
            # Chebyshev's step instead of Newton's: how slopes have changed tells the bend
            bend = (1.0 - self.slopes / slopes) / (point - self.last)
            bend *= step
            np.minimum(np.maximum(bend, -1.0, out=bend), 1.0, out=bend)
            bend *= 0.5 * step
            step += bend
        ahead = point - step
        self.last, self.slopes = point, slopes
        np.copyto(low, point, where=error < 0)
        np.copyto(high, point, where=error > 0)
        inside = (ahead > low) & (ahead < high)
        if number >= _SLOW_STEPS:
            inside[...] = False
        missed = np.abs(error) / self.unit
        close = missed <= _LAST_STEP
        if np.count_nonzero(close):
            # where slopes are smooth, a step leaves the square of the share that the last one left
            left = np.where(inside, missed * (missed / self.before) ** 2, missed)
            done = done | (close & (left <= _TOLERANCE))
        if np.count_nonzero(inside) < inside.size:
            ahead = np.where(inside, ahead, point)
            done = done | (high - low <= self.spacing)
            lost = ~(inside | done)
            if np.count_nonzero(lost):
                ahead = np.where(lost, _middle(low, high), ahead)
        if np.count_nonzero(self.settled):
            ahead = np.where(self.settled, point, ahead)
        self.point, self.before, self.settled = ahead, missed, done


def _middle(low: Array, high: Array) -> Array:
    """Return a point between two: in size where they are of one sign and far apart."""
    small, large = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
    far_apart = (np.sign(low) == np.sign(high)) & (large > 1e3 * small)
    return np.where(far_apart, np.sign(low) * np.sqrt(small) * np.sqrt(large), 0.5 * (low + high))
