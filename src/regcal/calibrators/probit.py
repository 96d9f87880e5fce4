"""What calibrators share whose map is a function of the probit alone."""

import numpy as np

from regcal.calibrators.base import Calibrator
from regcal.calibrators.cells import Coordinates, IntervalCoordinates, OutcomeCoordinates
from regcal.calibrators.targets import Targets
from regcal.covariates import Covariates
from regcal.distributions import Distribution, Transformed
from regcal.maps import ProbitMap


class ProbitCalibrator(Calibrator):
    """A calibrator that learns one map of the probit, from outcomes and calibrated pseudo-rows.

    A subclass has a parameter `prior_rows`, and solves for `map_` from points in
    `OutcomeCoordinates` and `IntervalCoordinates`.
    """

    _needs_density = True

    prior_rows: float
    map_: ProbitMap

    def _coordinates(self, targets: Targets) -> tuple[Coordinates, ...]:
        if not 0 < self.prior_rows < np.inf:
            msg = (
                f"prior_rows must be positive, got {self.prior_rows}, and finite. To leave "
                "distributions as they are, use IdentityCalibrator."
            )
            raise ValueError(msg)
        return OutcomeCoordinates(), IntervalCoordinates.over(targets)

    def _transform(self, dist: Distribution, covariates: Covariates | None) -> Distribution:
        return Transformed(dist, self.map_)
