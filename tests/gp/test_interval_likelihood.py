"""Interval observations against quadrature, differences and one-sided closed forms."""

import numpy as np
import pytest
from scipy import integrate, special
from scipy.optimize import approx_fprime

from regcal.gp import (
    BinomialLikelihood,
    DenseDesign,
    HilbertBasis,
    IntervalTerm,
    Likelihood,
    Probit,
    TensorDesign,
    interval_derivatives,
    log_interval,
)

ENDS = [(-1.0, 0.5), (2.0, 2.001), (-30.0, -29.0), (8.0, 40.0), (-0.3, 6.0), (-5.0, 5.0)]


@pytest.mark.parametrize("ends", ENDS)
def test_log_interval_is_the_integral_of_the_density(ends):
    low, high = ends
    peak = min(max(0.0, low), high)
    inside, _ = integrate.quad(
        lambda t: np.exp(0.5 * (peak - t) * (peak + t)), low, high, points=[peak], epsabs=0.0
    )
    expected = np.log(inside) - 0.5 * peak**2 - 0.5 * np.log(2 * np.pi)
    assert log_interval(np.array([low]), np.array([high]))[0] == pytest.approx(expected, rel=1e-9)


def test_one_sided_intervals_are_the_probit():
    a = np.array([-40.0, -1.0, 0.3, 12.0])
    infinite = np.full(4, np.inf)
    at_most, at_least = interval_derivatives(-infinite, a), interval_derivatives(a, infinite)
    exact = Probit().derivatives(a)
    np.testing.assert_allclose(at_most.value, special.log_ndtr(a), rtol=1e-12)
    np.testing.assert_allclose(at_most.first[1], exact.first, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(-at_most.second[2], exact.second, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(at_least.first[0], -Probit().derivatives(-a).first, rtol=1e-9)
    assert not any(np.any(part) for part in (*at_most.second[:2], *at_least.second[1:]))


def _term(n=12, k=3):
    rng = np.random.default_rng(0)
    designs = [DenseDesign(0.3 * rng.normal(size=(n, k))) for _ in range(2)]
    low = rng.normal(size=n)
    return IntervalTerm(*designs, (low, low + rng.uniform(0.5, 3.0, n)), rng.uniform(0.5, 2.0, n))


def test_gradient_hessian_and_trace_agree_with_differences():
    term, b = _term(), np.array([0.2, -0.1, 0.3])
    at = term.evaluate(b)
    assert at.value == pytest.approx(term.value(b))
    np.testing.assert_allclose(at.gradient, approx_fprime(b, term.value, 1e-6), rtol=1e-4)
    columns = [
        approx_fprime(b, lambda v, i=i: term.evaluate(v).gradient[i], 1e-6) for i in range(3)
    ]
    np.testing.assert_allclose(-at.neg_hessian, columns, rtol=1e-4, atol=1e-5)
    c = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 0.5]])
    traced = approx_fprime(b, lambda v: np.trace(c @ term.evaluate(v).neg_hessian), 1e-6)
    np.testing.assert_allclose(term.trace_gradient(b, c), traced, rtol=1e-3, atol=1e-4)


def test_an_interval_that_is_turned_round_is_impossible():
    one = DenseDesign(np.ones((1, 1)))
    none = DenseDesign(np.zeros((1, 1)))
    term = IntervalTerm(one, none, (np.zeros(1), np.ones(1)), np.ones(1))
    assert term.value(np.array([2.0])) == -np.inf


def test_restricted_to_some_columns_the_others_are_zero():
    term = _term()
    kept, active = np.array([0.2, 0.3]), np.array([0, 2])
    whole = np.array([0.2, 0.0, 0.3])
    part, full = term.restrict(active).evaluate(kept), term.evaluate(whole)
    assert part.value == pytest.approx(full.value)
    np.testing.assert_allclose(part.neg_hessian, full.neg_hessian[np.ix_(active, active)])


def test_terms_of_a_likelihood_add_up():
    term, b = _term(), np.array([0.1, 0.0, -0.2])
    probit = BinomialLikelihood(term.upper, np.ones(12))
    both = Likelihood([term, *probit.terms]).evaluate(b)
    assert both.value == pytest.approx(term.value(b) + probit.value(b))
    parts = term.evaluate(b).neg_hessian + probit.evaluate(b).neg_hessian
    np.testing.assert_allclose(both.neg_hessian, parts)


def test_a_tensor_design_written_out_gives_the_same_products():
    rng = np.random.default_rng(1)
    x, s = rng.uniform(-1, 1, size=(2, 20))
    basis, extra = HilbertBasis(sizes=(4, 3)), rng.normal(size=(20, 2))
    designs = [
        TensorDesign.values(basis, x, s, extra),
        TensorDesign.values(basis, x, s).slopes((np.ones(20), s), extra),
    ]
    for design in [*designs, designs[1].restrict(np.array([0, 1, 3, 5, 9]))]:
        b = rng.normal(size=design.n_coefficients)
        dense = design.dense()
        np.testing.assert_allclose(dense.predict(b), design.predict(b), atol=1e-12)
        np.testing.assert_allclose(dense.gram(np.ones(20)), design.gram(np.ones(20)), atol=1e-10)
