"""Likelihoods and cells that tests of the engine share."""

import numpy as np
import pytest
from rows import BASIS
from scipy import special

from regcal.gp import (
    Barrier,
    BinomialLikelihood,
    Logit,
    LogSlope,
    Probit,
    SoftSlope,
    TensorDesign,
    TransformationLikelihood,
)


@pytest.fixture
def rng():
    return np.random.default_rng(20240611)


def binomial_likelihood(rng, link, n=30):
    x0, x1 = rng.uniform(-1, 1, n), rng.choice([-1.5, 0.2, 1.0], n)
    trials = rng.uniform(0, 5, n)
    successes = trials * rng.uniform(size=n)
    design = TensorDesign.values(BASIS, x0, x1, extra=np.column_stack([np.ones(n), x0**3]))
    return BinomialLikelihood(design, successes, trials, rng.normal(size=n), link)


def transformation_likelihood(rng, barrier=None, n=25):
    x0, x1, along = rng.uniform(-1, 1, n), rng.uniform(-2, 2, n), rng.uniform(0.1, 1, (2, n))
    constant, flat = np.ones((n, 1)), np.zeros((n, 1))
    values = TensorDesign.values(BASIS, x0, x1, extra=constant)
    slopes = values.slopes(along, extra=flat)
    return TransformationLikelihood(
        values,
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


@pytest.fixture
def wavy(rng):
    """Return cells on a threshold-major layout, with a wave of length-scale about 0.3."""
    x0, x1 = np.tile(np.linspace(-1, 1, 25), 12), np.repeat(np.linspace(-1, 1, 12), 25)
    trials = rng.uniform(5, 30, x0.size)
    probability = special.ndtr(x0 + 0.8 * np.sin(5 * x0) * np.cos(2 * x1))
    successes = rng.binomial(trials.astype(int), probability) / np.floor(trials) * trials

    def likelihood_for(basis):
        design = TensorDesign.values(basis, x0, x1, np.ones((x0.size, 1)))
        return BinomialLikelihood(design, successes, trials, x0)

    return likelihood_for
