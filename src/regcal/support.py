"""Ends of the support that values pile up at: no rain, no claim, a price that is capped."""

import numpy as np

from regcal._validation import Array

# An end is a point mass when this share of all rows lies on it: fewer change no probability that
# can be told from those of a thousand rows.
_SMALLEST_SHARE = 0.02

# And at least so many rows: two or three equal values are a coincidence of rounding.
_FEWEST_ROWS = 5.0

# It has this many times the rows of each of the next values: rounded values that merely stop
# somewhere, such as ages and marks, share their last value as often as its neighbours.
_MANY_TIMES = 5.0
_NEIGHBOURS = 3


def find_ends(values: Array, weights: Array) -> tuple[float, float]:
    """Return the ends of the support that hold a point mass.

    The smallest (or largest) value is one if at least 2 % of the rows and 5 rows share it, and if
    it either has 5 times the rows of each of the next three distinct values, or is the 0 of whole
    numbers that are never negative.

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
    >>> from regcal.support import find_ends
    >>> find_ends(*np.unique([0.0] * 8 + [0.2, 1.7, 3.1, 12.5], return_counts=True))
    (0.0, inf)
    """
    values, weights = values[weights > 0], weights[weights > 0]
    if len(values) < 2:
        return -np.inf, np.inf
    counts = values[0] == 0 and np.array_equal(values, np.round(values))
    low = _shared(weights) and (counts or _stands_out(weights))
    high = _shared(weights[::-1]) and _stands_out(weights[::-1])
    return float(values[0]) if low else -np.inf, float(values[-1]) if high else np.inf


def _shared(weights: Array) -> bool:
    """Whether enough rows have the first value."""
    return bool(weights[0] >= max(_SMALLEST_SHARE * weights.sum(), _FEWEST_ROWS))


def _stands_out(weights: Array) -> bool:
    """Whether many times more rows have the first value than each of the next ones."""
    return bool(weights[0] >= _MANY_TIMES * weights[1 : 1 + _NEIGHBOURS].max())
