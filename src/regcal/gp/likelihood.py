"""Log-concave likelihoods of linear predictors, as sums of terms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from regcal.gp.design import Design
from regcal.gp.links import Derivatives

__all__ = ["Evaluation", "Likelihood", "Observations", "Term"]


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

    def gram(self, second: NDArray) -> NDArray:
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
            gram = self.gram(self.observations.derivatives(anywhere).second)
            child._constant_gram = gram[np.ix_(active, active)]
        return child


class Likelihood:
    """A sum of terms that share their coefficients.

    Parameters
    ----------
    terms : sequence of Term
        Observations of linear predictors; all designs have the same columns.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.gp import DenseDesign, Likelihood, LogSlope, Term
    >>> likelihood = Likelihood([Term(DenseDesign(np.eye(2)), LogSlope(np.ones(2)))])
    >>> likelihood.n_coefficients, likelihood.evaluate(np.zeros(2)).gradient
    (2, array([1., 1.]))
    """

    def __init__(self, terms: Sequence[Term]):
        self.terms = tuple(terms)
        self._last_restriction: tuple[NDArray, Likelihood] | None = None

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients."""
        return self.terms[0].design.n_coefficients

    def value(self, coefficients: NDArray) -> float:
        """Return the log-likelihood; minus infinity outside its domain."""
        return sum(t.observations.value(t.design.predict(coefficients)) for t in self.terms)

    def evaluate(self, coefficients: NDArray) -> Evaluation:
        """Return the log-likelihood, its gradient and its negative Hessian."""
        value = 0.0
        gradient = np.zeros(self.n_coefficients)
        grams = []
        for term in self.terms:
            at = term.observations.derivatives(term.design.predict(coefficients))
            value += float(at.value.sum())
            gradient += term.design.adjoint(at.first)
            grams.append(term.gram(at.second))
        return Evaluation(value, gradient, reduce(np.add, grams))

    def trace_gradient(self, coefficients: NDArray, covariance: NDArray) -> NDArray:
        """Return the gradient of trace(covariance @ neg_hessian) in the coefficients."""
        total = np.zeros(self.n_coefficients)
        for term in self.terms:
            if term.observations.constant_curvature:
                continue
            at = term.observations.derivatives(term.design.predict(coefficients))
            total -= term.design.adjoint(at.third * term.design.quadratic(covariance))
        return total

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
