"""Averages of calibrators, and the weights that suit rows none of them has learnt from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.base import clone

from regcal._validation import Array, as_float_array
from regcal.calibrators.base import Calibrator, given_support
from regcal.calibrators.cells import Coordinates
from regcal.calibrators.observed import Observed
from regcal.calibrators.targets import Targets
from regcal.covariates import Covariates
from regcal.distributions import Distribution, Mixture, Transformed
from regcal.maps import ScaleMap
from regcal.maps.members import Joints

# Weights are settled when the objective rises by less; limits are kept to so much.
_SETTLED, _SLACK = 1e-9, 1e-6
_MAX_STEPS = 300


class StackCalibrator(Calibrator):
    """Average the distributions of several calibrators, with fixed weights.

    `AutoCalibrator` makes one where an average is clearly better than each alone. An average of
    calibrated distributions is too wide (Ranjan and Gneiting, 2010), so it may be made narrower.

    Parameters
    ----------
    calibrators : sequence of (str, Calibrator)
        Names of your own with calibrators.
    weights : array-like of shape (n_calibrators,)
        Positive; they are divided by their sum.
    spread : float, default=1.0
        Factor on the spread of the average. As that of `ScaleCalibrator` it acts on the probit.
    support, step : as in every calibrator

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
    >>> stack = StackCalibrator(parts, [1.0, 3.0]).fit(dist, [3.0, -3.0])
    >>> (stack.transform(dist).components[1].std() / stack.parts_[1].factor_).round(6)
    array([1., 1.])
    >>> stack.weights_
    array([0.25, 0.75])
    """

    # What files from before there was this parameter have.
    spread: float = 1.0

    def __init__(
        self,
        calibrators: Sequence[tuple[str, Calibrator]],
        weights: Any,
        *,
        spread: float = 1.0,
        support: Any = "auto",
        step: Any = None,
    ) -> None:
        self.calibrators = calibrators
        self.weights = weights
        self.spread = spread
        self.support = support
        self.step = step

    @property
    def _parts(self) -> list[tuple[str, Calibrator]]:
        return named_calibrators(self.calibrators, "calibrators")

    @property
    def _needs_density(self) -> bool:  # type: ignore[override]
        return any(part._needs_density for _, part in self._parts)

    @property
    def uses_covariates(self) -> bool:  # type: ignore[override]
        """Whether a part looks at covariates."""
        return any(part.uses_covariates for _, part in self._parts)

    def _coordinates(self, targets: Targets) -> tuple[Coordinates, ...]:
        return tuple(one for _, part in self._parts for one in part._coordinates(targets))

    def _solve(self, observed: Observed) -> None:
        check_spread(self.spread)
        self.weights_ = self._checked_weights()
        self.parts_ = []
        start = 0
        for _, part in self._parts:
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

    def _transform(self, dist: Distribution, covariates: Covariates | None) -> Distribution:
        parts = [part.transform_rows(dist, covariates) for part in self.parts_]
        return average_of(parts, self.weights_, self.spread, Joints.of(self))


def named_calibrators(pairs: Any, name: str) -> list[tuple[str, Calibrator]]:
    """Return calibrators with names of one's own, if they are pairs of different names and such.

    Parameters
    ----------
    pairs : sequence of (str, Calibrator)
    name : str
        What they are called.
    """
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        msg = f"{name} must be pairs of a name and a calibrator, got {pairs!r}."
        raise TypeError(msg)
    named = list(pairs)
    for pair in named:
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            msg = f"{name} must be pairs of a name and a calibrator, got {pair!r}."
            raise TypeError(msg)
        if not isinstance(pair[1], Calibrator):
            msg = (
                f"The calibrator {pair[0]!r} is {pair[1]!r}, which is none. Pass an object, such "
                'as regcal.get_calibrator("pit").'
            )
            raise TypeError(msg)
    names = [label for label, _ in named]
    if not names or len(set(names)) < len(names):
        msg = f"{name} must have different names, and there must be one, got {names}."
        raise ValueError(msg)
    return [(label, one) for label, one in named]


def check_spread(spread: Any) -> None:
    """Refuse a factor on the spread that is none."""
    number = isinstance(spread, int | float | np.number) and not isinstance(spread, bool)
    if not (number and 0 < spread < np.inf):
        msg = f"spread must be a positive number, got {spread!r}. 1 changes nothing."
        raise ValueError(msg)


def average_of(
    parts: Sequence[Distribution],
    weights: Array,
    spread: float = 1.0,
    joints: Joints | None = None,
) -> Distribution:
    """Return the average of distributions, with a factor on its spread."""
    average = parts[0] if len(parts) == 1 else Mixture(parts, weights)._with_joints(joints)
    return average if spread == 1 else Transformed(average, ScaleMap(spread))


# ----------------------------------------------------------------------------------------- weights


@dataclass(frozen=True)
class Prices:
    """What a nat of log score is worth, and what a CRPS as large as the first candidate's costs."""

    log_score: float
    crps: float

    @property
    def counted(self) -> list[int]:
        """Which of log score and CRPS count, as numbers of both."""
        return [k for k, price in enumerate((self.log_score, self.crps)) if price > 0]


