"""Levels of quantiles that follow what was seen, so that coverage holds in the long run."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from regcal._validation import Array

# Quantiles that are followed; what is asked for between two of them lies between the two.
_BELOW = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
LEVELS = np.array([*_BELOW, 0.5, *(1.0 - level for level in reversed(_BELOW))])

# A level forgets as an average over so many rows does.
# benchmarks/streams.py: under drift, coverage of 90 % intervals is 0.90 instead of 0.88.
_ROWS = 200.0

# By how much a probit moves at most: in terms of probabilities, all move at the same pace.
RATES = np.sqrt(2.0 * np.pi) * np.exp(0.5 * ndtri(LEVELS) ** 2) / _ROWS

# Probits are cut here, so that one outcome far out counts as one.
_FARTHEST = 8.0


def _unmoved() -> Array:
    return ndtri(LEVELS)


@dataclass
class AdaptiveLevels:
    """Follows quantiles of the probits of PIT values, one step a row.

    Adaptive conformal inference (Gibbs and Candès, 2021) for many levels at once, on the probit
    scale, where no interval becomes infinite: theta += rate * (level - [z <= theta]). However the
    outcomes come, the share of cut z at most theta differs from the level by at most
    (16 + rate) / (rate * rows), since |z| is cut at 8. What is further out than 8 stays outside.

    Parameters
    ----------
    places : ndarray of shape (n_levels,)
        Probits in place of those of `LEVELS`.

    Examples
    --------
    >>> import numpy as np
    >>> levels = AdaptiveLevels()
    >>> levels.follow(np.full(100, 0.999))  # outcomes are much higher than was predicted
    >>> levels.at(np.array([0.05, 0.95])).round(2)
    array([0.08, 1.  ])
    """

    places: Array = field(default_factory=_unmoved)

    def follow(self, pit: Array, steps: ArrayLike = 1.0) -> None:
        """Move by the PIT values of rows, in their order, by so much of a step each."""
        probits = np.clip(ndtri(pit), -_FARTHEST, _FARTHEST)
        for z, step in zip(probits, np.broadcast_to(steps, probits.shape), strict=True):
            self.places = self.places + step * RATES * (LEVELS - (z <= self.places))

    def at(self, levels: Array) -> Array:
        """Return the levels to ask for, in order to get these."""
        z = ndtri(levels)
        moved = np.sort(self.places) - ndtri(LEVELS)
        return ndtr(z + np.interp(z, ndtri(LEVELS), moved))
