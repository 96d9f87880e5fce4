"""Laws over every data set."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from rows import PUBLISHED, load

from regcal import datasets
from regcal.datasets import Dataset


@pytest.fixture(params=[row[0] for row in PUBLISHED] + ["toy_mixture"])
def dataset(request) -> Dataset:
    if request.param == "toy_mixture":
        return datasets.make_toy_mixture(50, random_state=0)
    return load(request.param)


def test_parts_of_a_dataset_fit_together(dataset):
    """Shapes, names and units describe the same columns."""
    columns = {*dataset.feature_names, dataset.target_name}

    assert dataset.X.shape == (len(dataset), len(dataset.feature_names))
    assert dataset.y.shape == (len(dataset),)
    assert len(columns) == dataset.X.shape[1] + 1
    assert set(dataset.units) <= columns
    assert dataset.description
    assert dataset.citation


def test_values_are_finite_floats(dataset):
    """Nothing is missing, and both arrays hold doubles."""
    assert dataset.X.dtype == dataset.y.dtype == np.float64
    assert np.isfinite(dataset.X).all()
    assert np.isfinite(dataset.y).all()


def test_frame_holds_features_then_target(dataset):
    """The pandas view has the same values, the target last."""
    frame = dataset.as_frame()

    assert list(frame) == [*dataset.feature_names, dataset.target_name]
    assert_array_equal(frame.to_numpy(), np.column_stack([dataset.X, dataset.y]))


def test_changing_a_frame_leaves_the_dataset_alone():
    """A frame is a copy."""
    data = datasets.make_toy_mixture(5, random_state=0)
    before = data.X.copy()

    frame = data.as_frame()
    frame.iloc[:, :] = 99.0

    assert_array_equal(data.X, before)


def test_frame_without_pandas_says_what_to_install(monkeypatch):
    """A missing optional package is named together with the remedy."""
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(ImportError, match="pip install"):
        datasets.make_toy_mixture(5, random_state=0).as_frame()
