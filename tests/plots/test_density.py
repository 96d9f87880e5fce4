"""Densities along a feature."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from rows import Line

from regcal import Normal, Outcomes
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


@pytest.mark.parametrize("frame_of", [pd.DataFrame, pl.DataFrame])
def test_other_features_are_typical(frame_of):
    """The median of numbers, the most frequent text; the feature goes from end to end."""
    given = []

    class Model:
        def predict_dist(self, X):
            given.append(X)
            return Normal(np.zeros(len(X)), np.ones(len(X)))

    columns = {"kind": ["b", "a", "b"], "age": [1.0, 2.0, 9.0], "size": [3, 5, 4]}
    display = DensityDisplay.from_estimator(
        Model(), frame_of(columns), [0.0, 0.1, 0.2], feature="size", n_columns=3
    )
    (rows,) = given

    assert list(rows["kind"]) == ["b"] * 3 and list(rows["age"]) == [2.0] * 3
    assert list(rows["size"]) == [3.0, 4.0, 5.0] == list(display.feature)
    assert display.ax_.get_xlabel() == "size"
    with pytest.raises(ValueError, match="'kind' holds no numbers"):
        DensityDisplay.from_estimator(Model(), frame_of(columns), None, feature="kind")
    with pytest.raises(ValueError, match=r"no feature 'weight'\. There are kind, age, size"):
        DensityDisplay.from_estimator(Model(), frame_of(columns), None, feature="weight")


def test_categories_stay_categories():
    """A model that was fitted on categories is asked with these."""
    given = []

    class Model:
        def predict_dist(self, X):
            given.append(X)
            return Normal(np.zeros(len(X)), np.ones(len(X)))

    kind = pd.Categorical(["a", "b", "b"], categories=["a", "b", "c"])
    DensityDisplay.from_estimator(
        Model(), pd.DataFrame({"size": [1.0, 2.0, 3.0], "kind": kind}), None, n_columns=4
    )

    assert given[0]["kind"].dtype == kind.dtype and list(given[0]["kind"]) == ["b"] * 4


def test_density_display_draws_masses_and_censored_rows(data, odd):
    """Dots as large as the masses, triangles at known ends, and no mass taken for a density."""
    outcomes, dist = odd
    display = DensityDisplay.from_predictions(outcomes, dist, x=data[0][:, 0])
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]

    assert labels == ["data", "at least", "point masses", "predicted mean"]
    order = np.argsort(data[0][:, 0])
    assert_allclose(display.masses[:, 1], -0.5)
    big = dist.mass(-0.5)[order] > 0.01
    found = dict(zip(display.masses[:, 0], display.masses[:, 2], strict=True))
    wanted = zip(data[0][order, 0][big], dist.mass(-0.5)[order][big], strict=True)
    assert all(found[x] == mass for x, mass in wanted)
    assert len(display.intervals) == (~outcomes.exact_rows).sum()
    assert display.density.max() <= dist.base.pdf(dist.base.loc).max()
    inspected = Outcomes(outcomes.lower, outcomes.lower + 1.0)
    lines = DensityDisplay.from_predictions(inspected, dist.base, x=data[0][:, 0])
    assert len(lines.intervals) == 300 and len(lines.data) == 0
