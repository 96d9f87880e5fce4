"""Levels that are moved by held-out rows have the coverage that the theorem says.

The theorem is a statement about orders: of n + 1 rows, each left out in turn, at least a share of
the intervals that the others give holds the one left out. That is counted here, without chance.
"""

import functools

import numpy as np
import pytest
from cases import DISTRIBUTIONS, STANDARD, WITH_MASSES, Unit
from numpy.testing import assert_allclose, assert_array_equal
from rows import there_and_back
from scipy.special import ndtr, ndtri

from regcal import Clipped, ConformalLevels, Histogram, Normal, Outcomes, Rounded, concatenate
from regcal.calibrators.conformal import rows_needed

CONTINUOUS = {case.name: lambda case=case: case.make(3, n_rows=12) for case in DISTRIBUTIONS}
MASSES = {
    name: lambda make=make: concatenate([make(STANDARD)] * 4)[:12]
    for name, make in WITH_MASSES.items()
} | {
    "rain": lambda: Clipped(Normal(np.linspace(-2.0, 2.0, 12), 1.0), low=0.0),
    "counts": lambda: Rounded(Normal(np.linspace(0.0, 5.0, 12), 2.0)),
    "the same counts": lambda: Rounded(Normal(np.full(12, 3.0), 2.0)),
    "the same rain": lambda: Clipped(Normal(np.full(12, -0.3), 1.0), low=0.0),
}
BATCHES = CONTINUOUS | MASSES
every_batch = pytest.mark.parametrize("name", BATCHES)


def outcomes_of(dist, rng):
    """Return outcomes that are too far out, and low rather than high."""
    return dist.ppf(rng.beta(0.3, 0.6, size=len(dist)))


def told_by_the_others(dist, y, weights, by=None):
    """Return what all the others tell of each row."""
    rest = [np.flatnonzero(np.arange(len(y)) != row) for row in range(len(y))]
    return [
        ConformalLevels().fit(dist[some], y[some], weights[some], None if by is None else by[some])
        for some in rest
    ]


def held_in_turn(answer, dist, y, weights, by=None, told=None):
    """Return whether each row is held by what all the others tell."""
    held = []
    for row, levels in enumerate(told or told_by_the_others(dist, y, weights, by)):
        group = None if by is None else by[[row]]
        low, high = answer(levels, dist[[row]], sample_weight=weights[[row]], by=group)
        held.append(bool(low[0] <= y[row] <= high[0]))
    return np.array(held)


@functools.cache
def unweighted(name):
    """Return a batch with its outcomes, and what the others tell of each; answers share it."""
    dist = BATCHES[name]()
    y, weights = outcomes_of(dist, np.random.default_rng(0)), np.ones(len(dist))
    return dist, y, weights, None, told_by_the_others(dist, y, weights)


def interval(coverage):
    return lambda levels, dist, **new: levels.interval(dist, coverage, **new)


def upper(level):
    return lambda levels, dist, **new: ([-np.inf], levels.bounds(dist, [level], **new)[:, 0])


def lower(level):
    return lambda levels, dist, **new: (levels.bounds(dist, [level], **new)[:, 0], [np.inf])


ANSWERS = {
    "interval": (interval(0.7), 0.7),
    "wide interval": (interval(0.85), 0.85),
    "upper": (upper(0.8), 0.8),
    "lower": (lower(0.25), 0.75),
}
every_answer = pytest.mark.parametrize("answer", ANSWERS)


@every_answer
@every_batch
def test_enough_rows_are_held_by_the_others(name, answer):
    """The theorem, for every distribution; nobody drew outcomes from what was predicted."""
    ask, share = ANSWERS[answer]
    held = held_in_turn(ask, *unweighted(name))

    assert held.sum() >= np.ceil(share * len(held) - 1e-9)


@every_answer
@pytest.mark.parametrize("name", CONTINUOUS)
def test_no_more_rows_are_held_than_needed(name, answer):
    """Without point masses the levels are the smallest that do."""
    ask, share = ANSWERS[answer]
    held = held_in_turn(ask, *unweighted(name))

    assert held.sum() == np.ceil(share * len(held) - 1e-9)


