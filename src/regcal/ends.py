"""Ends of the support that values pile up at: no rain, no claim, a price that is capped."""

from typing import Any

import numpy as np

from regcal._validation import Array, as_float_array

Ends = tuple[float, float]
WHOLE_LINE: Ends = (-np.inf, np.inf)
NOTHING: Ends = (np.inf, -np.inf)

# An end is a point mass when this share of all rows lies on it: fewer change no probability that
# can be told from those of a thousand rows.
_SMALLEST_SHARE = 0.02

# And at least so many rows: two or three equal values are a coincidence of rounding.
_FEWEST_ROWS = 5.0

# It has this many times the rows of each of the next values: rounded values that merely stop
# somewhere, such as ages and marks, share their last value as often as its neighbours.
_MANY_TIMES = 5.0
_NEIGHBOURS = 3

# The same of quantiles, as a share of the probability between equal ones. With 0.02, 4 of 702
# predictions by forests, neighbours and boosting for nine targets without a mass had one, most of
# them from 60 training rows; with 0.05 none had.
_SMALLEST_TIED_SHARE = 0.05

# Values nearer to a multiple of a step, in steps, are at it, and those that are closer to each
# other, in parts of the range, differ in their last digits only.
OFF_STEP, LAST_DIGITS = 1e-6, 1e-10

# An outcome that is so many ranges of all others from them is a gross error, unless it is one of
# many. Of a distribution whose tail falls as 1 / y, the largest of any number of rows is so far out
# once in a hundred times. None of 600 samples of 20 to 400 rows of each of 18 real sets has one
# (benchmarks/devsets.py, "gross").
_FARTHEST = 100.0
_FEW_OF_FEW = 0.25

# What lies beyond all others by more than this share of their range counts as if it were there: an
# end of the support, such as a code of -999, where places are laid out, and gross errors wherever
# they are looked at. Else thresholds, bandwidths and the box of a map would be laid out for gaps.
BEYOND_OTHERS = 0.5

# Two of these are a tie: in one row, a chain may have stayed where it was.
_FEWEST_TIED = 2


def least_mass(n_rows: float) -> float:
    """Return how many of so many rows share a value that is a point mass."""
    return max(_SMALLEST_SHARE * n_rows, _FEWEST_ROWS)


def credible_ends(values: Array, weights: np.ndarray, foreseen: Ends = NOTHING) -> Ends:
    """Return the ends beyond which outcomes count as if they were there: they are gross errors.

    What lies farther from all values nearer to the middle than 100 times their range is one, if it
    is fewer rows than make a point mass (of few rows, less than a quarter). It counts as if it were
    half their range beyond them.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Distinct values in increasing order.
    weights : ndarray of shape (n_values,)
        How many rows have each value.
    foreseen : pair of float
        The outermost values that were predicted: what lies between them is none.

    Returns
    -------
    low, high : float
        ``-inf`` and ``inf`` where no value is one.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.ends import credible_ends
    >>> credible_ends(np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1e9]), np.ones(7))
    (-inf, 7.5)
    """
    shares = np.cumsum(weights)
    few = min(least_mass(shares[-1]), _FEW_OF_FEW * shares[-1])
    first = int(np.searchsorted(shares, few))
    last = int(np.searchsorted(shares, shares[-1] - few, side="right"))
    last = min(last, len(values) - 1)
    if values[first] == values[last]:
        return WHOLE_LINE
    start = min(first, int(np.searchsorted(values, foreseen[0])))
    end = max(last, int(np.searchsorted(values, foreseen[1], side="right")) - 1)
    if none_gross(values[0], values[-1], values[start], values[end]):
        return WHOLE_LINE
    while (start, end) != (0, len(values) - 1):
        farthest = _FARTHEST * (values[end] - values[start])
        if start > 0 and values[start] - values[start - 1] <= farthest:
            start -= 1
        elif end < len(values) - 1 and values[end + 1] - values[end] <= farthest:
            end += 1
        else:
            break
    beyond = BEYOND_OTHERS * (values[end] - values[start])
    return (
        float(values[start] - beyond) if start > 0 else -np.inf,
        float(values[end] + beyond) if end < len(values) - 1 else np.inf,
    )


