"""Basis, likelihoods and Laplace inference of `regcal.gp` against independent answers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, special, stats
from sklearn.gaussian_process import kernels as exact_kernels

from regcal.gp import (
    RBF,
    Barrier,
    BinomialLikelihood,
    DenseDesign,
    HilbertBasis,
    Logit,
    LogSlope,
    Matern32,
    Matern52,
    Probit,
    ProcessPrior,
    SoftSlope,
    TensorDesign,
    TransformationLikelihood,
    find_mode,
    laplace_posterior,
)

LINKS = [Probit(), Logit()]
BASIS = HilbertBasis(sizes=(5, 4), boundary=(1.3, 1.6), halfwidth=(1.0, 2.0))


@pytest.fixture
def rng():
    return np.random.default_rng(20240611)


def tensor_rows(basis, x0, x1, orders=(0, 0)):
    """Write out the features that `TensorDesign` avoids."""
    functions = (basis.axis, basis.axis_derivative)
    first, second = functions[orders[0]](0, x0), functions[orders[1]](1, x1)
    return np.einsum("na,nb->nab", first, second).reshape(len(x0), -1)


def central(function, x, step=1e-5):
    """Differentiate a function of a vector along every coordinate; the last axis is that of x."""
    shifts = step * np.eye(len(x))
    return np.stack([(function(x + s) - function(x - s)) / (2 * step) for s in shifts], axis=-1)


def binomial_likelihood(rng, link, n=30):
    x0, x1 = rng.uniform(-1, 1, n), rng.choice([-1.5, 0.2, 1.0], n)
    trials = rng.uniform(0, 5, n)
    successes = trials * rng.uniform(size=n)
    design = TensorDesign.values(BASIS, x0, x1, extra=np.column_stack([np.ones(n), x0**3]))
    return BinomialLikelihood(design, successes, trials, rng.normal(size=n), link)


def transformation_likelihood(rng, barrier=None, n=25):
    x0, x1, along = rng.uniform(-1, 1, n), rng.uniform(-2, 2, n), rng.uniform(0.1, 1, (2, n))
    constant, flat = np.ones((n, 1)), np.zeros((n, 1))
    slopes = TensorDesign.slopes(BASIS, x0, x1, along, extra=flat)
    return TransformationLikelihood(
        TensorDesign.values(BASIS, x0, x1, extra=constant),
        slopes,
        rng.normal(size=n),
        rng.uniform(0, 2, n),
        None if barrier is None else Barrier(slopes, barrier(rng.uniform(0, 1, n))),
    )


LIKELIHOODS = {
    "probit": lambda rng: binomial_likelihood(rng, Probit()),
    "logit": lambda rng: binomial_likelihood(rng, Logit()),
    "transformation": transformation_likelihood,
    "log barrier": lambda rng: transformation_likelihood(rng, LogSlope),
    "soft barrier": lambda rng: transformation_likelihood(rng, lambda v: SoftSlope(v, 0.3)),
}


@pytest.fixture(params=LIKELIHOODS)
def likelihood(request, rng):
    return LIKELIHOODS[request.param](rng)


# Kernels and basis


@pytest.mark.parametrize(
    ("kernel", "exact", "sizes"),
    [
        (RBF(), exact_kernels.RBF([0.3, 0.5]), (30, 30)),
        (Matern52(), exact_kernels.Matern([0.3, 0.5], nu=2.5), (70, 50)),
        (Matern32(), exact_kernels.Matern([0.3, 0.5], nu=1.5), (110, 80)),
    ],
)
def test_basis_covariance_is_the_kernel(rng, kernel, exact, sizes):
    """With enough functions, the prior covariance inside the box is the kernel."""
    x = rng.uniform(-1, 1, (40, 2))
    basis = HilbertBasis(sizes, boundary=2.5)
    log_variances, _ = ProcessPrior(basis, kernel).log_variances(np.log([1.0, 0.3, 0.5]))

    rows = tensor_rows(basis, x[:, 0], x[:, 1]) * np.exp(0.5 * log_variances)

    assert_allclose(rows @ rows.T, exact(x), atol=1e-3)


@pytest.mark.parametrize("kernel", [RBF(), Matern32(), Matern52()])
def test_spectral_density_gradient(kernel):
    """The gradient in the log length-scales agrees with differences."""
    log_lengthscales = np.array([-0.4, 0.3])

    _, gradient = kernel.log_spectral_density(BASIS.squared_frequencies, log_lengthscales)
    numeric = central(
        lambda t: kernel.log_spectral_density(BASIS.squared_frequencies, t)[0], log_lengthscales
    )

    assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-8)


def test_axis_derivative():
    """Derivatives of the functions agree with differences."""
    x = np.linspace(-1, 1, 7)

    numeric = (BASIS.axis(1, x + 1e-6) - BASIS.axis(1, x - 1e-6)) / 2e-6

    assert_allclose(BASIS.axis_derivative(1, x), numeric, atol=1e-8)


def test_axis_functions_are_orthonormal():
    """The functions are orthonormal on the box, which fixes their scale."""
    x = np.linspace(-3.2, 3.2, 20001)
    values = BASIS.axis(1, x)

    assert_allclose(values.T @ values * (x[1] - x[0]), np.eye(4), atol=1e-6)


# Designs


@pytest.fixture(params=["values", "slopes", "scattered values", "scattered slopes"])
def designs(request, rng):
    """Return a tensor design and the same features written out."""
    n = 17
    x0, x1, extra = rng.uniform(-1, 1, n), rng.choice([-1.0, 0.1, 0.7], n), rng.normal(size=(n, 2))
    if "scattered" in request.param:
        x1 = rng.uniform(-1, 1, n)
    if "values" in request.param:
        rows = tensor_rows(BASIS, x0, x1)
        tensor = TensorDesign.values(BASIS, x0, x1, extra)
    else:
        along = rng.normal(size=(2, n, 1))
        rows = along[0] * tensor_rows(BASIS, x0, x1, (1, 0))
        rows += along[1] * tensor_rows(BASIS, x0, x1, (0, 1))
        tensor = TensorDesign.slopes(BASIS, x0, x1, along[..., 0], extra)
    return tensor, DenseDesign(np.column_stack([extra, rows]))


@pytest.mark.parametrize(
    "active", [np.arange(22), np.arange(14), np.array([0, 1, 2, 3, 4, 6, 7, 10, 11])]
)
def test_tensor_design_is_the_dense_one(rng, designs, active):
    """All products agree with the written-out features, in every subset of columns."""
    tensor, dense = (design.restrict(active) for design in designs)
    coefficients, weights = rng.normal(size=len(active)), rng.uniform(size=17)
    root = rng.normal(size=(len(active), len(active)))

    assert tensor.n_coefficients == dense.n_coefficients == len(active)
    assert_allclose(tensor.predict(coefficients), dense.predict(coefficients))
    assert_allclose(tensor.adjoint(weights), dense.adjoint(weights), atol=1e-12)
    assert_allclose(tensor.gram(weights), dense.gram(weights), atol=1e-12)
    assert_allclose(tensor.quadratic(root @ root.T), dense.quadratic(root @ root.T))


def test_restricting_twice(rng, designs):
    """A subset of a subset is the subset."""
    tensor, dense = designs
    first, second = np.array([0, 1, 2, 4, 7, 9, 15, 21]), np.array([0, 1, 3, 5])
    coefficients = rng.normal(size=4)

    assert_allclose(
        tensor.restrict(first).restrict(second).predict(coefficients),
        dense.restrict(first[second]).predict(coefficients),
    )


def test_coordinates_of_unequal_length_are_refused():
    """The message tells how many there were."""
    with pytest.raises(ValueError, match="3 first and 2 second"):
        TensorDesign.values(BASIS, np.zeros(3), np.zeros(2))


# Links and likelihoods


@pytest.mark.parametrize("link", LINKS)
def test_link_derivatives(link):
    """First to third derivative agree with differences, across the switch to the far tail."""
    eta = np.array([-60.0, -50.01, -49.99, -8.0, -1.0, 0.0, 0.7, 5.0])
    at, h = link.derivatives(eta), 1e-4
    above, below = link.derivatives(eta + h), link.derivatives(eta - h)

    assert_allclose(at.first, (above.value - below.value) / (2 * h), rtol=1e-6)
    assert_allclose(at.second, -(above.first - below.first) / (2 * h), rtol=1e-6, atol=1e-10)
    assert_allclose(at.third, -(above.second - below.second) / (2 * h), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("link", LINKS)
def test_links_are_finite_far_out(link):
    """Nothing overflows at a thousand standard deviations, and curvatures are not negative."""
    at = link.derivatives(np.array([-1e3, -60.0, -40.0, 40.0, 1e3]))

    assert np.all(np.isfinite(at))
    assert np.all(at.second >= 0)


@pytest.mark.parametrize(
    ("link", "cdf"), [(Probit(), special.ndtr), (Logit(), special.expit)], ids=["probit", "logit"]
)
@pytest.mark.parametrize(("mean", "variance"), [(0.3, 0.0), (1.2, 0.5), (-2.0, 30.0)])
def test_averaged_probability(link, cdf, mean, variance):
    """The averaged probability is the integral over the predictor."""
    sd = np.sqrt(variance)
    exact, _ = integrate.quad(
        lambda z: cdf(mean + sd * z) * stats.norm.pdf(z), -12, 12, points=[0, 0.4], epsabs=1e-12
    )

    assert_allclose(link.average(mean, variance), exact, atol=1e-10)


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


def test_decreasing_transformation_is_outside_the_domain():
    """A non-positive slope has no likelihood, unless it has no weight."""
    rows = DenseDesign(np.ones((1, 1)))

    assert TransformationLikelihood(rows, rows, [0.0]).value(np.array([-1.5])) == -np.inf
    assert TransformationLikelihood(rows, rows, [0.0], 0.0).value(np.array([-1.5])) == 0.0


def test_more_successes_than_trials_are_refused():
    """The message gives the rule."""
    with pytest.raises(ValueError, match="successes <= trials"):
        BinomialLikelihood(DenseDesign(np.ones((1, 1))), [2.0], 1.0)


# Inference


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
    x0, x1 = design.points, design.levels[design.level_of]
    rows = np.column_stack([design.extra, tensor_rows(BASIS, x0, x1)])

    variance = posterior.variance(design)
    samples = posterior.sample(4000, rng) @ rows.T

    assert_allclose(variance, posterior.row_variance(rows), rtol=1e-8)
    assert_allclose(samples.var(axis=0), variance, rtol=0.15)
    assert_allclose(samples.mean(axis=0), posterior.mean(design), atol=0.1)
