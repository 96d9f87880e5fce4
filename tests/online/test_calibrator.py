"""Calibration of a stream."""

from datetime import date

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtri
from sklearn.exceptions import NotFittedError

import regcal
from regcal.online import OnlineCalibrator
from regcal.online.levels import LEVELS, RATES


def drifting(rng, n_rows=1200, change=600):
    """Return predictions, and outcomes that shift and spread from a row on."""
    dist = regcal.Normal(rng.normal(size=n_rows), np.ones(n_rows))
    later = np.arange(n_rows) >= change
    return dist, dist.loc + 1.0 * later + np.where(later, 2.0, 0.7) * rng.normal(size=n_rows)


def told(stream, dist, y, step=1):
    """Return the log score of each row, predicted before it is learnt from."""
    scores = []
    for start in range(0, len(y), step):
        rows = slice(start, start + step)
        scores.append(stream.transform(dist[rows]).logpdf(y[rows]))
        stream.update(dist[rows], y[rows])
    return np.concatenate(scores)


def test_rows_count_half_after_a_half_life(rng):
    """A stream is what a fit with weights of their age learns."""
    n_rows, half_life = 300, 40.0
    dist, y = drifting(rng, n_rows, 100)
    stream = OnlineCalibrator("pit", half_life).update(dist, y)
    weights = 0.5 ** ((n_rows - 1 - np.arange(n_rows)) / half_life)
    batch = regcal.PITCalibrator().fit(dist, y, weights)

    points = np.linspace(-3, 5, 9)[np.newaxis, :]

    assert stream.calibrator_.map_.knots.shape == batch.map_.knots.shape
    assert_allclose(
        stream.calibrator_.transform(dist[:4]).cdf(points),
        batch.transform(dist[:4]).cdf(points),
        atol=2e-4,
    )


def test_without_forgetting_a_stream_is_a_fit(rng):
    """An infinite half-life learns what one fit learns from all rows."""
    dist, y = drifting(rng)
    stream = OnlineCalibrator("scale", np.inf)
    for start in range(0, 1200, 300):
        stream.update(dist[start : start + 300], y[start : start + 300])

    assert_allclose(stream.calibrator_.factor_, regcal.ScaleCalibrator().fit(dist, y).factor_)


def test_after_a_change_the_short_memory_is_chosen_and_better(rng):
    """What was learnt before the change is forgotten; a fit before it does harm."""
    dist, y = drifting(rng)
    stream = OnlineCalibrator("pit")
    once = regcal.PITCalibrator().fit(dist[:600], y[:600]).transform(dist)

    scores = told(stream, dist, y, step=10)

    assert stream.half_life_ <= 300
    assert (scores - dist.logpdf(y))[700:].mean() > 0.5
    assert (scores - once.logpdf(y))[700:].mean() > 1.0


@pytest.mark.filterwarnings("ignore::regcal.DisagreementWarning")
def test_steady_rows_lose_next_to_nothing_against_one_fit(rng):
    """Comparing half-lives costs less than 0.01 nats where nothing changes."""
    dist, y = drifting(rng, 3000, 0)
    batch = regcal.ScaleCalibrator().fit(dist[:1500], y[:1500]).transform(dist)

    scores = told(OnlineCalibrator("scale"), dist, y, step=50)

    assert (scores - batch.logpdf(y))[1500:].mean() > -0.01


def test_calibrated_predictions_are_left_alone(rng):
    """The identity is among what is compared."""
    dist = regcal.Normal(np.zeros(400), np.ones(400))
    y = rng.normal(size=400)

    assert (told(OnlineCalibrator("e-beta"), dist, y, step=20) - dist.logpdf(y)).mean() > -0.02


def test_intervals_lack_what_their_levels_have_moved(rng):
    """Row by row it is an identity: steps of rate * (level - [below]) add up to the way gone.

    Here everything is remembered while the spread doubles and more, so that intervals of the
    calibrated distributions are far behind, and levels have a long way to go.
    """
    n_rows, ends = 1000, np.isin(LEVELS, (0.05, 0.95))
    spread = np.exp(np.linspace(-0.6, 0.6, n_rows))
    dist, y = regcal.Normal(np.zeros(n_rows), np.ones(n_rows)), spread * rng.normal(size=n_rows)
    stream, inside, bare = OnlineCalibrator("scale", np.inf), [], []
    for row in range(n_rows):
        one, outcome = dist[row : row + 1], y[row]
        low, high = stream.interval(one, 0.9)
        bare_low, bare_high = stream.transform(one).interval(0.9)
        inside.append(low[0] <= outcome <= high[0])
        bare.append(bare_low[0] <= outcome <= bare_high[0])
        stream.update(one, [outcome])

    gone = (stream.levels_.places - ndtri(LEVELS))[ends] / RATES[ends]
    assert_allclose(np.mean(inside), 0.9 - (gone[1] - gone[0]) / n_rows, atol=1e-9)
    assert np.mean(inside) > np.mean(bare) + 0.025


