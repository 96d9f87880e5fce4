"""Binary maps against scikit-learn, betacal and brute force."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import minimum
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import regcal
from regcal.binary import BinaryMap

# -------------------------------------------------------------------------------------- binary maps


@pytest.fixture
def labelled(rng):
    """Return probabilities and labels that no threshold separates."""
    p = rng.uniform(0.01, 0.99, 300)
    return p, (rng.uniform(size=300) < expit(0.5 + 1.5 * np.log(p) - 0.7 * np.log1p(-p))).astype(
        int
    )


def unpenalised(features, labels, **fit):
    """Return scikit-learn's maximum likelihood coefficients, the offset last."""
    model = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000).fit(features, labels, **fit)
    return np.append(model.coef_[0], model.intercept_)


def test_logistic_map_against_scikit_learn(labelled):
    """Without a ridge it is plain logistic regression on p."""
    p, labels = labelled
    cal = regcal.LogisticCalibrator(ridge=0.0).fit(p, labels)

    assert_allclose(cal.coefficients_[0], unpenalised(p[:, np.newaxis], labels), atol=1e-6)


def test_beta_map_against_scikit_learn_and_betacal(labelled):
    """Without a ridge it is logistic regression on log p and -log(1 - p), as in betacal."""
    p, labels = labelled
    cal = regcal.BetaCalibrator(ridge=0.0).fit(p, labels)
    features = np.column_stack([np.log(p), -np.log1p(-p)])
    with warnings.catch_warnings():  # betacal changes the filters when imported
        warnings.simplefilter("ignore")
        from betacal import BetaCalibration

        theirs = BetaCalibration("abm").fit(p[:, np.newaxis], labels).predict(p)

    assert_allclose(cal.coefficients_[0], unpenalised(features, labels), atol=1e-6)
    assert_allclose(cal.predict(p), theirs, atol=1e-3)  # betacal stops its optimiser early


@pytest.mark.parametrize("falling", ["both", "a", "b"])
def test_constrained_beta_map_against_brute_force(rng, falling):
    """Slopes that would be negative are those of a bounded optimiser."""
    p = rng.uniform(0.01, 0.99, 200)
    slopes = {"both": (-1.0, -1.0), "a": (-1.0, 2.0), "b": (2.0, -1.0)}[falling]
    truth = expit(slopes[0] * np.log(p) - slopes[1] * np.log1p(-p))
    labels = (rng.uniform(size=200) < truth).astype(float)
    features = np.column_stack([np.log(p), -np.log1p(-p), np.ones(200)])
    cal = regcal.BetaCalibrator(ridge=0.5).fit(p, labels)
    bounds = [(0, None), (0, None), (None, None)]
    best = minimum(features, labels, np.array([1.0, 1.0, 0.0]), 0.5, bounds)

    assert_allclose(cal.coefficients_[0], best, atol=1e-4)
    assert (cal.coefficients_[0][:2] >= 0).all()
    assert (np.diff(cal.predict(np.linspace(0, 1, 50))) >= 0).all()


def test_one_class_gives_finite_maps():
    """Labels of one kind push a map towards its limit and no further than numbers go."""
    for binary in (regcal.BetaCalibrator, regcal.LogisticCalibrator):
        for ridge in (0.0, 0.1):
            cal = binary(ridge=ridge).fit([0.2, 0.5, 0.9], [0, 0, 0])
            predicted = cal.predict([0.0, 0.3, 1.0])
            assert ((predicted >= 0) & (predicted <= 1)).all()
            assert cal.predict([0.3])[0] < 0.4


# -------------------------------------------------------------------------------------- one-vs-rest


def test_binary_maps_are_fitted_at_once():
    """A segment's map does not depend on the other segments."""
    rng = np.random.default_rng(5)
    log_p = np.log(rng.uniform(0.05, 0.95, (3, 80)))
    hits = (rng.uniform(size=(3, 80)) < 0.4).astype(float)
    together = regcal.BetaCalibrator().fit_columns(log_p, hits, np.ones((3, 80)))

    assert isinstance(together, BinaryMap)
    for k in range(3):
        alone = regcal.BetaCalibrator().fit(np.exp(log_p[k]), hits[k])
        assert_allclose(together.coefficients_[k], alone.coefficients_[0], rtol=1e-6)
