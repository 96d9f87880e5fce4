"""Arrays that NumPy would turn into numbers without a word are refused, with the way out."""

import numpy as np
import pytest
import scipy.stats
from sklearn.linear_model import BayesianRidge, LinearRegression

import regcal

DIST = regcal.Normal([0.0, 1.0, 2.0], 1.0)
MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
RECORDS = np.array(
    [(True, 1.0), (False, 2.0), (True, 3.0)], dtype=[("event", bool), ("time", float)]
)


def fit(y, sample_weight=None):
    return regcal.get_calibrator("scale").fit(DIST, y, sample_weight)


X, Y = np.arange(60.0).reshape(30, 2) % 7, np.sqrt(np.arange(30.0) % 11)
FEW = np.ma.array(np.arange(30), mask=np.arange(30) == 5)
MASKED_X = np.ma.array(X, mask=X > 5)
LEVELS = np.ma.array([0.1, 0.5, 0.9], mask=[False, True, False])


def calibrated():
    return regcal.CalibratedRegressorCV(BayesianRidge(), "scale", cv=2)


class Forgetful(LinearRegression):
    """A model that does not know its first answer."""

    def predict(self, X):
        return np.ma.array(super().predict(X), mask=np.arange(len(X)) == 0)


FORGETFUL = Forgetful().fit(X, Y)


def gappy_cdf(points, rows):
    return np.ma.array(scipy.stats.norm.cdf(points), mask=points == 0.3)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("y", lambda: regcal.crps(MASKED, DIST)),
        ("y", lambda: fit(MASKED)),
        ("y", lambda: regcal.crps([1.0, np.ma.masked, 3.0], DIST)),
        ("sample_weight", lambda: fit([1.0, 2.0, 3.0], MASKED)),
        ("loc", lambda: regcal.Normal(MASKED, 1.0)),
        ("scale", lambda: regcal.as_distribution((np.zeros(3), MASKED))),
        ("draws", lambda: regcal.Samples([MASKED, MASKED])),
        ("draws", lambda: regcal.as_distribution(np.ma.array(np.eye(3), mask=np.eye(3)))),
        ("points", lambda: DIST.cdf(MASKED)),
        ("scores", lambda: regcal.metrics.mean_score(MASKED)),
        ("loc", lambda: regcal.ScipyDistribution(scipy.stats.norm(MASKED, 1.0))),
        ("df", lambda: regcal.ScipyDistribution(scipy.stats.t(MASKED))),
        ("scale", lambda: regcal.as_distribution(scipy.stats.norm(scale=MASKED))),
        ("predictions", lambda: regcal.as_distribution({0.1: MASKED - 5, 0.9: MASKED})),
        ("rows", lambda: DIST[MASKED > 1]),
        ("rows", lambda: DIST[np.ma.array([0, 1], mask=[False, True])]),
        ("rows", lambda: regcal.Outcomes.of(np.zeros(3))[MASKED > 1]),
        ("observed", lambda: regcal.Outcomes.right_censored(np.ones(3), MASKED > 0)),
        ("thresholds", lambda: regcal.get_calibrator("gpc", thresholds=MASKED).fit(DIST, Y[:3])),
        ("X", lambda: calibrated().fit(MASKED_X, Y)),
        ("X", lambda: calibrated().fit(X, Y).predict_dist(MASKED_X)),
        ("X", lambda: calibrated().fit(X, Y).predict(MASKED_X)),
        ("X", lambda: regcal.predict_dist(BayesianRidge().fit(X, Y), MASKED_X)),
        ("sample_weight", lambda: calibrated().fit(X, Y, sample_weight=FEW)),
        ("groups", lambda: calibrated().fit(X, Y, groups=FEW)),
        ("levels", lambda: calibrated().fit(X, Y).predict_quantiles(X, LEVELS)),
        ("predictions", lambda: regcal.NormalResidualRegressor(Forgetful()).fit(X, Y)),
        ("predictions", lambda: regcal.predict_dist({0.1: FORGETFUL, 0.9: FORGETFUL}, X)),
        ("values", lambda: regcal.CustomDistribution(gappy_cdf, 3).cdf(0.3)),
    ],
)
def test_masked_values_are_refused(name, use):
    """What is behind a mask is not a number, wherever it comes in."""
    with pytest.raises(ValueError, match=rf"{name} has \d masked value\(s\).*Remove those rows"):
        use()


def test_a_mask_without_masked_values_is_fine():
    """A masked array in which nothing is masked is an array."""
    open_mask = np.ma.array([1.0, 2.0, 3.0])

    assert regcal.crps(open_mask, DIST).shape == (3,)
    assert len(DIST[open_mask > 1]) == 2
    assert calibrated().fit(np.ma.array(X), Y).predict(np.ma.array(X)).shape == (30,)


def test_records_are_refused():
    """Of several fields, the user knows which is meant."""
    with pytest.raises(ValueError, match="structured array with the fields time"):
        regcal.crps(RECORDS[["time"]], DIST)
    with pytest.raises(ValueError, match="structured array with the fields time"):
        fit(RECORDS[["time"]])


def test_numbers_beyond_all_floats_are_refused():
    """A whole number of 400 digits is no float."""
    with pytest.raises(ValueError, match=r"y holds a number beyond 1.8e308"):
        regcal.crps([1, 10**400, 3], DIST)


@pytest.mark.parametrize("name", ["scale", "gpc"])
def test_endless_weights_are_refused(name):
    """A weight is a number of rows, which has an end."""
    with pytest.raises(ValueError, match=r"weights sum to 3e\+200.*Divide them by their mean"):
        regcal.get_calibrator(name).fit(DIST, [1.0, 2.0, 0.0], [1e200] * 3)


@pytest.mark.parametrize("name", ["scale", "pit"])
def test_endless_prior_rows_are_refused(name):
    """A pull without end is the identity, which has a name."""
    with pytest.raises(ValueError, match=r"prior_rows .* got inf, and finite.*IdentityCalibrator"):
        regcal.get_calibrator(name, prior_rows=np.inf).fit(DIST, [1.0, 2.0, 0.0])
