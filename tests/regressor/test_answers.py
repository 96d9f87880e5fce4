"""Answers are arrays for arrays, and frames with the rows' labels for frames."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import BayesianRidge

from regcal import CalibratedRegressorCV

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


@pytest.fixture
def fitted(data):
    return CalibratedRegressorCV(BayesianRidge(), "scale", guarantee="split").fit(*data)


@pytest.fixture
def frames(data):
    """Return a fitted model, four rows as an array, and the same as frames."""
    X, y = data
    names = ["a", "b"]
    model = CalibratedRegressorCV(BayesianRidge(), "scale").fit(pd.DataFrame(X, columns=names), y)
    index = ["p", "q", "r", "s"]
    pandas = pd.DataFrame(X[:4], columns=names, index=index)
    return model, pandas, pl.DataFrame(X[:4], schema=names)


QUESTIONS = {
    "predict_quantiles": [[0.1, 0.9]],
    "predict_interval": [0.8],
    "predict_above": [0.5],
    "predict_below": [[0.0, 1.0, 2.0, 3.0]],
}


@pytest.mark.parametrize("method", QUESTIONS)
def test_frames_give_frames_with_the_same_numbers(frames, method):
    """An index is kept, polars stays polars, and the numbers are those of the distribution."""
    model, pandas, polars = frames
    dist = model.predict_dist(pandas)
    wanted = {
        "predict_quantiles": dist.ppf([[0.1, 0.9]]),
        "predict_interval": np.column_stack(dist.interval(0.8)),
        "predict_above": dist.sf(0.5),
        "predict_below": dist.cdf([0.0, 1.0, 2.0, 3.0]),
    }[method]

    labelled = getattr(model, method)(pandas, *QUESTIONS[method])
    plain = getattr(model, method)(polars, *QUESTIONS[method])

    assert list(labelled.index) == list(pandas.index)
    assert type(plain) is (pl.Series if wanted.ndim == 1 else pl.DataFrame)
    assert_array_equal(labelled, wanted)
    assert_allclose(plain.to_numpy(), wanted)


def test_names_say_what_was_asked(frames):
    """Columns are levels, ends and thresholds; one answer per row is a series."""
    model, pandas, polars = frames

    assert model.predict_above(pandas, 0.5).name == "above"
    assert list(model.predict_below(pandas, [[0.0, 2.0]]).columns) == [0.0, 2.0]
    assert list(model.predict_below(pandas, np.zeros((4, 2))).columns) == [0, 1]
    assert model.predict_above(polars, [[0.0, 2.0]]).columns == ["0.0", "2.0"]
    assert model.predict_quantiles(polars, [0.1, 0.9]).columns == ["0.1", "0.9"]
    assert type(model.predict(pandas)) is type(model.predict(polars)) is np.ndarray


@pytest.mark.parametrize("guarantee", [False, True])
def test_several_coverages_at_once(fitted, data, guarantee):
    """Each slice is what the coverage gives alone."""
    X = data[0][:4]

    both = fitted.predict_interval(X, [0.5, 0.9], guarantee)

    assert both.shape == (4, 2, 2)
    assert_array_equal(both[:, :, 0], fitted.predict_interval(X, 0.5, guarantee))
    assert_array_equal(both[:, :, 1], fitted.predict_interval(X, 0.9, guarantee))


def test_several_coverages_of_frames(frames):
    """A coverage of the pandas frame is the frame of it alone; polars joins the names."""
    model, pandas, polars = frames

    both = model.predict_interval(pandas, [0.5, 0.9])

    pd.testing.assert_frame_equal(both[0.9], model.predict_interval(pandas, 0.9))
    columns = ["0.5_lower", "0.5_upper", "0.9_lower", "0.9_upper"]
    assert model.predict_interval(polars, [0.5, 0.9]).columns == columns
    assert_allclose(model.predict_interval(polars, [0.5, 0.9]).to_numpy(), both)


@pytest.mark.parametrize("coverage", [[], [[0.5]]])
def test_coverages_of_another_shape(fitted, data, coverage):
    """Tables of coverages and empty ones are refused."""
    with pytest.raises(ValueError, match="a number or a list of numbers"):
        fitted.predict_interval(data[0], coverage)
