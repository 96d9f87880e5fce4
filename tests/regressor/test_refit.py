"""What is done where fold models and the model of all rows say different things."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import KFold

from regcal import CalibratedRegressorCV, Normal
from regcal.regressor._folds import make_folds
from regcal.regressor._refit import Change


class Stating(RegressorMixin, BaseEstimator):
    """States a spread that falls with rows by a power, around a place that hangs on the rows."""

    def __init__(self, power=0.0, unsteady=0.0):
        self.power = power
        self.unsteady = unsteady

    def fit(self, X, y):
        self.spread_ = float(len(y)) ** -self.power
        self.place_ = self.unsteady * np.sin(float(len(y)) + y[0]) * self.spread_
        return self

    def predict_dist(self, X):
        return Normal(np.full(len(X), self.place_), np.full(len(X), self.spread_))


@pytest.fixture
def rows(rng):
    return np.arange(150.0)[:, np.newaxis], rng.normal(size=150)


def test_change_of_spread_and_median_by_hand(rows):
    """A spread of 1 / n falls to two thirds; medians move by what they differ."""
    X, y = rows
    folds = make_folds(3, X, y, {})
    models = [Stating(1.0, 1.0).fit(X[train], y[train]) for train, _ in folds]
    refitted = Stating(1.0, 1.0).fit(X, y)

    change = Change.between(models, refitted, folds, X, np.ones(150))

    moved = [abs(refitted.place_ - one.place_) / one.spread_ for one in models]
    assert_allclose(change.spread, 2 / 3)
    assert_allclose(change.moved, np.median(moved))


def test_rows_without_weight_and_without_spread_do_not_count(rows):
    """Nor do rows for which a model states nothing but a point."""
    X, y = rows
    folds = make_folds(3, X, y, {})
    models = [Stating().fit(X[train], y[train]) for train, _ in folds]
    refitted = Stating(0.5).fit(X, y)
    refitted.predict_dist = lambda X: Normal(np.zeros(len(X)), np.where(X[:, 0] < 100, 0.5, 1e-9))

    change = Change.between(models, refitted, folds, X, (np.arange(150) < 90) + 1e-300)

    assert_allclose(change.spread, 0.5)


@pytest.mark.parametrize(
    ("model", "cv", "averaged", "n_fits"),
    [
        (Stating(), 3, False, 4),
        (Stating(power=0.2), 3, False, 4),
        (Stating(power=0.5), 3, False, 14),
        (Stating(power=0.5), 12, False, 13),
        (Stating(power=0.5), KFold(3), True, 4),
        (Stating(power=0.5), KFold(10), False, 11),
        (Stating(unsteady=1.0), 3, True, 4),
        (Stating(power=0.5, unsteady=1.0), 3, False, 14),
        (Stating(power=-0.5, unsteady=1.0), 3, True, 4),
    ],
)
def test_what_models_say_decides(rows, monkeypatch, model, cv, averaged, n_fits):
    """Models that still learn are refitted with more folds; unsteady ones are averaged."""
    fits = []
    fit = Stating.fit
    monkeypatch.setattr(Stating, "fit", lambda self, X, y: fits.append(len(y)) or fit(self, X, y))

    fitted = CalibratedRegressorCV(model, "identity", cv=cv).fit(*rows)

    assert fitted.ensemble_ is averaged
    assert len(fits) == n_fits
    assert len(fitted.members_) == (3 if averaged else 1)


@pytest.mark.parametrize(
    ("cv", "ensemble", "least", "most"),
    [(3, False, 0.70, 0.76), (3, "auto", 0.84, 0.93), (KFold(3), "auto", 0.86, 0.94)],
)
def test_intervals_of_a_model_that_is_ever_surer_hold(rng, cv, ensemble, least, most):
    """It states two thirds of the spread when it is refitted, and is no better for that.

    90 % intervals of the refit hold 2 Phi(1.645 * 2 / 3) - 1 = 73 % after three folds, and 86 %
    after ten.
    """
    X, y = np.zeros((600, 1)), rng.normal(size=600)
    model = CalibratedRegressorCV(Stating(power=1.0), "scale", cv=cv, ensemble=ensemble).fit(X, y)

    low, high = model.predict_dist(X[:1]).interval(0.9)
    new = rng.normal(size=4000)

    assert least < np.mean((low < new) & (new < high)) < most
