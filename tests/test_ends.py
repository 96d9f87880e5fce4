"""Ends that values pile up at are told from ends at which they merely stop."""

import numpy as np
import pytest
from rows import load
from sklearn.linear_model import BayesianRidge

import regcal
from regcal.ends import (
    find_ends,
    find_ends_of_draws,
    find_ends_of_quantiles,
    given_ends,
    given_step,
)

NONE = (-np.inf, np.inf)
LEVELS = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99])


def ends_of(y):
    return find_ends(*np.unique(np.asarray(y, dtype=float), return_counts=True))


def rain(rng, n):
    """Return amounts with 45 % of dry days, rounded to tenths as gauges give them."""
    return np.round(np.maximum(rng.normal(0.3, 2.4, n), 0.0) ** 1.5, 1)


UNBOUNDED = {
    "ages of adults": lambda rng, n: rng.integers(18, 66, n),
    "ages of all": lambda rng, n: rng.integers(0, 90, n),
    "marks from 1 to 6": lambda rng, n: rng.integers(1, 7, n),
    "marks up to 100": lambda rng, n: np.round(100 * rng.beta(4.0, 2.0, n)),
    "rounded": lambda rng, n: np.round(rng.normal(20.0, 3.0, n)),
    "rounded to halves": lambda rng, n: np.round(2 * rng.gamma(4.0, size=n)) / 2,
    "counts far from 0": lambda rng, n: rng.poisson(40.0, n),
    "continuous": lambda rng, n: rng.normal(size=n),
    "stops at an end": lambda rng, n: rng.uniform(size=n),
    "one value": lambda rng, n: np.full(n, 7.0),
    "nothing": lambda rng, n: np.empty(0),
}
BOUNDED = {
    "rain": (rain, (0.0, np.inf)),
    "visits": (lambda rng, n: rng.poisson(rng.gamma(0.6, 2.0, n)), (0.0, np.inf)),
    "visits that are usual": (lambda rng, n: rng.poisson(2.0, n), (0.0, np.inf)),
    "nothing but 0": (lambda rng, n: np.zeros(n), (0.0, np.inf)),
    "rare events": (lambda rng, n: rng.poisson(0.05, n), (0.0, np.inf)),
    "capped": (lambda rng, n: np.minimum(rng.lognormal(3.0, 0.4, n), 40.0), (-np.inf, 40.0)),
    "both": (lambda rng, n: np.clip(rng.normal(0.5, 0.5, n), 0.0, 1.0), (0.0, 1.0)),
}


@pytest.mark.parametrize("name", UNBOUNDED)
def test_values_that_merely_stop_have_no_mass_at_their_end(name, rng):
    """Ages, marks and rounded values have none, whatever the number of rows."""
    for n in (50, 400, 5000):
        assert ends_of(UNBOUNDED[name](rng, n)) == NONE


@pytest.mark.parametrize("name", BOUNDED)
def test_values_that_pile_up_have_a_mass(name, rng):
    """Dry days, visits that did not take place and capped prices have one."""
    make, wanted = BOUNDED[name]

    for n in (400, 5000):
        assert ends_of(make(rng, n)) == wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("forest_fires", (0.0, np.inf)), ("airfoil", NONE), ("concrete", NONE), ("diabetes", NONE)],
)
def test_published_sets(name, wanted):
    """Half of the forest fires burnt nothing; the other sets have no ends."""
    assert ends_of(load(name).y) == wanted


def test_the_rule_has_the_stated_limits():
    """2 % and 5 rows, and 5 times each of the next three distinct values."""
    others = np.sqrt(np.arange(1.0, 247.0)) / 7

    assert ends_of([0.0] * 5 + [*others[:-1]]) == (0.0, np.inf)
    assert ends_of([0.0] * 5 + [*others]) == NONE
    assert ends_of([0.0] * 4 + [*others[:20]]) == NONE
    assert ends_of([0.0] * 9 + [others[2]] + [*others[:20]]) == NONE
    assert ends_of([0.0] * 10 + [others[2]] + [*others[:20]]) == (0.0, np.inf)
    assert ends_of([0.0] * 9 + [others[3]] * 9 + [*others[:20]]) == (0.0, np.inf)
    assert ends_of([0.0] * 9 + [1.0] * 9 + [3.0] * 9) == (0.0, np.inf)  # whole numbers
    assert ends_of([0.0] * 9 + [1.0] * 9 + [3.5] * 9) == NONE
    assert ends_of([-1.0] + [0.0] * 9 + [1.0] * 9) == NONE