def none_gross(low: float, high: float, first: float, last: float) -> bool:
    """Return whether the outermost values are near enough to some others to be no gross errors.

    Parameters
    ----------
    low, high : float
        The outermost values.
    first, last : float
        The outermost of some others.
    """
    with np.errstate(over="ignore"):
        return bool(high - low <= _FARTHEST * (last - first))


def find_ends(values: Array, weights: np.ndarray) -> Ends:
    """Return the ends of the support that hold a point mass.

    The smallest (or largest) value is one if at least 2 % of the rows and 5 rows share it, and if
    it either has 5 times the rows of each of the next three distinct values, or is the 0 of counts,
    that is of multiples of a step that are never negative. If all rows have one value, that is an
    end only if it is 0.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Distinct values in increasing order.
    weights : ndarray of shape (n_values,)
        How many rows have each value; those that none has do not count.

    Returns
    -------
    low, high : float
        ``-inf`` and ``inf`` where there is no point mass.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.ends import find_ends
    >>> find_ends(*np.unique([0.0] * 8 + [0.2, 1.7, 3.1, 12.5], return_counts=True))
    (0.0, inf)
    """
    values, weights = values[weights > 0], weights[weights > 0]
    return _one_each(_ends(values, weights, least_mass(weights.sum())))


def find_ends_of_draws(draws: Array) -> Ends:
    """Return the ends at which draws pile up, by the rule of `find_ends` over all draws.

    An end is also shared: two rows have it twice. A Markov chain repeats values in one row, and
    neighbours are repeated in many rows, once each. A single row can share nothing but 0, which no
    chain repeats by chance.

    Parameters
    ----------
    draws : ndarray of shape (n_rows, n_draws)

    Returns
    -------
    low, high : float
        ``-inf`` and ``inf`` where there is no point mass.
    """
    if draws.size == 0:
        return WHOLE_LINE
    hits = max(np.count_nonzero(draws == value) for value in (draws.min(), draws.max()))
    if hits < least_mass(draws.size):  # most draws need no sorting
        return WHOLE_LINE
    low, high = find_ends(*np.unique(draws, return_counts=True))
    return _where_shared(
        (low, high), [np.count_nonzero(draws == end, axis=1) for end in (low, high)]
    )


def find_ends_of_quantiles(levels: Array, values: Array) -> Ends:
    """Return the ends at which quantiles of several levels are equal.

    The probability between equal quantiles of a row lies on their value. An end is the smallest
    (or largest) of all quantiles; 5 % of all probability lies on it, in two rows at least, unless
    it is 0; and 5 times as much as on each of the next three values that are tied, or it is the 0
    of counts.

    Parameters
    ----------
    levels : ndarray of shape (n_levels,)
    values : ndarray of shape (n_rows, n_levels)
        Increasing in each row.

    Returns
    -------
    low, high : float
        ``-inf`` and ``inf`` where there is no point mass.
    """
    equal = values[:, 1:] == values[:, :-1]
    if not equal.any():
        return WHOLE_LINE
    between = np.broadcast_to(np.diff(levels), equal.shape)[equal]
    tied, place = np.unique(values[:, 1:][equal], return_inverse=True)
    masses, least = np.bincount(place, between), _SMALLEST_TIED_SHARE * len(values)
    first, last = values.min(), values.max()
    # the other end is no neighbour, though little may be tied between the two
    lower, upper = (tied < last, tied > first) if first < last else (tied == last, tied == last)
    low, _ = _ends(tied[lower], masses[lower], least)
    _, high = _ends(tied[upper], masses[upper], least)
    low, high = low if low == first else -np.inf, high if high == last else np.inf
    low, high = _one_each((low, high))
    return _where_shared(
        (low, high), [np.count_nonzero(values == end, axis=1) for end in (low, high)]
    )


def _ends(values: Array, weights: np.ndarray, least: float) -> Ends:
    """Return the first and the last of increasing values, where they hold a point mass."""
    if len(values) == 0:
        return WHOLE_LINE
    counts = bool(values[0] == 0 and _multiples(values))
    low = weights[0] >= least and (counts or _stands_out(weights))
    high = weights[-1] >= least and _stands_out(weights[::-1])
    return float(values[0]) if low else -np.inf, float(values[-1]) if high else np.inf


