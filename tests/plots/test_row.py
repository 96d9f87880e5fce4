"""The panels of a single row."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import Line

from regcal import Normal
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
