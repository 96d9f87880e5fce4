"""Sums of terms know how sure they are."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from regcal.corrections import AdditiveLearner
from regcal.covariates import Covariates


def test_error_of_a_category_is_that_of_a_difference_of_means(rng):
    """With clear effects the prior has no say: variance s² (1 / n of its rows - 1 / n of all)."""
    kind = np.repeat(["a", "b", "c"], [400, 200, 50])
    z = rng.normal(np.select([kind == "a", kind == "b"], [3.0, -3.0], 0.0))
    columns = Covariates.of({"kind": kind})
    fitted = AdditiveLearner().learn_shift(columns, z, np.ones(len(z)))
    levels = Covariates.of({"kind": ["a", "b", "c"]})["kind"]
    counts = np.array([400, 200, 50])

    assert_allclose(fitted.error(levels), np.sqrt(1.0 / counts - 1.0 / 650), rtol=0.1)


def test_bands_hold_a_smooth_truth(rng):
    """95 % bands hold about 95 % of the true function, for location and for spread."""
    inside = []
    grid = Covariates.of({"x": np.linspace(0.0, 10.0, 21)})["x"]
    for _ in range(20):
        x = rng.uniform(0.0, 10.0, 300)
        columns, ones = Covariates.of({"x": x}), np.ones(300)
        truth = 0.5 * np.sin(grid.values / 2.0) - 0.5 * np.sin(x / 2.0).mean()
        noise = rng.normal(size=300)
        found = (
            AdditiveLearner().learn_shift(columns, 0.5 * np.sin(x / 2.0) + noise, ones),
            AdditiveLearner().learn_log_factor(columns, np.exp(np.sin(x / 2.0)) * noise**2, ones),
        )
        for one, of_mean in zip(found, (1.0, np.sqrt(0.5)), strict=True):
            term = (one.terms[0].functions(grid) - one.centres[0]) @ one.coefficients[0]
            error = np.hypot(one.error(grid), of_mean / np.sqrt(300))
            inside.append(np.abs(term - truth) < 1.96 * error)

    assert 0.88 < np.mean(inside) < 0.995


def test_a_term_without_signal_does_nothing_for_certain(rng):
    """What the evidence takes for nothing has no band."""
    columns = Covariates.of({"x": rng.uniform(size=200), "kind": rng.integers(0, 3, 200)})
    fitted = AdditiveLearner().learn_shift(columns, np.sin(np.arange(200.0)), np.ones(200))
    gone = [k for k, own in enumerate(fitted.coefficients) if not own.any()]

    assert gone
    for k in gone:
        assert not fitted.error(columns[fitted.terms[k].name]).any()


def test_sizes_have_the_most_evidence(rng):
    """Effects of categories are those of the dense model whose two variances are searched for."""
    kind = rng.integers(0, 12, 240).astype(str)
    effects = 0.6 * rng.normal(size=12)
    z = effects[kind.astype(int)] + rng.normal(size=240)
    columns = Covariates.of({"kind": kind})
    fitted = AdditiveLearner().learn_shift(columns, z, np.ones(240))
    design = (kind[:, np.newaxis] == np.unique(kind)).astype(float)
    design -= design.mean(axis=0)
    centred = z - z.mean()

    def covariance(logs):
        size, noise = np.exp(logs)
        return size * design @ design.T + noise * np.eye(240)

    def loss(logs):
        # restricted to differences between rows, since the mean is known from them
        whole = covariance(logs)
        _, log_determinant = np.linalg.slogdet(whole)
        return 0.5 * (log_determinant - logs[1] + centred @ np.linalg.solve(whole, centred))

    best = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-6}).x
    truth = np.exp(best[0]) * design @ design.T @ np.linalg.solve(covariance(best), centred)

    assert_allclose(fitted(columns) - z.mean(), truth, atol=0.02)
