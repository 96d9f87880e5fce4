"""One factor on the spread."""

import numpy as np

from regcal.calibrators.base import Calibrator
from regcal.calibrators.cells import Coordinates, OutcomeCoordinates, Points
from regcal.calibrators.observed import Observed
from regcal.calibrators.targets import Targets
from regcal.distributions import Distribution, Transformed
from regcal.maps import ScaleMap


class ScaleCalibrator(Calibrator):
    """Multiply the spread of all rows by one factor, chosen by maximum likelihood.

    The factor acts on the probit scale, ``Phi(probit / factor)``, so that it is a factor on the
    standard deviation of normal distributions and works for any other as well. It cannot repair
    a bias or a wrong shape.

    Parameters
    ----------
    prior_rows : float, default=1.0
        How many calibrated rows the data are joined by; they pull the factor towards 1 when
        there is little data.

    Attributes
    ----------
    factor_ : float
    map_ : ScaleMap
        From the probit of q to that of the calibrated probability.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal, ScaleCalibrator
    >>> rng = np.random.default_rng(0)
    >>> dist = Normal(np.zeros(1000), np.ones(1000))
    >>> cal = ScaleCalibrator().fit(dist, rng.normal(scale=3.0, size=1000))
    >>> round(cal.factor_, 1)
    2.9
    """

    _needs_density = True

    def __init__(self, *, prior_rows: float = 1.0) -> None:
        self.prior_rows = prior_rows

    def _coordinates(self, targets: Targets) -> tuple[Coordinates, ...]:
        check_prior_rows(self.prior_rows)
        return (OutcomeCoordinates(),)

    def _solve(self, observed: Observed) -> None:
        self.map_ = solve_scale(observed.points[0], self.prior_rows)

    @property
    def factor_(self) -> float:
        """The factor on the spread."""
        return self.map_.factor

    def _transform(self, dist: Distribution) -> Distribution:
        return Transformed(dist, self.map_)


def check_prior_rows(prior_rows: float) -> None:
    """Refuse a number of pseudo-rows that pulls nowhere."""
    if not 0 < prior_rows < np.inf:
        msg = (
            f"prior_rows must be positive, got {prior_rows}, and finite. To leave distributions "
            "as they are, use IdentityCalibrator."
        )
        raise ValueError(msg)


def solve_scale(points: Points, prior_rows: float = 1.0) -> ScaleMap:
    """Return the most likely scale of points in `OutcomeCoordinates`."""
    weight, squares = points.weights.sum(), points.weights @ points.values[1]
    # the zero of d/ds of sum w (-log s - z^2 / (2 s^2)), with prior rows that have z^2 = 1
    return ScaleMap(float(np.sqrt((prior_rows + squares) / (prior_rows + weight))))
