"""Scores of candidates: against hand-made rows, and what a factor on the spread is worth."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import regcal
from regcal.calibrators.held_out import HeldOut
from regcal.calibrators.judged import Judged, averaged, best_spread
from regcal.calibrators.stack import Objective, Prices
from regcal.calibrators.support import UNBOUNDED, Support
from regcal.distributions import Transformed
from regcal.maps import ScaleMap


def with_a_share_of_all(rows):
    """Return log scores of candidates of which each has 1 % of the average of all."""
    densities = np.exp(np.asarray(rows, dtype=float))
    return np.log(0.99 * densities + 0.01 * densities.mean(axis=0))


def judged(logs, crps=None, price=0.0):
    """Return scores of rows of weight 1, whose CRPS are squares of one difference each."""
    logs = np.asarray(logs, dtype=float)
    differences = np.sqrt(np.ones(logs.shape) if crps is None else np.asarray(crps, dtype=float))
    ones = np.ones(logs.shape[1])
    cdfs, labels = differences[:, :, np.newaxis], np.zeros((len(ones), 1))
    return Judged(logs, cdfs, labels, np.ones(1), ones, Prices(1.0, price))


def test_scores_follow_the_paired_differences():
    """Means, gaps and standard errors, by hand."""
    rows = np.array([[-3.0, -3.0, -3.0, -3.0], [1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.2]])

    scores = judged(rows)

    shared = with_a_share_of_all(rows)
    gap = shared[2] - shared[1]
    assert_allclose(scores.behind()[1], (gap.mean(), gap.std(ddof=1) / 2))
    assert_allclose(scores.chosen(), [0.0, 1.0, 0.0])  # not clearly worse than the best
    assert scores.gain_of(scores.chosen()) == 0


@pytest.mark.parametrize(("gap", "chosen"), [(0.18, 0), (0.22, 1)])
def test_a_t_test_decides(monkeypatch, gap, chosen):
    """Unless the best is clearly better, by 1.99 standard errors here, take the simpler."""
    monkeypatch.setattr(Objective, "best_few", lambda *_: np.array([0.0, 1.0]))  # no average
    noise = np.array([1.0, -1.0] * 49)

    weights = judged(np.stack([np.zeros(98), gap + noise])).chosen()

    assert_allclose(weights, np.eye(2)[chosen])


def test_candidates_share_the_level(rng, monkeypatch):
    """Of seven candidates that are noise, one is taken in hardly more than 2.5 % of draws.

    Each alone would be taken in 2.5 %, and the best of them in about 10 %.
    """
    monkeypatch.setattr(Objective, "best_few", lambda *_: np.eye(8)[0])  # no average
    taken = 0
    for _ in range(500):
        taken += judged(rng.normal(size=(8, 15))).chosen()[0] == 0

    assert taken <= 0.06 * 500


def test_candidates_that_know_different_rows_are_averaged():
    """Each is right where the other is wrong: half of both is much better than either."""
    rows = np.log(np.array([[0.9, 0.1] * 50, [0.1, 0.9] * 50, [0.05] * 100]))

    weights = judged(rows).chosen()

    assert_allclose(weights, [0.5, 0.5, 0.0], atol=1e-4)
    shared = with_a_share_of_all(rows)
    best = np.logaddexp(shared[0], shared[1]) - np.log(2.0)
    assert_allclose(judged(rows).gain_of(weights), best.mean() - shared[0].mean(), atol=1e-4)


def test_what_costs_more_crps_than_the_first_is_not_chosen():
    """A better log score does not pay for a worse CRPS than without calibration."""
    logs = np.stack([np.zeros(50), np.full(50, 1.0), np.full(50, 0.5)])
    crps = np.stack([np.ones(50), np.full(50, 1.3), np.full(50, 0.9)])

    weights = judged(logs, crps, price=2.0).chosen()

    assert (weights @ np.sqrt([1.0, 1.3, 0.9])) ** 2 <= 1.0 + 1e-4
    assert judged(logs, crps).chosen()[1] == 1.0


def test_rows_that_are_all_but_ruled_out_do_not_hide_the_others(rng):
    """One row in ten is 1 000 nats worse: far from chance, however uncertain how much."""
    logs = rng.normal(scale=0.1, size=(2, 200))
    logs[0, :20] -= 1000.0 * rng.exponential(size=20) ** 3

    gap = logs[1] - logs[0]
    assert gap.mean() < 2.3 * gap.std() / np.sqrt(200)  # by a t test of the differences
    assert judged(logs).chosen()[1] > 0


def test_a_clear_gain_in_one_score_is_not_hidden_by_the_other(monkeypatch):
    """Log scores that differ in every row, up and down, leave the CRPS clear."""
    monkeypatch.setattr(Objective, "best_few", lambda *_: np.array([0.0, 1.0]))  # no average
    n = 200
    logs = np.stack([np.zeros(n), np.tile([2.0, -2.0], n // 2)])
    crps = np.stack([np.ones(n), np.tile([0.96, 0.98], n // 2)])
    scores = judged(logs, crps, 2.0)

    behind, error = scores.behind()[0]
    assert behind < 1.96 * error
    assert scores.chosen()[1] == 1
    assert judged(logs, crps, 0.0).chosen()[0] == 1


@pytest.mark.parametrize(
    ("gain", "errors", "taken"),
    [(0.015, 1.9, True), (0.008, 1.9, False), (0.015, 1.0, False), (0.5, 1.9, False)],
)
def test_a_gain_that_is_clearly_no_loss_is_taken(gain, errors, taken):
    """Of two candidates 1.96 standard errors are clear; less is, if no loss of 0.005 is left."""
    n = 2400
    noise = np.where(np.arange(n) % 2, 1.0, -1.0) * gain * np.sqrt(n) / errors
    scores = judged(np.stack([np.zeros(n), gain + noise]))

    assert scores.clearly_ahead(np.array([0.0, 1.0]), np.array([1.0, 0.0])) == taken


@pytest.mark.parametrize(("n", "chosen"), [(60, [False, True, False]), (140, [False, True, True])])
def test_few_rows_ask_more_of_an_average(n, chosen):
    """It gains 0.044 nats on either of two, by 1.1 and 1.7 standard errors; both on the first."""
    turns = np.tile([0.3, -0.3], n // 2)
    scores = judged(np.stack([np.full(n, -1.0), turns, -turns]))
    weights = scores.chosen()

    assert (weights > 0).tolist() == chosen
    assert_allclose(scores.gain_of(weights), np.log(np.cosh(0.3)) * chosen[-1], rtol=0.02)


def of_scale(z, factor):
    """Return log scores of rows under the standard normal distribution, and a wider one."""
    wide = regcal.Normal(np.zeros(len(z)), factor)
    return np.stack([regcal.Normal(np.zeros(len(z)), 1.0).logpdf(z), wide.logpdf(z)])


def test_evidence_takes_no_standard_error():
    """Rows of twice the spread, evenly spaced in probability, are 18 nats, of 1.8 errors."""
    logs = of_scale(2.0 * stats.norm.ppf((np.arange(24) + 0.5) / 24), 2.0)
    gains = logs[1] - logs[0]
    assert gains.sum() > 15.0
    assert gains.mean() < 2.07 * gains.std(ddof=1) / np.sqrt(24)

    assert_allclose(judged(logs).chosen(), [1.0, 0.0])
    assert_allclose(replace(judged(logs), of_few_numbers=[1]).chosen(), [0.0, 1.0])


def test_evidence_of_many_rows_is_for_an_average():
    """A spread that is a tenth too small shows in 2 000 rows, hardly one by one."""
    logs = of_scale(1.1 * stats.norm.ppf((np.arange(2000) + 0.5) / 2000), 1.1)
    crps = np.stack([np.full(2000, 1.0), np.full(2000, 1.001)])

    assert judged(logs).evident(np.array([0.0, 1.0]))
    assert not replace(judged(logs, crps), prices=Prices(1.0, 2.0)).evident(np.array([0.0, 1.0]))
    assert not replace(judged(logs), prices=Prices(0.0, 1.0)).evident(np.array([0.0, 1.0]))


def test_one_gross_error_is_no_evidence():
    """All but one or two rows speak for the first candidate, which these all but rule out."""
    z = stats.norm.ppf((np.arange(40) + 0.5) / 40)
    for n_errors in (1, 2):
        logs = of_scale(np.concatenate([z, np.full(n_errors, 9.0)]), 1.5)
        assert (logs[1] - logs[0]).sum() > 5.0
        assert not judged(logs).evident(np.array([0.0, 1.0]))


def test_right_predictions_are_hardly_ever_evidence_against_themselves(rng):
    """With a level of 2.5 %: at most 1 % of 2 000 draws, for a factor from rows of their own."""
    wrong = 0
    for _ in range(2000):
        z = rng.normal(size=30)
        parts = z.reshape(3, 10)
        factors = [np.sqrt(np.mean(np.delete(parts, k, axis=0) ** 2)) for k in range(3)]
        logs = of_scale(z, np.repeat(factors, 10))
        wrong += judged(logs).evident(np.array([0.0, 1.0]))

    assert wrong <= 0.01 * 2000


def test_by_crps_gains_are_shares_of_crps():
    """The best average of two by a grid of weights, and its gain over the better one."""
    n = 400
    first = np.arange(n) % 5 > 1
    crps = np.stack([np.where(first, 0.2, 1.0), np.where(first, 1.0, 0.2)])
    scores = replace(judged(np.zeros((2, n)), crps), prices=Prices(0.0, 1.0))
    weights = scores.chosen()

    shares = np.linspace(0.0, 1.0, 1001)[:, np.newaxis, np.newaxis]
    mixed = (shares * np.sqrt(crps[0]) + (1.0 - shares) * np.sqrt(crps[1])) ** 2
    best = mixed.mean(axis=(1, 2)).min()
    gain = scores.gain_of(weights)
    assert_allclose(gain, (crps.mean(axis=1).min() - best) / crps[0].mean(), atol=1e-5)
    assert weights.sum() == pytest.approx(1.0)


def predictions(loc, scale):
    """Return what two candidates say of 2 000 rows, in two parts."""
    places = np.arange(2000)
    return [
        [(part, regcal.Normal(one, scale)[part]) for part in (places[:1200], places[1200:])]
        for one in loc
    ]


def test_an_average_of_calibrated_predictions_is_made_narrower(rng):
    """Each candidate knows one half of what there is to know, and is right about the other."""
    known = rng.normal(size=(2, 2000))
    y = known.sum(axis=0) + 0.5 * rng.normal(size=2000)
    rows = HeldOut.checked(regcal.Normal(np.zeros(2000), 1.5), y)
    answers = predictions(known, np.full(2000, np.sqrt(1.25)))

    scores = Judged.of(answers, rows, UNBOUNDED, Prices(1.0, 2.0))
    weights = np.array([0.5, 0.5])
    average = averaged(answers, weights)
    factor = best_spread(scores, weights, average, rows, UNBOUNDED)
    z = np.concatenate([dist.probit(y[places]) for places, dist in average])

    assert_allclose(factor, np.sqrt((z**2).mean()), rtol=0.02)
    assert factor < 0.95


def test_the_worth_of_a_factor_is_that_of_the_changed_predictions(rng):
    """Scored anew, as a candidate of its own; a CRPS above the model's is worth nothing."""
    loc = rng.normal(size=(2, 2000))
    rows = HeldOut.checked(regcal.Normal(np.zeros(2000), 1.5), rng.normal(size=2000))
    answers, weights = predictions(loc, np.full(2000, 0.8)), np.array([0.3, 0.7])
    average = averaged(answers, weights)
    narrow = [(places, Transformed(dist, ScaleMap(0.9))) for places, dist in average]
    prices = Prices(1.0, 2.0)
    scores, both = (Judged.of(one, rows, UNBOUNDED, prices) for one in (answers, [average, narrow]))

    logs = both.logs[1] - both.logs[0]
    crps = (both.crps[1] - both.crps[0]).mean() / scores.unit

    assert_allclose(scores.gain_of_spread(weights, 0.9, logs), logs.mean() - 2.0 * crps, atol=1e-9)
    assert scores.gain_of_spread(weights, 20.0, logs + 10.0) == 0.0