def test_a_weight_is_a_number_of_rows(rng):
    """Weights that are not whole count alike, and a weight of zero is no row."""
    values = np.array([-1.0, 0.0, 0.3, 0.4, 0.9])

    assert find_ends(values, np.array([0.0, 5.0, 1.0, 1.0, 0.5])) == (0.0, np.inf)
    assert find_ends(values, np.array([0.0, 4.9, 0.5, 0.9, 0.5])) == NONE
    assert find_ends(values, np.array([0.1, 5.0, 1.0, 1.0, 0.5])) == NONE


def test_units_and_direction_do_not_matter(rng):
    """In another unit and turned round, the same values pile up."""
    y = np.maximum(rng.normal(size=300), -0.7)

    assert ends_of(3e-9 * y) == (3e-9 * -0.7, np.inf)
    assert ends_of(-y) == (-np.inf, 0.7)
    assert ends_of(y + 100.0) == (-0.7 + 100.0, np.inf)


# ----------------------------------------------------------------------------- draws, quantiles


def members(rng, n_rows=60, n_draws=25):
    """Return an ensemble: draws around what is different in every row."""
    return rng.normal(2.0 * rng.normal(size=(n_rows, 1)), 1.0, (n_rows, n_draws))


def chain(rng, n_rows=60, n_draws=200, accepted=0.3):
    """Return a Metropolis chain per row, which stays where it is when it refuses a step."""
    steps = rng.normal(size=(n_rows, n_draws)).cumsum(axis=1)
    moves = rng.uniform(size=steps.shape) < accepted
    moves[:, 0] = True
    last = np.maximum.accumulate(np.where(moves, np.arange(n_draws), 0), axis=1)
    return np.take_along_axis(steps, last, axis=1)


def comb(rng, n_rows=60, n_draws=100, n_training=60):
    """Return draws from the training outcomes that are nearest to each row, as a forest does."""
    x, y = np.sort(rng.normal(size=n_training)), np.sort(rng.normal(size=n_training))
    near = np.argsort(np.abs(rng.normal(size=(n_rows, 1)) - x), axis=1)[:, :8]
    return y[near[np.arange(n_rows)[:, np.newaxis], rng.integers(0, 8, (n_rows, n_draws))]]


NO_MASSES = {
    "members": members,
    "chain": chain,
    "one chain": lambda rng: chain(rng, n_rows=1),
    "comb": comb,
    "members rounded": lambda rng: np.round(5 * members(rng)) / 5,
    "temperatures": lambda rng: np.round(20.0 + 3 * members(rng)),
    "point forecasts": lambda rng: np.repeat(rng.normal(size=(60, 1)), 5, axis=1),
    "one point forecast": lambda rng: np.full((1, 20), 3.0),
    "nothing": lambda rng: np.empty((0, 5)),
}
MASSES = {
    "rain": (lambda rng: np.maximum(members(rng), 0.0), (0.0, np.inf)),
    "little rain": (lambda rng: np.maximum(members(rng) - 3.5, 0.0), (0.0, np.inf)),
    "rain in a shower": (lambda rng: np.maximum(members(rng, n_rows=3), 0.0), (0.0, np.inf)),
    "rain in tenths": (lambda rng: np.round(np.maximum(members(rng), 0.0) ** 2, 1), (0.0, np.inf)),
    "a cap": (lambda rng: np.minimum(members(rng), 1.7), (-np.inf, 1.7)),
    "a share": (lambda rng: np.clip(members(rng), 0.25, 1.0), (0.25, 1.0)),
    "visits": (lambda rng: rng.poisson(np.exp(0.5 * members(rng))), (0.0, np.inf)),
    "no rain": (lambda rng: np.zeros((3, 20)), (0.0, np.inf)),
    "one rainy day": (lambda rng: np.maximum(members(rng)[:1], 0.0), (0.0, np.inf)),
}


@pytest.mark.parametrize("name", NO_MASSES)
def test_repeats_and_combs_are_no_masses(name, rng):
    """Values that repeat in a row or across rows, but pile up nowhere, stay smoothed."""
    for _ in range(5):
        draws = NO_MASSES[name](rng)

        assert find_ends_of_draws(draws) == NONE
        if len(draws):
            assert find_ends_of_quantiles(LEVELS, np.quantile(draws, LEVELS, axis=1).T) == NONE


