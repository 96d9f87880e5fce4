"""Log-concave likelihoods of linear predictors, as sums of terms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from regcal.gp.design import Design
from regcal.gp.links import Derivatives

__all__ = ["Evaluation", "Likelihood", "LikelihoodTerm", "Observations", "Term"]


class Observations(Protocol):
    """Pointwise log-likelihoods, concave in the linear predictor."""

    @property
    def constant_curvature(self) -> bool:
        """Whether the second derivative does not depend on the predictor."""

    def value(self, eta: NDArray) -> float:
        """Return the total log-likelihood; minus infinity outside its domain."""

    def derivatives(self, eta: NDArray) -> Derivatives:
        """Return pointwise log-likelihood, first, negative second and third derivative."""


class Evaluation(NamedTuple):
    """A log-likelihood with its gradient and negative Hessian in the coefficients."""

    value: float
    gradient: NDArray
    neg_hessian: NDArray


class LikelihoodTerm(Protocol):
    """A log-concave part of a likelihood."""

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients."""

    def value(self, coefficients: NDArray) -> float:
        """Return the log-likelihood; minus infinity outside its domain."""

    def evaluate(self, coefficients: NDArray) -> Evaluation:
        """Return the log-likelihood, its gradient and its negative Hessian."""

    def trace_gradient(self, coefficients: NDArray, covariance: NDArray) -> NDArray:
        """Return the gradient of trace(covariance @ neg_hessian) in the coefficients."""

    def restrict(self, active: NDArray) -> LikelihoodTerm:
        """Return the term in a subset of the coefficients."""


class Term:
    """Observations of one set of linear predictors.

    Parameters
    ----------
    design : Design
        Turns coefficients into predictors.
    observations : Observations
        What was observed, as a function of the predictors.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.gp import DenseDesign, LogSlope, Term
    >>> term = Term(DenseDesign(np.eye(2)), LogSlope(np.ones(2)))
    >>> term.observations.value(term.design.predict(np.zeros(2)))
    0.0
    """

    def __init__(self, design: Design, observations: Observations):
        self.design = design
        self.observations = observations
        self._constant_gram: NDArray | None = None
        self._last_predictor: tuple[NDArray, NDArray] | None = None
        self._last_derivatives: tuple[NDArray, Derivatives] | None = None

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients."""
        return self.design.n_coefficients

    def value(self, coefficients: NDArray) -> float:
        """Return the log-likelihood; minus infinity outside its domain."""
        return self.observations.value(self._predictor(coefficients))

    def evaluate(self, coefficients: NDArray) -> Evaluation:
        """Return the log-likelihood, its gradient and its negative Hessian."""
        at = self._derivatives(coefficients)
        gradient = self.design.adjoint(at.first)
        return Evaluation(float(at.value.sum()), gradient, self._gram(at.second))

    def trace_gradient(self, coefficients: NDArray, covariance: NDArray) -> NDArray:
        """Return the gradient of trace(covariance @ neg_hessian) in the coefficients."""
        if self.observations.constant_curvature:
            return np.zeros(self.n_coefficients)
        at = self._derivatives(coefficients)
        return -self.design.adjoint(at.third * self.design.quadratic(covariance))

    def _predictor(self, coefficients: NDArray) -> NDArray:
        """Return X b: a step is first tried, then evaluated, and the last one asked for again."""
        if self._last_predictor is not None:
            known, predictor = self._last_predictor
            if np.array_equal(known, coefficients):
                return predictor
        predictor = self.design.predict(coefficients)
        self._last_predictor = (coefficients.copy(), predictor)
        return predictor

    def _derivatives(self, coefficients: NDArray) -> Derivatives:
        """Return the pointwise derivatives at coefficients."""
        predictor = self._predictor(coefficients)
        if self._last_derivatives is None or self._last_derivatives[0] is not predictor:
            self._last_derivatives = (predictor, self.observations.derivatives(predictor))
        return self._last_derivatives[1]

    def _gram(self, second: NDArray) -> NDArray:
        """Return the negative Hessian for the pointwise curvatures `second`."""
        if not self.observations.constant_curvature:
            return self.design.gram(second)
        if self._constant_gram is None:
            self._constant_gram = self.design.gram(second)
        return self._constant_gram

    def restrict(self, active: NDArray) -> Term:
        """Return the term in a subset of the coefficients."""
        child = Term(self.design.restrict(active), self.observations)
        if self.observations.constant_curvature:
            anywhere = self.design.predict(np.zeros(self.design.n_coefficients))
            gram = self._gram(self.observations.derivatives(anywhere).second)
            child._constant_gram = gram[np.ix_(active, active)]
        return child


class Likelihood:
    """A sum of terms that share their coefficients.

    Parameters
    ----------
    terms : sequence of LikelihoodTerm
        Observations of linear predictors; all designs have the same columns.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.gp import DenseDesign, Likelihood, LogSlope, Term
    >>> likelihood = Likelihood([Term(DenseDesign(np.eye(2)), LogSlope(np.ones(2)))])
    >>> likelihood.n_coefficients, likelihood.evaluate(np.zeros(2)).gradient
    (2, array([1., 1.]))
    """

    def __init__(self, terms: Sequence[LikelihoodTerm]):
        self.terms = tuple(terms)
        self._last_restriction: tuple[NDArray, Likelihood] | None = None

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients."""
        return self.terms[0].n_coefficients

    def value(self, coefficients: NDArray) -> float:
        """Return the log-likelihood; minus infinity outside its domain."""
        return sum(term.value(coefficients) for term in self.terms)

    def evaluate(self, coefficients: NDArray) -> Evaluation:
        """Return the log-likelihood, its gradient and its negative Hessian."""
        parts = [term.evaluate(coefficients) for term in self.terms]
        value, gradient, neg_hessian = (reduce(np.add, part) for part in zip(*parts, strict=True))
        return Evaluation(float(value), gradient, neg_hessian)

    def trace_gradient(self, coefficients: NDArray, covariance: NDArray) -> NDArray:
        """Return the gradient of trace(covariance @ neg_hessian) in the coefficients."""
        parts = [term.trace_gradient(coefficients, covariance) for term in self.terms]
        return reduce(np.add, parts)

    def restrict(self, active: NDArray) -> Likelihood:
        """Return the likelihood with all coefficients outside `active` fixed at zero."""
        if len(active) == self.n_coefficients:
            return self
        if self._last_restriction is not None:
            known, likelihood = self._last_restriction
            if np.array_equal(known, active):
                return likelihood
        likelihood = Likelihood([term.restrict(active) for term in self.terms])
        self._last_restriction = (active, likelihood)
        return likelihood
