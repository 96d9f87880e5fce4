"""Averages of calibrators, and the weights that suit rows none of them has learnt from."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.base import clone

from regcal._validation import Array, as_float_array
from regcal.calibrators.base import Calibrator, given_support
from regcal.calibrators.cells import Coordinates
from regcal.calibrators.observed import Observed
from regcal.calibrators.targets import Targets
from regcal.distributions import Distribution, Mixture

# Weights are settled when the mean log score rises by less.
_SETTLED = 1e-8
_MAX_STEPS = 2000


class StackCalibrator(Calibrator):
    """Average the distributions of several calibrators, with fixed weights.

    `AutoCalibrator` makes one where an average is clearly better than each alone.

    Parameters
    ----------
    calibrators : sequence of (str, Calibrator)
        Names of your own with calibrators.
    weights : array-like of shape (n_calibrators,)
        Positive; they are divided by their sum.
    support : {"auto", None} or (low, high), default="auto"
        Ends at which outcomes beyond are seen, such as 0 for rain: found where outcomes pile up,
        none, or given; write an end that there is none of as None.
    step : float or "auto", optional
        Distance of the values that outcomes are rounded to: 1 for counts. The result then is a
        distribution of these values.

    Attributes
    ----------
    parts_ : list of Calibrator
        The calibrators, fitted.
    weights_ : ndarray of shape (n_calibrators,)

    Examples
    --------
    >>> from regcal import Normal, StackCalibrator, get_calibrator
    >>> parts = [(name, get_calibrator(name)) for name in ("identity", "scale")]
    >>> dist = Normal([0.0, 0.0], [1.0, 1.0])
    >>> stack = StackCalibrator(parts, [1.0, 1.0]).fit(dist, [3.0, -3.0])
    >>> stack.transform(dist).var()
    array([5., 5.])
    """

    def __init__(
        self,
        calibrators: Sequence[tuple[str, Calibrator]],
        weights: Any,
        *,
        support: Any = "auto",
        step: Any = None,
    ) -> None:
        self.calibrators = calibrators
        self.weights = weights
        self.support = support
        self.step = step

    @property
    def _needs_density(self) -> bool:  # type: ignore[override]
        return any(part._needs_density for _, part in self.calibrators)

    def _coordinates(self, targets: Targets) -> tuple[Coordinates, ...]:
        return tuple(one for _, part in self.calibrators for one in part._coordinates(targets))

    def _solve(self, observed: Observed) -> None:
        self.weights_ = self._checked_weights()
        self.parts_ = []
        start = 0
        for _, part in self.calibrators:
            own = given_support(clone(part), observed.targets.support)
            end = start + len(part._coordinates(observed.targets))
            self.parts_.append(own._learn(observed.part(own, range(start, end))))
            start = end

    def _checked_weights(self) -> Array:
        weights = as_float_array(self.weights, "weights")
        if weights.shape != (len(self.calibrators),) or not len(weights):
            msg = (
                f"Got weights of shape {weights.shape} for {len(self.calibrators)} calibrators. "
                "Pass one per calibrator, and at least one."
            )
            raise ValueError(msg)
        if not ((weights > 0) & np.isfinite(weights)).all():
            msg = f"weights must be positive, got {weights.tolist()}. Leave out calibrators of 0."
            raise ValueError(msg)
        return weights / weights.sum()

    def _transform(self, dist: Distribution) -> Distribution:
        return Mixture([part.transform_latent(dist) for part in self.parts_], self.weights_)


# ----------------------------------------------------------------------------------------- weights


def weights_for_log_score(scores: Array, rows: Array) -> Array:
    """Return weights of an average that maximise its mean log score.

    Parameters
    ----------
    scores : ndarray of shape (n_parts, n_rows)
        Log scores of each part, finite.
    rows : ndarray of shape (n_rows,)
        Weights of rows.

    Returns
    -------
    ndarray of shape (n_parts,)

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.calibrators.stack import weights_for_log_score
    >>> weights_for_log_score(np.log([[0.9, 0.1], [0.1, 0.9]]), np.ones(2))
    array([0.5, 0.5])
    """
    density = np.exp(scores - scores.max(axis=0))
    shares = rows / rows.sum()
    weights = np.full(len(scores), 1.0 / len(scores))
    last = -np.inf
    for _ in range(_MAX_STEPS):
        mixed = weights @ density
        value = float(shares @ np.log(mixed))
        if value - last < _SETTLED:
            break
        last = value
        weights = weights * (density @ (shares / mixed))  # expectation and maximisation in one
    return weights / weights.sum()


def weights_for_crps(differences: Array, rows: Array) -> Array:
    """Return weights of an average that minimise its mean CRPS, which is quadratic in them.

    Parameters
    ----------
    differences : ndarray of shape (n_parts, n_rows, n_points)
        Of each part's CDF and the outcome's, times the root of the length that a point stands for.
    rows : ndarray of shape (n_rows,)

    Returns
    -------
    ndarray of shape (n_parts,)
    """
    product = np.einsum("irg,jrg,r->ij", differences, differences, rows / rows.sum())
    product /= np.trace(product)
    n_parts = len(product)
    found = minimize(
        lambda weights: float(weights @ product @ weights),
        np.full(n_parts, 1.0 / n_parts),
        jac=lambda weights: 2.0 * product @ weights,
        bounds=[(0.0, 1.0)] * n_parts,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1.0},
        method="SLSQP",
        options={"ftol": 1e-12},
    )
    weights = np.clip(found.x, 0.0, None)
    return weights / weights.sum()