@pytest.mark.parametrize("name", ["normal", "mixture", "rain", "the same counts"])
@every_answer
def test_enough_weight_is_held_by_the_others(name, answer, rng):
    """With weights the law is about weights, whatever their scale."""
    dist, (ask, share) = BATCHES[name](), ANSWERS[answer]
    y, weights = outcomes_of(dist, rng), 1e3 * rng.uniform(0.5, 1.5, size=len(dist))

    held = held_in_turn(ask, dist, y, weights)

    assert weights[held].sum() >= share * weights.sum() * (1 - 1e-9)


@pytest.mark.parametrize("name", ["normal", "rain"])
def test_every_group_holds_for_itself(name, rng):
    """Mondrian: the law holds within groups whose spreads are not alike."""
    dist = concatenate([BATCHES[name]()] * 2)
    by = np.array(["quiet", "wild"])[np.arange(24) % 2]
    y = np.where(by == "wild", outcomes_of(dist, rng), dist.median())

    held = held_in_turn(interval(0.75), dist, y, np.ones(len(y)), by)

    assert held[by == "wild"].sum() >= 9
    assert held[by == "quiet"].sum() >= 9


def test_groups_are_fitted_apart(rng):
    """A group's interval is the one that its own rows give."""
    dist, y = Normal(np.zeros(60), 1.0), rng.normal(size=60)
    table = {"a": np.arange(60) % 2, "b": np.where(np.arange(60) < 30, "x", "y")}
    own = (table["a"] == 1) & (table["b"] == "y")

    levels = ConformalLevels().fit(dist, y, by=table)
    alone = ConformalLevels().fit(dist[own], y[own])

    new = {"b": ["y", "y"], "a": [1, 1]}  # in another order
    assert_array_equal(levels.interval(dist[:2], 0.8, by=new), alone.interval(dist[:2], 0.8))


def test_shifted_rows_are_held_with_their_density_ratio():
    """New rows come from elsewhere; the ratio of densities says how much more often."""
    rng = np.random.default_rng(1)
    x = rng.uniform(size=4000)
    y = x * rng.normal(size=4000)
    x_new = np.sqrt(rng.uniform(size=4000))  # density 2 x
    y_new = x_new * rng.normal(size=4000)
    dist = Normal(np.zeros(4000), 1.0)

    plain = ConformalLevels().fit(dist, y).interval(dist, 0.9)
    shifted = ConformalLevels().fit(dist, y, 2 * x).interval(dist, 0.9, 2 * x_new)

    inside = [np.mean((low <= y_new) & (y_new <= high)) for low, high in (plain, shifted)]
    assert inside[0] < 0.85
    assert abs(inside[1] - 0.9) < 0.02


@pytest.mark.parametrize("given", [None, 0.1, 7.0])
@pytest.mark.parametrize("new", [[10.0], [10.0, 9.0], [7.0, 0.1], [0.01, 0.01]])
def test_weights_other_than_the_equal_ones_of_fit_are_told(given, new, rng, tmp_path):
    """One row or several, equal or not: a row that weighs as much as a hundred others is not one.

    Equal ones count as none, so that what others are beside them is not known; also from a file.
    """
    weights = None if given is None else np.full(20, given)
    levels = ConformalLevels().fit(Normal(np.zeros(20), 1.0), rng.normal(size=20), weights)
    dist, unit = Normal(np.zeros(len(new)), 1.0), 1.0 if given is None else given

    for one in (levels, there_and_back(levels, tmp_path / "levels.regcal")):
        first = int(np.flatnonzero(np.array(new) != unit)[0])
        words = rf"new row {first} has weight {new[first]:g}, and the rows of fit {unit:g} each"
        with pytest.raises(ValueError, match=words):
            one.interval(dist, 0.9, new)
        same = one.interval(dist, 0.9, np.full(len(new), unit))
        assert_array_equal(same, levels.interval(dist, 0.9))


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_the_unit_of_weights_does_not_matter(unit, rng):
    """The same ratios in another unit promise the same, and equal ones what no weights do."""
    dist, y = Normal(np.zeros(60), 1.0), rng.normal(size=60)
    ratios = rng.uniform(0.5, 2.0, size=60)

    levels = ConformalLevels().fit(dist, y, unit * ratios)
    alone = ConformalLevels().fit(dist, y, ratios)
    assert_allclose(levels.interval(dist, 0.9, unit * ratios), alone.interval(dist, 0.9, ratios))
    equal, plain = ConformalLevels().fit(dist, y, np.full(60, unit)), ConformalLevels().fit(dist, y)
    for new in (None, np.full(60, unit)):
        assert_array_equal(equal.interval(dist, 0.9, new), plain.interval(dist, 0.9))
    assert_array_equal(plain.bounds(dist, [0.1], np.ones(60)), plain.bounds(dist, [0.1]))
    with pytest.raises(ValueError, match=r"0\.99 needs 99 held-out rows, and there are 60:"):
        equal.interval(dist, 0.99)


