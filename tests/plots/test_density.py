"""Densities along a feature."""

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose
from rows import Line

from regcal.plots import DensityDisplay


def test_density_display_draws_densities_mean_and_data(data):
    """Columns are densities at increasing values of the feature; the mean is a line."""
    X, y, dist = data
    display = DensityDisplay.from_predictions(y, dist, x=X[:, 0])
    order = np.argsort(X[:, 0])

    assert_allclose(display.feature, X[order, 0])
    assert_allclose(display.density[:, 5], dist[order[5]].pdf(display.targets[np.newaxis])[0])
    assert_allclose(display.ax_.lines[0].get_ydata(), dist.loc[order])
    assert_allclose(display.data, np.stack([X[:, 0], y], axis=1))
    assert display.colorbar_.ax.get_ylabel() == "Predicted density"


def test_density_display_varies_one_feature_of_a_frame(data):
    """With an estimator, other features stay at their medians and the column names the axis."""
    X, y, _ = data
    frame = pd.DataFrame(X, columns=["weight", "<b>age</b>"])
    display = DensityDisplay.from_estimator(Line(), frame, y, feature=0, n_columns=50)

    assert display.ax_.get_xlabel() == "weight"
    assert_allclose(display.mean, np.linspace(X[:, 0].min(), X[:, 0].max(), 50))
