"""The card that a notebook shows for a batch of distributions.

Depends on NumPy and `_html` only.
"""

from typing import Any

import numpy as np

from regcal._html import card, number, sparkline, table
from regcal._validation import Array

_ROWS_SHOWN = 5
_N_POINTS = 121
_LEVELS = np.array([[0.05, 0.5, 0.95]])
_OUTER_LEVELS = np.array([[0.005, 0.995]])


def distribution_card(dist: Any) -> str:
    """Return figures and densities of the first rows."""
    title = repr(dist)
    if len(dist) == 0:
        return card(title, "<div>no rows</div>")
    some = dist[:_ROWS_SHOWN]
    with np.errstate(all="ignore"):
        figures = np.column_stack([some.mean(), some.std(), some.ppf(_LEVELS)])
        points = _shared_points(some.ppf(_OUTER_LEVELS))
        densities = None if points is None else some.pdf(points[np.newaxis, :])
    header = ["row", "mean", "std", "5 %", "median", "95 %"]
    rows = [[str(k), *map(number, line)] for k, line in enumerate(figures)]
    if points is not None and densities is not None:
        header.append(f"density from {number(points[0])} to {number(points[-1])}")
        for row, line, density in zip(rows, figures, densities, strict=True):
            text = f"Density: 90 % between {number(line[2])} and {number(line[4])}"
            row.append(sparkline(np.linspace(0.0, 1.0, _N_POINTS), _heights(density), text))
    left = len(dist) - len(some)
    more = f"<div>and {left} more row{'s' if left > 1 else ''}</div>" if left else ""
    return card(title, table(header, rows), more)


def _shared_points(quantiles: Array) -> Array | None:
    """Return points from the lowest to the highest quantile of all rows, if that is a range."""
    low, high = quantiles.min(), quantiles.max()
    if not (np.isfinite(high - low) and high > low):
        return None
    return np.linspace(low, high, _N_POINTS)


def _heights(density: Array) -> Array:
    """Return densities as shares of their largest finite value."""
    finite = density[np.isfinite(density)]
    largest = finite.max() if len(finite) else 0.0
    if largest <= 0:
        return np.zeros(len(density))
    return np.where(np.isfinite(density), density, largest) / largest
