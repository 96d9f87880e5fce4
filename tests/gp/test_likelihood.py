"""Derivatives of every likelihood against differences."""

import numpy as np
from numpy.testing import assert_allclose
from rows import central


def test_likelihood_derivatives(rng, likelihood):
    """Gradient, Hessian and its trace gradient agree with differences."""
    beta = 0.02 * rng.normal(size=likelihood.n_coefficients)
    root = rng.normal(size=(len(beta), len(beta)))
    covariance = root @ root.T
    at = likelihood.evaluate(beta)

    assert_allclose(at.value, likelihood.value(beta))
    assert_allclose(at.gradient, central(likelihood.value, beta), rtol=1e-6, atol=1e-6)
    hessian = -central(lambda b: likelihood.evaluate(b).gradient, beta)
    assert_allclose(at.neg_hessian, hessian, rtol=1e-6, atol=1e-6)
    trace = central(lambda b: np.sum(covariance * likelihood.evaluate(b).neg_hessian), beta)
    assert_allclose(likelihood.trace_gradient(beta, covariance), trace, rtol=1e-5, atol=1e-4)


def test_restricted_likelihood_is_part_of_the_full_one(rng, likelihood):
    """Fixing coefficients at zero leaves the rest as it was, for every subset in turn."""
    n = likelihood.n_coefficients
    for kept in (np.array([0, 1, 2, 3, 5]), np.array([0, 1, 4, 7, 9]), np.arange(n - 1)):
        beta = np.zeros(n)
        beta[kept] = 0.02 * rng.normal(size=len(kept))
        full, part = likelihood.evaluate(beta), likelihood.restrict(kept).evaluate(beta[kept])

        assert_allclose(part.value, full.value)
        assert_allclose(part.gradient, full.gradient[kept], atol=1e-10)
        assert_allclose(part.neg_hessian, full.neg_hessian[np.ix_(kept, kept)], atol=1e-10)
