"""Ends that values pile up at are told from ends at which they merely stop."""

import numpy as np
import pytest
from rows import load

from regcal.support import find_ends

NONE = (-np.inf, np.inf)


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
    others = np.arange(1.0, 247.0) / 7

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