@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_history_in_one_call_is_corrected_once(spread, rng):
    """What the calibrator learns of rows that it did not predict, levels do not learn again."""
    dist = regcal.Normal(np.zeros(1000), 1.0)
    stream = OnlineCalibrator("scale").fit(dist, spread * rng.normal(size=1000))

    told, bare = stream.interval(dist[:1]), stream.transform(dist[:1]).interval(0.9)

    assert_allclose(told, bare, rtol=0.03)
    assert_allclose(told[1], spread * ndtri(0.95), rtol=0.2)


def test_one_call_moves_levels_as_twenty_rows_do_at_most(rng):
    """However many rows it brings; up to twenty rows, each moves them by a step of its own."""
    dist = regcal.Normal(np.zeros(1000), 1.0)
    stream = OnlineCalibrator("scale", np.inf).update(dist, rng.normal(size=1000))
    before = stream.levels_.places
    high = np.full(1000, 9.0)

    for n_rows, steps in ((7, 7), (20, 20), (1000, 20)):
        stream.levels_.places = before
        stream.update(dist[:n_rows], high[:n_rows])
        # outcomes that lie above every level move all of them up
        assert_allclose((stream.levels_.places - before)[:15], (steps * RATES * LEVELS)[:15])


def test_gaps_forget_and_late_rows_are_old(rng):
    """With times, a row counts by how long ago it was, whenever it comes."""
    dist = regcal.Normal(np.zeros(200), np.ones(200))
    old, young = (dist, 4.0 * rng.normal(size=200)), (dist, 1.5 * rng.normal(size=200))

    def spread(*updates):
        stream = OnlineCalibrator("scale", 1.0)
        for rows, time in updates:
            stream.update(*rows, time=time)
        return stream.tracks_[0].fitted.factor_

    assert_allclose(spread((old, 0.0), (young, 20.0)), spread((young, 0.0)), rtol=1e-4)
    assert_allclose(spread((old, 0.0), (young, 2.0)), spread((young, 2.0), (old, 0.0)), rtol=1e-4)
    assert spread((old, 0.0), (young, 0.0)) > 2.5


@pytest.mark.parametrize("name", ["scale", "pit", "gp-density", "gpc"])
def test_a_stream_goes_on_the_same_after_a_file(name, rng, tmp_path):
    """Saved and loaded in the middle, it says the same ever after."""
    dist, y = drifting(rng, 200, 100)
    stream = OnlineCalibrator(name, [50.0, np.inf])
    for start in (0, 50, 90, 93, 96):
        stream.update(dist[start : start + 3], y[start : start + 3])
    regcal.save(stream, tmp_path / "stream.regcal")
    again = regcal.load(tmp_path / "stream.regcal")
    for one in (stream, again):
        one.update(dist[100:150], y[100:150]).update(dist[150:], y[150:])

    assert stream.fingerprint() == again.fingerprint()
    assert_array_equal(stream.transform(dist).ppf(0.9), again.transform(dist).ppf(0.9))
    assert "half_life" in stream.summary()


def test_memory_and_range_stay_those_of_recent_rows(rng):
    """What has faded is dropped, outliers of long ago among it."""
    stream = OnlineCalibrator("gp-density", 30.0)
    for batch in range(30):
        y = rng.normal(size=50)
        if batch == 0:
            y[0] = 1e6
        stream.update(regcal.Normal(np.zeros(50), np.ones(50)), y)
    observed = stream.tracks_[0].observed

    assert observed.n_rows < 600
    assert observed.targets.high < 10


def test_ends_appear_and_vanish_with_what_is_remembered(rng):
    """A pile at 0 is found, and forgotten once outcomes pass it for long."""
    dist = regcal.Normal(np.full(100, 0.5), np.ones(100))
    stream = OnlineCalibrator("pit", 20.0)
    for _ in range(3):
        stream.update(dist, np.maximum(rng.normal(size=100), 0.0))
    before = stream.transform(dist[:1]).mass(0.0)[0]
    for _ in range(6):
        stream.update(dist, rng.normal(size=100))

    assert before > 0.3
    assert stream.transform(dist[:1]).mass(0.0)[0] == 0


