"""The panels of a single row."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import Line

from regcal import Clipped, Normal, Outcomes, Rounded
from regcal.plots import RowDisplay


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


def test_row_display_draws_masses_as_bars(data):
    """A bar of the mass's size beside the density, a step in the CDF, no spike in the density."""
    _, y, dist = data
    seen, clipped = np.maximum(y, 0.0), Clipped(dist, low=0.0)
    display = RowDisplay.from_predictions(seen, {"before": dist, "after": clipped}, row=4)
    (bars,) = [ax for ax in display.figure_.axes if ax.get_ylabel() == "P(Y = t), bars"]
    place, mass = bars.lines[-1].get_xydata()[0]
    cdf = display.cdfs["after"]

    assert (place, mass) == (0.0, clipped.mass(0.0)[4])
    assert_allclose(np.diff(cdf).max(), mass, atol=1e-4)
    assert display.densities["after"].max() <= dist[4].pdf(dist[4].loc)[0]


def test_row_display_of_counts_is_all_bars(data):
    """Between values there is no density."""
    _, y, dist = data
    display = RowDisplay.from_predictions(
        np.round(y), {"before": dist, "after": Rounded(dist)}, row=2
    )

    assert_allclose(display.densities["after"], 0.0)
    assert display.masses["after"][:, 1].sum() > 0.98


@pytest.mark.parametrize("ends", [(0.5, np.inf), (-np.inf, 0.5), (0.2, 0.9)])
def test_row_display_shades_what_was_seen(ends, data):
    """An interval is a band, to the edge of the panel where an end is not known."""
    dist = data[2]
    outcomes = Outcomes(np.full(300, ends[0]), np.full(300, ends[1]))
    display = RowDisplay.from_predictions(outcomes, {"a": dist, "b": dist}, row=1)
    band = (
        display.axes_[2].patches[0].get_extents().transformed(display.axes_[2].transData.inverted())
    )

    wanted = np.clip(ends, display.points[0], display.points[-1])
    assert_allclose([band.x0, band.x1], wanted)
    assert display.outcome == ends
