"""Sums by segment against loops over rows, and their largest against chance."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

from regcal.audit.evidence import add_up, largest_by_chance, share_as_large
from regcal.audit.segments import make_segments
from regcal.audit.statements import Labels
from regcal.audit.tails import Steps
from regcal.covariates import Covariates


def rows_for(n, seed=0, spread=1.0, weights=None, bias=0.0):
    """Return labels and segments of calibrated predictions, or of such that are too sure.

    Three thresholds, and what lies below the lower quartile.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y, thresholds = rng.normal(X[:, 0] + bias, spread), np.array([-1.0, 0.0, 1.5])
    predicted = np.c_[ndtr(thresholds - X[:, :1]), np.full(n, 0.25)]
    happened = np.c_[y[:, np.newaxis] <= thresholds, ndtr(y - X[:, 0]) <= 0.25].astype(float)
    weights = np.ones(n) if weights is None else weights
    kinds, places = ("threshold",) * 3 + ("below",), np.append(thresholds, 0.25)
    labels = Labels(kinds, places, predicted, happened, weights)
    return labels, make_segments(n, Covariates.of(X), None, weights), y


@pytest.mark.parametrize("n", [300, 15_000])
def test_sums_are_those_of_a_loop(n, rng):
    """S as it is written down, segment by segment."""
    weights = rng.exponential(size=n)
    labels, segments, _ = rows_for(n, weights=weights)
    cells = add_up(labels, segments)
    for g in range(len(segments)):
        rows = (segments.codes == g).any(axis=1)
        w, q = weights[rows, np.newaxis], labels.predicted[rows]
        excess = (w * (labels.happened[rows] - q)).sum(axis=0)
        assert_allclose(cells.statistics[g], excess / np.sqrt((w**2 * q * (1 - q)).sum(axis=0)))
        assert_allclose(cells.weight[g], w.sum())
        assert cells.n_rows[g] == rows.sum()


def test_scores_of_many_rows_are_the_statistics():
    """With thousands of rows a sum is normal."""
    cells = add_up(*rows_for(20_000)[:2])

    assert_allclose(cells.scores, cells.statistics, atol=0.06)


def test_a_sum_beyond_chance_is_where_its_score_is():
    """The ends of what chance makes have the score that was asked for."""
    labels, segments, _ = rows_for(200)
    cells = add_up(labels, segments)
    worst = np.zeros(len(segments), dtype=int)
    for excess, score in zip(cells.by_chance(2.5, worst), (-2.5, 2.5), strict=True):
        moved = cells.happened.copy()
        moved[:, 0] = cells.predicted[:, 0] + excess
        again = type(cells)(**{**vars(cells), "happened": moved})
        at_end = np.isin(moved[:, 0], [0.0, *cells.weight])
        assert_allclose(again.scores[~at_end, 0], score, atol=1e-4)
        assert (np.abs(again.scores[at_end, 0]) < 2.5).all()
        assert at_end.sum() < 4


def test_predictions_that_are_too_sure_are_not_taken_at_their_word():
    """Residuals that vary more than predicted widen chance; calibrated ones do not.

    Shares of rows that all have the same probability vary as binomials do, whatever is true.
    """
    sure, honest = (add_up(*rows_for(4000, spread=s)[:2]) for s in (3.0, 1.0))

    assert (sure.ratio[:, :3] > 1.3).all()
    assert_allclose(sure.ratio[:, 3], 1.0)
    assert_allclose(honest.ratio, 1.0, atol=0.06)


@pytest.mark.parametrize(
    ("n", "bias"), [(400, 0.0), (4000, 0.0), (4000, 2.0)], ids=["rows", "bins", "bins, biased"]
)
def test_largest_by_chance_is_that_of_multipliers_of_all_rows(n, bias):
    """Quantiles of the largest draw agree with plain multipliers, rows × draws."""
    labels, segments, y = rows_for(n, bias=bias)
    none = Steps(np.empty(0, dtype=int), np.empty((0, 0)), np.empty((0, 0)))
    ours = largest_by_chance(labels, segments, none, np.argsort(y), 2000, random_state=0)
    rng = np.random.default_rng(5)
    columns = [
        (labels.happened - labels.predicted) * (segments.codes == g).any(axis=1)[:, np.newaxis]
        for g in range(len(segments))
    ]
    table = np.concatenate(columns, axis=1)
    draws = rng.normal(size=(2000, n)) @ (table / np.linalg.norm(table, axis=0))
    plain = np.sort(np.abs(draws).max(axis=1))

    assert_allclose(np.quantile(ours, [0.5, 0.9]), np.quantile(plain, [0.5, 0.9]), atol=0.09)


def test_p_values_count_the_data_among_the_draws():
    """With a hundred draws no p-value is below 1 / 101."""
    largest = np.arange(1.0, 101.0)

    assert_allclose(
        share_as_large(largest, np.array([1e9, 100.0, -50.0])), np.array([1, 2, 52]) / 101
    )