def test_weights_of_one_side_alone_are_told(rng):
    """Nobody knows their unit; a weight of 0 says that the row does not come."""
    dist, y, weights = Normal(np.zeros(60), 1.0), rng.normal(size=60), rng.uniform(1, 2, size=60)
    levels, plain = ConformalLevels().fit(dist, y, weights), ConformalLevels().fit(dist, y)

    with pytest.raises(ValueError, match="Pass sample_weight= of the new rows"):
        levels.interval(dist, 0.9)
    with pytest.raises(ValueError, match="Pass sample_weight= to fit as well"):
        plain.bounds(dist, [0.9], weights)
    for one in (levels, plain):
        with pytest.raises(ValueError, match="the new row 3 is 0; weights of new rows must be pos"):
            one.interval(dist, 0.9, np.where(np.arange(60) == 3, 0.0, 1.0))


def test_the_row_that_weighs_too_much_is_named(rng):
    """Also where it is in a group; what cannot be asked for is not proposed."""
    dist, y, by = Normal(np.zeros(60), 1.0), rng.normal(size=60), np.arange(60) % 2
    weights = np.tile([1.0, 3.0], 30)
    new = np.where(np.arange(60) == 41, 1e9, 1.0)
    levels = ConformalLevels().fit(dist, y, weights)

    with pytest.raises(
        ValueError, match=r"row 41 has weight 1e\+09, the held-out rows 120 in"
    ) as told:
        levels.interval(dist, 0.9, new)
    assert "at most" not in str(told.value)
    levels.fit(dist, y, weights, by)
    with pytest.raises(ValueError, match=r"x0 = 1 cannot.*row 41 .* the held-out rows 90 in all"):
        levels.interval(dist, 0.9, new, by)
    with pytest.raises(ValueError, match=r"row 0 has weight 10, .* 30 in all, .* at most 0\.75\."):
        levels.interval(dist[:1], 0.9, [10.0], by[:1])


# ---------------------------------------------------------------------------------- masses, holes


@pytest.mark.parametrize("make", [Clipped, Rounded])
def test_masses_do_not_move_the_levels_of_a_model_that_is_right(make, rng):
    """Draws are uniform there: the promised interval is the bare one, up to chance."""
    latent = Normal(rng.normal(size=20_000), 1.0)
    dist = make(latent, 0.0) if make is Clipped else make(latent, 1.0)

    levels = ConformalLevels().fit(dist, dist.sample(1, random_state=1)[:, 0])

    assert_allclose(levels.half_widths(1, 0.9), Normal([0.0], [1.0]).ppf(0.95), atol=0.04)
    assert_allclose(levels.probits(1, 0.2), Normal([0.0], [1.0]).ppf(0.2), atol=0.04)


def test_ends_that_cannot_miss_give_nothing_to_others():
    """Closed form: zeros are twice as frequent as predicted, and other outcomes as predicted.

    Lower ends are 0 and miss none, so that upper ends are to miss 5 %, not 10 %: of the 30 % that
    are not 0, a sixth.
    """
    n_rows, above = 20_000, ndtr(0.5)
    dist = Clipped(Normal(np.full(n_rows, 0.5), 1.0), low=0.0)
    places = (np.arange(n_rows) + 0.5) / n_rows
    y = np.where(places < 0.7, 0.0, dist.ppf(1.0 - above * np.minimum(1.0 - places, 0.3) / 0.3))

    levels = ConformalLevels().fit(dist, y)

    assert_allclose(levels.half_widths(1, 0.9), -ndtri(above * 0.05 / 0.3), atol=0.001)
    assert_allclose(levels.probits(1, 0.9), -ndtri(above * 0.1 / 0.3), atol=0.001)
    assert_allclose(levels.probits(1, 0.4), -0.5, atol=0.001)  # no bound but 0 holds 60 %


