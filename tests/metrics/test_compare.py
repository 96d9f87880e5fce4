"""Tables that compare models."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from regcal import Histogram, Normal, metrics


def test_compare_pairs_rows(normals):
    """Differences are means of row-wise differences, with their standard errors."""
    y, dist = normals
    wide = Normal(dist.loc, 2 * dist.scale)
    table = metrics.compare(y, {"wide": wide, "right": dist})
    gaps = metrics.log_score(y, dist) - metrics.log_score(y, wide)
    entry = table["log score"]

    assert_allclose(entry.differences, [0.0, gaps.mean()])
    assert_allclose(entry.difference_errors, [0.0, stats.sem(gaps)])
    assert_allclose(entry.values[1], metrics.log_score(y, dist).mean())
    assert_allclose(table["sharpness"].values, [2 * dist.scale.mean(), dist.scale.mean()])


def test_compare_agrees_with_the_single_metrics(normals, weights):
    """Every row of the table is what the metric of that name returns."""
    y, dist = normals
    dist = Normal(dist.loc + 0.5, dist.scale)
    table = metrics.compare(y, {"only": dist}, weights, coverage=0.8)
    expected = {
        "CRPS": np.average(metrics.crps(y, dist), weights=weights),
        "interval score 80 %": np.average(metrics.interval_score(y, dist, 0.8), weights=weights),
        "coverage 80 %": metrics.interval_coverage(y, dist, 0.8, weights),
        "quantile calibration error": metrics.quantile_calibration_error(y, dist, None, weights),
        "threshold calibration error": metrics.threshold_calibration_error(
            y, dist, sample_weight=weights
        ),
    }

    for name, value in expected.items():
        assert_allclose(table[name].values, [value], err_msg=name)


def test_jackknife_errors_match_repeated_sampling(rng):
    """Standard errors of calibration errors are about the spread over fresh data sets."""
    values, claimed = [], []
    for _ in range(40):
        loc = rng.normal(size=500)
        table = metrics.compare(rng.normal(loc + 0.4), {"m": Normal(loc, np.ones(500))})
        values.append(table["threshold calibration error"].values[0])
        claimed.append(table["threshold calibration error"].standard_errors[0])

    assert 0.6 < np.mean(claimed) / np.std(values) < 1.6


def test_compare_prints_and_gives_a_frame(normals):
    """The table is readable, and the frame holds the same numbers."""
    y, dist = normals
    table = metrics.compare(y, {"before": dist, "after": dist})
    frame = table.to_frame()

    assert repr(table).splitlines()[0].split() == [
        "before",
        "after",
        "after",
        "-",
        "before",
        "better",
    ]
    assert "log score" in repr(table)
    assert_allclose(frame.loc["CRPS", "after"], table["CRPS"].values[1])
    assert_allclose(frame["after - before"], 0.0)
    with pytest.raises(KeyError, match="log score"):
        table["nonsense"]


def test_compare_survives_impossible_outcomes():
    """A log score of minus infinity stays one, without a warning."""
    dist = Histogram([0.0, 1.0, 2.0], [[0.5, 0.5]] * 4)
    table = metrics.compare([0.5, 1.5, 5.0, 0.2], {"a": dist, "b": dist})

    assert np.isneginf(table["log score"].values).all()
    assert "-inf" in repr(table)
