"""The paper's method by hand, on hostile data, and what it refuses."""

import numpy as np
import pytest
import scipy.stats
from hostile_rows import HOSTILE, assert_valid
from numpy.testing import assert_allclose, assert_array_equal
from rows import normal_rows, small_paper
from sklearn.exceptions import NotFittedError

from regcal import Normal


@pytest.fixture
def paper(rng):
    """Return a small fit of the paper's method, with its data and new predictions."""
    dist, y = normal_rows(rng, 60, scale=2.0)
    new = Normal([-1.0, 0.2, 1.5, 0.0], [2.0, 2.0, 2.0, 0.2])
    return small_paper().fit(dist, y), y, new


def classifier_by_hand(cal, y, q, t):
    """Return the classifier's probability for base probabilities `q` at targets `t`."""
    low, high = 1.5 * y.min() - 0.5 * y.max(), 1.5 * y.max() - 0.5 * y.min()
    features = [[qi, 2 * (ti - low) / (high - low) - 1] for qi, ti in zip(q, t, strict=True)]
    return cal.classifier_.predict_proba(features)[:, 1]


def test_raw_cdf_is_the_classifier(paper):
    """The raw CDF is scikit-learn's probability at (q(t), standardised t)."""
    cal, y, new = paper
    grid = np.linspace(1.5 * y.min() - 0.5 * y.max(), 1.5 * y.max() - 0.5 * y.min(), 24)

    raw = cal.raw_cdf(new)

    assert raw.shape == (4, 24)
    for row, loc, scale in zip(raw, [-1.0, 0.2, 1.5, 0.0], [2.0, 2.0, 2.0, 0.2], strict=True):
        q = scipy.stats.norm.cdf(grid, loc, scale)
        assert_allclose(row, classifier_by_hand(cal, y, q, grid), rtol=1e-8)


def test_the_classifier_sees_skewed_targets_as_they_are(rng):
    """The second feature is linear in t, whatever the targets look like."""
    dist, y = normal_rows(rng, 60, scale=2.0)
    cal, t = small_paper().fit(dist, np.exp(y)), np.linspace(0.1, 5.0, 9)
    q = dist[:9].cdf(t)

    wanted = classifier_by_hand(cal, np.exp(y), q, t)
    assert_allclose(cal.calibration_map(t, q), wanted, rtol=1e-8)


def test_raw_pdf_is_a_difference_quotient(paper):
    """The raw density is the rise of the raw CDF over its segment, and 0 beyond the grid."""
    cal, _, new = paper
    grid, raw = cal.prediction_thresholds_, cal.raw_cdf(new)
    width = grid[1] - grid[0]

    for row in range(len(new)):
        for k in (0, 3, 10, 11, 12, 22):
            inside = np.full(len(new), grid[k] + 0.3 * width)
            wanted = (raw[row, k + 1] - raw[row, k]) / width
            assert_allclose(cal.raw_pdf(new, inside)[row], wanted, rtol=1e-6, atol=1e-12)
    assert_array_equal(cal.raw_pdf(new, np.full(4, grid[0] - 0.1)), 0.0)
    assert_array_equal(cal.raw_pdf(new, np.full(4, grid[-1] + 0.1)), 0.0)


def test_repair_report_against_loops(paper):
    """The report counts what a loop over rows and steps counts."""
    cal, _, new = paper
    raw, grid = cal.raw_cdf(new), cal.prediction_thresholds_
    n_rows, n_steps = len(raw), len(grid) - 1
    falls = [[raw[i, k + 1] < raw[i, k] for k in range(n_steps)] for i in range(n_rows)]
    changes = [
        abs(float(cal.transform(new[i]).cdf(t)[0]) - raw[i, k])
        for i in range(n_rows)
        for k, t in enumerate(grid)
    ]

    report = cal.repair_report(new)

    assert 0 < report.decreasing_rows == sum(any(row) for row in falls) / n_rows
    assert_allclose(report.decreasing_steps, sum(map(sum, falls)) / (n_rows * n_steps))
    assert_allclose(report.mass_below, sum(raw[:, 0]) / n_rows)
    assert_allclose(report.mass_above, sum(1 - raw[:, -1]) / n_rows)
    assert_allclose(report.mean_change, sum(changes) / len(changes), rtol=1e-6)


def test_pairs_are_drawn_from_rows_with_weight(rng):
    """Pairs are distinct, and a row of nearly all weight gives nearly all of them."""
    dist, y = normal_rows(rng, 50)
    weights = np.full(50, 1e-6)
    weights[7] = 1.0
    cal = small_paper().fit(dist, y)

    rows, columns = cal._drawn_pairs(50, weights)

    assert len(set(zip(rows, columns, strict=True))) == 150
    assert np.sum(rows == 7) == 12
    assert cal.classifier_.base_estimator_.X_train_.shape == (150, 2)


@pytest.mark.filterwarnings("ignore::regcal.FewRowsWarning")  # of odd weights
@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.filterwarnings("ignore::regcal.GrossErrorsWarning")
def test_hostile_data_in_the_paper_version(rng, data):
    """The repaired result of the classifier is a distribution, whatever the rows."""
    dist, y, weights = data(rng)
    cal = small_paper(n_pairs=80).fit(dist, y, sample_weight=weights)

    rows = slice(0, 4)
    assert_valid(cal.transform(dist[rows]), dist[rows], y[rows])


def test_unfitted_raw_cdf_is_refused():
    """The classifier is asked only after `fit`."""
    with pytest.raises(NotFittedError):
        small_paper().raw_cdf(Normal([0.0], [1.0]))


@pytest.mark.parametrize("thresholds", [[50.0, 60.0], [-60.0, -50.0]])
def test_pairs_of_one_class_are_refused(rng, thresholds):
    """Thresholds beyond all targets give a classifier nothing to learn."""
    with pytest.raises(ValueError, match="have the same label"):
        small_paper(thresholds=thresholds).fit(*normal_rows(rng, 20))
