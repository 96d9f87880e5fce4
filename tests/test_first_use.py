"""What a new user ran into once: mistakes get a clear message, odd data a sane answer."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression

import regcal


def test_one_row_of_tied_outer_quantiles_does_not_spoil_the_others(rng):
    """Outer quantiles that are equal by chance do not claim that the tail has no width."""
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    values = np.tile(scipy.stats.norm.ppf(levels), (500, 1))
    y = rng.normal(size=500)
    values[0, 4], y[0] = values[0, 3], 3.0

    factor = regcal.ScaleCalibrator().fit(regcal.Quantiles(levels, values), y).factor_

    assert factor < 1.5


def test_tails_of_quantiles_are_limited_relative_to_the_row():
    """A tail is at most five times narrower than the row's own normal distribution."""
    dist = regcal.Quantiles([0.1, 0.5, 0.9], [[0.0, 0.0, 2.0]])
    overall = 2 * scipy.stats.norm.ppf(0.9) / 2.0

    assert_allclose(dist.probit(-1.0) - dist.probit(-2.0), 5 * overall)


def test_levels_with_their_columns_are_quantiles():
    """A dictionary from levels to predictions becomes quantiles."""
    dist = regcal.as_distribution({0.1: [1.0, 2.0], 0.9: [3.0, 4.0]})

    assert_allclose(dist.ppf(0.9), [3.0, 4.0])


def test_models_without_scikit_learn_tags_can_be_wrapped(rng):
    """Regressors of skpro are no scikit-learn estimators, yet they predict distributions."""
    residual = pytest.importorskip("skpro.regression.residual", reason="pip install skpro")
    X = rng.normal(size=(120, 2))
    y = X[:, 0] + rng.normal(size=120)

    model = regcal.CalibratedRegressorCV(residual.ResidualDouble(LinearRegression()), "scale")

    assert np.corrcoef(model.fit(X, y).predict(X), y)[0, 1] > 0.5


def refusals(tmp_path):
    """Return calls that must be refused, with words of their messages."""
    dist = regcal.Normal([0.0, 1.0, 2.0], 1.0)
    X = np.arange(40.0)[:, np.newaxis]
    return {
        "cdf too large": (
            lambda: regcal.CustomDistribution(lambda t, rows: 2 * scipy.stats.norm.cdf(t), 3),
            "1 at inf",
        ),
        "no outcomes": (lambda: regcal.ScaleCalibrator().fit(dist, None), "y is None"),
        "option": (lambda: regcal.get_calibrator("scale", foo=1), "does not take foo"),
        "swapped": (lambda: regcal.compare({"a": dist}, [0.0, 1.0, 2.0]), "must map names"),
        "one fold": (
            lambda: regcal.CalibratedRegressorCV(regcal.paper_ols(), "scale", cv=1).fit(
                X, np.sin(X[:, 0])
            ),
            "at least 2 folds",
        ),
        "no residuals": (lambda: regcal.paper_ols().fit(X, np.full(40, 3.0)), "residuals are 0"),
        "no folder": (
            lambda: regcal.report([0.0, 1.0, 2.0], dist, path=tmp_path / "no" / "page.html"),
            "folder that exists",
        ),
    }


@pytest.mark.parametrize(
    "case",
    ["cdf too large", "no outcomes", "option", "swapped", "one fold", "no residuals", "no folder"],
)
def test_mistakes_get_a_clear_message(case, tmp_path):
    """The message names the rule."""
    call, words = refusals(tmp_path)[case]

    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=words):
        call()
