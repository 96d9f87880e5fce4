"""The joint test: one p-value that is uniform for the truth, and bands that agree with it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import toy
from scipy import stats

from regcal import Clipped, Normal, Outcomes, metrics


def quick(y, dist, seed=0, **options):
    return metrics.joint_calibration_test(y, dist, n_simulations=99, random_state=seed, **options)


def clipped(rng, n):
    loc = rng.uniform(-1.0, 2.0, n)
    return np.maximum(rng.normal(loc), 0.0), Clipped(Normal(loc, np.ones(n)), low=0.0)


def continuous(rng, n):
    loc = rng.normal(size=n)
    return rng.normal(loc), Normal(loc, np.ones(n))


def censored(rng, n):
    y, dist = continuous(rng, n)
    limit = rng.normal(0.5, 1.5, n)
    return Outcomes.right_censored(np.minimum(y, limit), y <= limit), dist


# Where outcomes are numbers p-values are exact, but for thresholds that are taken from them.
WORLDS = {
    "numbers": (continuous, 80, 0.05),
    "masses": (clipped, 40, 0.08),
    "censored": (censored, 40, 0.08),
}


@pytest.mark.parametrize("world", WORLDS)
def test_false_alarms_are_as_rare_as_said(world):
    """Of the truth, the share of p-values below 0.05 is 0.05; bounds are left once in a million."""
    draw, count, level = WORLDS[world]
    rows = (draw(np.random.default_rng(seed), 60) for seed in range(count))
    tests = [
        metrics.joint_calibration_test(*row, n_simulations=39, random_state=seed)
        for seed, row in enumerate(rows)
    ]
    p_values = np.array([test.p_value for test in tests])

    assert (p_values <= 0.05).sum() <= stats.binom.isf(1e-6, count, level)
    if world == "numbers":
        low, high = stats.binom.ppf([1e-6, 1 - 1e-6], count, 0.5)
        assert low <= (p_values <= 0.5).sum() <= high


@pytest.mark.parametrize("spread", [0.7, 1.0, 1.2])
def test_bands_and_p_values_say_the_same(spread, rng):
    """A statement is outside its band exactly if its p-value is below 0.05."""
    loc = rng.normal(size=200)
    test = quick(rng.normal(loc), Normal(loc, np.full(200, spread)))

    assert test.p_value == min(one.p_value for one in test.statements)
    assert test.calibrated == (not test.wrong)
    for one in test.statements:
        assert (one.p_value < 0.05) == (not one.lower <= one.observed <= one.upper), one


def test_numbers_are_those_of_the_metrics(rng):
    """Coverage, tails, bars and frequencies at thresholds."""
    y, dist = continuous(rng, 300)
    test = quick(y, dist, thresholds=[-0.5, 0.5])

    assert_allclose(test.of("coverage", 0.9).observed, metrics.interval_coverage(y, dist, 0.9))
    assert_allclose(test.of("below", 0.05).observed, np.mean(dist.cdf(y) <= 0.05))
    assert_allclose(test.of("above", 0.1).observed, np.mean(dist.cdf(y) >= 0.9))
    bars = [one.observed for one in test.all_of("bar")]
    assert_allclose(bars, metrics.pit_histogram(y, dist).density / 10)
    for one in test.all_of("threshold"):
        assert_allclose(one.observed, np.mean(y <= one.place))
        assert_allclose(one.expected, np.mean(dist.cdf(one.place)))


def test_masses_are_judged(rng):
    """P(Y = 0) that is too small is found, where it is and by how much."""
    y, dist = clipped(rng, 400)
    y = np.where(rng.random(400) < 0.15, 0.0, y)
    (mass,) = quick(y, dist).all_of("mass")

    assert mass.place == 0.0 and mass.p_value <= 0.01
    assert_allclose(mass.observed, np.mean(y == 0.0))
    assert_allclose(mass.expected, np.mean(dist.mass(0.0)))


def test_units_and_scale_of_weights_do_not_matter(rng):
    """Outcomes in other units, and weights times a number; rows of weight 0 are not there."""
    y, dist = continuous(rng, 100)
    weights = rng.exponential(size=100)
    wanted = [one.p_value for one in quick(y, dist, sample_weight=weights).statements]
    moved = Normal(10.0 * dist.loc - 3.0, 10.0 * dist.scale)
    more = np.append(y, 50.0), Normal(np.append(dist.loc, 0.0), np.ones(101))

    for other in (
        quick(10.0 * y - 3.0, moved, sample_weight=weights),
        quick(y, dist, sample_weight=7.0 * weights),
        quick(*more, sample_weight=np.append(weights, 0.0)),
    ):
        assert_allclose([one.p_value for one in other.statements], wanted)


def test_wrong_normal_of_the_toy_is_found():
    """Also where only single rows are wrong and the PIT histogram is nearly level."""
    y, truth, wrong = toy(800)

    assert quick(y, truth).p_value > 0.05
    assert quick(y, wrong).p_value == 0.01


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows_have_a_verdict(n, rng):
    """No rows are too few to be asked, and they never say much."""
    y, dist = continuous(rng, n)
    test = quick(y, dist)

    assert 0.0 < test.p_value <= 1.0
    assert np.isnan(test.noticed.too_wide)


def test_a_constant_target_that_is_known_is_no_sign():
    """Predictions without doubt that come true have nothing to be judged by."""
    test = quick(np.full(30, 2.0), Normal(np.full(30, 2.0), np.full(30, 1e-9)))

    assert np.isfinite([one.observed for one in test.statements]).all()


def test_nothing_is_judged_after_the_end_of_follow_up(rng):
    """A threshold there is no statement and changes none; without any other it is refused."""
    loc = rng.normal(size=200)
    y = rng.normal(loc)
    seen = Outcomes.right_censored(np.minimum(y, 0.5), y < 0.5)
    # right up to the end of follow-up, and as wrong as can be after it
    dist = Clipped(Normal(loc, np.ones(200)), high=0.6)
    inside, both = (quick(seen, dist, thresholds=grid) for grid in ([0.0, 0.5], [0.0, 0.5, 0.55]))

    assert repr(inside) == repr(both)
    assert [one.place for one in both.all_of("threshold")] == [0.0, 0.5]
    with pytest.raises(ValueError, match=r"y <= t at t = 0\.55: .* of 200 outcomes are"):
        quick(seen, dist, thresholds=[0.55])
