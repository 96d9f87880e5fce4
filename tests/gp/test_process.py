"""Whole fits: the exact process, the adaptive basis, hostile data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import noisy_labels
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as exact_kernels

from regcal.gp import (
    RBF,
    BasisWarning,
    BinomialLikelihood,
    EvidenceSearch,
    FittedProcess,
    HilbertBasis,
    Logit,
    Probit,
    ProcessPrior,
    TensorDesign,
    TransformationLikelihood,
    fit_process,
    laplace_posterior,
)
from regcal.gp.process import GrowingFits

LINKS = [Probit(), Logit()]


def test_classifier_matches_the_exact_process(rng):
    """Probabilities and evidence are those of scikit-learn's classifier on the same kernel."""
    x, y = noisy_labels(rng, 500)
    sigma, ell = 1.7, np.array([0.5, 0.6])
    kernel = exact_kernels.ConstantKernel(sigma**2) * exact_kernels.RBF(ell)
    exact = GaussianProcessClassifier(kernel, optimizer=None).fit(x, y)
    basis = HilbertBasis((18, 18), boundary=2.2)
    likelihood = BinomialLikelihood(TensorDesign.values(basis, *x.T), y, link=Logit())

    posterior = laplace_posterior(likelihood, ProcessPrior(basis), np.log([sigma, *ell]))

    new = rng.uniform(-1, 1, (300, 2))
    design = TensorDesign.values(basis, *new.T)
    probability = Logit().average(posterior.mean(design), posterior.variance(design))
    assert_allclose(probability, exact.predict_proba(new)[:, 1], atol=0.01)
    assert_allclose(posterior.log_evidence, exact.log_marginal_likelihood(), rtol=0.01)


def test_short_lengthscales_enlarge_the_basis(wavy):
    """A basis that begins too small ends where a large one does."""
    small = fit_process(wavy, basis=HilbertBasis((5, 5)), extra_variances=(1.0,))
    large = fit_process(wavy, basis=HilbertBasis((20, 20), 2.0), extra_variances=(1.0,))
    grid, one = np.linspace(-1, 1, 21), np.ones(1)
    gap = small.mean_grid(grid, grid, one) - large.mean_grid(grid, grid, one)

    assert small.basis.sizes[0] > 5
    # Small against the posterior's spread; five functions that may not grow are off by half of it.
    assert np.sqrt(np.mean(gap**2 / large.variance_grid(grid, grid, one))) < 0.25


def test_capped_basis_warns(wavy):
    """A basis that may not grow says so."""
    with pytest.warns(BasisWarning, match="largest_sizes"):
        fit_process(wavy, basis=HilbertBasis((5, 5)), largest_sizes=(5, 5), extra_variances=(1.0,))


def test_grid_moments_are_those_of_scattered_points(wavy):
    """Mean and variance on a grid agree with the pointwise path."""
    process = fit_process(wavy, extra_variances=(1.0,))
    x0, x1, one = np.linspace(-1, 1, 9), np.linspace(-0.9, 0.8, 4), np.ones(1)
    pairs = [g.ravel() for g in np.meshgrid(x0, x1, indexing="ij")]

    mean, variance = process.moments(*pairs, extra=np.ones((36, 1)))

    assert_allclose(process.mean_grid(x0, x1, one).ravel(), mean, atol=1e-10)
    assert_allclose(process.variance_grid(x0, x1, one).ravel(), variance, atol=1e-10)
    assert np.all(variance > 0)
    assert np.all(variance < process.sigma**2 + 1.0)


