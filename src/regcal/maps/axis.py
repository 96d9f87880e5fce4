"""The axis along which maps see targets: linear, or compressed far from the middle."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf

import numpy as np

from regcal._validation import Array
from regcal._weighted import weighted_median

# Widths of the axes to choose from, in median absolute deviations.
_WIDTHS = (3.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """An increasing function of the target: ``asinh((t - centre) / width)``, or t itself.

    With it, a map of a skewed target has its resolution where the outcomes are.

    Parameters
    ----------
    centre : float
    width : float
        Where the axis passes from linear to logarithmic; it is linear if infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.maps import Axis
    >>> axis = Axis(10.0, 2.0)
    >>> axis(np.array([8.0, 10.0, 1000.0])).round(2)
    array([-0.88,  0.  ,  6.9 ])
    >>> axis.inverse(axis(np.array([1000.0])))
    array([1000.])
    """

    centre: float = 0.0
    width: float = np.inf

    @property
    def linear(self) -> bool:
        """Whether the place of a target is the target itself."""
        return isinf(self.width)

    def rounded(self) -> Axis:
        """Return one of few axes that is nearly the same."""
        if self.linear:
            return self
        width = float(2.0 ** np.round(np.log2(self.width)))
        return Axis(0.25 * width * float(np.round(4.0 * self.centre / width)), width)

    def __call__(self, t: Array) -> Array:
        """Return the places of targets."""
        return t if self.linear else np.arcsinh((t - self.centre) / self.width)

    def slope(self, t: Array) -> Array:
        """Return the derivative at targets."""
        if self.linear:
            return np.ones_like(t)
        return 1.0 / np.hypot(t - self.centre, self.width)

    def inverse(self, place: Array) -> Array:
        """Return the targets at places."""
        return place if self.linear else self.centre + self.width * np.sinh(place)


LINEAR = Axis()


def axis_of_values(values: Array, weights: Array) -> Axis:
    """Return the axis on which distinct values look most normal.

    By the profile likelihood of a normal distribution on each axis, as for the transformations of
    Box and Cox (1964).
    """
    if len(values) < 2:
        return LINEAR
    centre = weighted_median(values, weights)
    width = weighted_median(np.abs(values - centre), weights)
    if not width > 8 * np.spacing(abs(centre)):
        return LINEAR
    bent = [Axis(centre, factor * width) for factor in _WIDTHS]
    fits = [_normal_fit(axis, values, weights) for axis in bent]
    # worth its two parameters, by the Bayesian information criterion
    worth = max(fits) - _normal_fit(LINEAR, values, weights) > np.log(weights.sum())
    return bent[int(np.argmax(fits))] if worth else LINEAR


def _normal_fit(axis: Axis, values: Array, weights: Array) -> float:
    """Return the log-likelihood of the normal distribution that suits values on an axis best."""
    places = axis(values)
    mean = np.average(places, weights=weights)
    with np.errstate(over="ignore"):
        variance = np.average((places - mean) ** 2, weights=weights)
    return float(weights @ np.log(axis.slope(values)) - 0.5 * weights.sum() * np.log(variance))
