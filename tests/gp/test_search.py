"""The search for hyper-parameters: its optimum, its starts, its prior."""

import warnings

import numpy as np
from numpy.testing import assert_allclose
from rows import noisy_labels
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as exact_kernels

from regcal.gp import (
    RBF,
    BinomialLikelihood,
    EvidenceSearch,
    HilbertBasis,
    HyperPrior,
    Logit,
    ProcessPrior,
    TensorDesign,
    laplace_posterior,
)


def test_search_reaches_the_optimum_of_the_exact_process(rng):
    """The hyper-parameters we find are as good as scikit-learn's, by our own evidence."""
    x, y = noisy_labels(rng, 120)
    kernel = exact_kernels.ConstantKernel(1.0, (1e-2, 1e3)) * exact_kernels.RBF(
        [0.5, 0.5], (0.1, 2.0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        exact = GaussianProcessClassifier(kernel, random_state=0).fit(x, y)
    log_variance, *log_lengthscales = exact.kernel_.theta
    basis = HilbertBasis((16, 16), boundary=2.5)
    likelihood = BinomialLikelihood(TensorDesign.values(basis, *x.T), y, link=Logit())
    prior = ProcessPrior(basis)
    bounds = ((-2.3, 3.5), (np.log(0.1), np.log(2.0)), (np.log(0.1), np.log(2.0)))

    ours = EvidenceSearch(bounds=bounds).run(likelihood, prior)

    theirs = laplace_posterior(likelihood, prior, [0.5 * log_variance, *log_lengthscales])
    assert ours.converged
    assert ours.n_evaluations <= 30
    assert ours.log_evidence >= theirs.log_evidence - 0.02


def test_search_ends_at_a_stationary_point_from_anywhere(wavy):
    """Far starts lead to one optimum, where the gradient is small."""
    basis = HilbertBasis((14, 14))
    prior, likelihood = ProcessPrior(basis, RBF(), (1.0,)), wavy(basis)

    ends = [
        EvidenceSearch(starts=(start,)).run(likelihood, prior)
        for start in [(-1.0, -1.5, -1.5), (1.5, -2.0, -2.0), (0.0, 0.0, 0.0)]
    ]

    assert np.ptp([end.log_evidence for end in ends]) < 0.02
    assert all(np.abs(end.gradient).max() < 0.3 for end in ends)


def test_search_keeps_the_best_of_several_starts(wavy):
    """Starts are all used and all counted."""
    basis = HilbertBasis((8, 8))
    prior, likelihood = ProcessPrior(basis, RBF(), (1.0,)), wavy(basis)
    starts = ((-3.0, 0.5, 0.5), (0.5, -1.5, -1.5))

    ends = [EvidenceSearch(starts=(start,)).run(likelihood, prior) for start in starts]
    both = EvidenceSearch(starts=starts).run(likelihood, prior)

    assert both.log_evidence == max(end.log_evidence for end in ends)
    assert both.n_evaluations == sum(end.n_evaluations for end in ends)


def test_a_tight_prior_pins_the_hyperparameters(wavy):
    """The prior on theta enters objective and gradient."""
    basis = HilbertBasis((8, 8))
    pin = HyperPrior(mean=(-0.5, 0.2, -0.3), sd=(1e-3, 1e-3, 1e-3))

    posterior = EvidenceSearch(prior=pin).run(wavy(basis), ProcessPrior(basis, RBF(), (1.0,)))

    assert_allclose(posterior.theta, pin.mean, atol=5e-3)
