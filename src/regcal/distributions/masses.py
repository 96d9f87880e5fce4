"""Where rows have point masses, for displays."""

import numpy as np

from regcal._validation import Array
from regcal.distributions.base import Distribution

# Masses of at least one in so many are found, more than a reader can tell apart.
_LEVELS = 200


def point_masses(dist: Distribution) -> list[Array]:
    """Return place and size, (n_masses, 2), of each row's point masses that can be seen.

    Examples
    --------
    >>> from regcal import Clipped, Normal
    >>> from regcal.distributions.masses import point_masses
    >>> point_masses(Clipped(Normal([0.0], [1.0]), low=0.0))
    [array([[0. , 0.5]])]
    """
    places = dist.ppf((np.arange(_LEVELS)[np.newaxis, :] + 0.5) / _LEVELS)
    sizes = dist.mass(places)
    tables = []
    for place, size in zip(places, sizes, strict=True):
        found, first = np.unique(np.where(size > 0, place, np.nan), return_index=True)
        used = ~np.isnan(found)
        tables.append(np.stack([found[used], size[first[used]]], axis=1))
    return tables


def points_beside(low: Array, high: Array, count: int, places: list[Array]) -> Array:
    """Return points from low to high per row: none at the places, and one on either side of each.

    There are `count` points and two for each place; rows with fewer places repeat their last point.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.distributions.masses import points_beside
    >>> points_beside(np.zeros(1), np.ones(1), 3, [np.array([0.5])]).round(3)
    array([[0. , 0.5, 0.5, 0.5, 1. ]])
    """
    points = np.linspace(low, high, count, axis=1)
    table = np.full((len(low), max(map(len, places))), np.inf)
    for row, own in zip(table, places, strict=True):
        row[: len(own)] = own
    gap = 1e-6 * (high - low)[:, np.newaxis]
    near = np.abs(points[:, :, np.newaxis] - table[:, np.newaxis, :]) <= gap[:, np.newaxis]
    points += 2 * gap * near.any(axis=2)
    table = np.where(np.isinf(table), high[:, np.newaxis], table)
    return np.sort(np.concatenate([points, table - gap, table + gap], axis=1), axis=1)
