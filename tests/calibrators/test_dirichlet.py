"""Ordinal Dirichlet calibration against differences, a general solver, and the truth."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import central
from scipy.optimize import minimize
from scipy.special import log_softmax

import regcal
from regcal.calibrators.dirichlet import BandedSoftmax, BandPrior, SegmentRows, fit_band
from regcal.gp import HyperPrior, laplace_posterior


@pytest.fixture
def rows(rng):
    """Return log masses of five segments, shares of outcomes, and weights."""
    log_p = np.log(rng.dirichlet(np.ones(5), 40))
    shares = np.vstack([np.eye(5)[rng.integers(0, 5, 30)], rng.dirichlet(np.ones(5), 10)])
    return SegmentRows(log_p, shares, rng.uniform(0.5, 2.0, 40))


def test_derivatives_against_differences(rows, rng):
    """Gradient, Hessian and the gradient of its trace are those of the likelihood."""
    likelihood, at = BandedSoftmax(rows), 0.3 * rng.normal(size=20)
    root = rng.normal(size=(20, 20))
    found = likelihood.evaluate(at)

    def trace(coefficients):
        return np.trace(root @ root.T @ likelihood.evaluate(coefficients).neg_hessian)

    assert_allclose(found.gradient, central(likelihood.value, at), atol=1e-6)
    numeric = -central(lambda one: likelihood.evaluate(one).gradient, at)
    assert_allclose(found.neg_hessian, numeric, atol=1e-6)
    assert_allclose(likelihood.trace_gradient(at, root @ root.T), central(trace, at), atol=1e-4)


def banded_matrix(coefficients):
    """Return the matrix of a band, written out, and the constants."""
    below, own, above, constants = coefficients.T
    return np.diag(below[1:], -1) + np.diag(own) + np.diag(above[:-1], 1), constants


def test_coefficients_against_a_general_solver(rows):
    """The mode minimises the ridge regression with a full matrix whose band alone is free."""
    deviations = np.array([0.5, 0.3, 0.8])
    posterior = laplace_posterior(BandedSoftmax(rows), BandPrior(5), np.log(deviations))
    scale = deviations[[1, 0, 1, 2]]

    def loss(flat):
        changes = flat.reshape(5, 4)
        matrix, constants = banded_matrix(changes + np.eye(4)[1])
        fit = (rows.shares * log_softmax(rows.log_p @ matrix.T + constants, axis=1)).sum(axis=1)
        return 0.5 * ((changes / scale) ** 2).sum() - rows.weights @ fit

    best = minimize(loss, np.zeros(20), method="BFGS", options={"gtol": 1e-8})
    assert_allclose(posterior.coefficients, best.x, atol=1e-5)


def test_strengths_are_the_most_probable(rows):
    """Ridges ten times as strong and as weak are less probable."""
    likelihood, prior = BandedSoftmax(rows), BandPrior(5)
    found = fit_band(likelihood, prior, None)

    def value(theta):
        weak = HyperPrior((-2.0,) * 3, (1.0,) * 3).log_density(theta)[0]
        return laplace_posterior(likelihood, prior, theta).log_evidence + weak

    shifts = np.log(10.0) * np.vstack([np.eye(3), -np.eye(3)])
    others = [value(found.theta + shift) for shift in shifts]
    assert max(others) < value(found.theta)


def test_a_shift_and_a_spread_are_mended(rng):
    """It learns what e-beta cannot: that mass belongs into a neighbouring segment."""
    loc = rng.normal(size=3000)
    dist, y = regcal.Normal(loc, 1.5), loc + 0.7 + 0.8 * rng.normal(size=3000)
    found, other = (
        regcal.log_score(y[1500:], cal.fit(dist[:1500], y[:1500]).transform(dist[1500:])).mean()
        for cal in (regcal.DirichletCalibrator(), regcal.get_calibrator("e-beta"))
    )

    best = regcal.log_score(y[1500:], regcal.Normal(loc[1500:] + 0.7, 0.8)).mean()
    assert best - found < 0.7 * (best - other)


def test_calibrated_predictions_are_left_nearly_alone(rng):
    """Without anything to mend, evidence keeps it next to the identity."""
    loc = 2 * rng.normal(size=400)
    dist, y = regcal.Normal(loc, 1.0), loc + rng.normal(size=400)
    cal = regcal.DirichletCalibrator().fit(dist, y)
    grid = np.linspace(-4.0, 4.0, 17)[np.newaxis]

    change = np.abs(cal.transform(dist).cdf(grid) - dist.cdf(grid))
    assert change.mean() < 0.02
    assert change.max() < 0.1


def test_empty_segments_say_no_more_than_rare_ones(rng):
    """Rows much narrower than those it was learnt from, of a model that is right, stay so."""
    x = 2.0 * rng.normal(size=300)
    cal = regcal.DirichletCalibrator().fit(regcal.Normal(x, np.ones(300)), x + rng.normal(size=300))
    at = np.linspace(-4.0, 4.0, 401)

    for spread in (1.0, 0.3, 0.1, 0.01):
        narrow = cal.transform(regcal.Normal(at, np.full(401, spread)))
        assert_allclose(narrow.cdf(at), 0.5, atol=0.12)