@pytest.mark.parametrize(("high", "rtol"), [(1.0, 1e-9), (np.inf, 0.25)])
def test_the_crps_of_counts_is_that_of_their_values(rng, high, rtol):
    """Probability just between two values is on the right side of neither."""
    rows = HeldOut.checked(regcal.Normal(np.zeros(500), 2.0), 1.0 * (rng.random(500) < 0.7))
    support, places = Support(0.0, high, step=1.0), np.arange(500)
    answers = [
        [(places, regcal.Normal(np.full(500, loc), scale))]
        for loc, scale in ((0.0, 2.0), (0.5, 0.01), (0.7, 0.5))
    ]

    scores = Judged.of(answers, rows, support, Prices(1.0, 2.0))

    seen = [regcal.crps(rows.y, support.through(dist)) for [(_, dist)] in answers]
    assert_allclose(scores.crps.mean(axis=1), np.mean(seen, axis=1), rtol=rtol)


def test_the_spread_of_calibrated_predictions_stays(rng):
    """A factor that gains next to nothing is none."""
    loc = rng.normal(size=2000)
    rows = HeldOut.checked(regcal.Normal(loc, 1.0), loc + rng.normal(size=2000))
    answers = predictions([loc], np.ones(2000))
    scores = Judged.of(answers, rows, UNBOUNDED, Prices(1.0, 2.0))

    assert best_spread(scores, np.ones(1), answers[0], rows, UNBOUNDED) == 1.0