@pytest.mark.parametrize("n_other", [0, 2])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_outcomes_on_an_outermost_mass_are_held_by_its_place(side, n_other):
    """Dry days have an upper bound of 0, and days on a cap a lower bound at the cap.

    Two days in forty are beyond: what 95 % are to be within is the nearer of these.
    """
    latent = Normal(np.full(40, -side), 1.0)
    dist = Clipped(latent, low=0.0) if side > 0 else Clipped(latent, high=0.0)
    y = side * np.r_[np.zeros(40 - n_other), 3.0 + np.arange(n_other)]
    shares = np.array([0.5 + 1e-9, 0.6, 0.9, 0.95])

    found = ConformalLevels().fit(dist, y).bounds(dist[:1], 0.5 + side * (shares - 0.5))

    farthest = 3.0 if n_other else 0.0
    assert_allclose(found, [[0.0, 0.0, 0.0, side * farthest]], atol=1e-6)


def test_where_no_end_can_move_the_level_is_the_one_asked_for():
    """Rows of which one value alone is possible say nothing about others."""
    full = Clipped(Histogram([2.0, 3.0], np.ones((30, 1))), low=0.0, high=1.0)
    levels = ConformalLevels().fit(full, np.ones(30))

    assert_allclose(levels.probits(1, 0.9), ndtri(0.9), atol=1e-8)
    assert_allclose(levels.probits(1, 0.1), ndtri(0.1), atol=1e-8)


def test_what_masses_leave_open_stays_as_it_was_asked_for(rng):
    """Coarse steps hold more than they promise, which makes up for a spread that is too small."""
    latent = Normal(rng.normal(size=500), 1.0)
    y = Rounded(Normal(latent.loc, 1.2), 3.0).sample(1, random_state=1)[:, 0]

    levels = ConformalLevels().fit(Rounded(latent, 3.0), y)

    assert_allclose(levels.half_widths(1, 0.9), ndtri(0.95), atol=1e-8)
    assert_allclose(levels.probits(1, 0.1), ndtri(0.1), atol=1e-8)
    assert ConformalLevels().fit(latent, y).half_widths(1, 0.9) > 1.8


def test_draws_do_not_depend_on_the_order_of_rows(rng):
    """The same rows in another order say the same."""
    dist, order = BATCHES["rain"](), rng.permutation(12)
    y = np.maximum(rng.normal(size=12), 0.0)

    one, other = (ConformalLevels().fit(dist[rows], y[rows]) for rows in (np.arange(12), order))

    assert_array_equal(np.sort(one.low_), np.sort(other.low_))


def test_outcomes_in_a_hole_are_held():
    """Where the CDF is flat, its quantile is the near side of the hole."""
    dist = Histogram([0.0, 1.0, 2.0, 3.0], np.tile([0.5, 0.0, 0.5], (20, 1)))
    y = np.full(20, 1.5)

    assert ConformalLevels().fit(dist[:19], y[:19]).bounds(dist[19:], [0.9])[0, 0] >= 1.5


# ------------------------------------------------------------------------------------- censoring


def test_censored_rows_never_make_promises_larger(rng):
    """What is promised without knowing them holds the rows that were censored."""
    dist, y = Normal(np.zeros(80), 1.0), rng.normal(size=80)
    cut = rng.normal(1.5, 1.0, size=80)
    seen = Outcomes.right_censored(np.minimum(y, cut), observed=y <= cut)

    known = ConformalLevels().fit(dist, y)
    levels = ConformalLevels().fit(dist, seen)

    assert levels.bounds(dist[:1], [0.1]) <= known.bounds(dist[:1], [0.1])
    assert levels.interval(dist[:1], 0.7)[1] >= known.interval(dist[:1], 0.7)[1]


def test_too_many_censored_rows_are_told(rng):
    """An upper end beyond them would be a guess; a lower bound is none."""
    dist = Normal(np.zeros(40), 1.0)
    seen = Outcomes.right_censored(rng.normal(size=40), observed=np.arange(40) < 30)
    levels = ConformalLevels().fit(dist, seen)

    with pytest.raises(ValueError, match=r"coverage of 0\.9 cannot be had: 10 of 40 held-out"):
        levels.interval(dist, 0.9)
    weights = 1e3 * np.tile([1.0, 2.0], 20)
    weighted = ConformalLevels().fit(dist, seen, weights)
    with pytest.raises(ValueError, match="10 of 40 held-out"):
        weighted.interval(dist, 0.9, weights)
    assert np.isfinite(levels.bounds(dist, [0.05])).all()


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(("share", "needed"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19)])
def test_rows_that_are_needed(share, needed, rng):
    """With one row less there is an error, which says how many it takes."""
    dist, y = Normal(np.zeros(needed), 1.0), rng.normal(size=needed)

    assert rows_needed(share) == needed
    assert np.isfinite(ConformalLevels().fit(dist, y).interval(dist, share)).all()
    if needed > 1:
        few = ConformalLevels().fit(dist[1:], y[1:])
        with pytest.raises(ValueError, match=rf"needs {needed} held-out rows, and there are"):
            few.interval(dist, share)