@dataclass(frozen=True)
class Objective:
    """What the weights of an average are to maximise: its log score less its CRPS, at some prices.

    Both scores belong to rows that none of the candidates has learnt from. The log score is concave
    in the weights, the CRPS a convex quadratic.

    Parameters
    ----------
    densities : ndarray of shape (n_candidates, n_rows)
        In units of the largest of each row.
    crps : ndarray of shape (n_candidates, n_candidates)
        Means of products of differences between CDFs and outcomes, over the CRPS of the first
        candidate: weights @ crps @ weights is the relative CRPS of an average.
    shares : ndarray of shape (n_rows,)
        Weights of rows, which sum to 1.
    prices : Prices
    """

    densities: Array
    crps: Array
    shares: Array
    prices: Prices

    def __call__(self, weights: Array) -> float:
        """Return the objective, up to a constant."""
        mixed = np.maximum(weights @ self.densities, np.finfo(float).tiny)
        log_score, crps = self.shares @ np.log(mixed), weights @ self.crps @ weights
        return float(self.prices.log_score * log_score - self.prices.crps * crps)

    def gradient(self, weights: Array) -> Array:
        """Return its derivative by the weights."""
        mixed = np.maximum(weights @ self.densities, np.finfo(float).tiny)
        log_score, crps = self.densities @ (self.shares / mixed), 2.0 * self.crps @ weights
        return self.prices.log_score * log_score - self.prices.crps * crps

    def of(self, used: np.ndarray) -> "Objective":
        """Return the objective of some candidates."""
        return replace(self, densities=self.densities[used], crps=self.crps[np.ix_(used, used)])

    def best(self, most: float) -> Array:
        """Return the weights of the best average whose relative CRPS is at most so much.

        If none is found that beats the candidates alone, all weight is the best candidate's.
        """
        n = len(self.crps)
        found = minimize(
            lambda weights: -self(weights),
            np.full(n, 1.0 / n),
            jac=lambda weights: -self.gradient(weights),
            bounds=[(0.0, 1.0)] * n,
            constraints=self._limits(most),
            method="SLSQP",
            options={"ftol": _SETTLED, "maxiter": _MAX_STEPS},
        )
        weights = np.clip(np.nan_to_num(found.x), 0.0, None)
        weights /= weights.sum() or 1.0
        alone = [one for one in np.eye(n) if one @ self.crps @ one <= most + _SETTLED]
        allowed = [*alone, *([weights] if weights @ self.crps @ weights <= most + _SLACK else [])]
        return max(allowed or list(np.eye(n)), key=self)

    def _limits(self, most: float) -> list[dict[str, Any]]:
        n = len(self.crps)
        whole = {"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": lambda w: np.ones(n)}
        if np.isinf(most):
            return [whole]
        limit = {
            "type": "ineq",
            "fun": lambda w: most - w @ self.crps @ w,
            "jac": lambda w: -2.0 * self.crps @ w,
        }
        return [whole, limit]

    def best_few(self, most: float, price_of_one: float) -> Array:
        """Return weights of all candidates: of few of them, since each must be worth its price.

        One that keeps the CRPS at `most` stays, whatever it is worth.
        """
        used = np.arange(len(self.crps))
        weights = self.best(most)
        while len(used) > 1:
            fewer = np.delete(used, np.argmin(weights))
            others = self.of(fewer).best(most)
            if others @ self.of(fewer).crps @ others > most + _SLACK:
                break
            if self.of(used)(weights) - self.of(fewer)(others) > price_of_one:
                break
            used, weights = fewer, others
        whole = np.zeros(len(self.crps))
        whole[used] = weights
        return whole
