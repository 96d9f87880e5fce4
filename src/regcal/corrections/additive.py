"""Sums of smooth functions of one covariate each, whose sizes the evidence decides."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack

from regcal._validation import Array
from regcal.corrections.base import Learner, Regression
from regcal.covariates import Column, Covariates

# A smooth function of a number is a line and so many cosines of its rank.
_N_COSINES = 12

# Ranks are known at so many quantiles.
_N_QUANTILES = 65

# The prior variance of the k-th cosine falls with this power of k, as that of a cubic smoothing
# spline does (Wahba, 1990).
_DECAY = 4.0

# Sizes are settled when the effective number of parameters moves by less.
_SETTLED, _MAX_STEPS = 1e-2, 60

# A term with fewer effective parameters than this is taken to be nothing.
_LEAST_EFFECT = 1e-3


# -------------------------------------------------------------------------------------------- terms


@dataclass(frozen=True)
class SmoothTerm:
    """Smooth functions of a number: a line and cosines of its rank, and what a missing one does."""

    name: str
    quantiles: Array
    ranks: Array

    @classmethod
    def over(cls, column: Column, weights: Array) -> "SmoothTerm":
        """Return the functions for numbers like these."""
        known = ~column.missing
        values, place = np.unique(column.values[known], return_inverse=True)
        if len(values) == 0:
            return cls(column.name, np.zeros(1), np.zeros(1))
        shares = np.bincount(place, weights[known], minlength=len(values))
        ranks = (np.cumsum(shares) - 0.5 * shares) / shares.sum()
        # the extremes are at 0 and 1
        ranks = (ranks - ranks[0]) / (ranks[-1] - ranks[0] or 1.0)
        if len(values) > _N_QUANTILES:
            levels = np.linspace(0.0, 1.0, _N_QUANTILES)
            return cls(column.name, np.interp(levels, ranks, values), levels)
        return cls(column.name, values, ranks)

    @property
    def precisions(self) -> Array:
        """Prior precisions of the functions, up to the size of the term."""
        k = np.arange(1, self.n_cosines + 1)
        return np.concatenate([[1.0, 1.0], k**_DECAY])

    @property
    def n_cosines(self) -> int:
        """The number of cosines: fewer than there are values."""
        return int(min(_N_COSINES, max(len(self.ranks) - 2, 0)))

    def functions(self, column: Column) -> Array:
        """Return the functions at the values of a column, (n_rows, n_functions)."""
        missing = column.missing
        size = np.abs(self.quantiles).max() or 1.0  # slopes are numbers in any unit
        rank = np.interp(column.values / size, self.quantiles / size, self.ranks)[:, np.newaxis]
        waves = np.cos(np.pi * np.arange(1, self.n_cosines + 1) * rank)
        known = np.concatenate([2.0 * rank - 1.0, waves], axis=1)
        known[missing] = 0.0
        return np.concatenate([missing[:, np.newaxis].astype(float), known], axis=1)


@dataclass(frozen=True)
class LevelTerm:
    """A number of its own for each category, and for a missing one."""

    name: str
    n_levels: int

    @property
    def precisions(self) -> Array:
        """Prior precisions of the functions, up to the size of the term."""
        return np.ones(self.n_levels + 1)

    def functions(self, column: Column) -> Array:
        """Return the functions at the values of a column, (n_rows, n_functions)."""
        return np.eye(self.n_levels + 1)[column.values]  # -1, a missing one, is the last


Term = SmoothTerm | LevelTerm


def term_of(column: Column, weights: Array) -> Term:
    """Return the functions for values like these."""
    if column.kind == "number":
        return SmoothTerm.over(column, weights)
    return LevelTerm(column.name, len(column.levels))


# --------------------------------------------------------------------------------------- regression


@dataclass(frozen=True)
class Additive:
    """A constant and a sum of terms.

    Parameters
    ----------
    terms : tuple of SmoothTerm or LevelTerm
    coefficients : tuple of ndarray
        Of the functions of each term.
    constant : float
    centres : tuple of ndarray
        Means of the functions of each term over the rows that it was learnt from.
    covariances : tuple of ndarray
        Posterior covariances of the coefficients of each term, given the sizes of all.
    """

    terms: tuple[Term, ...]
    coefficients: tuple[Array, ...]
    constant: float
    centres: tuple[Array, ...]
    covariances: tuple[Array, ...]

    def __call__(self, columns: Covariates) -> Array:
        """Return the sum at each row."""
        total = np.full(len(columns), self.constant)
        for term, own in zip(self.terms, self.coefficients, strict=True):
            if own.any():  # most terms are nothing
                total += term.functions(columns[term.name]) @ own
        return total

    def error(self, column: Column) -> Array:
        """Return the posterior deviation of a term from its mean, at the values of its column."""
        names = [term.name for term in self.terms]
        k = names.index(column.name)
        design = self.terms[k].functions(column) - self.centres[k]
        own = np.einsum("ij,jk,ik->i", design, self.covariances[k], design)
        return np.sqrt(np.maximum(own, 0.0))


class AdditiveLearner(Learner):
    """Learns sums of smooth functions of one covariate each."""

    def learn_shift(self, columns: Covariates, outcomes: Array, weights: Array) -> Regression:
        """Return the mean of outcomes as a function of covariates."""
        return _learnt(columns, weights, lambda fitted: outcomes, float(outcomes @ weights))

    def learn_log_factor(self, columns: Covariates, squares: Array, weights: Array) -> Regression:
        """Return half the log of the mean of squares as a function of covariates.

        Squares have a gamma distribution, whose scores are those of a least-squares problem with
        a response that moves with the fit (McCullagh and Nelder, 1989).
        """
        start = 0.5 * np.log(squares @ weights / weights.sum())

        def response(fitted: Array) -> Array:
            steps = 0.5 * (squares * np.exp(-2.0 * fitted) - 1.0)
            return fitted + np.clip(steps, -0.5, 2.0)

        return _learnt(columns, weights, response, float(start * weights.sum()))


@dataclass(frozen=True)
class Design:
    """The functions of all terms at some rows, centred.

    Parameters
    ----------
    terms : tuple of SmoothTerm or LevelTerm
    weights : ndarray of shape (n_rows,)
    values : ndarray of shape (n_rows, n_functions)
    means : ndarray of shape (n_functions,)
        What was taken off the functions.
    """

    terms: tuple[Term, ...]
    weights: Array
    values: Array
    means: Array

    @classmethod
    def of(cls, columns: Covariates, weights: Array) -> "Design":
        """Return the functions of terms for columns like these, at their rows."""
        terms = tuple(term_of(column, weights) for column in columns.columns)
        values = np.concatenate([term.functions(columns[term.name]) for term in terms], axis=1)
        means = weights @ values / weights.sum()
        return cls(terms, weights, values - means, means)

    @cached_property
    def precisions(self) -> Array:
        """Prior precisions of the functions, up to the sizes of their terms."""
        return np.concatenate([term.precisions for term in self.terms])

    @cached_property
    def owner(self) -> np.ndarray:
        """The number of each function's term."""
        return np.repeat(np.arange(len(self.terms)), [len(t.precisions) for t in self.terms])

    @cached_property
    def gram(self) -> Array:
        """Weighted products of the functions with each other."""
        return (self.values * self.weights[:, np.newaxis]).T @ self.values

    def of_terms(self, values: Array) -> Array:
        """Return sums of values of functions over each term."""
        return np.bincount(self.owner, values, minlength=len(self.terms)).astype(float)


