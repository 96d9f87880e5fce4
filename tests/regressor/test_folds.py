"""Rows, groups and weights of folds."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from rows import QUICK_AUTO, Recorder
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from regcal import CalibratedRegressorCV, NormalResidualRegressor, Outcomes
from regcal.metrics import log_score_scorer


def test_number_of_folds_deals_rows_at_random(rng):
    """Data sorted by the target do not make held-out rows look far off."""
    X = np.sort(rng.uniform(-3, 3, size=(300, 1)), axis=0)
    y = X[:, 0] ** 2 + 0.1 * rng.normal(size=300)
    base = NormalResidualRegressor(RandomForestRegressor(10, random_state=0), cv=3).fit(X, y)

    assert base.scale_ < 0.3


def test_groups_stay_together(rng):
    """No group is on both sides of a split."""
    X, groups = np.arange(60.0)[:, np.newaxis], np.repeat(np.arange(6), 10)
    model = CalibratedRegressorCV(Recorder(), "identity", cv=GroupKFold(3), ensemble=True)

    model.fit(X, rng.normal(size=60), groups=groups)

    for member in model.members_:
        used = groups[member.estimator.rows_.astype(int)]
        assert len(np.unique(used)) == 4
        assert len(used) == 40


def test_time_order_is_kept(rng):
    """With TimeSeriesSplit no model is trained on later rows than those it is calibrated on."""
    X = np.arange(60.0)[:, np.newaxis]
    cv = TimeSeriesSplit(3)
    model = CalibratedRegressorCV(Recorder(), "scale", cv=cv, ensemble=True)

    model.fit(X, rng.normal(size=60))

    for member, (train, test) in zip(model.members_, cv.split(X), strict=True):
        assert member.estimator.rows_.max() < test.min()
        assert_allclose(member.estimator.rows_, train)
        assert member.calibrator.n_rows_seen_ == len(test)


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("calibrator", ["scale", "pit", "e-beta", QUICK_AUTO], ids=str)
def test_weights_count_as_repetitions(rng, ensemble, calibrator):
    """With folds that keep repetitions together, a weight of 3 is a row that occurs 3 times."""
    X = rng.normal(size=(60, 2))
    y = X @ [1.0, -1.0] + rng.standard_t(3, size=60)
    weights = rng.integers(1, 4, size=60)
    rows, groups = np.repeat(np.arange(60), weights), np.arange(60) % 3
    base = NormalResidualRegressor(LinearRegression())
    model = CalibratedRegressorCV(base, calibrator, cv=GroupKFold(3), ensemble=ensemble)

    weighted = clone(model).fit(X, y, sample_weight=weights, groups=groups)
    repeated = clone(model).fit(X[rows], y[rows], groups=groups[rows])

    expected = repeated.predict_dist(X).logpdf(y)
    assert_allclose(weighted.predict_dist(X).logpdf(y), expected, rtol=1e-5, atol=1e-6)


def test_weights_reach_estimator_and_calibrator(rng):
    """Without routing, an estimator that takes weights gets those of its rows."""
    X, weights = np.arange(30.0)[:, np.newaxis], np.arange(1.0, 31.0)
    model = CalibratedRegressorCV(Recorder(), "scale", cv=KFold(3), ensemble=True)

    model.fit(X, rng.normal(size=30), sample_weight=weights)

    assert_allclose(model.members_[0].estimator.weights_, weights[10:])


def test_estimator_without_weights_warns(data):
    """Weights that the estimator cannot take are announced, not dropped in silence."""
    X, y = data
    model = CalibratedRegressorCV(make_pipeline(StandardScaler(), BayesianRidge()), "scale")

    with pytest.warns(UserWarning, match=r"Pipeline\.fit takes no sample_weight"):
        model.fit(X, y, sample_weight=np.ones(150))


def test_metadata_routing_decides_where_weights_go(data):
    """With routing, requests of the pipeline's steps and of the splitter are followed."""
    X, y = data
    weights = np.arange(1.0, 151.0)
    groups = np.arange(150) % 5
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            Recorder().set_fit_request(sample_weight=True),
        )
        model = CalibratedRegressorCV(pipeline, "scale", cv=GroupKFold(5), ensemble=True)
        model.fit(X, y, sample_weight=weights, groups=groups)

    for member in model.members_:
        left_out = np.setdiff1d(weights, member.estimator[-1].weights_)
        assert len(np.unique((left_out - 1) % 5)) == 1


def test_too_few_rows_for_the_folds():
    """The message names rows, folds and the way out."""
    with pytest.raises(ValueError, match=r"Cannot make 10 folds of n_samples=5 rows.*Lower cv"):
        CalibratedRegressorCV(BayesianRidge(), cv=10).fit(np.arange(5.0)[:, None], np.arange(5.0))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_missing_outcomes_are_named_by_row(data, wrong):
    """An error names the row of y, as calibrators do."""
    X, y = data
    y = y.copy()
    y[[7, 9]] = wrong

    for model in (CalibratedRegressorCV(BayesianRidge()), NormalResidualRegressor(BayesianRidge())):
        with pytest.raises(ValueError, match=f"y holds 2 .* first is {wrong} at index 7. Remove"):
            model.fit(X, y)


def _events(y):
    """Return times that are cut at 1, as scikit-survival takes them."""
    pairs = list(zip(y < 1.0, np.clip(y, 0.0, 1.0), strict=True))
    return np.array(pairs, dtype=[("event", bool), ("time", float)])


def test_models_of_numbers_refuse_structured_arrays(data):
    """What they raise is told with the way out, which works."""
    X, y = data
    events = _events(y)
    model = CalibratedRegressorCV(BayesianRidge(), "scale")

    with pytest.raises(TypeError, match=r"BayesianRidge.fit failed .* Pass Outcomes.of\(y\)"):
        model.fit(X, events)

    fitted = model.fit(X, Outcomes.of(events)).predict_dist(X)
    given = Outcomes.right_censored(events["time"], events["event"])
    assert_allclose(fitted.std(), clone(model).fit(X, given).predict_dist(X).std())


def test_score_judges_numbers_only(data):
    """R² of exact outcomes is that of their numbers; censored ones are refused by name."""
    X, y = data
    model = CalibratedRegressorCV(BayesianRidge(), "scale").fit(X, y)

    assert model.score(X, Outcomes.exact(y)) == model.score(X, y)
    seen = Outcomes.right_censored(np.minimum(y, 1.0), observed=y < 1.0)
    for censored in (seen, np.column_stack([seen.lower, seen.upper]), _events(y)):
        with pytest.raises(ValueError, match=f"{(y >= 1.0).sum()} of .*log_score_scorer"):
            model.score(X, censored)
    assert np.isfinite(cross_val_score(model, X, seen, scoring=log_score_scorer, cv=2)).all()
