"""From targets to the sorted thresholds at which calibrators learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regcal._validation import Array, check_column, check_increasing, check_weights
from regcal._weighted import weighted_quantiles


@dataclass(frozen=True)
class EqualGrid:
    """Equally spaced thresholds over the targets' range, widened at both sides.

    Parameters
    ----------
    count : int, default=16
        Number of thresholds, at least two.
    margin : float, default=0.5
        The range is [min - margin * (max - min), max + margin * (max - min)], the paper's rule.

    Examples
    --------
    >>> from regcal.grids import EqualGrid
    >>> EqualGrid(5).thresholds([0.0, 2.0, 4.0])
    array([-2.,  0.,  2.,  4.,  6.])
    """

    count: int = 16
    margin: float = 0.5

    def thresholds(self, y: Any, sample_weight: Any = None) -> Array:
        """Return the thresholds for targets `y`; rows of weight 0 do not count."""
        targets = check_column(y, "y")
        targets = targets[check_weights(sample_weight, len(targets)) > 0]
        return self.over(targets.min(), targets.max())

    def over(self, low: float, high: float) -> Array:
        """Return the thresholds for targets from `low` to `high`."""
        _check_count(self.count)
        if low == high:
            msg = (
                f"All targets equal {low}, so there is no range to put thresholds on. "
                "Calibrate with rows whose outcomes differ, or pass thresholds as an array."
            )
            raise ValueError(msg)
        extra = self.margin * (high - low)
        return np.linspace(low - extra, high + extra, self.count)


@dataclass(frozen=True)
class QuantileGrid:
    """Thresholds at the targets' quantiles, so that segments hold about equally many rows.

    Fewer are returned where targets are tied.

    Parameters
    ----------
    count : int, default=16
        Number of thresholds, at least two. They sit at levels i / (count + 1).

    Examples
    --------
    >>> from regcal.grids import QuantileGrid
    >>> QuantileGrid(3).thresholds([0.0, 1.0, 2.0, 3.0, 100.0])
    array([1., 2., 3.])
    """

    count: int = 16

    def thresholds(self, y: Any, sample_weight: Any = None) -> Array:
        """Return the thresholds for targets `y`; rows of weight 0 do not count."""
        targets = check_column(y, "y")
        weights = check_weights(sample_weight, len(targets))
        _check_count(self.count)
        levels = np.arange(1, self.count + 1) / (self.count + 1)
        return np.unique(weighted_quantiles(targets, weights, levels))


def make_thresholds(spec: Any, y: Any, sample_weight: Any = None) -> Array:
    """Return thresholds from a count, a grid object or an array of the user's own.

    Parameters
    ----------
    spec : int, grid or array-like
        A number means `EqualGrid` with so many; a grid has a method ``thresholds(y, weight)``;
        an array must be strictly increasing and is taken as it is.
    y : array-like of shape (n_rows,)
        Calibration targets.
    sample_weight : array-like of shape (n_rows,), optional

    Returns
    -------
    ndarray of shape (n_thresholds,)

    Examples
    --------
    >>> from regcal.grids import make_thresholds
    >>> make_thresholds([1.0, 2.5], y=[0.0, 3.0])
    array([1. , 2.5])
    """
    if hasattr(spec, "thresholds"):
        return check_increasing(spec.thresholds(y, sample_weight), "thresholds")
    if np.ndim(spec) == 0:
        if isinstance(spec, bool) or not isinstance(spec, int | np.integer):
            msg = (
                f"thresholds must be a whole number, a grid such as QuantileGrid(16), or an "
                f"increasing array, got {spec!r}."
            )
            raise TypeError(msg)
        spec = EqualGrid(int(spec)).thresholds(y, sample_weight)
    return check_increasing(spec, "thresholds")


def _check_count(count: int) -> None:
    if count < 2:
        msg = f"Need at least 2 thresholds, got {count}."
        raise ValueError(msg)
