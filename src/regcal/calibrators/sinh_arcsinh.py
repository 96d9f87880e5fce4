"""Four numbers on the probit, for few rows."""

from typing import Any

import numpy as np
from scipy.optimize import minimize

from regcal._validation import Array
from regcal.calibrators.cells import Points
from regcal.calibrators.observed import Observed
from regcal.calibrators.pit import without_gross_errors
from regcal.calibrators.probit import ProbitCalibrator
from regcal.calibrators.scale import FARTHEST
from regcal.gp import interval_derivatives
from regcal.maps import SinhArcsinhMap
from regcal.maps.sinh_arcsinh import OUTER

# The prior's rows, with weights that sum to 1: a standard normal distribution.
_PRIOR_PLACES, _PRIOR_WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
_PRIOR_WEIGHTS = _PRIOR_WEIGHTS / _PRIOR_WEIGHTS.sum()

# Of shift, log factor, skew and log tail. What is searched is bounded so that nothing overflows;
# the prior keeps the solution well inside.
_IDENTITY = np.zeros(4)
_BOUNDS = ((None, None), (-20.0, 20.0), (-4.0, 4.0), (-1.5, 1.5))
_OPTIONS = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 500}


class SinhArcsinhCalibrator(ProbitCalibrator):
    """Shift and stretch all rows, and give them skewness and other tails, by four numbers.

    The map of the probit is the sinh-arcsinh function of Jones and Pewsey (2009), which
    maximises the likelihood of the outcomes together with that of a few calibrated rows. With
    less than a hundred rows this asks of them no more than they tell.

    Parameters
    ----------
    shape : bool, default=True
        Whether skewness and tails are fitted as well, or a shift and a factor alone.
    prior_rows : float, default=2.0
        How many calibrated rows the data are joined by; they pull the map towards the identity.
    support, step : as in every calibrator

    Attributes
    ----------
    map_ : SinhArcsinhMap
        From the probit of q to that of the calibrated probability.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal, SinhArcsinhCalibrator
    >>> rng = np.random.default_rng(0)
    >>> dist = Normal(np.zeros(60), np.ones(60))
    >>> cal = SinhArcsinhCalibrator(shape=False).fit(dist, rng.normal(0.5, 2.0, size=60))
    >>> cal.transform(dist[:1]).std().round()
    array([2.])
    """

    map_: SinhArcsinhMap

    def __init__(
        self,
        *,
        shape: bool = True,
        prior_rows: float = 2.0,
        support: Any = "auto",
        step: Any = None,
    ) -> None:
        self.shape = shape
        self.prior_rows = prior_rows
        self.support = support
        self.step = step

    def _solve(self, observed: Observed) -> None:
        outcomes, intervals = observed.points
        self.map_ = solve_sinh_arcsinh(outcomes, intervals, self.prior_rows, shape=self.shape)


def solve_sinh_arcsinh(
    outcomes: Points, intervals: Points, prior_rows: float = 2.0, *, shape: bool = True
) -> SinhArcsinhMap:
    """Return the most likely map of points in `OutcomeCoordinates` and `IntervalCoordinates`.

    Minimises the sum of w (m(z)^2 / 2 - log m'(z)) over outcomes and the prior's rows, and of
    -w log(Phi(m(b)) - Phi(m(a))) over intervals; first with a shift and a factor alone. Outcomes
    further out than five central spreads count as if they were there.
    """
    outcomes = without_gross_errors(outcomes, prior_rows, FARTHEST)
    places = np.concatenate([outcomes.values[0], _PRIOR_PLACES])
    weights = np.concatenate([outcomes.weights, prior_rows * _PRIOR_WEIGHTS])
    ends = intervals.values[0], intervals.values[2]

    def loss(free: Array) -> tuple[float, Array]:
        theta = np.append(free, _IDENTITY[len(free) :])
        image, log_slope, moves, changes = _with_derivatives(theta, places)
        value = weights @ (0.5 * image**2 - log_slope)
        gradient = (moves * image - changes) @ weights
        if len(intervals):
            (low, _, moves_low, _), (high, _, moves_high, _) = (
                _with_derivatives(theta, end) for end in ends
            )
            at = interval_derivatives(low, high)
            value -= intervals.weights @ at.value
            pulls = moves_low * at.first[0] + moves_high * at.first[1]
            gradient = gradient - pulls @ intervals.weights
        return float(value), gradient[: len(free)]

    theta = _IDENTITY
    for n_free in (2, 4) if shape else (2,):
        found = minimize(
            loss,
            theta[:n_free],
            jac=True,
            method="L-BFGS-B",
            bounds=_BOUNDS[:n_free],
            options=_OPTIONS,
        )
        theta = np.append(found.x, theta[n_free:])
    return _map_of(theta)


def _map_of(theta: Array) -> SinhArcsinhMap:
    shift, log_factor, skew, log_tail = map(float, theta)
    return SinhArcsinhMap(shift, float(np.exp(log_factor)), skew, float(np.exp(log_tail)))


def _with_derivatives(theta: Array, z: Array) -> tuple[Array, Array, Array, Array]:
    """Return image and log slope at z, and the derivatives of both in theta, (4, n).

    Infinite values stay where they are.
    """
    own, finite = _map_of(theta), np.isfinite(z)
    places = np.where(finite, z, own.shift)
    image, slope = own.image_and_slope(places)
    x = (places - own.shift) / own.factor
    held = np.clip(x, -OUTER, OUTER)
    inside, outside = x == held, slope * own.factor * (x - held)
    root = np.sqrt(1.0 + held * held)
    bent = own.tail * np.arcsinh(held)  # with the skew: the argument of sinh
    rise, cosh = np.tanh(bent - own.skew), np.cosh(bent - own.skew)
    in_x = np.where(inside, own.tail * rise / root - held / root**2, 0.0)
    more = 1.0 + bent * rise
    changes = np.stack([-in_x / own.factor, -x * in_x - 1.0, -rise, more])
    moves = np.stack(
        [
            -slope,
            -slope * x * own.factor,
            -cosh - outside * rise,
            bent * cosh + outside * more,
        ]
    )
    return np.where(finite, image, z), np.log(slope), np.where(finite, moves, 0.0), changes
