"""Shares of learners, and what is said of rows that were left out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import lsq_linear, minimize_scalar

from regcal.corrections import AdditiveLearner, RegressorLearner, Seen, cross_fitted
from regcal.corrections.base import Learner
from regcal.corrections.cross_fit import shares_of_shift, shares_of_spread
from regcal.covariates import Covariates


class Memory(Learner):
    """Knows the outcomes of rows that it has learnt from, and nothing else."""

    def learn_shift(self, columns, outcomes, weights):
        """Return a table of outcomes."""
        known = dict(zip(columns["id"].values, outcomes, strict=True))
        return lambda new: np.array([known.get(one, 0.0) for one in new["id"].values])

    def learn_log_factor(self, columns, squares, weights):
        """Return a table of squares."""
        known = dict(zip(columns["id"].values, 0.5 * np.log(squares + 1e-9), strict=True))
        return lambda new: np.array([known.get(one, 0.0) for one in new["id"].values])


class Constant(Learner):
    """Says the same of all rows."""

    def learn_shift(self, columns, outcomes, weights):
        """Return the mean."""
        return lambda new: np.full(len(new), outcomes @ weights / weights.sum())

    def learn_log_factor(self, columns, squares, weights):
        """Return nothing."""
        return lambda new: np.zeros(len(new))


@pytest.fixture
def rows(rng):
    """Rows with a location and a spread that follow a covariate."""
    x = rng.uniform(-2.0, 2.0, 600)
    z = np.sin(2 * x) + np.exp(0.5 * x) * rng.normal(size=600)
    columns = Covariates.of({"x": x, "id": np.arange(600.0)})
    return columns, Seen(z, z, np.ones(600)), np.arange(600) % 5, x


def test_shares_leave_the_least_squares(rng):
    """Non-negative least squares, by scipy's bounded solver."""
    shifts, weights = rng.normal(size=(3, 200)), rng.uniform(0.5, 2.0, 200)
    mean = 0.7 * shifts[0] - 0.5 * shifts[1] + rng.normal(size=200)
    roots = np.sqrt(weights)
    truth = lsq_linear((shifts * roots).T, mean * roots, bounds=(0.0, np.inf), tol=1e-12).x

    assert_allclose(shares_of_shift(shifts, mean, weights), truth, atol=1e-6)


def test_shares_of_spread_are_the_most_likely(rng):
    """Of one learner, by a search along the line; its constant makes the mean square 1."""
    log_factor = rng.normal(size=2000)
    squares = np.exp(2 * 0.6 * log_factor) * rng.normal(size=2000) ** 2
    weights = rng.uniform(0.5, 2.0, 2000)

    def loss(share):
        log_spread = share * log_factor
        log_spread = log_spread + 0.5 * np.log(
            np.average(squares * np.exp(-2 * log_spread), weights=weights)
        )
        return np.average(log_spread + 0.5 * squares * np.exp(-2 * log_spread), weights=weights)

    best = minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-8}).x
    shares, constant = shares_of_spread(log_factor[np.newaxis, :], squares, weights)
    scaled = squares * np.exp(-2.0 * (constant + shares[0] * log_factor))

    assert_allclose(shares, [best], atol=1e-3)
    assert_allclose(np.average(scaled, weights=weights), 1.0)


def test_a_learner_that_remembers_rows_gets_no_share(rows):
    """It is judged on rows that it has not learnt from, where it knows nothing."""
    columns, seen, folds, _ = rows
    found = cross_fitted([Memory()], columns, seen, folds)

    assert not found.correction.shift.shares.any()
    assert np.ptp(found.shift) == 0


def test_memory_does_not_spoil_what_another_learner_finds(rows):
    """The share of a useful learner is not taken by one that remembers."""
    columns, seen, folds, x = rows
    found = cross_fitted([Memory(), AdditiveLearner()], columns, seen, folds)

    assert found.correction.shift.shares[1] > 0.8
    assert np.corrcoef(found.shift, np.sin(2 * x))[0, 1] > 0.9
    assert np.corrcoef(np.log(found.factor), x)[0, 1] > 0.8


def test_what_is_applied_is_the_average_of_what_was_judged(rows):
    """Five parts, each learnt without a fold."""
    columns, seen, folds, _ = rows
    blend = cross_fitted([AdditiveLearner()], columns, seen, folds).correction.shift
    (averaged,) = blend.parts
    parts = [part(columns) for part in averaged.parts]

    assert len(parts) == 5
    assert_allclose(blend(columns), blend.shares[0] * np.mean(parts, axis=0))


def test_a_correction_does_not_depend_on_the_unit_of_the_probit(rows):
    """A base that is ten times too sure, and off by 3, has outcomes 3 + 10 z."""
    columns, seen, folds, _ = rows
    other = Seen(3.0 + 10.0 * seen.low, 3.0 + 10.0 * seen.high, seen.weights)
    one = cross_fitted([AdditiveLearner()], columns, seen, folds).correction
    two = cross_fitted([AdditiveLearner()], columns, other, folds).correction
    (shift, factor), (wide_shift, wide_factor) = one(columns), two(columns)

    assert_allclose(wide_shift, 3.0 + 10.0 * shift, rtol=1e-6, atol=1e-6)
    assert_allclose(wide_factor, 10.0 * factor, rtol=1e-6)


def test_censored_outcomes_do_not_pull_the_location(rng):
    """Of outcomes cut at 0.5 the location is found, which taking them as seen would not."""
    n = 4000
    columns = Covariates.of({"x": rng.normal(size=n)})
    z = rng.normal(size=n)
    cut = z > 0.5
    seen = Seen(np.where(cut, 0.5, z), np.where(cut, np.inf, z), np.ones(n))
    shift, factor = cross_fitted([Constant()], columns, seen, np.arange(n) % 3).correction(columns)

    assert abs(shift[0]) < 0.1 < abs(np.minimum(z, 0.5).mean())
    assert abs(factor[0] - 1.0) < 0.1


def test_a_pair_of_regressors_is_told_weights(rows):
    """Rows of weight 0 next to nothing do not matter to them."""
    from sklearn.linear_model import LinearRegression

    columns, seen, folds, x = rows
    light = np.where(x < 0, 1e-9, 1.0)
    weighted = Seen(seen.low, seen.high, light)
    pair = [RegressorLearner(LinearRegression(), LinearRegression())]
    both = [cross_fitted(pair, columns, one, folds) for one in (seen, weighted)]
    slopes = [np.polyfit(x, found.correction.shift(columns), 1)[0] for found in both]

    assert abs(slopes[0] - slopes[1]) > 0.1
