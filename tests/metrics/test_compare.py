"""Tables that compare models."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from regcal import Clipped, Histogram, Normal, Outcomes, Rounded, metrics


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


def test_compare_of_censored_outcomes_says_what_it_did(censored):
    """The table has what intervals have, agrees with the single metrics, and explains itself."""
    outcomes, dist = censored
    shifted = Normal(dist.loc + 0.5, dist.scale)
    table = metrics.compare(outcomes, {"right": dist, "shifted": shifted})
    expected = {
        "log score": metrics.log_score(outcomes, shifted).mean(),
        "CRPS": metrics.crps(outcomes, shifted).mean(),
        "coverage 90 %": metrics.interval_coverage(outcomes, shifted),
        "quantile calibration error": metrics.quantile_calibration_error(outcomes, shifted),
        "threshold calibration error": metrics.threshold_calibration_error(outcomes, shifted),
    }

    for name, value in expected.items():
        assert_allclose(table[name].values[1], value, err_msg=name)
        assert table[name].difference_errors[1] > 0
    assert table["log score"].differences[1] < 0
    assert "threshold calibration error" in repr(table) and "interval score 90" not in repr(table)
    for words in ("-censored", "the one to compare models by", "within bins", "spread evenly"):
        assert any(words in note for note in table.notes), words


def test_compare_of_numbers_has_nothing_to_explain(normals):
    """Without masses and censoring the table stands alone."""
    assert metrics.compare(normals[0], {"a": normals[1]}).notes == ()


def test_log_scores_are_compared_on_one_measure(normals):
    """A model without the mass is scored as if it were seen through the same end."""
    y, latent = normals
    low, high = -0.5, 1.5
    seen, dist = np.clip(y, low, high), Clipped(latent, low, high)
    table = metrics.compare(seen, {"latent": latent, "seen": dist})

    assert_allclose(table["log score"].differences, 0.0, atol=1e-12)
    assert any("P(Y <= end), or P(Y >= end)" in note for note in table.notes)


def test_log_scores_that_do_not_compare_are_named(normals):
    """Counts against densities: the table says what to do."""
    y, latent = normals
    table = metrics.compare(np.round(y), {"density": latent, "counts": Rounded(latent)})

    assert any("Put all into regcal.Rounded" in note for note in table.notes)


def test_jackknife_errors_match_repeated_sampling_of_censored_rows(censoring, rng):
    """Standard errors of estimated frequencies are about their spread over fresh data sets."""
    values, claimed = [], []
    for _ in range(30):
        loc = rng.normal(size=200)
        outcomes = censoring(rng, rng.normal(loc + 0.6))
        table = metrics.compare(outcomes, {"m": Normal(loc, np.ones(200))}, thresholds=[0.0, 1.0])
        values.append(table["threshold calibration error"].values[0])
        claimed.append(table["threshold calibration error"].standard_errors[0])

    assert 0.5 < np.mean(claimed) / np.std(values) < 1.8


def test_compare_refuses_frequencies_of_which_nothing_is_known(rng):
    """If no event was seen, no error can be told; beyond follow-up, the table says so."""
    time = rng.exponential(2.0, 200)
    dists = {"a": Normal(np.full(200, 2.0), np.full(200, 2.0))}
    with pytest.raises(ValueError, match=r"200 of 200 outcomes are right-censored.*use log_score"):
        metrics.compare(Outcomes(time, np.full(200, np.inf)), dists)

    seen = Outcomes.right_censored(np.minimum(time, 3.0), time < 3.0)
    table = metrics.compare(seen, dists, thresholds=[1.0, 4.0])
    assert "Kaplan-Meier within bins; nothing is known at 4" in table.notes[0]
    alone = metrics.compare(seen, dists, thresholds=[1.0])["threshold calibration error"]
    assert_allclose(table["threshold calibration error"].values, alone.values)
