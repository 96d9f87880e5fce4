"""Rows that tests of displays share; figures are closed after each."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from regcal import Normal

mpl.use("Agg")


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


@pytest.fixture
def data(rng):
    """Return features, targets and their true distributions."""
    X = rng.normal(size=(300, 2))
    return X, rng.normal(X[:, 0]), Normal(X[:, 0], np.ones(300))
