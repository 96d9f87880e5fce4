"""The two bounded axes on which the Gaussian processes of calibrators live."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regcal._caching import WithoutCaches
from regcal._validation import Array
from regcal.calibrators.targets import Targets
from regcal.ends import WHOLE_LINE
from regcal.maps import Axis
from regcal.maps.axis import LINEAR

# Beyond this many standard deviations the process is frozen and eta goes on as a straight line.
LARGEST_PROBIT = 6.0

# Half of the targets' range is added at both sides, as in the paper.
_MARGIN = 0.5


@dataclass(frozen=True)
class MapAxes(WithoutCaches):
    """The box of a map: targets between `low` and `high`, probits up to `LARGEST_PROBIT`.

    Parameters
    ----------
    low, high : float
        Range of targets.
    axis : Axis
        Along which they are seen.
    ends : tuple of float
        Targets beyond which nothing is seen.
    """

    low: float
    high: float
    axis: Axis = LINEAR
    ends: tuple[float, float] = WHOLE_LINE

    @classmethod
    def around(cls, targets: Targets, axis: Axis | None = None) -> "MapAxes":
        """Return axes over the range of targets, widened at both sides up to the support's ends.

        Along an axis, if one is passed, instead of the one that suits the targets.
        """
        if targets.low == targets.high:
            msg = (
                f"All targets equal {targets.low}, so there is no range to learn a map on. "
                "Calibrate with rows whose outcomes differ."
            )
            raise ValueError(msg)
        first, last = targets.near
        extra = _MARGIN * (last - first)
        ends = low, high = targets.support.ends
        widened = first - extra, last + extra
        range_seen = max(widened[0], low), min(widened[1], high)
        if range_seen[0] == range_seen[1]:  # two values, both of them ends, meet at one place
            range_seen = widened
        return cls(*range_seen, targets.axis if axis is None else axis, ends)

    @cached_property
    def places(self) -> tuple[float, float]:
        """The ends of the range on the axis."""
        low, high = self.axis(np.array([self.low, self.high]))
        return float(low), float(high)

    def probit_axis(self, u: Array) -> Array:
        """Return the bounded coordinate of a probit."""
        return np.tanh(0.5 * np.clip(u, -LARGEST_PROBIT, LARGEST_PROBIT))

    def probit_axis_slope(self, u: Array) -> Array:
        """Return d x / d u, 0 where the process is frozen."""
        inside = np.abs(u) <= LARGEST_PROBIT
        return np.where(inside, 0.5 * (1.0 - np.tanh(0.5 * u) ** 2), 0.0)

    def target_axis(self, t: Array) -> Array:
        """Return the coordinate of a target, within [-1, 1]."""
        return self.coordinate(self.axis(t))

    def coordinate(self, place: Array) -> Array:
        """Return the coordinate of a place on the axis, within [-1, 1]."""
        low, high = self.places
        return np.clip((place - low) / (0.5 * (high - low)) - 1.0, -1.0, 1.0)

    def target_axis_slope(self, t: Array) -> Array:
        """Return d s / d t."""
        low, high = self.places
        return self.axis.slope(t) / (0.5 * (high - low))
