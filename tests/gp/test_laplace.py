"""Laplace inference against differences, exact answers and quadrature."""

import numpy as np
import pytest
from expectation_propagation import propagated
from numpy.testing import assert_allclose
from rows import BASIS, central, tensor_rows
from scipy import special, stats

from regcal.gp import (
    RBF,
    BinomialLikelihood,
    DenseDesign,
    HilbertBasis,
    Logit,
    Matern52,
    Probit,
    ProcessPrior,
    TensorDesign,
    TransformationLikelihood,
    find_mode,
    laplace_posterior,
)


@pytest.mark.parametrize("kernel", [RBF(), Matern52()])
def test_evidence_gradient(likelihood, kernel):
    """The analytic gradient is that of the converged evidence."""
    n_extra = likelihood.n_coefficients - BASIS.n_functions
    prior, theta = ProcessPrior(BASIS, kernel, (2.0,) * n_extra), np.array([-0.3, -0.6, -0.4])

    numeric = central(
        lambda t: laplace_posterior(likelihood, prior, t, tolerance=1e-22).log_evidence,
        theta,
        step=1e-4,
    )

    assert_allclose(
        laplace_posterior(likelihood, prior, theta).gradient, numeric, rtol=1e-5, atol=1e-7
    )


def test_warm_start_changes_nothing(likelihood):
    """The posterior does not depend on where Newton's method began."""
    n_extra = likelihood.n_coefficients - BASIS.n_functions
    prior = ProcessPrior(BASIS, RBF(), (2.0,) * n_extra)
    far = laplace_posterior(likelihood, prior, [0.5, 0.8, 0.8])
    cold = laplace_posterior(likelihood, prior, [-0.3, -0.6, -0.4])
    warm = laplace_posterior(likelihood, prior, [-0.3, -0.6, -0.4], far)

    assert len(far.active) < len(cold.active)
    assert_allclose(warm.coefficients, cold.coefficients, atol=1e-6)
    assert_allclose(warm.log_evidence, cold.log_evidence, rtol=1e-9)


def test_warm_start_saves_work(likelihood):
    """A posterior nearby shortens the way to the mode."""
    n_extra = likelihood.n_coefficients - BASIS.n_functions
    prior = ProcessPrior(BASIS, RBF(), (2.0,) * n_extra)
    near = laplace_posterior(likelihood, prior, [-0.32, -0.6, -0.42])
    cold = laplace_posterior(likelihood, prior, [-0.3, -0.6, -0.4])
    warm = laplace_posterior(likelihood, prior, [-0.3, -0.6, -0.4], near)

    assert warm.n_newton < cold.n_newton


def test_negligible_functions_may_be_dropped(likelihood, monkeypatch):
    """Leaving out functions of tiny prior variance changes neither evidence nor gradient."""
    n_extra = likelihood.n_coefficients - BASIS.n_functions
    prior, theta = ProcessPrior(BASIS, RBF(), (2.0,) * n_extra), [0.0, 0.9, 0.9]
    short = laplace_posterior(likelihood, prior, theta)
    monkeypatch.setattr("regcal.gp.laplace._NEGLIGIBLE", 1e-300)
    full = laplace_posterior(likelihood, prior, theta)

    assert len(short.active) < len(full.active)
    assert_allclose(short.log_evidence, full.log_evidence, rtol=1e-9)
    assert_allclose(short.gradient, full.gradient, rtol=1e-6, atol=1e-9)


def test_linear_gaussian_evidence_is_exact(rng):
    """Without slopes the model is linear and normal, and Laplace is exact."""
    n, scale = 12, np.array([0.7, 1.3, 0.2])
    features, u = rng.normal(size=(n, 3)), rng.normal(size=n)
    flat = DenseDesign(np.zeros((n, 3)))
    mode = find_mode(TransformationLikelihood(DenseDesign(features), flat, u), scale)

    log_evidence = (
        mode.likelihood.value
        - 0.5 * mode.whitened @ mode.whitened
        - np.log(np.diag(mode.cholesky)).sum()
        - 0.5 * n * np.log(2 * np.pi)
    )

    covariance = np.eye(n) + (features * scale**2) @ features.T
    assert_allclose(log_evidence, stats.multivariate_normal(cov=covariance).logpdf(u))


def test_probit_evidence_and_average_match_quadrature():
    """With one coefficient and much data, evidence and prediction are one-dimensional integrals."""
    likelihood = BinomialLikelihood(DenseDesign(np.ones((1, 1))), [37.0], [60.0], 0.4)
    scale, grid = np.array([0.8]), np.linspace(-3, 3, 4001)
    mode = find_mode(likelihood, scale)
    laplace_evidence = (
        mode.likelihood.value - 0.5 * mode.whitened**2 - np.log(mode.cholesky[0, 0])
    ).item()

    density = np.exp([likelihood.value(np.array([b])) for b in grid]) * stats.norm.pdf(grid, 0, 0.8)
    exact = np.trapezoid(density, grid)
    probability = np.trapezoid(density * special.ndtr(0.4 + grid), grid) / exact

    sd = (scale / mode.cholesky[0, 0]).item()
    averaged = Probit().average(0.4 + scale * mode.whitened, sd**2)
    assert_allclose(laplace_evidence, np.log(exact), rtol=1e-4)
    assert_allclose(averaged, probability, atol=1e-3)


