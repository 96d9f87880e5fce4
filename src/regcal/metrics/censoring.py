"""How often y <= t where some outcomes were only seen as intervals: Kaplan-Meier and Turnbull.

Rows of a group are taken for draws from one distribution, whatever was seen of them. Its
non-parametric maximum likelihood estimate puts masses on the intervals that no end of an outcome
divides (Turnbull, 1976); with right-censored outcomes only it is that of Kaplan and Meier. It is
self-consistent: P(Y <= t) is the mean over rows of the probability of y <= t given what was seen.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.sparse.linalg import LinearOperator, cg

from regcal._validation import Array
from regcal.distributions import Distribution
from regcal.metrics._inputs import seen_in_words
from regcal.outcomes import Outcomes

# Estimates stop when no probability moves by more than this; a frequency of a million rows is known
# to 5e-4. Thirty steps do it; the limit is there for what nobody thought of.
_TOLERANCE = 1e-6
_MOST_STEPS = 500

# How a straddling interval is split: P(low < Y <= t) over P(low < Y <= high); low may be included.
Split = Callable[[float, bool, float], float]


def known_events(outcomes: Outcomes, dist: Distribution, thresholds: Array) -> np.ndarray:
    """Return whether y <= t, rows × thresholds, where that is known of all of them."""
    if not outcomes.exact_rows.all():
        ends = Ends(outcomes, dist)
        for t in thresholds:
            unknown = ~ends.known(t)
            if unknown.any():
                msg = (
                    f"Whether y <= {t:g} is not known of {int(unknown.sum())} rows, whose "
                    f"intervals hold {t:g}: {seen_in_words(outcomes)}. Use reliability_curve or "
                    "threshold_calibration_error, which estimate how often it was, or log_score."
                )
                raise ValueError(msg)
    return outcomes.upper[:, np.newaxis] <= thresholds


class Ends:
    """The ends of outcomes as whole numbers: multiples of four are values, the rest gaps.

    Censored outcomes are open at their ends, as Kaplan and Meier have it: an event at the time of
    a censoring came before it. Where a row's distribution has a point mass at an end, the end
    belongs to the interval.
    """

    def __init__(self, outcomes: Outcomes, dist: Distribution) -> None:
        ends = np.concatenate([outcomes.lower, outcomes.upper])
        self.values = np.unique(ends[np.isfinite(ends)])
        left_open, right_open = (
            ~outcomes.exact_rows & (dist.mass(end) == 0) for end in (outcomes.lower, outcomes.upper)
        )
        at_or_below = np.searchsorted(self.values, outcomes.lower, side="right") - 1
        self.left = 4 * at_or_below + left_open
        self.right = 4 * np.searchsorted(self.values, outcomes.upper) - right_open

    def place_of(self, t: float) -> int:
        """Return where a threshold lies: at a value, or in the middle of a gap."""
        below = int(np.searchsorted(self.values, t, side="right")) - 1
        return 4 * below + 2 * int(below < 0 or self.values[below] < t)

    def known(self, t: float) -> np.ndarray:
        """Return for which rows it is known whether y <= t."""
        place = self.place_of(t)
        return (self.right <= place) | (self.left > place)

    def tell(self, t: float) -> bool:
        """Return whether rows tell how often y <= t, rather than nothing but the predictions.

        They do not beyond the last of them, if all that is known of it is that it is larger, or
        before the first, if it is smaller; nor where some are unknown and no event was ever seen.
        """
        if self.known(t).all():
            return True
        place, (starts, stops) = self.place_of(t), undivided(self.left, self.right)
        above, below = self.right > self._last, self.left < 0  # no end on that side
        beyond = place >= starts[-1] and stops[-1] > self._last
        before = place < stops[0] and starts[0] < 0
        return not (above.all() or below.all() or beyond or before)

    @property
    def _last(self) -> int:
        return 4 * (len(self.values) - 1)

    def influences(self, t: float, rows: np.ndarray, weights: Array, split: Split) -> Array:
        """Return what each row of a group adds to its estimated P(Y <= t), which is their mean.

        They are pseudo-observations: of rows that are all known, whether y <= t.
        """
        place, left, right = self.place_of(t), self.left[rows], self.right[rows]
        starts, stops = undivided(left, right)
        first = np.searchsorted(starts, left)
        last = np.searchsorted(stops, right, side="right") - 1
        masses = estimated_masses(first, last, weights, len(starts))
        below = (stops <= place).astype(np.float64)
        for k in np.flatnonzero((starts <= place) & (stops > place) & (masses > 0)):
            below[k] = split(*self._interval(starts[k], stops[k]))
        values = _influences(masses, below, first, last, weights)
        return values + (masses @ below - np.average(values, weights=weights))

    def _interval(self, start: int, stop: int) -> tuple[float, bool, float]:
        values = np.concatenate([[-np.inf], self.values, [np.inf]])
        return float(values[start // 4 + 1]), start % 4 == 0, float(values[-(-stop // 4) + 1])


def undivided(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the intervals from an end on the left to the next on the right, in order."""
    lefts, rights = np.unique(left), np.unique(right)
    starts = lefts[np.searchsorted(lefts, rights, side="right") - 1]
    innermost = np.concatenate([[True], rights[:-1] < starts[1:]])
    return starts[innermost], rights[innermost]


