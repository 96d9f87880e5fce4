"""Scorers for scikit-learn's model selection."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate

from regcal import Normal, metrics


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