def _multiples(values: Array) -> bool:
    """Whether increasing values are whole multiples of the smallest distance of two of them."""
    gaps = np.diff(values)
    gaps = gaps[gaps > LAST_DIGITS * (values[-1] - values[0])]
    steps = values / gaps.min(initial=values[-1] or 1.0)
    slack = OFF_STEP + 4.0 * np.finfo(float).eps * steps
    return bool((np.abs(steps - np.round(steps)) <= slack).all())


def _one_each(ends: Ends) -> Ends:
    """Return ends of which a single value is the lower if it is 0, and else none."""
    if ends[0] < ends[1]:
        return ends
    return (0.0, np.inf) if ends[0] == 0 else WHOLE_LINE


def _stands_out(weights: np.ndarray) -> bool:
    """Whether many times more rows have the first value than each of the next ones."""
    return bool(weights[0] >= _MANY_TIMES * weights[1 : 1 + _NEIGHBOURS].max(initial=0.0))


def _where_shared(ends: Ends, hits: list[np.ndarray]) -> Ends:
    """Return the ends that rows have in common, from how often each row has them."""
    low, high = (
        int((own > 1).sum()) >= (1 if end == 0 else _FEWEST_TIED)
        for end, own in zip(ends, hits, strict=True)
    )
    return ends[0] if low else -np.inf, ends[1] if high else np.inf


def given_ends(support: Any) -> Ends | None:
    """Return the ends that `support` names, or None if they are to be found.

    Parameters
    ----------
    support : "auto", None or (low, high)
        Either end may be None; None for both is the whole line.
    """
    if isinstance(support, str) and support == "auto":
        return None
    if support is None:
        return WHOLE_LINE
    if isinstance(support, str) or not hasattr(support, "__len__") or len(support) != 2:
        msg = (
            f"support must be 'auto', None or a pair of ends (low, high), got {support!r}. Write "
            "an end that there is none of as None: (0.0, None)."
        )
        raise ValueError(msg)
    return checked_ends(*support)


def checked_ends(low: Any, high: Any) -> Ends:
    """Return two ends of the support, infinite for None, or say what is wrong with them."""
    ends = _as_end(low, -np.inf, "low"), _as_end(high, np.inf, "high")
    if not ends[0] < ends[1]:
        way_out = "Write an end that is none as None" if ends[0] == ends[1] else "Swap them"
        msg = f"low must be smaller than high, got {ends[0]} and {ends[1]}. {way_out}."
        raise ValueError(msg)
    return ends


def checked_near(near: Any, low: float, high: float) -> float:
    """Return a distance from two ends that overlaps for none, or say what is wrong with it."""
    number = isinstance(near, int | float | np.number) and not isinstance(near, bool)
    if not (number and 0 <= near < np.inf and near <= 0.5 * (high - low)):
        msg = (
            f"near must be a number from 0 to half of the distance of the ends, {low} and {high}, "
            f"got {near!r}."
        )
        raise ValueError(msg)
    return float(near)


def given_step(step: Any) -> float | None:
    """Return the distance of values that `step` names, 0 for none, or None if it is to be found.

    Parameters
    ----------
    step : "auto", None or float
    """
    if isinstance(step, str) and step == "auto":
        return None
    return 0.0 if step is None else checked_step(step, "'auto', None or one positive number")


def checked_step(step: Any, wanted: str = "one positive number") -> float:
    """Return the distance of values, or say what is wrong with it."""
    number = isinstance(step, int | float | np.number | np.ndarray) and not isinstance(step, bool)
    if not (number and np.ndim(step) == 0 and 0 < step < np.inf):
        msg = f"step must be {wanted}, got {step!r}. Counts have a step of 1."
        raise ValueError(msg)
    return float(step)


def _as_end(value: Any, default: float, name: str) -> float:
    if value is None:
        return default
    array = as_float_array(value, name)
    if array.ndim or np.isnan(array):
        msg = f"{name} must be one number, got {value!r}. It is the same for all rows."
        raise ValueError(msg)
    return float(array)
