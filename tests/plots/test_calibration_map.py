"""Maps of calibrators, and the pairs they learn from."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import Halved

from regcal import get_calibrator
from regcal.plots import CalibrationMapDisplay


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


def test_calibration_map_leaves_out_what_is_not_known(odd):
    """No point is drawn of a pair of which nobody knows whether y <= t."""
    outcomes, dist = odd
    display = CalibrationMapDisplay.from_predictions(
        outcomes, dist, calibrator=Halved(), max_points=10**6, random_state=0
    )
    # inside the outcomes, which begin at -0.5
    t = Halved.thresholds_[Halved.thresholds_ > -0.5]
    below, above = outcomes.upper[:, np.newaxis] <= t, outcomes.lower[:, np.newaxis] > t

    assert display.happened.sum() == below.sum()
    assert len(display.points) == below.sum() + above.sum() < below.size


def test_calibration_map_stays_inside_the_outcomes(data):
    """Thresholds beyond all outcomes show a map that no row was ever asked about."""
    _, y, dist = data

    class Far(Halved):
        thresholds_ = np.linspace(-50.0, 50.0, 201)

    display = CalibrationMapDisplay.from_predictions(y, dist, calibrator=Far())

    assert y.min() <= display.targets[0] < display.targets[-1] <= y.max()
