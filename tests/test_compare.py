"""Tables that compare models, and scorers for scikit-learn's model selection."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate

from regcal import Histogram, Normal, metrics


@pytest.fixture
def normals(rng):
    """Return targets and the normal distributions they were drawn from."""
    loc = rng.normal(size=400)
    scale = rng.uniform(0.5, 2.0, size=400)
    return rng.normal(loc, scale), Normal(loc, scale)


@pytest.fixture
def weights(rng):
    return rng.integers(0, 4, size=400).astype(float)


# ---------------------------------------------------------------------------------- compare


def test_compare_pairs_rows(normals):
    """Differences are means of row-wise differences, with their standard errors."""
    y, dist = normals
    wide = Normal(dist.loc, 2 * dist.scale)
    table = metrics.compare(y, {"wide": wide, "right": dist})
    gaps = metrics.log_score(y, dist) - metrics.log_score(y, wide)
    entry = table["log score"]

    assert_allclose(entry.differences, [0.0, gaps.mean()])
    assert_allclose(entry.difference_errors, [0.0, stats.sem(gaps)])
    assert_allclose(entry.values[1], metrics.log_score(y, dist).mean())
    assert_allclose(table["sharpness"].values, [2 * dist.scale.mean(), dist.scale.mean()])


def test_compare_agrees_with_the_single_metrics(normals, weights):
    """Every row of the table is what the metric of that name returns."""
    y, dist = normals
    dist = Normal(dist.loc + 0.5, dist.scale)
    table = metrics.compare(y, {"only": dist}, weights, coverage=0.8)
    expected = {
        "CRPS": np.average(metrics.crps(y, dist), weights=weights),
        "interval score 80 %": np.average(metrics.interval_score(y, dist, 0.8), weights=weights),
        "coverage 80 %": metrics.interval_coverage(y, dist, 0.8, weights),
        "quantile calibration error": metrics.quantile_calibration_error(y, dist, None, weights),
        "threshold calibration error": metrics.threshold_calibration_error(
            y, dist, sample_weight=weights
        ),
    }

    for name, value in expected.items():
        assert_allclose(table[name].values, [value], err_msg=name)


def test_jackknife_errors_match_repeated_sampling(rng):
    """Standard errors of calibration errors are about the spread over fresh data sets."""
    values, claimed = [], []
    for _ in range(40):
        loc = rng.normal(size=500)
        table = metrics.compare(rng.normal(loc + 0.4), {"m": Normal(loc, np.ones(500))})
        values.append(table["threshold calibration error"].values[0])
        claimed.append(table["threshold calibration error"].standard_errors[0])

    assert 0.6 < np.mean(claimed) / np.std(values) < 1.6


def test_compare_prints_and_gives_a_frame(normals):
    """The table is readable, and the frame holds the same numbers."""
    y, dist = normals
    table = metrics.compare(y, {"before": dist, "after": dist})
    frame = table.to_frame()

    assert repr(table).splitlines()[0].split() == [
        "before",
        "after",
        "after",
        "-",
        "before",
        "better",
    ]
    assert "log score" in repr(table)
    assert_allclose(frame.loc["CRPS", "after"], table["CRPS"].values[1])
    assert_allclose(frame["after - before"], 0.0)
    with pytest.raises(KeyError, match="log score"):
        table["nonsense"]


def test_compare_survives_impossible_outcomes():
    """A log score of minus infinity stays one, without a warning."""
    dist = Histogram([0.0, 1.0, 2.0], [[0.5, 0.5]] * 4)
    table = metrics.compare([0.5, 1.5, 5.0, 0.2], {"a": dist, "b": dist})

    assert np.isneginf(table["log score"].values).all()
    assert "-inf" in repr(table)


# ---------------------------------------------------------------------------------- scorers


class Ridge(RegressorMixin, BaseEstimator):
    """A regressor with `predict_dist`, as regcal's own have."""

    def __init__(self, spread=1.0):
        self.spread = spread

    def fit(self, X, y):
        self.model_ = BayesianRidge().fit(X, y)
        return self

    def predict_dist(self, X):
        mean, std = self.model_.predict(X, return_std=True)
        return Normal(mean, self.spread * std)


@pytest.fixture
def regression(rng):
    X = rng.normal(size=(300, 2))
    return X, X @ [1.0, -2.0] + rng.normal(size=300)


@pytest.mark.parametrize(
    "scorer",
    [
        metrics.log_score_scorer,
        metrics.crps_scorer,
        metrics.interval_score_scorer,
        metrics.quantile_calibration_scorer,
        metrics.threshold_calibration_scorer,
    ],
)
def test_scorers_choose_the_right_spread(scorer, regression):
    """In a grid search every scorer prefers the honest spread: larger is better."""
    search = GridSearchCV(Ridge(), {"spread": [0.2, 1.0, 5.0]}, scoring=scorer, cv=3)

    assert search.fit(*regression).best_params_ == {"spread": 1.0}


def test_scorers_take_weights_through_metadata_routing(regression, rng):
    """scikit-learn's routing hands weights to a scorer that asks for them."""
    X, y = regression
    weights = rng.integers(0, 3, size=len(y)).astype(float)
    scorer = metrics.crps_scorer.set_score_request(sample_weight=True)
    with sklearn.config_context(enable_metadata_routing=True):
        result = cross_validate(
            Ridge(),
            X,
            y,
            scoring=scorer,
            cv=2,
            params={"sample_weight": weights},
            return_indices=True,
            return_estimator=True,
        )
    test, model = result["indices"]["test"][0], result["estimator"][0]
    rows = metrics.crps(y[test], model.predict_dist(X[test]))

    assert_allclose(result["test_score"][0], -np.average(rows, weights=weights[test]))


def test_scorer_passes_parameters_and_weights(regression):
    """Parameters reach the metric; rows of weight 0 do not count."""
    X, y = regression
    model = Ridge().fit(X, y)
    scorer = metrics.DistributionScorer(
        metrics.interval_score, greater_is_better=False, coverage=0.5
    )
    expected = metrics.interval_score(y[:10], model.predict_dist(X[:10]), 0.5).mean()

    assert_allclose(scorer(model, X, y, np.arange(300) < 10), -expected)


def test_scorer_says_what_an_estimator_lacks(regression):
    """A plain regressor has no distributions to score."""
    with pytest.raises(TypeError, match="predict_dist"):
        metrics.log_score_scorer(BayesianRidge(), *regression)


def test_scorers_work_in_cross_val_score(regression):
    """The usual entry point takes the scorer as it is."""
    assert cross_val_score(Ridge(), *regression, scoring=metrics.log_score_scorer).shape == (5,)
