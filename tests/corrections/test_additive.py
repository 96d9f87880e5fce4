"""Sums of terms know how sure they are."""

import numpy as np
from numpy.testing import assert_allclose

from regcal.corrections import AdditiveLearner
from regcal.covariates import Covariates


def test_error_of_a_category_is_that_of_the_mean_of_its_rows(rng):
    """With clear effects the prior has no say, and s / sqrt(n) of the category's rows remains."""
    kind = np.repeat(["a", "b", "c"], [400, 200, 50])
    z = rng.normal(np.select([kind == "a", kind == "b"], [3.0, -3.0], 0.0))
    columns = Covariates.of({"kind": kind})
    fitted = AdditiveLearner().learn_shift(columns, z, np.ones(len(z)))
    levels = Covariates.of({"kind": ["a", "b", "c"]})["kind"]
    expected = [z[kind == one].std() / np.sqrt((kind == one).sum()) for one in "abc"]

    assert_allclose(fitted.error(levels), expected, rtol=0.15)


def test_bands_hold_a_smooth_truth(rng):
    """95 % bands of a term hold about 95 % of the true function, for location and for spread."""
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
        for one in found:
            term = (one.terms[0].functions(grid) - one.centres[0]) @ one.coefficients[0]
            inside.append(np.abs(term - truth) < 1.96 * one.error(grid))

    assert 0.88 < np.mean(inside) < 0.995


def test_a_term_without_signal_has_the_error_of_the_constant(rng):
    """What the evidence takes for nothing does nothing, with certainty."""
    columns = Covariates.of({"x": rng.uniform(size=200), "kind": rng.integers(0, 3, 200)})
    z = np.sin(np.arange(200.0))
    fitted = AdditiveLearner().learn_shift(columns, z, np.ones(200))
    gone = [k for k, own in enumerate(fitted.coefficients) if not own.any()]

    assert gone
    for k in gone:
        column = columns[fitted.terms[k].name]
        assert_allclose(fitted.error(column), z.std() / np.sqrt(200), rtol=0.05)