@pytest.mark.parametrize("name", MASSES)
def test_draws_and_quantiles_that_pile_up_have_a_mass(name, rng):
    """Both are found, in the ensemble and in its quantiles."""
    make, wanted = MASSES[name]
    draws = make(rng).astype(float)

    assert find_ends_of_draws(draws) == wanted
    assert find_ends_of_quantiles(LEVELS, np.quantile(draws, LEVELS, axis=1).T) == wanted


def test_an_end_is_shared_by_rows():
    """Twice in one row is enough for 0 alone."""
    rows = np.arange(40.0).reshape(2, 20) + 3.3
    one, two = rows.copy(), rows.copy()
    one[0, :6] = two[0, :6] = two[1, :2] = 3.0

    assert find_ends_of_draws(one) == NONE
    assert find_ends_of_draws(two) == (3.0, np.inf)
    assert find_ends_of_draws(one - 3.0) == (0.0, np.inf)


def test_probability_between_equal_quantiles_counts():
    """5 % of it, wherever the levels are."""
    levels = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    values = np.tile([0.1, 1.0, 2.0, 3.0, 4.0], (20, 1)) + np.arange(20.0)[:, np.newaxis]
    values[:4, :2] = 0.0  # 20 % in 4 of 20 rows
    few = values.copy()
    few[4:5] = 0.0, 0.0, 0.0, 0.0, 0.1
    tied = few + 0.5
    tied[7:9, 1:3] = 8.5

    assert find_ends_of_quantiles(levels, values) == NONE
    assert find_ends_of_quantiles(levels, few) == (0.0, np.inf)
    assert find_ends_of_quantiles(levels, few + 0.5) == (0.5, np.inf)
    assert find_ends_of_quantiles(levels, tied) == NONE


@pytest.mark.parametrize(
    ("support", "wanted"),
    [("auto", None), (None, NONE), ((0, None), (0.0, np.inf)), ([None, 2.5], (-np.inf, 2.5))],
)
def test_given_ends(support, wanted):
    """Ends are numbers or nothing; "auto" leaves them to be found."""
    assert given_ends(support) == wanted


@pytest.mark.parametrize(
    ("support", "message"),
    [
        ("none", "support must be 'auto'"),
        (0.0, "support must be 'auto'"),
        ((0.0, 1.0, 2.0), "support must be 'auto'"),
        ((1.0, 1.0), "low must be smaller than high, got 1.0 and 1.0. Write an end .* as None"),
        ((2.0, 1.0), "low must be smaller than high, got 2.0 and 1.0. Swap them"),
        ((np.nan, 1.0), "low must be one number"),
        ((None, "a"), "high must hold numbers"),
    ],
)
def test_bad_ends_are_refused(support, message):
    """What is no pair of ends is named."""
    with pytest.raises(ValueError, match=message):
        given_ends(support)


@pytest.mark.parametrize(
    ("step", "wanted"), [("auto", None), (None, 0.0), (2, 2.0), (np.float32(0.5), 0.5)]
)
def test_given_step(step, wanted):
    """A step is a number or nothing; "auto" leaves it to be found."""
    assert given_step(step) == wanted


@pytest.mark.parametrize("step", ["x", "1", 0, -1.0, np.nan, np.inf, True, [1.0], 1j, ()])
def test_bad_steps_are_refused_alike(step):
    """By calibrators, regressors and distributions: what was passed, and what to pass."""
    dist, X = regcal.Normal([0.0, 1.0, 2.0] * 4, 1.0), np.arange(12.0)[:, np.newaxis]
    model = regcal.CalibratedRegressorCV(BayesianRidge(), "scale", step=step)
    asked = [lambda: regcal.Rounded(dist, step), lambda: model.fit(X, np.arange(12.0))]
    asked += [
        lambda name=name: regcal.get_calibrator(name, step=step).fit(dist, np.arange(12.0))
        for name in regcal.calibrator_names()
    ]

    for ask in asked:
        with pytest.raises(ValueError, match=r"step must be .*one positive number, got .* of 1\.$"):
            ask()


@pytest.mark.parametrize("unit", [1.0, 0.5, 0.1, 1 / 3, 1e-6, 7.0, 1e9])
def test_zeros_of_counts_are_an_end_in_all_units(unit):
    """Counts of tenths are counts; numbers that are no multiples of a step are not."""
    counts = np.arange(12.0)
    weights = np.full(12, 8.0)

    assert find_ends(unit * counts, weights) == (0.0, np.inf)
    assert find_ends(unit * counts**1.1, weights) == (-np.inf, np.inf)
