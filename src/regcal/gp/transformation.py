"""Observations of a monotone transformation to a standard normal variable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from regcal.gp.design import Design
from regcal.gp.likelihood import Likelihood, LikelihoodTerm, Observations, Term
from regcal.gp.links import Derivatives, Probit

__all__ = ["Barrier", "LogSlope", "NormalScore", "SoftSlope", "TransformationLikelihood"]


@dataclass(frozen=True, eq=False)
class NormalScore:
    """The normal log-density of offset + predictor, up to a constant."""

    offset: NDArray
    weights: NDArray
    constant_curvature: ClassVar[bool] = True

    def value(self, eta: NDArray) -> float:
        """Return the weighted log-density."""
        return float(-0.5 * self.weights @ (self.offset + eta) ** 2)

    def derivatives(self, eta: NDArray) -> Derivatives:
        """Return pointwise log-likelihood, first, negative second and third derivative."""
        score = self.offset + eta
        first = -self.weights * score
        return Derivatives(0.5 * first * score, first, self.weights, np.zeros_like(score))


# From this slope downwards the logarithm goes on as a parabola. Newton's method sees a wall at 0
# coming where a point weighs as much as others, but not where it weighs next to nothing. With 400
# rows and weights over twelve orders of magnitude, steps were cut to 1e-5 of their length, 60 to 80
# searches a fit ended at their limit of 100 steps, and fits took 18 to 36 s; now 2 to 5 s. On the
# paper's sets log scores agree to 1e-6, and fits take 0.85 times as long.
_SMALLEST_SEEN = 0.005


@dataclass(frozen=True, eq=False)
class LogSlope:
    """The logarithm of the relative slope 1 + predictor, which should be positive.

    Below a small slope it goes on as a parabola, with the same value, slope and curvature there.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.gp import LogSlope
    >>> bool(LogSlope(np.ones(2)).value(np.array([0.0, -1.5])) < -1000.0)
    True
    """

    weights: NDArray
    constant_curvature: ClassVar[bool] = False

    def value(self, eta: NDArray) -> float:
        """Return the weighted log slope."""
        _, seen, short = self._seen(eta)
        return float(self.weights @ (np.log(seen) + short - 0.5 * short**2))

    def derivatives(self, eta: NDArray) -> Derivatives:
        """Return pointwise log-likelihood, first, negative second and third derivative."""
        slope, seen, short = self._seen(eta)
        second = self.weights / seen**2
        return Derivatives(
            self.weights * (np.log(seen) + short - 0.5 * short**2),
            self.weights * (1.0 - short) / seen,
            second,
            np.where(slope < seen, 0.0, 2.0 * second / seen),
        )

    def _seen(self, eta: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Return slopes, what the logarithm is taken of, and by how much of it they fall short."""
        slope = 1.0 + eta
        seen = np.maximum(slope, _SMALLEST_SEEN)
        return slope, seen, (slope - seen) / seen


@dataclass(frozen=True, eq=False)
class SoftSlope:
    """A probit pseudo-observation that the relative slope 1 + predictor is positive.

    It is the derivative observation of Riihimäki & Vehtari (2010); `width` is how far below zero
    the slope may go before it hurts.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.gp import SoftSlope
    >>> round(SoftSlope(np.ones(1), width=0.1).value(np.array([-1.0])), 3)
    -0.693
    """

    weights: NDArray
    width: float
    constant_curvature: ClassVar[bool] = False

    def value(self, eta: NDArray) -> float:
        """Return the weighted log-probability of a positive slope."""
        return float(self.weights @ special.log_ndtr((1.0 + eta) / self.width))

    def derivatives(self, eta: NDArray) -> Derivatives:
        """Return pointwise log-likelihood, first, negative second and third derivative."""
        at = Probit().derivatives((1.0 + eta) / self.width)
        return Derivatives(
            *(self.weights * d / self.width**order for order, d in enumerate(at)),
        )


class Barrier(NamedTuple):
    """Further places where the transformation should increase.

    Parameters
    ----------
    design : Design
        Turns coefficients into relative slopes minus one.
    observations : LogSlope or SoftSlope
        How strongly, and how hard.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.gp import Barrier, DenseDesign, SoftSlope
    >>> barrier = Barrier(DenseDesign(np.eye(2)), SoftSlope(np.ones(2), width=0.1))
    >>> barrier.design.n_coefficients
    2
    """

    design: Design
    observations: Observations


class TransformationLikelihood(Likelihood):
    """Likelihood of points whose transform offset + f should be standard normal.

    The log-likelihood is ``sum w * (-0.5 * (offset + values b)**2 + log(1 + slopes b))``, concave
    in the coefficients b. Where the relative slope ``1 + slopes b`` is next to 0 or negative, its
    logarithm goes on as a parabola.

    Parameters
    ----------
    values : Design
        Turns coefficients into f at each observation.
    slopes : Design
        Turns coefficients into the derivative of f along the path of each observation, over the
        slope of the offset along it.
    offset : array-like of shape (n,)
        Each observation's score before the transformation.
    weights : array-like of shape (n,) or float
        Weight of each observation.
    barrier : Barrier, optional
        Further places where the slope should be positive.
    intervals : sequence of LikelihoodTerm
        What is known of outcomes that were not seen exactly.

    Examples
    --------
    A shift and a scale recover the mean and standard deviation of the scores.

    >>> from regcal.gp import DenseDesign
    >>> u = np.array([1.0, 3.0, 5.0])
    >>> values, slopes = np.column_stack([np.ones(3), u]), np.tile([0.0, 1.0], (3, 1))
    >>> likelihood = TransformationLikelihood(DenseDesign(values), DenseDesign(slopes), u)
    >>> scale = 1 / u.std()
    >>> best = np.array([-u.mean() * scale, scale - 1])
    >>> np.abs(likelihood.evaluate(best).gradient).max() < 1e-12
    np.True_
    """

    def __init__(
        self,
        values: Design,
        slopes: Design,
        offset: ArrayLike,
        weights: ArrayLike = 1.0,
        barrier: Barrier | None = None,
        intervals: Sequence[LikelihoodTerm] = (),
    ):
        scores = np.asarray(offset, dtype=float).ravel()
        shares = np.array(np.broadcast_to(weights, scores.shape), dtype=float)
        terms: list[LikelihoodTerm] = [
            Term(values, NormalScore(scores, shares)),
            Term(slopes, LogSlope(shares)),
        ]
        if barrier is not None:
            terms.append(Term(*barrier))
        super().__init__([*terms, *intervals])
