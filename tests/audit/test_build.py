"""The audit as a whole: level, power, and what must not change it."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

import regcal
from regcal import Clipped, Normal, Outcomes, QuantileGrid, Rounded


def planted(n, seed=0, shift=0.6):
    """Return outcomes of which those of a tenth, group 3, are lower than predicted."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    group = rng.integers(10, size=n)
    return rng.normal(X[:, 0] - shift * (group == 3)), Normal(X[:, 0], 1.0), X, group


def same(first, second, rtol=1e-9):
    assert [one.segment for one in first.segments] == [one.segment for one in second.segments]
    for name in ("n_rows", "predicted", "observed", "statistic", "lower", "upper"):
        values = ([getattr(one, name) for one in audit.segments] for audit in (first, second))
        assert_allclose(*values, rtol=rtol, atol=1e-9)
    assert_allclose(first.p_values, second.p_values, atol=0.002)


# ----------------------------------------------------------------------------------- level, power


def test_level_is_kept():
    """Of searches where nothing is wrong, one in twenty finds something, but for chance."""
    found = []
    for seed in range(40):
        y, dist, X, group = planted(300, seed, shift=0.0)
        audit = regcal.audit(y, dist, X[:, :2], group, QuantileGrid(3), n_draws=200)
        found.append(audit.p_value)

    assert np.mean(np.array(found) < 0.05) < 0.16
    assert 0.3 < np.median(found) < 0.7


def test_level_is_kept_in_tiny_segments():
    """Segments of four rows: single events are not taken for news."""
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        loc = rng.normal(size=80)
        y, group = rng.normal(loc, 0.5), rng.integers(20, size=80)
        audit = regcal.audit(y, Normal(loc, 0.5), None, group, QuantileGrid(3), n_draws=200)
        found.append(audit.p_value)

    assert np.mean(np.array(found) < 0.05) < 0.16
    assert 0.25 < np.median(found) < 0.8


def test_planted_group_is_first():
    """The group that is wrong leads the list, and what it says is true."""
    y, dist, X, group = planted(3000)
    audit = regcal.audit(y, dist, X, group)
    worst, rows = audit.segments[0], group == 3

    assert worst.segment == "group = 3"
    assert worst.p_value == audit.p_value < 0.001
    assert worst.n_rows == rows.sum()
    at_thresholds = regcal.audit(y, dist, X, group, coverage=()).segments[0]
    t = at_thresholds.place
    assert at_thresholds.segment == "group = 3" and at_thresholds.kind == "threshold"
    assert_allclose(at_thresholds.observed, np.mean(y[rows] <= t))
    assert_allclose(at_thresholds.predicted, dist[rows].cdf(t).mean())
    assert worst.upper < worst.difference
    right = next(one for one in audit.segments if one.segment == "group = 5")
    assert right.lower < right.difference < right.upper


@pytest.mark.parametrize(("factor", "word"), [(2.0, "narrow"), (0.5, "wide")])
def test_a_spread_that_cancels_at_thresholds_is_found(factor, word):
    """Medians vary widely, so that a tenth with a wrong spread looks right at any threshold."""
    rng = np.random.default_rng(0)
    loc, group = rng.uniform(0.0, 100.0, 2000), rng.integers(10, size=2000)
    y, dist = rng.normal(loc, np.where(group == 3, factor, 1.0)), Normal(loc, 1.0)
    audit = regcal.audit(y, dist, {"loc": loc}, group)
    worst, (low, high) = audit.segments[0], dist[group == 3].interval(0.9)
    held = np.mean((low <= y[group == 3]) & (y[group == 3] <= high))

    assert regcal.audit(y, dist, {"loc": loc}, group, coverage=()).p_value > 0.05
    assert (worst.segment, worst.kind) == ("group = 3", "coverage")
    assert audit.p_value < 0.001
    assert [one.segment for one in audit.wrong if one.covariate] == ["group = 3"]
    by_kind = dict(zip(audit.kinds[-3:], audit.observed[0, -3:], strict=True))
    assert_allclose(by_kind["coverage"], held)
    assert_allclose(by_kind["below"], np.mean(y[group == 3] < low))
    assert_allclose(by_kind["above"], np.mean(y[group == 3] > high))
    assert (held < 0.9) == (word == "narrow")


