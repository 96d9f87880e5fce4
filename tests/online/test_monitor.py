"""The alarm over PIT ranks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from scipy.stats import chisquare
from sklearn.exceptions import NotFittedError

import regcal
from regcal.online import CalibrationMonitor


def test_ranks_of_any_calibrator_are_uniform_and_independent(rng):
    """Of two values that are not uniform, all four orders of their ranks are as frequent."""
    orders = np.zeros((2, 2))
    for seed in range(400):
        values = rng.uniform(size=5).round(1) ** 3
        monitor = CalibrationMonitor(reference=values[:3], random_state=seed).update(values[:0])
        first, second = monitor._ranks(values[3:]) > 0.5
        orders[int(first), int(second)] += 1

    assert chisquare(orders.ravel()).pvalue > 0.01


def test_false_alarms_are_rare_for_an_estimated_calibrator(rng):
    """Over 40 streams next to none is set off by a calibrator of few rows, if it is compared.

    With rows that it has not seen, or with those it has learnt from; not with what is uniform.
    """
    alarms = {"others": 0, "its own": 0, "uniform": 0}
    for _ in range(40):
        y = rng.gumbel(size=1200)
        dist = regcal.Normal(np.zeros(1200), np.ones(1200))
        calibrated = regcal.PITCalibrator().fit(dist[:50], y[:50]).transform(dist)
        own, others, new = np.split(regcal.pit(y, calibrated), [50, 200])
        for name, reference in (("others", others), ("its own", own), ("uniform", 400)):
            monitor = CalibrationMonitor(reference=reference).update(new)
            alarms[name] += monitor.alarm_ is not None

    assert max(alarms["others"], alarms["its own"]) <= 5
    assert alarms["uniform"] > alarms["its own"]


def test_rows_on_masses_may_come_one_by_one_with_one_generator(rng):
    """Dry days as often as predicted are no news; the same draw for each of them is.

    With this alpha a false alarm has a probability of one in a million.
    """
    dist = regcal.Clipped(regcal.Normal(np.full(600, -1.0), 1.0), low=0.0)
    y = np.maximum(rng.normal(-1.0, size=600), 0.0)
    good, bad = CalibrationMonitor(alpha=1e-6), CalibrationMonitor(alpha=1e-6)

    for row in range(600):
        good.update(regcal.pit(y[[row]], dist[[row]], random_state=rng))
        bad.update(regcal.pit(y[[row]], dist[[row]], random_state=0))

    assert good.alarm_ is None
    assert bad.alarm_ is not None


@pytest.mark.parametrize(
    ("shift", "factor", "kind", "words"),
    [
        (0.8, 1.0, "bias", "too low"),
        (-0.8, 1.0, "bias", "too high"),
        (0.0, 1.7, "spread", "too narrow"),
        (0.0, 0.5, "spread", "too wide"),
    ],
)
def test_the_alarm_says_when_and_how(shift, factor, kind, words, rng):
    """A change is found soon, with its kind and about its place."""
    z = rng.normal(size=800)
    z[500:] = shift + factor * z[500:]

    alarm = CalibrationMonitor().update(ndtr(z)).alarm_

    assert 500 < alarm.row < 650
    assert abs(alarm.since - 500) < 40
    assert alarm.kind == kind
    assert words in alarm.words
    assert words in str(alarm)


def test_a_wrong_shape_is_told_as_such(rng):
    """Skewed outcomes with the right mean and spread are a matter of shape."""
    y = rng.exponential(size=4000) - 1.0

    alarm = CalibrationMonitor().update(ndtr(y)).alarm_

    assert alarm.kind == "shape"
    assert "upwards" in alarm.words


def test_rows_may_come_one_by_one_or_together(rng, tmp_path):
    """The alarm does not hang on batches, nor on a file in between."""
    pit = ndtr(1.6 * rng.normal(size=200))
    pit[5] = 0.5
    whole, single = CalibrationMonitor().update(pit), CalibrationMonitor()
    for row, value in enumerate(pit):
        single.update(value)
        if row == 20:
            regcal.save(single, tmp_path / "monitor.regcal")
            single = regcal.load(tmp_path / "monitor.regcal")

    assert whole.alarm_ == single.alarm_
    assert whole.n_rows_seen_ == single.n_rows_seen_ == 200
    assert_allclose(whole.money_, single.money_)
    assert_allclose(whole.kept_log_money_, single.kept_log_money_)


def test_memory_is_flat(rng):
    """However many rows, no more than a picture's worth is kept."""
    monitor = CalibrationMonitor()
    for _ in range(5):
        monitor.update(rng.uniform(size=2000))

    assert 1024 <= len(monitor.kept_rows_) <= 2048
    assert monitor.kept_rows_[-1] > 9900
    assert len(monitor.counts_) == 4096


def test_fit_begins_anew(rng):
    """`fit` forgets the alarm."""
    monitor = CalibrationMonitor().update(np.full(30, 0.999))
    assert monitor.alarm_ is not None

    assert monitor.fit(rng.uniform(size=30)).alarm_ is None
    assert monitor.n_rows_seen_ == 30


@pytest.mark.parametrize(
    ("parameters", "pit", "message"),
    [
        ({}, [0.5, 1.5], "got 1.5"),
        ({}, [[0.5]], "shape"),
        ({"alpha": 5.0}, [0.5], "alpha must be a number between 0 and 1"),
        ({"alpha": "a"}, [0.5], "alpha must hold numbers.*'a'"),
        ({"reference": [2.0]}, [0.5], "reference must be probabilities"),
    ],
)
def test_errors_name_the_value(parameters, pit, message):
    """What is no probability is refused."""
    with pytest.raises(ValueError, match=message):
        CalibrationMonitor(**parameters).update(pit)


@pytest.mark.parametrize("missing", [[np.nan] * 5, [0.5, None], np.nan])
def test_missing_values_are_refused_or_passed_over_by_wish(missing):
    """A stream of NaN is no calibrated one."""
    with pytest.raises(ValueError, match=r"pit is nan in .* skip_missing=True"):
        CalibrationMonitor().update(missing)

    assert CalibrationMonitor().update(missing, skip_missing=True).n_rows_seen_ == np.size(missing)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ([np.nan, 0.5], "reference is nan in 1 of 2"),
        ([], "leave it out, which draws 400"),
        (None, "got None"),
        (True, "got True"),
        (-1, "got -1"),
    ],
)
def test_a_reference_holds_values(reference, message):
    """What tells nothing to compare with is refused."""
    with pytest.raises(ValueError, match=message):
        CalibrationMonitor(reference=reference).update([0.5])


def test_before_the_first_row_there_is_no_alarm(tmp_path):
    """Nothing has been seen; what needs rows names `update`."""
    monitor = CalibrationMonitor()

    assert monitor.alarm_ is None
    assert monitor.n_rows_seen_ == 0
    for ask in (
        monitor.history,
        monitor.fingerprint,
        lambda: monitor.money_,
        lambda: regcal.save(monitor, tmp_path / "monitor.regcal"),
    ):
        with pytest.raises(NotFittedError, match="Call update"):
            ask()
