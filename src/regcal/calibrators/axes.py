"""The two bounded axes on which the Gaussian processes of calibrators live."""

from dataclasses import dataclass

import numpy as np

from regcal._validation import Array
from regcal.calibrators.targets import Targets

# Beyond this many standard deviations the process is frozen and eta goes on as a straight line.
LARGEST_PROBIT = 6.0

# Half of the targets' range is added at both sides, as in the paper.
_MARGIN = 0.5


@dataclass(frozen=True)
class MapAxes:
    """The box of a map: targets between `low` and `high`, probits up to `LARGEST_PROBIT`.

    Parameters
    ----------
    low, high : float
        Range of targets.
    """

    low: float
    high: float

    @classmethod
    def around(cls, targets: Targets) -> "MapAxes":
        """Return axes over the range of targets, widened at both sides up to the support's ends."""
        if targets.low == targets.high:
            msg = (
                f"All targets equal {targets.low}, so there is no range to learn a map on. "
                "Calibrate with rows whose outcomes differ."
            )
            raise ValueError(msg)
        extra = _MARGIN * (targets.high - targets.low)
        low, high = targets.support.ends
        return cls(max(targets.low - extra, low), min(targets.high + extra, high))

    @property
    def halfwidth(self) -> float:
        """Half of the range of targets."""
        return 0.5 * (self.high - self.low)

    def probit_axis(self, u: Array) -> Array:
        """Return the bounded coordinate of a probit."""
        return np.tanh(0.5 * np.clip(u, -LARGEST_PROBIT, LARGEST_PROBIT))

    def probit_axis_slope(self, u: Array) -> Array:
        """Return d x / d u, 0 where the process is frozen."""
        inside = np.abs(u) <= LARGEST_PROBIT
        return np.where(inside, 0.5 * (1.0 - np.tanh(0.5 * u) ** 2), 0.0)

    def target_axis(self, t: Array) -> Array:
        """Return the coordinate of a target, within [-1, 1]."""
        return np.clip((t - self.low) / self.halfwidth - 1.0, -1.0, 1.0)
