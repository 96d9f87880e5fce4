"""Every row is predicted by a copy that has not seen it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import regcal
from regcal import CalibratedRegressorCV, cross_val_predict_dist


class Seen(BaseEstimator):
    """Predicts 1 for rows it was fitted on, which their only feature tells, and 0 for others."""

    def fit(self, X, y, sample_weight=None):
        assert sample_weight is None or len(sample_weight) == len(y)
        self.rows_ = X[:, 0]
        return self

    def predict(self, X, return_std=True):
        return np.isin(X[:, 0], self.rows_).astype(float), np.ones(len(X))


@pytest.mark.parametrize("cv", [4, KFold(3)])
def test_no_row_is_predicted_by_what_has_seen_it(rng, cv):
    """All rows are new to the copy that predicts them, and weights are cut to its rows."""
    X, y = np.arange(20.0)[:, np.newaxis], rng.normal(size=20)

    dist = cross_val_predict_dist(Seen(), X, y, cv=cv, params={"sample_weight": np.ones(20)})

    assert_allclose(dist.mean(), 0.0)


def test_whole_estimators_are_copied(data):
    """Row by row it is what the calibrated model of the other folds says, in the rows' order."""
    X, y = data
    model = CalibratedRegressorCV(BayesianRidge(), "pit")
    folds = KFold(3, shuffle=True, random_state=1)

    dist = cross_val_predict_dist(model, X, y, cv=folds)

    for train, test in folds.split(X):
        alone = CalibratedRegressorCV(BayesianRidge(), "pit").fit(X[train], y[train])
        assert_allclose(dist[test].cdf(0.5), alone.predict_dist(X[test]).cdf(0.5))
    assert not hasattr(model, "members_")


def test_rows_of_a_group_are_held_out_together(rng):
    """A number of folds keeps groups together if there are any."""
    groups = np.repeat(np.arange(8), 5)
    X, y = groups[:, np.newaxis].astype(float), rng.normal(size=40)

    for cv in (4, GroupKFold(4)):
        assert_allclose(cross_val_predict_dist(Seen(), X, y, cv=cv, groups=groups).mean(), 0.0)


def test_frames_and_censored_outcomes(data):
    """Frames are cut by rows, and so are outcomes that are intervals."""
    pd = pytest.importorskip("pandas")
    X, y = data
    seen = regcal.Outcomes.right_censored(y, observed=y < 2.0)
    model = CalibratedRegressorCV(BayesianRidge(), "scale")

    frame = cross_val_predict_dist(model, pd.DataFrame(X, columns=["a", "b"]), seen, cv=2)

    assert_allclose(frame.median(), cross_val_predict_dist(model, X, seen, cv=2).median())


@pytest.mark.parametrize("columns", [False, True])
def test_models_of_numbers_are_fitted_to_what_is_known_of_intervals(data, columns):
    """The same as of the ends that are known, however they are given."""
    X, y = data
    seen = regcal.Outcomes.right_censored(np.minimum(y, 1.0), observed=y < 1.0)
    given = np.column_stack([seen.lower, seen.upper]) if columns else seen

    dist = cross_val_predict_dist(BayesianRidge(), X, given, cv=3)

    expected = cross_val_predict_dist(BayesianRidge(), X, np.minimum(y, 1.0), cv=3)
    assert_allclose(dist.mean(), expected.mean())


def test_calibrated_models_inside_others_see_the_intervals(data):
    """At the end of a pipeline, and inside a search, they are told what was seen."""
    X, y = data
    seen = regcal.Outcomes.right_censored(np.minimum(y, 1.0), observed=y < 1.0)
    model = CalibratedRegressorCV(BayesianRidge(), "scale")
    piped = make_pipeline(StandardScaler(), model)
    scorer = regcal.metrics.log_score_scorer
    search = GridSearchCV(model, {"calibrator": ["scale"]}, cv=2, scoring=scorer)

    direct = cross_val_predict_dist(model, X, seen, cv=2)

    assert_allclose(cross_val_predict_dist(search, X, seen, cv=2).std(), direct.std())
    inside = cross_val_predict_dist(piped, X, seen, cv=2).std()
    as_numbers = cross_val_predict_dist(piped, X, np.minimum(y, 1.0), cv=2).std()
    assert (inside > as_numbers).all()


def test_splitters_that_leave_rows_out(data):
    """The first rows of a series are never held out, so there is nothing to say about them."""
    with pytest.raises(ValueError, match="Pass one that holds out every row once"):
        cross_val_predict_dist(BayesianRidge(), *data, cv=TimeSeriesSplit(3))
