"""What was seen of Y: intervals, how they are made, and how they are scored."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import cross_val_score, train_test_split

import regcal
from regcal import Normal, Outcomes


def test_constructors_make_intervals():
    """Numbers, one-sided and two-sided knowledge."""
    y, observed = [1.0, 2.0, 3.0], [True, False, True]

    right, left = Outcomes.right_censored(y, observed), Outcomes.left_censored(y, observed)

    assert_array_equal([right.lower, right.upper], [y, [1.0, np.inf, 3.0]])
    assert_array_equal([left.lower, left.upper], [[1.0, -np.inf, 3.0], y])
    assert_array_equal(Outcomes.exact(y).exact_rows, [True] * 3)
    assert_array_equal(Outcomes(y, [2.0, 2.0, 9.0]).exact_rows, [False, True, False])
    assert len(right[[2, 0]]) == 2 and right[1].upper == [np.inf]


@pytest.mark.parametrize("name", ["scale", "pit", "e-beta", "gpc", "gp-density"])
def test_rows_that_tell_nothing_teach_nothing(name, rng):
    """Times that are censored at 0, where times begin, are not learnt from as zeros are."""
    dist = Normal(rng.uniform(1.0, 3.0, 60), np.ones(60))
    time, observed = np.maximum(dist.loc + 2.0 * rng.normal(size=60), 0.1), np.arange(60) % 4 > 0
    time[1] = 0.0  # so that the range is the same
    points = np.linspace(0.0, 6.0, 7)[np.newaxis, :]

    def probabilities(zeros, seen):
        times, known = np.append(time, np.zeros(zeros)), np.append(observed, np.full(zeros, seen))
        predicted = dist[np.append(np.arange(60), np.arange(zeros))]
        cal = regcal.get_calibrator(name, support=(0, None))
        cal.fit(predicted, Outcomes.right_censored(times, known))
        return cal.transform(dist).cdf(points)

    expected = probabilities(0, False)
    censored, zero = (np.abs(probabilities(20, seen) - expected).mean() for seen in (False, True))
    assert censored < 0.4 * zero


@pytest.mark.parametrize("fields", [("event", "time"), ("time", "event")])
def test_survival_arrays_are_recognised(fields):
    """Structured arrays of events and times, in either order, are right-censored."""
    kinds = {"event": bool, "time": float}
    y = np.zeros(2, dtype=[(name, kinds[name]) for name in fields])
    y["event"], y["time"] = [True, False], [5.0, 8.0]

    seen = Outcomes.of(y)

    assert_array_equal([seen.lower, seen.upper], [[5.0, 8.0], [5.0, np.inf]])
    assert Outcomes.of(seen) is seen
    assert_allclose(
        regcal.log_score(y, Normal([5.0, 5.0], [1.0, 3.0])),
        [scipy.stats.norm.logpdf(0.0), scipy.stats.norm.logsf(1.0)],
    )


def test_log_score_of_intervals_is_their_probability(rng):
    """Far out in both tails too, where differences of CDFs are lost."""
    dist = Normal(np.zeros(5), np.ones(5))
    lower = np.array([-np.inf, -1.0, 30.0, -31.0, 0.5])
    upper = np.array([-2.0, 1.0, 31.0, -30.0, 0.5])

    scores = regcal.log_score(Outcomes(lower, upper), dist)

    norm = scipy.stats.norm
    assert_allclose(scores[0], norm.logcdf(-2.0))
    assert_allclose(scores[1], np.log(norm.cdf(1.0) - norm.cdf(-1.0)))
    assert_allclose(scores[2:4], norm.logsf(30.0), atol=1e-12)
    assert_allclose(scores[4], norm.logpdf(0.5))


def test_intervals_hold_the_masses_at_their_ends():
    """Closed at both ends: what lies on an end counts."""
    dist = regcal.Clipped(Normal([0.0], [1.0]), -1.0, 1.0)

    assert_allclose(dist.logprob(-1.0, 1.0), 0.0, atol=1e-12)
    assert_allclose(np.exp(dist.logprob(-1.0, -1.0)), dist.mass(-1.0))
    assert_allclose(np.exp(dist.logprob(0.0, 1.0)), 0.5)
    assert_allclose(regcal.log_score([-1.0], dist), np.log(dist.mass(-1.0)))


def test_pit_is_uniform_with_masses_and_censoring(rng):
    """Values of calibrated predictions are uniform whatever was seen of the outcomes."""
    n = 4000
    latent = Normal(rng.normal(size=n), rng.uniform(0.5, 2.0, n))
    y = latent.sample(1, random_state=1)[:, 0]
    limit = rng.normal(1.0, 1.0, n)
    seen = {
        "clipped": (np.maximum(y, 0.0), regcal.Clipped(latent, low=0.0)),
        "rounded": (np.round(y), regcal.Rounded(latent)),
        "rounded values": (Outcomes(np.round(y) - 0.5, np.round(y) + 0.5), latent),
    }

    for name, (outcomes, dist) in seen.items():
        values = regcal.pit(outcomes, dist, random_state=3)
        assert scipy.stats.kstest(values, "uniform").pvalue > 1e-4, name
        assert_array_equal(values, regcal.pit(outcomes, dist, random_state=3))
    # censored values are uniform above the probability of the limit
    censored = Outcomes.right_censored(np.minimum(y, limit), y <= limit)
    values = regcal.pit(censored, latent, random_state=3)
    assert scipy.stats.kstest(values, "uniform").pvalue > 1e-4
    assert_array_equal(values[y <= limit], latent.cdf(y)[y <= limit])


EVENTS = {"died": [True, False], "time": [5.0, 8.0]}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Outcomes([2.0], [1.0]), "Row 0 has lower = 2.0 and upper = 1.0"),
        (lambda: Outcomes([-np.inf], [np.inf]), "one of the ends must be finite"),
        (lambda: Outcomes([1.0, 2.0], [3.0]), "2 lower and 1 upper ends"),
        (lambda: Outcomes([np.nan], [3.0]), "that is not known as infinite"),
        (lambda: Outcomes.right_censored([1.0], [3]), "observed must be 1 truth values"),
        (lambda: Outcomes.of(np.zeros(2, dtype=[("a", float), ("b", float)])), "fields a, b"),
        (lambda: regcal.log_score(Outcomes([1.0], [2.0]), Normal([0.0] * 2, 1.0)), "1 outcomes"),
        (lambda: Outcomes.of([(True, 5.0), (False, 8.0)]), "column of truth values beside"),
        (lambda: Outcomes.of(pd.DataFrame(EVENTS)), "column of truth values beside"),
        (lambda: Outcomes.of(pd.DataFrame(EVENTS).astype({"died": "boolean"})), "truth values"),
        (lambda: Outcomes.of(pl.DataFrame(EVENTS)), "column of truth values beside"),
        (lambda: Outcomes.right_censored([1.0], [None]), "got None in row 0. Pass True where y is"),
        (lambda: Outcomes.right_censored([1.0], [[True]]), r"got bool of shape \(1, 1\)"),
        (lambda: Outcomes.right_censored([1.0, 2.0], [1, 2]), "got 2 in row 1. Pass True"),
        (lambda: Outcomes.right_censored([1.0, 2.0], ["yes", "no"]), "got 'yes' in row 0. Pass"),
        (lambda: Outcomes.of([(1, 5.0), (0, 8.0)]), "zeros and ones.*right_censored"),
        (lambda: Outcomes.of(pd.DataFrame(EVENTS).astype({"died": int})), "zeros and ones.*to 8"),
        (lambda: Outcomes.of([(5.0, 1), (8.0, 0)]), "upper ends are zeros and ones.*right_cens"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    """Every message names the value and the rule."""
    with pytest.raises(ValueError, match=message):
        make()


def test_zeros_and_ones_may_be_ends():
    """Of times that began at 0, of labels that are known or not, and where the user says so."""
    for lower, upper in [([0, 0], [5, 8]), ([0, 1, 1], [0, 1, np.inf]), ([-2, -1], [0, 1])]:
        assert Outcomes.of(np.column_stack([lower, upper])) == Outcomes(lower, upper)
    assert_array_equal(Outcomes([0.0, 1.0], [5.0, 8.0]).upper, [5.0, 8.0])


def test_scikit_learn_splits_outcomes(rng):
    """Rows stay with their ends, in splits and in cross-validation."""
    X = rng.normal(size=(60, 2))
    y, limit = X[:, 0] + rng.normal(size=60), rng.normal(1.0, 1.0, 60)
    seen = Outcomes.right_censored(np.minimum(y, limit), y <= limit)

    rows, _, part, _ = train_test_split(np.arange(60), seen, random_state=0)
    model = regcal.CalibratedRegressorCV(BayesianRidge(), "scale")
    scores = cross_val_score(model, X, seen, scoring=regcal.metrics.log_score_scorer, cv=3)

    assert part == seen[rows]
    assert np.isfinite(scores).all()


def test_outcomes_are_equal_if_their_ends_are():
    """Whatever arrays hold them; and they are no array themselves."""
    one = Outcomes([1.0, 2.0], [1.0, np.inf])

    assert one == Outcomes.right_censored([1, 2], np.array([True, False], dtype=object))
    assert one != Outcomes.exact([1.0, 2.0])
    assert one != [1.0, 2.0]
    with pytest.raises(TypeError, match=r"Take \.lower and \.upper"):
        np.asarray(one)
