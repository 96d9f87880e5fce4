"""Costs of decisions, by hand and by simulation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import regcal


def test_costs_are_those_of_a_loop(rng):
    """Acting costs 1; not acting costs 4 where y > t."""
    n, group = 400, np.arange(400) % 2
    loc = rng.normal(size=n)
    y, dist, w = rng.normal(loc), regcal.Normal(loc, 1.0), rng.exponential(size=n)
    audit = regcal.audit(y, dist, groups=group, costs={0.5: (1.0, 4.0)}, sample_weight=w)
    risk = dist.sf(0.5)
    for cost in audit.costs:
        rows = np.ones(n, bool) if cost.segment == "all rows" else group == int(cost.segment[-1])
        act = risk >= 0.25
        predicted = np.where(act, 1.0, 4.0 * risk)
        realised = np.where(act, 1.0, 4.0 * (y > 0.5))
        assert_allclose(cost.predicted, np.average(predicted[rows], weights=w[rows]))
        assert_allclose(cost.realised, np.average(realised[rows], weights=w[rows]))
        assert_allclose(cost.acted, np.average(act[rows], weights=w[rows]))
    assert {cost.threshold for cost in audit.costs} == {0.5}


def test_differences_are_within_their_errors_where_predictions_are_right():
    """Standard errors are right: two thirds of differences are within one of them."""
    within = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        loc = rng.normal(size=300)
        audit = regcal.audit(
            rng.normal(loc), regcal.Normal(loc, 1.0), None, None, [0.0, 1.0], (1.0, 3.0), n_draws=1
        )
        within += [abs(cost.difference) < cost.standard_error for cost in audit.costs]

    assert 0.55 < np.mean(within) < 0.82


@pytest.mark.parametrize(
    "costs", [(1.0, 4.0), {0.0: (1.0, 4.0), 1.0: (1.0, 4.0)}, lambda t: (1.0, 4.0)]
)
def test_three_ways_to_say_the_same(costs, rng):
    """A pair, a mapping and a function."""
    y = rng.normal(size=100)
    dist = regcal.Normal(np.zeros(100), 1.0)
    first, second = (
        regcal.audit(y, dist, thresholds=[0.0, 1.0], costs=one).cost_table()
        for one in (costs, (1.0, 4.0))
    )

    assert first.equals(second)
    assert list(first.columns[6:9]) == ["realised", "difference", "standard_error"]


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ((4.0, 1.0), "0 < acting < missing, got"),
        ((0.0, 1.0), "0 < acting < missing"),
        ({}, "costs is empty"),
        ({np.inf: (1, 2)}, "one finite number, got inf"),
        ({"a": (1, 2)}, "must hold numbers"),
        (3.0, "pairs"),
    ],
)
def test_costs_without_a_decision_are_refused(costs, message):
    """The rule is in the message."""
    with pytest.raises(ValueError, match=message):
        regcal.audit([0.0, 1.0], regcal.Normal([0.0, 0.0], 1.0), costs=costs)
