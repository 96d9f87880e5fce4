"""Few calibration rows: said once, by one class of warning, and not of many."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

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
