"""Rows that tests of regressors share."""

import pytest


@pytest.fixture
def data(rng):
    X = rng.normal(size=(150, 2))
    return X, X @ [1.0, -2.0] + rng.standard_t(3, size=150)
