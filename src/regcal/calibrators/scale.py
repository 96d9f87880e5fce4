"""One factor on the spread.

Depends on the distributions, `_validation` and `base`.
"""

from typing import Self

import numpy as np

from regcal._validation import Array
from regcal.calibrators._outcomes import OutcomeCells
from regcal.calibrators._targets import TargetSummary
from regcal.calibrators.base import Calibrator
from regcal.calibrators.summary import Summary, Tally
from regcal.distributions import Distribution, ProbitMapped, ScaleMap


def possible_probits(dist: Distribution, y: Array, weights: Array) -> tuple[Array, Array]:
    """Return outcomes in probit units with their weights, impossible ones left out."""
    z = dist.probit(y)
    possible = np.isfinite(z)
    return z[possible], weights[possible]


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

    def __init__(self, *, prior_rows: float = 1.0) -> None:
        self.prior_rows = prior_rows

    def _check(self) -> None:
        if not self.prior_rows > 0:
            msg = f"prior_rows must be positive, got {self.prior_rows}."
            raise ValueError(msg)

    def _fit(self, dist: Distribution, y: Array, weights: Array) -> None:
        self._check()
        self.fit_probits(*possible_probits(dist, y, weights))

    def _tallies(self, targets: TargetSummary) -> tuple[Tally, ...]:
        self._check()
        return (OutcomeCells(),)

    def _fit_cells(self, summary: Summary) -> None:
        self._set_factor(*summary.tallies[0].squares)

    def fit_probits(self, z: Array, weights: Array) -> Self:
        """Fit from the probits of the outcomes."""
        self._set_factor(float(weights.sum()), float((weights * z * z).sum()))
        return self

    def _set_factor(self, weight: float, squares: float) -> None:
        # the zero of d/ds of sum w (-log s - z^2 / (2 s^2)), with prior rows that have z^2 = 1
        self.factor_ = float(np.sqrt((self.prior_rows + squares) / (self.prior_rows + weight)))

    @property
    def map_(self) -> ScaleMap:
        """The map on the probit scale."""
        return ScaleMap(self.factor_)

    def _transform(self, dist: Distribution) -> Distribution:
        return ProbitMapped(dist, self.map_)