def test_impossible_outcomes_are_told():
    """An end beyond all that is predicted would be infinite."""
    dist = Histogram([0.0, 1.0], np.ones((20, 1)))
    levels = ConformalLevels().fit(dist, np.linspace(0.1, 2.0, 20))

    with pytest.raises(ValueError, match=r"upper bound at the level 0\.8 cannot be had"):
        levels.bounds(dist, [0.8])
    assert levels.bounds(dist, [0.2])[0, 0] > 0


@pytest.mark.parametrize("coverage", [0.0, 1.0, 90, np.nan, None, [0.5, 0.9]])
def test_coverage_is_a_probability(coverage, rng):
    """Nothing holds always."""
    dist = Normal(np.zeros(20), 1.0)

    with pytest.raises(ValueError, match="coverage must be one number strictly between 0 and 1"):
        ConformalLevels().fit(dist, rng.normal(size=20)).interval(dist, coverage)


def test_groups_that_were_not_there_are_told(rng):
    """Nothing is known of them; missing values are no group of unknown ones."""
    dist, y = Normal(np.zeros(40), 1.0), rng.normal(size=40)
    levels = ConformalLevels().fit(dist, y, by={"region": ["north", None] * 20})

    assert levels.interval(dist[:1], 0.8, by={"region": [None]})[0].shape == (1,)
    with pytest.raises(ValueError, match="in the group region = south: none of the held-out"):
        levels.interval(dist[:1], 0.8, by={"region": ["south"]})
    with pytest.raises(ValueError, match="region = north needs 99 held-out rows, and there are 20"):
        levels.interval(dist[:1], 0.99, by={"region": ["north"]})
    with pytest.raises(ValueError, match="has groups by region"):
        levels.interval(dist[:1], 0.8)
    with pytest.raises(ValueError, match="by has no column 'region'"):
        levels.interval(dist[:1], 0.8, by={"county": ["a"]})
    with pytest.raises(ValueError, match="has no groups"):
        ConformalLevels().fit(dist, y).interval(dist[:1], 0.8, by=["north"])


# ------------------------------------------------------------------------------------------- other


@pytest.mark.parametrize("unit", [Unit(2e-12, 0.0), Unit(-3.0 + 3e6, -5e6)])
def test_units_do_not_matter(unit, rng):
    """The same rows in other units give the same intervals in those."""
    loc, y = rng.normal(size=(2, 50))
    ends = ConformalLevels().fit(Normal(loc, 1.0), y).interval(Normal(loc, 1.0), 0.8)
    other = Normal(unit(loc), unit.scale)

    assert_allclose(
        ConformalLevels().fit(other, unit(y)).interval(other, 0.8), unit(ends), rtol=1e-9
    )


def test_far_tails_have_levels(rng):
    """Outcomes whose level is 1 to the last digit still order, and have an end."""
    dist, y = Normal(np.zeros(20), 1.0), np.linspace(30.0, 50.0, 20)

    upper = ConformalLevels().fit(dist, y).bounds(dist[:1], [0.9])[0, 0]

    assert_allclose(upper, y[18], rtol=1e-6)


def test_there_and_back(rng, tmp_path):
    """Levels are kept in a file, groups included."""
    dist, by = Normal(np.zeros(40), 1.0), ["a", "b"] * 20
    levels = ConformalLevels().fit(dist, rng.normal(size=40), by=by)

    again = there_and_back(levels, tmp_path / "levels.regcal")

    assert_array_equal(again.interval(dist, 0.8, by=by), levels.interval(dist, 0.8, by=by))
    assert again.fingerprint() == levels.fingerprint()


def test_no_new_rows(rng):
    """Nothing is asked and nothing is answered."""
    dist = Normal(np.zeros(40), 1.0)
    levels = ConformalLevels().fit(dist, rng.normal(size=40))

    assert levels.interval(dist[:0], 0.8)[0].shape == (0,)
    assert levels.bounds(dist[:0], [0.2, 0.8]).shape == (0, 2)
    assert levels.bounds(dist, []).shape == (40, 0)
