"""Displays: the numbers they draw, their labels and axes. Pictures are judged by eye."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

mpl.use("Agg")
import matplotlib.pyplot as plt

from regcal import Normal, get_calibrator, metrics
from regcal.plots import (
    CalibrationMapDisplay,
    CoverageDisplay,
    DensityDisplay,
    PitHistogramDisplay,
    ReliabilityDisplay,
    RowDisplay,
)


class Line:
    """An estimator whose predictions follow its first feature."""

    def predict_dist(self, X):
        x = np.asarray(X)[:, 0]
        return Normal(x, np.full(len(x), 1.0))


class Halved:
    """A fitted calibrator that halves every probability."""

    thresholds_ = np.linspace(-2.0, 2.0, 5)

    def calibration_map(self, t, q):
        return q / 2 + 0 * t


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


@pytest.fixture
def data(rng):
    """Return features, targets and their true distributions."""
    X = rng.normal(size=(300, 2))
    return X, rng.normal(X[:, 0]), Normal(X[:, 0], np.ones(300))


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


def test_text_stays_inside_the_figure_at_two_sizes(drawing, data):
    """No label is cut off, also when the figure is small."""
    cls, options = drawing
    for size in ((5.2, 4.2), (3.4, 3.0)):
        display = cls.from_predictions(data[1], data[2], **options, name="model")
        display.figure_.set_size_inches(size)
        display.figure_.canvas.draw()
        box = display.ax_.get_tightbbox()
        width, height = display.figure_.canvas.get_width_height()
        assert box.x0 >= -2
        assert box.y0 >= -2
        assert box.x1 <= width + 2
        assert box.y1 <= height + 2


def test_reliability_draws_one_line_per_threshold(data):
    """Lines hold the numbers of `reliability_curve`, over a diagonal."""
    _, y, dist = data
    display = ReliabilityDisplay.from_predictions(y, dist, thresholds=[-0.5, 0.0, 0.5], bins=4)
    curve = metrics.reliability_curve(y, dist, [-0.5, 0.0, 0.5], bins=4)
    diagonal, *lines = display.ax_.lines

    assert_allclose(diagonal.get_xydata(), [[0, 0], [1, 1]])
    assert [line.get_label() for line in lines] == ["t = -0.5", "t = 0", "t = 0.5"]
    for k, line in enumerate(lines):
        assert_allclose(line.get_xdata(), curve.predicted[k])
        assert_allclose(line.get_ydata(), curve.observed[k])
    assert display.colorbar_.ax.get_ylabel() == "Threshold t"


def test_reliability_lines_end_where_rows_do(rng):
    """A single row far out does not get a point of its own."""
    loc = np.append(np.zeros(299), 5.0)
    display = ReliabilityDisplay.from_predictions(
        rng.normal(loc), Normal(loc, np.ones(300)), thresholds=[0.0], bins=8
    )

    assert display.ax_.lines[1].get_xdata().size == 1


def test_pit_histogram_draws_bars(data):
    """Bar heights are the densities."""
    _, y, dist = data
    display = PitHistogramDisplay.from_predictions(y, dist, bins=5)
    heights = [bar.get_height() for bar in display.ax_.containers[0]]

    assert_allclose(heights, metrics.pit_histogram(y, dist, bins=5).density)


def test_coverage_curves_share_a_panel(data):
    """A second model on the same axes adds a line and no second background."""
    _, y, dist = data
    first = CoverageDisplay.from_predictions(y, dist, name="before")
    CoverageDisplay.from_predictions(y, dist, name="after", ax=first.ax_, color="black")
    _, before, after = first.ax_.lines
    labels = [text.get_text() for text in first.ax_.get_legend().get_texts()]

    assert labels == ["95 % band", "before", "after"]
    assert_allclose(before.get_ydata(), metrics.coverage_curve(y, dist).observed)
    assert after.get_color() == "black"
    assert len(first.ax_.collections) == 1


def test_calibration_map_shows_the_map_and_its_points(data):
    """The surface is the calibrator's; points are pairs of row and threshold by outcome."""
    _, y, dist = data
    display = CalibrationMapDisplay.from_predictions(
        y, dist, calibrator=Halved(), max_points=200, random_state=0
    )
    expected = np.broadcast_to(display.predicted / 2, display.calibrated.shape)
    below = display.points[display.happened]
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]

    assert_allclose(display.calibrated, expected)
    assert display.points.shape == (200, 2)
    assert set(np.unique(display.points[:, 1])) <= set(Halved.thresholds_)
    assert below[:, 0].mean() > display.points[~display.happened, 0].mean()
    assert labels == ["y ≤ t", "y > t"]


@pytest.mark.parametrize("name", ["gpc", "gp-density"])
def test_calibration_map_of_a_fitted_calibrator(name, data):
    """Gaussian-process calibrators draw their own map; true predictions need no correction."""
    _, y, dist = data
    calibrator = get_calibrator(name).fit(dist, y)
    display = CalibrationMapDisplay.from_predictions(y, dist, calibrator=calibrator)
    middle = (np.abs(display.targets) < 1)[:, np.newaxis] & (display.predicted > 0)

    assert np.abs(display.calibrated - display.predicted)[middle].max() < 0.2


def test_calibration_map_needs_a_map(data):
    """A calibrator of another kind is refused by name."""
    with pytest.raises(TypeError, match="object has no calibration_map"):
        CalibrationMapDisplay.from_predictions(data[1], data[2], calibrator=object())


def test_row_display_shows_density_map_and_cdf(data):
    """Three panels: PDFs, calibrated against uncalibrated CDF, CDFs, and the outcome."""
    _, y, dist = data
    after = Normal(dist.loc, np.full(300, 0.5))
    display = RowDisplay.from_predictions(y, {"before": dist, "after": after}, row=7)
    densities, marginal, cdfs = display.axes_
    t = display.points

    assert_allclose(densities.lines[1].get_ydata(), after[7].pdf(t[np.newaxis])[0])
    assert_allclose(marginal.lines[1].get_xdata(), dist[7].cdf(t[np.newaxis])[0])
    assert_allclose(marginal.lines[1].get_ydata(), after[7].cdf(t[np.newaxis])[0])
    assert_allclose(cdfs.lines[2].get_xdata(), y[7])
    assert marginal.get_xlabel() == "P(Y ≤ t), before"
    assert t[0] < min(y[7], dist[7].ppf(0.01)[0])


def test_row_display_takes_axes_estimators_and_no_outcome(data):
    """The same panels from fitted estimators, on given axes, without a known outcome."""
    X = data[0]
    _, axes = plt.subplots(1, 3)
    display = RowDisplay.from_estimator({"a": Line(), "b": Line()}, X, None, ax=axes)

    assert display.figure_ is axes[0].figure
    assert display.outcome is None
    with pytest.raises(ValueError, match="three axes"):
        display.plot(axes[:2])
    with pytest.raises(ValueError, match="two or more"):
        RowDisplay.from_predictions(None, {"a": Line().predict_dist(X)})


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


@pytest.mark.parametrize("y", [[0.4], [2.0] * 40])
def test_one_row_and_a_constant_target_can_be_drawn(y, drawing):
    """Thin data give a thin picture, not a warning."""
    cls, options = drawing
    if "x" in options:
        options["x"] = np.linspace(0.0, 1.0, len(y))
    dist = Normal(np.linspace(0.0, 3.0, len(y)), np.ones(len(y)))

    cls.from_predictions(y, dist, **options)
