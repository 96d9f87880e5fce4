"""What the Gaussian-process calibrators offer once they are fitted."""

from typing import Any

import numpy as np
from scipy.special import ndtri_exp
from sklearn.utils.validation import check_is_fitted

from regcal._validation import Array, as_float_array
from regcal.calibrators.axes import LARGEST_PROBIT, MapAxes
from regcal.calibrators.base import Calibrator
from regcal.calibrators.gp_steps import Prior
from regcal.calibrators.observed import Observed
from regcal.covariates import Covariates
from regcal.distributions import Distribution, Transformed
from regcal.gp import FittedProcess
from regcal.maps import ProbitMap, Surface


def earlier_process(observed: Observed) -> FittedProcess | None:
    """Return the process that was learnt from nearly the same rows, if any was."""
    earlier = observed.earlier
    return earlier.process_ if isinstance(earlier, ProcessCalibrator) else None


class ProcessCalibrator(Calibrator):
    """A calibrator whose map is a Gaussian process on (u, t).

    `map_` starts from the base model or, where that is clearly better, from the base model after
    scaling or PIT recalibration (`start_`).
    """

    _needs_density = True

    prior_: Prior
    start_: ProbitMap
    axes_: MapAxes
    process_: FittedProcess
    map_: Surface

    @property
    def lengthscales_(self) -> Array:
        """Length-scales on the probit and the target axis, in units of half their range."""
        return self.process_.lengthscales

    @property
    def sigma_(self) -> float:
        """Prior standard deviation of the process, on the link scale."""
        return self.process_.sigma

    @property
    def log_evidence_(self) -> float:
        """Laplace approximation of the log marginal likelihood."""
        return self.process_.posterior.log_evidence

    def calibration_map(self, t: Any, q: Any, *, return_std: bool = False) -> Any:
        """Return the calibrated probability of Y <= t where the base says q.

        This is the map itself, before it is made increasing along a row's path.

        Parameters
        ----------
        t, q : array-like
            Thresholds and base probabilities; they are broadcast.
        return_std : bool, default=False
            Also return the posterior standard deviation of the process, on the link scale.

        Returns
        -------
        ndarray, or a pair of them
        """
        check_is_fitted(self, "process_")
        t, q = np.broadcast_arrays(as_float_array(t, "t"), as_float_array(q, "q"))
        if ((q < 0) | (q > 1)).any():
            msg = f"q must be probabilities between 0 and 1, got {q[(q < 0) | (q > 1)][0]}."
            raise ValueError(msg)
        with np.errstate(divide="ignore"):
            u = self.start_(ndtri_exp(np.log(q.ravel())))
        u = np.clip(u, -LARGEST_PROBIT, LARGEST_PROBIT)
        mean, variance = self.process_.moments(
            self.axes_.probit_axis(u), self.axes_.target_axis(t.ravel()), self.prior_.columns(u)
        )
        averaged = self.prior_.link.average(self.prior_.mean(u) + mean, variance).reshape(t.shape)
        return (averaged, np.sqrt(variance).reshape(t.shape)) if return_std else averaged

    def _transform(self, dist: Distribution, covariates: Covariates | None) -> Distribution:
        return Transformed(dist, self.map_)