def test_of_scores_beyond_all_measure_the_largest_sum_is_told(rng):
    """Both intervals are as wrong as scores can be; the outer one is further off by its chance."""
    loc = rng.uniform(0.0, 100.0, 4000)
    audit = regcal.audit(rng.normal(loc, 6.0), Normal(loc, 1.0))

    sizes = np.abs(audit.statistics[0])
    assert (sizes[[kind == "coverage" for kind in audit.kinds]] > 40.0).all()
    assert (audit.segments[0].kind, audit.segments[0].place) == ("coverage", 0.9)


def test_bands_and_p_values_agree():
    """A difference is outside of its band where its p-value is below 0.05."""
    for seed in range(3):
        y, dist, X, group = planted(1500, seed, shift=0.4)
        for one in regcal.audit(y, dist, X, group).segments:
            assert (one.p_value < 0.05) == (not one.lower < one.difference < one.upper)


# ------------------------------------------------------------------------------- what has no say


def test_units_have_no_say():
    """Feet or metres, of the target and of covariates."""
    y, dist, X, group = planted(600)
    there = regcal.audit(y, dist, X, group)
    scaled = regcal.audit(1000 + 8 * y, Normal(1000 + 8 * dist.mean(), 8.0), X, group)

    same(there, scaled, rtol=1e-6)
    moved = regcal.audit(y, dist, 4 * X, group)
    assert moved.p_value == there.p_value


@pytest.mark.parametrize("n", [600, 2500])
def test_order_of_rows_has_no_say(n, rng):
    """Draws follow the outcomes, not the places of rows."""
    y, dist, X, group = planted(n)
    order = rng.permutation(n)

    same(
        regcal.audit(y, dist, X, group), regcal.audit(y[order], dist[order], X[order], group[order])
    )


def test_same_seed_same_answer():
    """And another seed moves p-values by little."""
    y, dist, X, group = planted(500, shift=0.4)
    first, again, other = (regcal.audit(y, dist, X, group, random_state=k) for k in (0, 0, 1))

    same(first, again, rtol=0)
    assert_allclose(first.p_values, other.p_values, atol=0.06)
    assert (first.p_values != other.p_values).any()


def test_a_weight_of_two_is_two_rows_for_the_estimates(rng):
    """Predicted and observed shares, segments and their weight; chance is that of fewer rows."""
    y, dist, X, group = planted(500)
    weights = rng.integers(0, 3, 500).astype(float)
    often = np.repeat(np.arange(500), weights.astype(int))
    weighted = regcal.audit(y, dist, X, group, thresholds=[0.0], coverage=(), sample_weight=weights)
    repeated = regcal.audit(
        y[often], dist[often], X[often], group[often], thresholds=[0.0], coverage=()
    )
    twins = {one.segment: one for one in repeated.segments}

    assert len(twins) == len(weighted.segments)
    for one in weighted.segments:
        twin = twins[one.segment]
        assert_allclose(one.predicted, twin.predicted)
        assert_allclose(one.observed, twin.observed)
        assert_allclose(one.weight, twin.weight)
        assert abs(one.statistic) <= abs(twin.statistic) + 1e-9
    assert weighted.n_rows == np.count_nonzero(weights)


def test_scale_of_weights_has_no_say(rng):
    """Weights are relative: ten times as much tells nothing more."""
    y, dist, X, group = planted(500)
    weights = rng.exponential(size=500)

    first, second = (
        regcal.audit(y, dist, X, group, sample_weight=k * weights) for k in (1.0, 10.0)
    )
    assert_allclose(first.p_values, second.p_values)
    assert_allclose(first.statistics, second.statistics)


# ------------------------------------------------------------------------------------- odd outcomes