def test_weights_are_repetitions(rng):
    """Two trials in a cell are the cell twice."""
    x0, x1 = rng.uniform(-1, 1, (2, 20))
    y, counts = rng.integers(0, 2, 20).astype(float), rng.integers(1, 4, 20)
    prior, theta = ProcessPrior(BASIS), [0.0, -0.5, -0.5]
    once = BinomialLikelihood(TensorDesign.values(BASIS, x0, x1), y * counts, counts)
    index = np.repeat(np.arange(20), counts)
    repeated = BinomialLikelihood(TensorDesign.values(BASIS, x0[index], x1[index]), y[index])

    one, two = laplace_posterior(once, prior, theta), laplace_posterior(repeated, prior, theta)

    assert_allclose(one.coefficients, two.coefficients, atol=1e-8)
    assert_allclose(one.log_evidence, two.log_evidence)


def test_posterior_variances_agree(rng, likelihood):
    """Rows, designs, grids and samples tell the same variance."""
    n_extra = likelihood.n_coefficients - BASIS.n_functions
    posterior = laplace_posterior(
        likelihood, ProcessPrior(BASIS, RBF(), (2.0,) * n_extra), [0.0, 0.5, 0.5]
    )
    design = likelihood.terms[0].design
    tables = design.tables
    x0, x1 = tables.points, tables.levels[tables.level_of]
    rows = np.column_stack([design.extra, tensor_rows(BASIS, x0, x1)])

    variance = posterior.variance(design)
    samples = posterior.sample(4000, rng) @ rows.T

    assert_allclose(variance, posterior.row_variance(rows), rtol=1e-8)
    assert_allclose(samples.var(axis=0), variance, rtol=0.15)
    assert_allclose(samples.mean(axis=0), posterior.mean(design), atol=0.1)


def few_cells(rng, link):
    """Return the likelihood of a dozen cells with two coefficients, and its prior."""
    basis = HilbertBasis(sizes=(2, 1))
    design = TensorDesign.values(basis, *rng.uniform(-1, 1, (2, 12)))
    trials = rng.uniform(0.2, 3.0, 12)
    successes = trials * rng.integers(0, 2, 12)
    return BinomialLikelihood(design, successes, trials, rng.normal(size=12), link), basis


@pytest.mark.parametrize("link", [Probit(), Logit()])
def test_expectation_propagation_against_quadrature(rng, link):
    """Evidence and moments are integrals over both coefficients, and those of Laplace are near."""
    likelihood, basis = few_cells(rng, link)
    laplace = laplace_posterior(likelihood, ProcessPrior(basis), [1.0, -0.3, 0.0])
    found = propagated(likelihood, laplace)

    grid, step = np.linspace(-6.0, 6.0, 73, retstep=True)
    places = laplace.scale * np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    logs = [likelihood.value(place) for place in places]
    density = np.exp(logs + stats.norm.logpdf(places / laplace.scale).sum(axis=1)) * step**2
    mean = density @ places / density.sum()
    covariance = np.cov(places.T, aweights=density, ddof=0)

    assert_allclose(found.log_evidence, np.log(density.sum()), atol=0.005)
    assert_allclose(found.coefficients, mean, atol=0.01)
    assert_allclose(found.covariance(), covariance, atol=0.02)
    assert_allclose(laplace.log_evidence, found.log_evidence, atol=0.05)
    assert_allclose(laplace.coefficients, mean, atol=0.2)
    error, other = (np.abs(p.coefficients - mean).max() for p in (found, laplace))
    assert error < 0.2 * other


def test_laplace_agrees_with_expectation_propagation(rng):
    """With some hundred labels, averaged probabilities of both are the same for all purposes."""
    x0, x1 = rng.uniform(-1, 1, (2, 300))
    labels = (rng.normal(size=300) < np.sin(3 * x0) + x1).astype(float)
    design = TensorDesign.values(BASIS, x0, x1)
    likelihood = BinomialLikelihood(design, labels)
    laplace = laplace_posterior(likelihood, ProcessPrior(BASIS), [0.3, -0.5, -0.3])
    other = propagated(likelihood, laplace)

    one, two = (Probit().average(p.mean(design), p.variance(design)) for p in (laplace, other))
    assert_allclose(one, two, atol=0.01)
    assert_allclose(laplace.log_evidence, other.log_evidence, atol=0.3)