def test_outcomes_may_be_intervals_weighted_and_have_covariates(rng):
    """All that `fit` takes, `update` takes."""
    n_rows = 120
    x = rng.normal(size=n_rows)
    dist, y = regcal.Normal(np.zeros(n_rows), np.ones(n_rows)), 1.5 * x + rng.normal(size=n_rows)
    seen = regcal.Outcomes.right_censored(np.minimum(y, 1.0), y < 1.0)
    stream = OnlineCalibrator("conditional", 100.0)
    weights = np.r_[0.0, np.ones(n_rows - 1)]
    stream.update(dist, y, weights, {"x": x})
    censored = OnlineCalibrator("scale", np.inf).update(dist, seen)

    means = stream.transform(dist[:2], {"x": [-1.0, 1.0]}).mean()

    assert means[1] - means[0] > 1.5
    assert stream.n_rows_seen_ == n_rows
    assert censored.calibrator_.factor_ == regcal.ScaleCalibrator().fit(dist, seen).factor_


def test_nothing_is_learnt_from_few_or_equal_rows():
    """Predictions stay as they are until there is something to learn from."""
    dist = regcal.Normal(np.zeros(3), np.ones(3))
    stream = OnlineCalibrator("pit")

    assert stream.transform(dist) is dist
    stream.update(dist, [0.1, 0.2, 0.3]).update(dist[:0], [])
    assert stream.transform(dist) is dist
    for _ in range(10):
        stream.update(dist, [1.0, 1.0, 1.0])
    assert np.isfinite(stream.transform(dist).ppf(0.9)).all()


def test_fit_begins_anew(rng):
    """`fit` forgets what `update` has learnt."""
    dist, y = drifting(rng, 100, 0)
    again = OnlineCalibrator("scale", 50.0).update(dist, 9.0 * y).fit(dist, y)

    assert again.fingerprint() == OnlineCalibrator("scale", 50.0).update(dist, y).fingerprint()


@pytest.mark.parametrize(
    ("calibrator", "half_life", "time", "message"),
    [
        (3, 10.0, None, "must be a Calibrator or its name"),
        ("scale", -1.0, None, "numbers above 0"),
        ("scale", "Auto", None, "numbers above 0, got 'Auto'"),
        ("scale", True, None, "numbers above 0, got True"),
        ("scale", [], None, "numbers above 0"),
        ("scale", "auto", 0.0, "unit of time"),
        ("scale", [5.0, np.inf], None, "A half-life of 5 rows never.*Pass 7 rows.*time="),
        ("scale", 10.0, [0.0, np.nan], "one finite number.*got nan"),
        ("scale", 10.0, np.inf, "got inf"),
        ("scale", 10.0, [1.0], "got shape"),
        ("scale", 10.0, np.datetime64("2024-01-01"), "days since a date"),
        ("scale", 10.0, [date(2024, 1, 1)] * 2, "days since a date"),
    ],
)
def test_errors_name_the_way_out(calibrator, half_life, time, message):
    """Parameters that make no sense are refused at the first update."""
    with pytest.raises((TypeError, ValueError), match=message):
        OnlineCalibrator(calibrator, half_life).update(
            regcal.Normal([0.0, 0.0], [1.0, 1.0]), [0.1, 0.2], time=time
        )