@dataclass(frozen=True)
class Solution:
    """Coefficients given the sizes of terms and the variance of the response.

    Parameters
    ----------
    coefficients : ndarray of shape (n_functions,)
    covariance : ndarray of shape (n_functions, n_functions)
        Of the posterior; 0 for terms that are not used.
    effects : ndarray of shape (n_terms,)
        Effective numbers of parameters: how much of the coefficients the data decide.
    """

    coefficients: Array
    covariance: Array
    effects: Array

    @classmethod
    def of(
        cls, design: Design, response: Array, noise: float, sizes: Array, used: np.ndarray
    ) -> "Solution":
        """Return the posterior of the coefficients of the terms that are used."""
        n = len(design.owner)
        which = np.flatnonzero(used[design.owner])
        coefficients, decided, covariance = np.zeros(n), np.zeros(n), np.zeros((n, n))
        penalty = noise * (design.precisions * sizes[design.owner])[which]
        inner = design.gram[np.ix_(which, which)] + np.diag(penalty)
        factor = cho_factor(inner, lower=True)
        moments = design.values[:, which].T @ (design.weights * response)
        coefficients[which] = cho_solve(factor, moments)
        lower = np.tril(lapack.dpotri(factor[0], lower=1)[0])
        covariance[np.ix_(which, which)] = noise * (lower + np.tril(lower, -1).T)
        decided[which] = 1.0 - penalty * np.diag(lower)
        return cls(coefficients, covariance, design.of_terms(decided))

    def without(self, gone: np.ndarray) -> "Solution":
        """Return the solution with nothing for some functions."""
        kept = np.where(gone, 0.0, 1.0)
        return replace(
            self,
            coefficients=self.coefficients * kept,
            covariance=self.covariance * kept * kept[:, np.newaxis],
        )


def _learnt(
    columns: Covariates, weights: Array, response: Callable[[Array], Array], total: float
) -> Additive:
    """Return the sum of terms with the most evidence.

    Each term has a prior whose size is a parameter: those of a term without signal shrink to 0. The
    sizes and the variance of the response maximise the evidence (MacKay, 1992).
    """
    design, n = Design.of(columns, weights), weights.sum()
    n_terms, n_functions = len(design.terms), len(design.owner)
    sizes, used = np.ones(n_terms), np.ones(n_terms, dtype=bool)  # precisions of the terms
    nothing = np.zeros((n_functions, n_functions))
    found = Solution(np.zeros(n_functions), nothing, np.zeros(n_terms))
    constant = total / n
    for _ in range(_MAX_STEPS):
        terms = design.values @ found.coefficients
        values = response(constant + terms)
        constant = float(weights @ values / n)
        left = float(weights @ (values - constant - terms) ** 2)
        noise = max(left / max(n - 1.0 - found.effects.sum(), 0.1 * n), 1e-12)
        before = found.effects
        found = Solution.of(design, values - constant, noise, sizes, used)
        squares = design.of_terms(design.precisions * found.coefficients**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = np.where(used, np.clip(found.effects / squares, 1e-6, 1e12), sizes)
        used &= found.effects > _LEAST_EFFECT
        found = found.without(~used[design.owner])
        settled = np.abs(found.effects - before).max() < _SETTLED
        if settled or not used.any():
            break
    own = [design.owner == k for k in range(n_terms)]
    return Additive(
        design.terms,
        tuple(found.coefficients[k] for k in own),
        constant - float(design.means @ found.coefficients),
        tuple(design.means[k] for k in own),
        tuple(found.covariance[np.ix_(k, k)] for k in own),
    )
