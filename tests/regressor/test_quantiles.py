"""Quantile regressors joined to a distribution."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import QuantileRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from regcal import CalibratedRegressorCV, MultiQuantileRegressor


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (QuantileRegressor(alpha=0.0), "quantile"),
        (HistGradientBoostingRegressor(loss="quantile", max_iter=5), "quantile"),
        (GradientBoostingRegressor(loss="quantile", n_estimators=5, random_state=0), "alpha"),
        (
            make_pipeline(StandardScaler(), QuantileRegressor(alpha=0.0)),
            "quantileregressor__quantile",
        ),
    ],
    ids=["linear", "histogram boosting", "boosting", "pipeline"],
)
def test_quantile_regressors_are_joined(data, estimator, name):
    """The quantiles are those of the regressor fitted once for each level, sorted."""
    X, y = data
    levels = (0.1, 0.5, 0.9)
    model = MultiQuantileRegressor(estimator, levels).fit(X, y)

    alone = [clone(estimator).set_params(**{name: q}).fit(X, y).predict(X) for q in levels]
    wanted = np.sort(np.column_stack(alone), axis=1)
    assert_allclose(model.predict_dist(X).ppf([levels]), wanted, atol=1e-9)
    assert_allclose(model.predict(X), wanted[:, 1], atol=1e-9)
    without = MultiQuantileRegressor(estimator, levels[::2]).fit(X, y)
    assert_allclose(without.predict(X), without.predict_dist(X).median())


def test_quantile_regressors_are_calibrated(data):
    """Levels that were missed are put right by a wrapper around all levels together."""
    X, y = data
    narrow = MultiQuantileRegressor(QuantileRegressor(alpha=0.0), (0.3, 0.5, 0.7))
    model = CalibratedRegressorCV(narrow, "pit", ensemble=False).fit(X, y)

    low, high = model.predict_interval(X, 0.8).T
    assert 0.7 < np.mean((low <= y) & (y <= high)) < 0.9


@pytest.mark.parametrize("estimator", [Ridge(), HistGradientBoostingRegressor()])
def test_what_is_no_quantile_regressor_is_refused(data, estimator):
    with pytest.raises(ValueError, match=r'does not predict a quantile.*loss="quantile"'):
        MultiQuantileRegressor(estimator).fit(*data)


@pytest.mark.parametrize("levels", [(0.5,), (0.9, 0.1), (5, 95), (0.0, 0.5), ((0.1, 0.9),)])
def test_levels_are_checked(data, levels):
    with pytest.raises(ValueError, match="two increasing probabilities"):
        MultiQuantileRegressor(QuantileRegressor(), levels).fit(*data)