@pytest.mark.parametrize(
    ("calibrator", "half_life", "message"),
    [
        ("nope", 10.0, "nope"),
        (3, 10.0, "must be a Calibrator or its name"),
        ("scale", -3, "numbers above 0, got -3"),
    ],
)
def test_parameters_are_checked_at_every_door(calibrator, half_life, message):
    """Before the first update too."""
    stream, dist = OnlineCalibrator(calibrator, half_life), regcal.Normal([0.0], [1.0])

    for ask in (
        lambda: stream.transform(dist),
        lambda: stream.interval(dist),
        lambda: stream.levels([0.5]),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            ask()


def test_levels_are_probabilities(rng):
    """Before rows and after them, what is none is refused."""
    stream = OnlineCalibrator("scale")
    for _ in range(2):
        for wrong in ([0.5, np.nan], -0.1, 1.1):
            with pytest.raises(ValueError, match="levels must be between 0 and 1"):
                stream.levels(wrong)
        stream.update(regcal.Normal(np.zeros(20), 1.0), rng.normal(size=20))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_shortest_half_life_that_is_taken_learns(weighted, rng):
    """Of 7 rows; of fewer, rows that count more than one each."""
    dist = regcal.Normal(np.zeros(1), 1.0)
    stream = OnlineCalibrator("scale", 3.0 if weighted else 7.0)
    for _ in range(60):
        stream.update(dist, rng.normal(size=1), [4.0] if weighted else None)

    assert stream.tracks_[0].fitted is not None


def test_time_is_passed_always_or_never():
    """A clock of rows and one of time are two clocks; a time that is refused starts none."""
    stream = OnlineCalibrator("scale", 10.0)
    with pytest.raises(ValueError, match="got nan"):
        stream.update(regcal.Normal([0.0], [1.0]), [0.1], time=np.nan)
    assert stream.update(regcal.Normal([0.0], [1.0]), [0.1]).n_rows_seen_ == 1
    stream = OnlineCalibrator("scale", 10.0).update(regcal.Normal([0.0], [1.0]), [0.1], time=1.0)

    with pytest.raises(ValueError, match="always or never"):
        stream.update(regcal.Normal([0.0], [1.0]), [0.1])


@pytest.mark.parametrize("coverage", [[0.5, 0.9], "a", 1.2, np.nan, True, np.True_])
def test_intervals_speak_of_coverage(coverage):
    """What is no share is refused by the name under which it was passed."""
    with pytest.raises(ValueError, match="coverage must"):
        OnlineCalibrator("scale").interval(regcal.Normal([0.0], [1.0]), coverage)


def test_before_the_first_row_nothing_is_known(tmp_path):
    """No rows have been seen; what needs some names `update`."""
    stream = OnlineCalibrator("scale")

    assert stream.n_rows_seen_ == 0
    for ask in (
        lambda: stream.half_life_,
        lambda: stream.calibrator_,
        lambda: regcal.save(stream, tmp_path / "stream.regcal"),
    ):
        with pytest.raises(NotFittedError, match="Call update"):
            ask()


def test_a_long_gap_forgets_at_its_first_row(rng):
    """What has faded corrects nothing any more; what comes then is learnt as at the start."""
    dist = regcal.Normal(np.zeros(50), np.ones(50))
    stream = OnlineCalibrator("scale", 7.0).update(dist, 5.0 * rng.normal(size=50), time=0.0)
    assert stream.transform(dist[:1]).std() > 3.0

    stream.update(dist[:1], [0.1], time=1000.0)

    assert stream.tracks_[0].fitted is None
    assert stream.transform(dist[:1]).std() == 1.0
    for time in (1001.0, 1002.0):
        stream.update(dist, 5.0 * rng.normal(size=50), time=time)
    assert stream.transform(dist[:1]).std() > 3.0


def test_late_rows_tell_little_of_now(rng):
    """Rows that are older than many half-lives change neither the choice nor the levels."""
    dist = regcal.Normal(np.zeros(100), 1.0)
    stream = OnlineCalibrator("scale", 7.0)
    stream.update(dist, 3.0 * rng.normal(size=100), time=100.0 + np.arange(100) / 10)
    before, places = stream.transform(dist[:1]).std(), stream.levels_.places

    for row in range(60):
        stream.update(dist[:1], rng.normal(size=1), time=row / 10)

    assert before > 2.0
    assert_allclose(stream.transform(dist[:1]).std(), before, rtol=0.01)
    assert_allclose(stream.levels_.places, places, atol=60 * RATES.max() * 2.0**-13)


@pytest.mark.parametrize("choice", [0, 1, 2])
def test_a_row_after_a_long_gap_does_not_outvote_a_memory_that_lasts(choice, rng):
    """What forgets nothing is in use after it, whichever memory was before."""
    dist = regcal.Normal(np.zeros(200), 1.0)
    stream = OnlineCalibrator("scale", half_life=[7.0, 90.0, np.inf])
    stream.update(dist, 2.0 * rng.normal(size=200), time=np.arange(200.0) / 10)
    lasting = stream.tracks_[0].fitted.transform(dist[:1]).std()
    stream.log_weights_[choice] = stream.log_weights_.max() + 0.1

    stream.update(dist[:1], [0.3], time=5000.0)

    assert lasting > 1.5
    assert_allclose(stream.transform(dist[:1]).std(), lasting, rtol=0.05)


def test_a_calibrated_history_leaves_predictions_alone(rng):
    """The second half of the first rows judges what the first half teaches."""
    dist = regcal.Normal(np.zeros(200), 1.0)
    y = ndtri((rng.permutation(100) + 0.5) / 100.0)

    stream = OnlineCalibrator("scale").update(dist, np.concatenate([1.3 * y, y]))

    assert isinstance(stream.calibrator_, regcal.IdentityCalibrator)


def test_a_row_of_weight_zero_is_counted_and_teaches_nothing(rng):
    """A stream goes on over rows that are left out."""
    dist, y = drifting(rng, 40, 0)
    stream = OnlineCalibrator("scale", np.inf).update(dist[:1], [9.0], [0.0])
    stream.update(dist, y).update(dist[:2], [9.0, 9.0], [0.0, 0.0])

    assert stream.n_rows_seen_ == 43
    assert stream.calibrator_.factor_ == regcal.ScaleCalibrator().fit(dist, y).factor_


@pytest.mark.parametrize(("distance", "share"), [(6.0, 0.95), (20.0, 0.0)])
def test_intervals_hold_outcomes_up_to_eight_standard_deviations_away(distance, share, rng):
    """Of what lies nearer, the upper end leaves its share outside; further out none is held."""
    dist = regcal.Normal([0.0], [1.0])
    stream, inside = OnlineCalibrator("identity", 100.0), []
    for outcome in distance + 0.1 * rng.normal(size=500):
        low, high = stream.interval(dist, 0.9)
        inside.append(low[0] <= outcome <= high[0])
        stream.update(dist, [outcome])

    assert np.mean(inside[200:]) == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("name", ["pit", "scale"])
def test_equal_outcomes_teach_what_nearly_equal_ones_do(name, rng):
    """A stuck sensor is no less telling than one that trembles in the sixth digit."""
    dist, streams = regcal.Normal(np.zeros(200), 1.0), []
    for outcomes in (np.full(200, 3.0), 3.0 + 1e-6 * rng.normal(size=200)):
        streams.append(OnlineCalibrator(name, half_life=1000.0))
        for start in range(0, 200, 20):
            streams[-1].update(dist[:20], outcomes[start : start + 20])
    equal, near = (np.ravel(one.transform(dist[:1]).interval(0.9)) for one in streams)

    assert_allclose(equal, near, atol=1e-2)  # equal ones leave 0.005 to the prior
    assert abs(equal[1]) > 2.9  # 1.6 before


def test_equal_outcomes_that_teach_nothing_are_told_of(rng):
    """A map along targets has no range to be learnt on, until outcomes differ."""
    dist, stream = regcal.Normal(np.zeros(40), 1.0), OnlineCalibrator("gp-density", half_life=1e3)
    with pytest.warns(UserWarning, match=r'stay as they are: All targets equal 3\.0.*"pit"'):
        stream.update(dist, np.full(40, 3.0))
    assert_allclose(stream.transform(dist[:1]).ppf(0.95), dist[:1].ppf(0.95))

    stream.update(dist, 3.0 + 0.1 * rng.normal(size=40))
    assert stream.transform(dist[:1]).ppf(0.5) > 1.0


def test_impossible_outcomes_are_told_of_once(rng, tmp_path):
    """A stream is fitted again and again from rows that it has warned of already."""
    dist = regcal.Histogram([0.0, 1.0, 2.0], [[0.5, 0.5]])
    y = rng.uniform(0, 2, 120)
    y[5::6] = 3.0
    stream = OnlineCalibrator("pit")

    with pytest.warns(regcal.ImpossibleOutcomesWarning) as told_of:
        for one in y[:60]:
            stream.update(dist, [one])
    assert len(told_of) == 1
    regcal.save(stream, tmp_path / "stream")
    again = regcal.load(tmp_path / "stream")
    for one in y[60:]:
        again.update(dist, [one])

    with pytest.warns(regcal.ImpossibleOutcomesWarning):
        again.fit(dist[np.zeros(60, dtype=int)], y[:60])


def test_a_stream_that_begins_with_dry_days_can_be_saved(tmp_path):
    """Draws that all lie on an end are not smoothed, and are stored so."""
    stream = OnlineCalibrator("pit")
    stream.update(regcal.Samples(np.zeros((1, 20)), support=(0.0, None)), [0.0])

    regcal.save(stream, tmp_path / "stream.regcal")
    loaded = regcal.load(tmp_path / "stream.regcal")

    new = regcal.Samples(np.linspace(0.0, 2.0, 20)[np.newaxis, :], support=(0.0, None))
    assert_allclose(loaded.transform(new).sf(1.0), stream.transform(new).sf(1.0))