def estimated_masses(first: np.ndarray, last: np.ndarray, weights: Array, count: int) -> Array:
    """Return the masses of intervals of which each row covers those from first to last."""
    single = first == last
    if (single | (last == count - 1)).all():
        return _kaplan_meier(first, single, weights, count)
    if (single | (first == 0)).all():
        return _kaplan_meier(count - 1 - last, single, weights, count)[::-1]
    return _turnbull(first, last, weights, count)


def _kaplan_meier(first: np.ndarray, single: np.ndarray, weights: Array, count: int) -> Array:
    events = np.bincount(first[single], weights[single], count)
    censored = np.bincount(first[~single], weights[~single], count)
    at_risk = np.cumsum((events + censored)[::-1])[::-1] - censored
    hazard = events / at_risk
    survival = np.concatenate([[1.0], np.cumprod(1.0 - hazard[:-1])])
    return survival * hazard


def _turnbull(first: np.ndarray, last: np.ndarray, weights: Array, count: int) -> Array:
    """Return Turnbull's masses by turns of EM and ICM steps (Wellner and Zhan, 1997).

    EM alone takes thousands of steps where nothing was seen exactly.
    """
    shares, cdf = weights / weights.sum(), np.linspace(0.0, 1.0, count + 1)
    for _ in range(_MOST_STEPS):
        before = cdf
        cdf = _em_step(before, first, last, shares)
        cdf = _icm_step(cdf, first, last, shares)
        if np.abs(cdf - before).max() < _TOLERANCE:
            break
    return np.diff(cdf)


def _em_step(cdf: Array, first: np.ndarray, last: np.ndarray, shares: Array) -> Array:
    """Give each row's share to the intervals it covers, in proportion to their masses."""
    per_mass = shares / (cdf[last + 1] - cdf[first])
    masses = np.diff(cdf) * np.maximum(_spread(per_mass, first, last + 1, len(cdf) - 1), 0.0)
    return _up_to(masses / masses.sum())


def _icm_step(cdf: Array, first: np.ndarray, last: np.ndarray, shares: Array) -> Array:
    """Take a Newton step with the diagonal of the Hessian, kept increasing and uphill."""

    def log_likelihood(values: Array) -> float:
        with np.errstate(divide="ignore"):
            return float(shares @ np.log(np.maximum(values[last + 1] - values[first], 0.0)))

    inside = cdf[last + 1] - cdf[first]
    slope, curvature = (
        np.bincount(last + 1, shares / inside**power, len(cdf))
        + sign * np.bincount(first, shares / inside**power, len(cdf))
        for power, sign in ((1, -1.0), (2, 1.0))
    )
    inner = slice(1, -1)
    wanted = cdf.copy()
    newton = cdf[inner] + slope[inner] / curvature[inner]
    wanted[inner] = np.clip(isotonic_regression(newton, weights=curvature[inner]).x, 0.0, 1.0)
    start, step = log_likelihood(cdf), 1.0
    while step > _TOLERANCE:
        candidate = cdf + step * (wanted - cdf)
        if log_likelihood(candidate) > start:
            return candidate
        step *= 0.5
    return cdf


def _influences(
    masses: Array, below: Array, first: np.ndarray, last: np.ndarray, weights: Array
) -> Array:
    """Return W a_i'x / a_i'p for masses p, rows a_i that cover some of them, and I x = below.

    I = sum_i w_i a_i a_i' / (a_i'p)^2 is the observed information about the masses, and I p = W.
    """
    filled = masses > _TOLERANCE / len(masses)
    number = np.concatenate([[0], np.cumsum(filled)])
    first, stop, p, c = number[first], number[last + 1], masses[filled], below[filled]
    total, count = _up_to(p), len(p)
    inside = total[stop] - total[first]

    def information(x: Array) -> Array:
        sums = _up_to(x.ravel())
        return _spread(weights * (sums[stop] - sums[first]) / inside**2, first, stop, count)

    diagonal = _spread(weights / inside**2, first, stop, count)
    operators = (LinearOperator((count, count), f) for f in (information, lambda x: x / diagonal))
    matrix, preconditioner = operators
    x, _ = cg(matrix, c, x0=c * p / weights.sum(), rtol=_TOLERANCE, M=preconditioner)
    sums = _up_to(x)
    return weights.sum() * (sums[stop] - sums[first]) / inside


def _spread(values: Array, first: np.ndarray, stop: np.ndarray, count: int) -> Array:
    """Return the sum of values over the rows that cover each interval."""
    starting, ending = (np.bincount(ends, values, count + 1) for ends in (first, stop))
    return np.cumsum(starting - ending)[:-1]


def _up_to(masses: Array) -> Array:
    return np.concatenate([[0.0], np.cumsum(masses)])
