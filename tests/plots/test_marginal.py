"""Bars of the PIT histogram and curves of coverage."""

from numpy.testing import assert_allclose

from regcal import metrics
from regcal.plots import CoverageDisplay, PitHistogramDisplay


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


def test_displays_say_how_censored_rows_and_masses_count(odd):
    """The bars are those of the metric, and a note below the axes explains them."""
    outcomes, dist = odd
    bars, curve = (
        one.from_predictions(outcomes, dist) for one in (PitHistogramDisplay, CoverageDisplay)
    )
    heights = [bar.get_height() for bar in bars.ax_.containers[0]]

    assert_allclose(heights, metrics.pit_histogram(outcomes, dist).density)
    for display in (bars, curve):
        note = " ".join(text.get_text().replace("\n", " ") for text in display.ax_.texts)
        assert "outcomes are right-censored" in note and "spread evenly" in note


def test_bars_of_pit_values_have_one_colour(data):
    """The band lies behind them, and its edges are lines."""
    display = PitHistogramDisplay.from_predictions(data[1], data[2])
    bars, (band,) = (
        display.ax_.containers[0],
        [one for one in display.ax_.patches if one not in display.ax_.containers[0]],
    )
    edges = [line.get_ydata()[0] for line in display.ax_.lines]

    assert band.get_zorder() < min(bar.get_zorder() for bar in bars)
    assert edges == [display.histogram.lower, display.histogram.upper]