def test_point_masses_are_counted_with_their_threshold():
    """P(Y <= 0) holds the mass at 0; counts are compared at whole numbers."""
    rng = np.random.default_rng(3)
    loc = rng.normal(size=3000)
    latent = rng.normal(loc)
    x = {"x": rng.normal(size=3000)}
    clipped = regcal.audit(np.maximum(latent, 0.0), Clipped(Normal(loc, 1.0), low=0.0), x)
    rounded = regcal.audit(np.round(latent), Rounded(Normal(loc, 1.0)), x)

    assert clipped.p_value > 0.05 and rounded.p_value > 0.05
    at_zero = Clipped(Normal(loc, 1.0), low=0.0).cdf(np.zeros(3000))[latent <= 0.0]
    # all masses reach down to 0; an interval ends in those that hold one of its levels inside
    parted = np.count_nonzero(at_zero > 0.05)
    assert clipped.note.startswith(f"{parted:,} of 3,000 outcomes lie on point masses")
    assert clipped.thresholds[0] == 0.0
    assert_allclose(rounded.thresholds, np.unique(np.round(rounded.thresholds)))
    wrong = regcal.audit(np.maximum(latent, 0.0), Clipped(Normal(loc + 0.5, 1.0), low=0.0), x)
    assert wrong.p_value < 0.01


def test_censored_rows_keep_the_level_and_show_the_group():
    """What is not known is expected: no news by itself, and no end of news."""
    found = []
    for seed in range(30):
        y, dist, X, group = planted(300, seed, shift=0.0)
        limit = np.random.default_rng(seed + 100).normal(0.5, 1.0, 300)
        seen = Outcomes.right_censored(np.minimum(y, limit), y <= limit)
        audit = regcal.audit(seen, dist, X[:, :2], None, QuantileGrid(4), n_draws=200)
        found.append(audit.p_value)
    assert np.mean(np.array(found) < 0.05) < 0.18
    assert 0.25 < np.median(found) < 0.75

    y, dist, X, group = planted(3000)
    limit = np.random.default_rng(1).normal(1.0, 1.0, 3000)
    seen = Outcomes.right_censored(np.minimum(y, limit), y <= limit)
    audit = regcal.audit(seen, dist, X, group)
    assert audit.segments[0].segment == "group = 3"
    assert "outcomes are right-censored" in audit.note and audit.note in str(audit)


def test_censored_rows_count_as_what_is_expected_of_them(rng):
    """By hand: above c, y <= t has probability (F(t) - F(c)) / (1 - F(c)), and less variance."""
    y, limit, t = rng.normal(size=500), rng.normal(0.5, 1.0, 500), 0.8
    seen = Outcomes.right_censored(np.minimum(y, limit), y <= limit)
    dist = Normal(np.zeros(500), 1.0)
    one = regcal.audit(seen, dist, thresholds=[t], coverage=()).segments[0]
    hidden, q = (limit < y) & (limit <= t), ndtr(t)
    label = np.where(hidden, (q - ndtr(limit)) / (1.0 - ndtr(limit)), y <= t)
    known = np.sum(q * (1.0 - q) - label * (1.0 - label))
    variance = max(known, np.sum((label - q) ** 2))

    assert_allclose(one.observed, label.mean())
    assert_allclose(one.statistic, np.sum(label - q) / np.sqrt(variance))


def test_nothing_is_judged_after_the_end_of_follow_up():
    """Thresholds there, of costs as well, change nothing and are named; alone they are refused."""
    y, dist, X, _ = planted(300)
    seen = Outcomes.right_censored(np.minimum(y, 0.5), y < 0.5)
    inside, both = (
        regcal.audit(seen, dist, X[:, :2], thresholds=grid, costs=costs, n_draws=200)
        for grid, costs in (
            ([0.0, 0.5], {0.2: (1.0, 4.0)}),
            ([0.0, 0.5, 3.0], {0.2: (1.0, 4.0), 9.0: (1.0, 4.0)}),
        )
    )

    same(inside, both)
    assert inside.costs == both.costs
    assert list(both.thresholds) == [0.0, 0.5]
    assert "nothing is known" not in inside.note
    assert "; nothing is known at 3, 9, beyond what was seen." in both.note
    with pytest.raises(ValueError, match=r"y <= t at t = 3: .* of 300 outcomes are"):
        regcal.audit(seen, dist, X, thresholds=[3.0])


