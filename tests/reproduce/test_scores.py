"""Densities as the paper has them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import regcal
from regcal.datasets import make_toy_mixture
from regcal.reproduce import Unit
from regcal.reproduce.scores import OuterFold, _floored, log_quotients, raw_quotients


def test_folds_are_disjoint_and_hold_all_rows():
    """Every row is judged once per repetition, never by a model that has seen it."""
    toy = make_toy_mixture(53, random_state=0)
    folds = [OuterFold(toy, Unit("toy", "OLS", 0, fold)) for fold in range(5)]

    assert sorted(np.concatenate([fold.y_test for fold in folds])) == sorted(toy.y)
    assert not any(set(fold.y) & set(fold.y_test) for fold in folds)


@pytest.fixture(scope="module")
def fold(data) -> OuterFold:
    return OuterFold(data["diabetes"], Unit("diabetes", "OLS", 0, 0))


def test_quotients_are_those_of_the_calibrator(fold):
    """Two thresholds per row give what the calibrator gives with all of them."""
    thresholds, grid = fold.thresholds(8), fold.prediction_thresholds
    new, y = fold.new[0], np.append(fold.y_test[:-2], [grid[0] - 1.0, grid[-1] + 1.0])
    smooth, stepped = (
        fold.calibrated(regcal.GPCalibrator(thresholds, prior="zero", prediction_thresholds=steps))
        for steps in (None, grid)
    )
    expected = stepped[0].transform(new).logpdf(y)

    assert_allclose(log_quotients(smooth[0].transform(new), y, grid), expected, atol=1e-6)


def test_raw_quotients_are_differences_of_the_map(fold):
    """Where the map is the identity, they are those of the base model; none off the grid."""

    class Identity:
        def calibration_map(self, t, q):
            return q

    grid, dist = np.linspace(-3, 3, 601), regcal.Normal([0.0, 1.0, 0.0], [1.0, 1.0, 1.0])
    raw = raw_quotients(Identity(), dist, np.array([0.3, 0.3, 5.0]), grid)

    assert_allclose(raw[:2], dist[:2].pdf([0.295, 0.295]), rtol=1e-4)
    assert raw[2] == 0.0


def test_densities_at_the_floor_are_counted():
    """Negative, zero, tiny and missing densities all count, and count as the floor."""
    score, count = _floored(np.array([-1.0, 0.0, 1e-9, np.nan, np.e]), 1e-3)

    assert count == 4
    assert score == pytest.approx((4 * np.log(1e-3) + 1) / 5)


def test_thresholds_follow_the_training_targets(fold):
    """The paper's range rule, on the rows that are not judged."""
    low, high = fold.y.min(), fold.y.max()

    assert_allclose(
        fold.thresholds(3),
        [low - 0.5 * (high - low), 0.5 * (low + high), high + 0.5 * (high - low)],
    )