def test_transformation_recovers_a_warp(rng):
    """Scores that were warped monotonically become standard normal again."""
    n = 1500
    t, z = rng.uniform(-1, 1, n), rng.normal(size=n)
    u = np.sinh(z * (1.0 + 0.3 * t))
    x0 = np.tanh(u / 2)

    def likelihood_for(basis):
        values = TensorDesign.values(basis, x0, t, np.column_stack([np.ones(n), u]))
        along = 0.5 * (1 - x0**2), np.zeros(n)
        slopes = values.slopes(along, np.tile([0.0, 1.0], (n, 1)))
        return TransformationLikelihood(values, slopes, u)

    process = fit_process(likelihood_for, extra_variances=(1.0, 1.0))
    mean, _ = process.moments(x0, t, np.column_stack([np.ones(n), u]))

    inner = np.abs(z) < 2
    assert process.posterior.converged
    assert np.sqrt(np.mean((u + mean - z)[inner] ** 2)) < 0.12


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(
    "case",
    ["all successes", "one observation", "huge offsets", "zero weights", "duplicates", "wrong"],
)
def test_hostile_binomial_data(rng, link, case):
    """Odd data give finite answers and a finite evidence."""
    n = 1 if case == "one observation" else 40
    x0, x1 = rng.uniform(-1, 1, (2, n))
    successes, trials, offset = rng.integers(0, 2, n).astype(float), np.ones(n), np.zeros(n)
    if case == "all successes":
        successes = trials
    elif case == "huge offsets":
        offset = np.where(rng.uniform(size=n) < 0.5, -40.0, 40.0)
    elif case == "zero weights":
        successes = trials = np.zeros(n)
    elif case == "duplicates":
        x0, x1 = np.full(n, 0.3), np.full(n, -0.2)
    elif case == "wrong":
        offset = np.where(successes > 0, -40.0, 40.0)
    process = fit_process(
        lambda basis: BinomialLikelihood(
            TensorDesign.values(basis, x0, x1, np.ones((n, 1))), successes, trials, offset, link
        ),
        extra_variances=(1.0,),
        search=EvidenceSearch(bounds=((-5.0, 4.0), (-1.5, 1.5), (-1.5, 1.5))),
    )

    mean, variance = process.moments(x0, x1, np.ones((n, 1)))

    assert np.isfinite(process.posterior.log_evidence)
    assert np.all(np.isfinite(process.posterior.gradient))
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(variance))
    probability = link.average(mean + offset, variance)
    assert np.all((probability >= 0) & (probability <= 1))


@pytest.mark.parametrize("offset", [-40.0, 0.0, 40.0])
def test_hostile_transformation_data(offset):
    """A single or a repeated score, however far out, gives a finite answer."""
    n = 5
    x0, x1 = np.full(n, 0.3), np.zeros(n)
    process = fit_process(
        lambda basis: TransformationLikelihood(
            TensorDesign.values(basis, x0, x1),
            TensorDesign.values(basis, x0, x1).slopes((np.ones(n), np.zeros(n))),
            np.full(n, offset),
        ),
        search=EvidenceSearch(bounds=((-5.0, 4.0), (-1.5, 1.5), (-1.5, 1.5))),
    )

    assert process.posterior.converged
    assert np.isfinite(process.posterior.log_evidence)
    assert np.all(np.isfinite(process.moments(x0, x1)))


@pytest.mark.parametrize(("frequency", "found"), [(9.0, True), (1.0, False)])
def test_half_the_length_scales_are_tried_on_a_larger_basis(rng, frequency, found):
    """They are taken where labels vary faster than the basis, and nowhere else."""
    x0, x1 = rng.uniform(-1, 1, (2, 4000))
    truth = 1.5 * np.sin(frequency * x0) * np.cos(frequency * x1)
    labels = (rng.normal(size=4000) < truth).astype(float)

    def likelihood(basis):
        return BinomialLikelihood(TensorDesign.values(basis, x0, x1), labels)

    prior = ProcessPrior(HilbertBasis((10, 10)))
    coarse = laplace_posterior(likelihood(prior.basis), prior, np.log([2.0, 0.35, 0.35]))
    fits = GrowingFits(likelihood, RBF(), (), EvidenceSearch(), (32, 32), 2.5)
    finer = fits.finer(FittedProcess(prior, coarse))

    assert (finer is not None) == found
    if finer is not None:
        better = fits.finished(*finer)
        assert min(better.basis.sizes) > 10
        assert better.posterior.log_evidence > coarse.log_evidence + 5.0
        assert fits.finer(better) is None
