"""Averages of calibrators: what they are, and weights against brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import regcal
from regcal.calibrators.stack import Objective, Prices

PARTS = [(name, regcal.get_calibrator(name)) for name in ("identity", "scale", "pit")]


def test_a_stack_is_the_mixture_of_its_parts(rng):
    """Fitted on the same rows, averaged with normalised weights."""
    dist, y = regcal.Normal(rng.normal(size=60), np.full(60, 1.0)), 2.0 * rng.normal(size=60)
    points = np.linspace(-4.0, 4.0, 17)[np.newaxis]

    stack = regcal.StackCalibrator(PARTS, [2.0, 1.0, 1.0]).fit(dist, y).transform(dist)

    alone = [part.fit(dist, y).transform(dist) for _, part in PARTS]
    assert_allclose(stack.cdf(points), regcal.Mixture(alone, [0.5, 0.25, 0.25]).cdf(points))


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0, 1.0], [1.0, np.nan, 1.0], [1.0, -1.0, 1.0]])
def test_bad_weights_are_refused(weights):
    """One positive number per calibrator."""
    with pytest.raises(ValueError, match="weights"):
        regcal.StackCalibrator(PARTS, weights).fit(regcal.Normal([0.0, 1.0], 1.0), [0.0, 2.0])


def test_a_factor_on_the_spread_moves_the_levels_of_quantiles(rng):
    """The quantile at a probit of the average with it is the average's at that many times it."""
    dist, y = regcal.Normal(rng.normal(size=60), np.full(60, 1.0)), 2.0 * rng.normal(size=60)
    plain, narrow = (
        regcal.StackCalibrator(PARTS, [2.0, 1.0, 1.0], spread=one).fit(dist, y).transform(dist)
        for one in (1.0, 0.8)
    )
    z = np.linspace(-2.0, 2.0, 9)[np.newaxis]

    assert_allclose(narrow.from_probit(z), plain.from_probit(0.8 * z), rtol=1e-6)


@pytest.mark.parametrize("spread", [0.0, -1.0, np.nan, np.inf, "wide", None, True, [1.0]])
def test_bad_factors_are_refused(spread):
    """With the value and what changes nothing."""
    stack = regcal.StackCalibrator(PARTS, [1.0, 1.0, 1.0], spread=spread)
    with pytest.raises(ValueError, match=r"spread must be a positive number, got .* 1 changes"):
        stack.fit(regcal.Normal([0.0, 1.0], 1.0), [0.0, 2.0])


@pytest.mark.parametrize(
    "calibrators", [None, "gpc", ["gpc", "pit"], [PARTS[0][1]], [("a", "pit")], [*PARTS, PARTS[0]]]
)
def test_other_parts_are_refused(calibrators):
    """They are pairs of different names and calibrators."""
    with pytest.raises((TypeError, ValueError), match=r"calibrators? .*(pair|none|different)"):
        regcal.StackCalibrator(calibrators, [1.0]).fit(regcal.Normal([0.0, 1.0], 1.0), [0.0, 2.0])


def problem(rng, prices):
    densities = rng.gamma(1.0, size=(3, 80))
    differences = rng.normal(size=(3, 80))
    crps = differences @ differences.T / 80
    return Objective(
        densities / densities.max(axis=0), crps / crps[0, 0], np.full(80, 1 / 80), prices
    )


def simplex(n=41):
    grid = np.linspace(0.0, 1.0, n)
    return [np.array([a, b, 1 - a - b]) for a in grid for b in grid if a + b <= 1 + 1e-12]


@pytest.mark.parametrize("prices", [Prices(1.0, 0.0), Prices(1.0, 2.0), Prices(0.0, 1.0)])
def test_weights_are_the_best_of_a_grid(rng, prices):
    """No point of a fine grid that keeps to the limit is better."""
    objective = problem(rng, prices)

    found = objective.best(1.0)

    allowed = [w for w in simplex() if w @ objective.crps @ w <= 1.0]
    assert_allclose(found.sum(), 1.0)
    assert found @ objective.crps @ found <= 1.0 + 1e-5
    assert objective(found) >= max(map(objective, allowed)) - 1e-6


def test_gradient_is_the_derivative(rng):
    """By finite differences."""
    objective, weights = problem(rng, Prices(1.0, 2.0)), np.array([0.2, 0.5, 0.3])
    step = 1e-6 * np.eye(3)

    numeric = [(objective(weights + one) - objective(weights - one)) / 2e-6 for one in step]

    assert_allclose(objective.gradient(weights), numeric, rtol=1e-6)


def test_candidates_of_little_worth_are_left_out(rng):
    """One that is nearly another one adds nothing."""
    objective = problem(rng, Prices(1.0, 0.0))
    near = objective.densities[1] * (1 + 1e-3 * rng.normal(size=80))
    twins = Objective(
        np.vstack([objective.densities[:2], near]),
        np.ones((3, 3)),
        objective.shares,
        objective.prices,
    )

    assert np.count_nonzero(twins.best_few(np.inf, 1e-3)) <= 2


def test_one_that_keeps_to_the_limit_is_not_left_out():
    """Densities ask for the second alone, whose CRPS is too large: the root of 0.5 at most."""
    densities, shares = np.array([np.full(50, 0.5), np.ones(50)]), np.full(50, 0.02)
    objective = Objective(densities, np.diag([0.0, 2.0]), shares, Prices(1.0, 0.0))

    assert_allclose(objective.best_few(1.0, 1e-3), [1 - 0.5**0.5, 0.5**0.5], atol=1e-4)