def test_impossible_outcomes_are_found():
    """Outcomes where the prediction has no probability at all are the worst of all."""
    dist = Clipped(Normal(np.zeros(200), 1.0), low=0.0)
    y = np.r_[-np.ones(3), np.linspace(0.1, 2.0, 197)]
    audit = regcal.audit(y, dist, {"x": np.arange(200.0)}, thresholds=[-0.5, 1.0])

    assert audit.p_value < 0.001
    assert (audit.segments[0].kind, audit.segments[0].place) == ("threshold", -0.5)


def test_thresholds_that_no_row_comes_near_say_nothing(rng):
    """Probabilities of 1e-18, which are below the last digit of 1, neither overflow nor count."""
    loc = np.repeat([0.0, 8.8], 100)
    audit = regcal.audit(rng.normal(loc), Normal(loc, 1.0), {"loc": loc}, thresholds=[0.0])
    far = next(k for k, one in enumerate(audit.segments) if one.segment == "loc = 8.8")

    assert 0.0 < audit.predicted[far, 0] < 1e-17
    assert audit.p_values[far, 0] == 1.0


def test_one_row_and_equal_outcomes_have_an_answer():
    """Little data give a large p-value, not an error."""
    assert regcal.audit([0.3], Normal([0.0], 1.0), [[1.0]]).p_value > 0.3
    audit = regcal.audit([2.0] * 9, Normal([2.0] * 9, 1.0), {"x": [None] * 9})
    assert audit.segments[0].n_rows == 9


def test_without_covariates_all_rows_are_the_segment(rng):
    """The search is then one over thresholds."""
    audit = regcal.audit(rng.normal(1.0, 1.0, 300), Normal(np.zeros(300), 1.0))

    assert [one.segment for one in audit.segments] == ["all rows"]
    assert audit.p_value < 0.001


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"covariates": np.ones((3, 2))}, "'x0' has 3 values for 2 rows"),
        ({"groups": ["a"]}, "'group' has 1 values for 2 rows"),
        ({"covariates": {"a": [1.0, np.inf]}}, "'a' is inf in row 1"),
        ({"thresholds": [1.0, 0.0]}, "strictly increasing"),
        ({"thresholds": [np.nan]}, "not finite"),
        ({"sample_weight": [1.0, -1.0]}, "must not be negative"),
        ({"coverage": 90}, r"coverage must be between 0 and 1, got 90.* Write 90 % as 0.9"),
        ({"coverage": [[0.5, 0.9]]}, r"coverage has the shape \(1, 2\)"),
        ({"n_draws": 0}, "n_draws must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    """The message names what is wrong."""
    with pytest.raises(ValueError, match=message):
        regcal.audit([0.0, 1.0], Normal([0.0, 0.0], 1.0), **arguments)


def test_outcomes_have_to_fit():
    """One per distribution."""
    with pytest.raises(ValueError, match="Got 3 targets for 2 distributions"):
        regcal.audit([0.0, 1.0, 2.0], Normal([0.0, 0.0], 1.0))


def test_tables_of_other_rows_are_refused(rng):
    """An index that differs is told, wherever it comes from; what has none is taken in order."""
    y, dist, X, group = planted(50)
    rows = pd.Index(rng.permutation(50))
    seen, table = pd.Series(y, rows), pd.DataFrame(X, rows, columns=list("abcd"))
    aligned = regcal.audit(seen, dist, table, pd.Series(group, rows), n_draws=50)

    named = dict(zip("abcd", X.T, strict=True))
    same(aligned, regcal.audit(y, dist, named, {"group": group}, n_draws=50))
    for other in (table.sort_index(), {"a": table["a"].sort_index()}):
        with pytest.raises(ValueError, match=r"covariates has another index than y, from row \d+"):
            regcal.audit(seen, dist, other)
    with pytest.raises(ValueError, match=r"groups has another index than covariates"):
        regcal.audit(y, dist, table, pd.Series(group))
    draws = pd.DataFrame(dist.sample(20, random_state=0))
    with pytest.raises(ValueError, match=r"dist has another index than y.*pass table.to_numpy"):
        regcal.audit(seen, draws)
    assert regcal.audit(y, dist, table.sort_index(), list(group), n_draws=50).n_rows == 50
