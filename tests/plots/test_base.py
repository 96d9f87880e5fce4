"""What every display does. Pictures are judged by eye."""

from itertools import pairwise

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from rows import Halved, Line
from sklearn.compose import make_column_transformer
from sklearn.linear_model import BayesianRidge, QuantileRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from regcal import Normal
from regcal.plots import (
    CalibrationMapDisplay,
    CoverageDisplay,
    DensityDisplay,
    PitHistogramDisplay,
    ReliabilityDisplay,
)

DISPLAYS = {
    "reliability": (ReliabilityDisplay, {}),
    "isotonic": (ReliabilityDisplay, {"isotonic": True, "random_state": 0}),
    "one threshold": (ReliabilityDisplay, {"thresholds": [0.0]}),
    "pit": (PitHistogramDisplay, {}),
    "coverage": (CoverageDisplay, {}),
    "map": (CalibrationMapDisplay, {"calibrator": Halved(), "random_state": 0}),
    "density": (DensityDisplay, {"x": None}),
}


@pytest.fixture(params=DISPLAYS)
def drawing(request, data):
    """Return a display class with the options it needs."""
    cls, options = DISPLAYS[request.param]
    return cls, {key: data[0][:, 0] if key == "x" else v for key, v in options.items()}


def test_displays_return_themselves_with_labelled_axes(drawing, data):
    """`from_predictions` gives a drawn display whose axes say what they show."""
    cls, options = drawing
    display = cls.from_predictions(data[1], data[2], **options, name="model")

    assert isinstance(display, cls)
    assert display.ax_.figure is display.figure_
    assert display.ax_.get_xlabel()
    assert display.ax_.get_ylabel()
    assert display.plot() is display


def test_displays_draw_on_given_axes_and_leave_style_alone(drawing, data):
    """No figure of their own, and no change of matplotlib's settings."""
    cls, options = drawing
    before = dict(mpl.rcParams)
    _, ax = plt.subplots()
    display = cls.from_predictions(data[1], data[2], **options, ax=ax)

    assert display.ax_ is ax
    assert len(plt.get_fignums()) == 1
    assert dict(mpl.rcParams) == before


def test_displays_take_an_estimator(drawing, data):
    """`from_estimator` draws what `predict_dist` returns, under the estimator's name."""
    cls, options = drawing
    options.pop("x", None)
    display = cls.from_estimator(Line(), data[0], data[1], **options)

    assert display.name == "Line"


@pytest.fixture(scope="module")
def kilns():
    """Return a frame with text and categories, outcomes, and models of several libraries' forms."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"heat": rng.normal(size=200), "hours": rng.integers(1, 9, 200)})
    frame["kiln"] = np.where(rng.random(200) < 0.7, "north", "south")
    frame["shift"] = pd.Categorical(rng.choice(["day", "night"], 200))
    y = rng.normal(frame["heat"] + (frame["kiln"] == "south"))
    encoded = make_column_transformer((OneHotEncoder(), ["kiln", "shift"]), remainder="passthrough")
    quantiles = {
        level: make_pipeline(encoded, QuantileRegressor(quantile=level, alpha=0.0)).fit(frame, y)
        for level in (0.1, 0.5, 0.9)
    }
    spread = make_pipeline(encoded, BayesianRidge()).fit(frame, y)
    return frame, y, {"spread": spread, "quantiles": quantiles}


@pytest.mark.parametrize("form", ["spread", "quantiles"])
def test_displays_take_what_predict_dist_takes(drawing, kilns, form):
    """Models without `predict_dist`, on frames with names, text and categories."""
    cls, options = drawing
    options.pop("x", None)
    frame, y, models = kilns
    display = cls.from_estimator(models[form], frame, y, **options)

    assert display.ax_.get_xlabel()


def test_displays_say_what_an_estimator_lacks(drawing, data):
    """An object without `predict_dist` is refused with the way out."""
    cls, options = drawing
    options.pop("x", None)
    with pytest.raises(TypeError, match="predict_dist"):
        cls.from_estimator(object(), data[0], data[1], **options)


def test_displays_refuse_missing_targets(drawing, data):
    """A missing outcome is an error, not a hole in the picture."""
    cls, options = drawing
    y = data[1].copy()
    y[3] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        cls.from_predictions(y, data[2], **options)


@pytest.mark.parametrize("rows", ["numbers", "odd"])
def test_text_stays_inside_the_figure_at_two_sizes(drawing, data, odd, rows):
    """No label is cut off, also when the figure is small; nor are notes on censored rows."""
    cls, options = drawing
    if rows == "odd" and options.get("isotonic"):
        pytest.skip("isotonic lines need to know what happened")
    y, dist = odd if rows == "odd" else data[1:]
    for size in ((5.2, 4.2), (3.4, 3.0)):
        display = cls.from_predictions(y, dist, **options, name="model")
        display.figure_.set_size_inches(size)
        display.figure_.canvas.draw()
        box = display.ax_.get_tightbbox()
        width, height = display.figure_.canvas.get_width_height()
        assert box.x0 >= -2
        assert box.y0 >= -2
        assert box.x1 <= width + 2
        assert box.y1 <= height + 2


def test_tick_labels_do_not_overlap_at_two_sizes(drawing, data):
    """Neighbours along an axis leave room for each other."""
    cls, options = drawing
    for size in ((4.0, 3.0), (8.0, 5.0)):
        display = cls.from_predictions(data[1], data[2], **options, name="model")
        display.figure_.set_size_inches(size)
        display.figure_.canvas.draw()
        for axis, start, stop in ((display.ax_.xaxis, "x0", "x1"), (display.ax_.yaxis, "y0", "y1")):
            labels = [one for one in axis.get_ticklabels() if one.get_text()]
            boxes = [one.get_window_extent() for one in labels]
            spans = sorted((getattr(box, start), getattr(box, stop)) for box in boxes)
            assert all(one[1] <= other[0] for one, other in pairwise(spans))


@pytest.mark.parametrize("y", [[0.4], [2.0] * 40])
def test_one_row_and_a_constant_target_can_be_drawn(y, drawing):
    """Thin data give a thin picture, not a warning."""
    cls, options = drawing
    if "x" in options:
        options["x"] = np.linspace(0.0, 1.0, len(y))
    dist = Normal(np.linspace(0.0, 3.0, len(y)), np.ones(len(y)))

    cls.from_predictions(y, dist, **options)
