"""Rows that tests of displays share; figures are closed after each."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from regcal import Clipped, Normal, Outcomes

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


@pytest.fixture
def odd(data, rng):
    """Return targets of which some are censored, and predictions with point masses."""
    _, y, dist = data
    seen, limit = np.maximum(y, -0.5), rng.normal(1.0, 1.0, len(y)).clip(-0.4)
    outcomes = Outcomes.right_censored(np.minimum(seen, limit), seen <= limit)
    return outcomes, Clipped(dist, low=-0.5)
