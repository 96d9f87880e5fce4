"""Spreads from residuals against textbooks and hand-made loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from regcal import NormalResidualRegressor, paper_ols


def test_least_squares_spread_is_the_textbooks(data):
    """The unbiased residual variance, with degrees of freedom for coefficients and intercept."""
    X, y = data
    design = np.column_stack([np.ones(150), X])
    rss = np.linalg.lstsq(design, y, rcond=None)[1][0]

    model = paper_ols().fit(X, y)

    assert_allclose(model.scale_, np.sqrt(rss / 147))
    assert_allclose(model.predict_dist(X).mean(), model.predict(X))


def test_degrees_of_freedom_count_what_the_last_step_sees(data):
    """A pipeline that adds columns uses more degrees of freedom."""
    X, y = data
    model = NormalResidualRegressor(make_pipeline(PolynomialFeatures(2), LinearRegression()))
    model.fit(X, y)

    residuals = y - model.predict(X)
    assert_allclose(model.scale_, np.sqrt(residuals @ residuals / (150 - 6)))


def test_flexible_models_use_held_out_residuals(rng):
    """A forest's training residuals are far too small; held-out ones tell the truth."""
    X = rng.uniform(size=(300, 2))
    y = rng.normal(size=300)
    forest = RandomForestRegressor(20, random_state=0)

    honest = NormalResidualRegressor(forest).fit(X, y).scale_
    naive = NormalResidualRegressor(forest, cv=None).fit(X, y).scale_

    assert naive < 0.6
    assert 0.95 < honest < 1.3


def test_boosting_residuals_match_a_hand_made_loop(rng):
    """Held-out residuals come from the given splitter."""
    X = rng.uniform(size=(90, 2))
    y = X[:, 0] + rng.normal(size=90)
    cv, booster = KFold(3), HistGradientBoostingRegressor(max_iter=5)
    errors = np.concatenate(
        [
            y[test] - clone(booster).fit(X[train], y[train]).predict(X[test])
            for train, test in cv.split(X)
        ]
    )

    assert_allclose(
        NormalResidualRegressor(booster, cv=cv).fit(X, y).scale_, np.sqrt(np.mean(errors**2))
    )


def test_no_degrees_of_freedom_left(rng):
    """Asking for training residuals of a saturated fit is refused."""
    X, y = rng.normal(size=(3, 5)), rng.normal(size=3)

    with pytest.raises(ValueError, match="no degrees of freedom"):
        NormalResidualRegressor(LinearRegression(), cv=None).fit(X, y)
