"""Lines of the reliability display."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from regcal import Normal, metrics
from regcal.plots import ReliabilityDisplay


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


def test_reliability_of_censored_rows_says_how(odd):
    """Lines are Kaplan and Meier's, and the note says so; isotonic lines are refused."""
    outcomes, dist = odd
    display = ReliabilityDisplay.from_predictions(outcomes, dist, thresholds=[0.5], bins=4)

    curve = metrics.reliability_curve(outcomes, dist, [0.5], bins=4)
    assert_allclose(display.ax_.lines[1].get_ydata(), curve.observed[0])
    assert "Kaplan-Meier" in display.ax_.texts[0].get_text()
    with pytest.raises(ValueError, match="reliability_curve"):
        ReliabilityDisplay.from_predictions(outcomes, dist, isotonic=True)


def test_lines_are_few_and_inside_the_data(data):
    """Five thresholds at quantiles of the outcomes, unless others are asked for."""
    _, y, dist = data
    thresholds = ReliabilityDisplay.from_predictions(y, dist).curve.thresholds

    assert len(thresholds) == 5
    assert y.min() < thresholds[0] < thresholds[-1] < y.max()
