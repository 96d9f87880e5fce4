"""Few calibration rows: said once, by one class of warning, and not of many."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

import regcal
from regcal import CalibratedRegressorCV, FewRowsWarning
from regcal.calibrators.few_rows import FEW_ROWS


def told(n, **options):
    """Return the warnings of a fit on n rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FewRowsWarning)
        CalibratedRegressorCV(BayesianRidge(), "scale", **options).fit(X, rng.normal(X[:, 0]))
    return caught


@pytest.mark.parametrize("ensemble", [True, False])
def test_few_rows_are_told_once(ensemble):
    """Whatever the number of folds, with what to expect, at the line that fits."""
    (one,) = told(25, ensemble=ensemble)

    assert one.category is FewRowsWarning
    assert "learnt from 25 rows" in str(one.message)
    assert "± 12 percentage points" in str(one.message)  # 2 sqrt(0.9 * 0.1 / 25)
    assert one.filename == __file__


@pytest.mark.parametrize("guarantee", ["split", "cross"])
def test_models_with_a_guarantee_tell_once(guarantee):
    """They fit several models inside."""
    assert len(told(40 if guarantee == "split" else 28, guarantee=guarantee)) == 1


def test_enough_rows_are_not_told_of():
    """From the limit on nothing is said."""
    assert told(FEW_ROWS) == []
    assert len(told(FEW_ROWS - 1)) == 1


@pytest.mark.parametrize("name", ["auto", "gp-density", "scale"])
def test_weights_that_were_normalised_are_told_of(name):
    """Rows that weigh one together, and not those whose weights are divided by their mean."""
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, 60)
    dist, y = regcal.Normal(rng.normal(size=60), 1.0), rng.normal(size=60)
    calibrator = regcal.get_calibrator(name)

    with pytest.warns(FewRowsWarning, match="60 rows sum to 1.*divide them by their mean") as found:
        calibrator.fit(dist, y, weights / weights.sum())
    calibrator.fit(dist, y, weights / weights.mean())  # or a warning is an error

    assert [one.filename for one in found] == [__file__]


@pytest.mark.parametrize("name", ["auto", "gp-density", "scale"])
def test_weights_of_a_survey_are_told_of(name):
    """They are no numbers of rows; whole numbers are, and proportions count once each."""
    rng = np.random.default_rng(0)
    weights = rng.uniform(50.0, 200.0, 60)
    dist, y = regcal.Normal(rng.normal(size=60), 1.0), rng.normal(size=60)
    calibrator = regcal.get_calibrator(name)

    with pytest.warns(FewRowsWarning, match="60 rows sum to 7.*divide them by their mean") as found:
        calibrator.fit(dist, y, weights)
    calibrator.fit(dist, y, weights / weights.mean())  # or a warning is an error
    regcal.get_calibrator("scale").fit(dist, y, np.full(60, 40.0))

    assert [one.filename for one in found] == [__file__]


def test_models_tell_of_weights_that_were_normalised():
    """At the line that fits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = CalibratedRegressorCV(BayesianRidge(), "scale")

    with pytest.warns(FewRowsWarning, match="60 rows sum to 1") as found:
        model.fit(X, rng.normal(X[:, 0]), sample_weight=np.full(60, 1 / 60))

    assert [one.filename for one in found] == [__file__]
