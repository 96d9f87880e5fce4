"""Measure `regcal.online`: calibration under drift and without, and the alarm.

    python benchmarks/streams.py [--streams 3] [--alarms 500] [--only drift steady refits ...]

Drift: 3 000 rows one by one; predictions are N(x, 1), and the outcomes' spread grows from 0.8 to
2.1, their bias from 0 to 1.2. Steady: spread 1.3 and bias 0.3 throughout. Scores are those of rows
500 to 3 000, each predicted before it is learnt from, against predictions without
calibration ("gain"), and against one fit: under drift on the first 500 rows, without on the first
half, judged on the second. Coverage is that of 90 % intervals of `OnlineCalibrator.interval`; the
worst window is the worst of any 200 rows in a row. Times are CPU time of update, transform and
interval. Blocks: 250 rows a call, under drift and where the spread halves. Peers: MAPIE's adaptive
conformal inference with scores that move on (needs mapie), and puncc's ensemble batch prediction
intervals with residuals that move on, where puncc is installed. Alarm: streams of 10 000 rows by
calibrators that were learnt from 50 and from 500 others, with what they may be compared with, and a
spread that is 1.5 times too small from a row on. Long: a million rows in batches of 1 000.
"""

import argparse
import resource
import time
from dataclasses import dataclass
from functools import partial
from unittest.mock import patch

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

import regcal
from regcal.online import CalibrationMonitor, OnlineCalibrator, tracks
from regcal.online import calibrator as online_calibrator

N_ROWS, FIRST, WINDOW = 3000, 500, 200
COVERAGE = 0.9


@dataclass(frozen=True)
class Stream:
    """Predictions and outcomes, in the order of time."""

    dist: regcal.Normal
    y: np.ndarray

    @classmethod
    def drifting(cls, seed: int) -> "Stream":
        """Spread and bias grow."""
        t = np.arange(N_ROWS) / N_ROWS
        return cls.with_errors(seed, 1.2 * t, np.exp(0.5 * (2.0 * t - 0.5)))

    @classmethod
    def steady(cls, seed: int) -> "Stream":
        """Spread and bias stay as they are."""
        return cls.with_errors(seed, np.full(N_ROWS, 0.3), np.full(N_ROWS, 1.3))

    @classmethod
    def with_errors(cls, seed: int, bias: np.ndarray, spread: np.ndarray) -> "Stream":
        """Errors with this bias and spread."""
        rng = np.random.default_rng(seed)
        x = rng.normal(size=N_ROWS)
        y = x + bias + spread * rng.normal(size=N_ROWS)
        return cls(regcal.Normal(x, np.ones(N_ROWS)), y)


@dataclass(frozen=True)
class Told:
    """What was said of each row before it was known."""

    scores: np.ndarray
    inside: np.ndarray
    bare: np.ndarray
    ends: np.ndarray
    ms_per_row: float

    @property
    def worst(self) -> float:
        """Coverage of the worst window."""
        return float(np.convolve(self.inside[FIRST:], np.ones(WINDOW) / WINDOW, "valid").min())


def told(stream: Stream, calibrator: OnlineCalibrator) -> Told:
    """Predict and learn row by row."""
    scores, pit, ends = np.empty(N_ROWS), np.empty(N_ROWS), np.empty((N_ROWS, 2))
    spent = 0.0
    for row in range(N_ROWS):
        one, y = stream.dist[row : row + 1], stream.y[row : row + 1]
        began = time.process_time()
        predicted = calibrator.transform(one)
        ends[row] = np.concatenate(calibrator.interval(one, COVERAGE))
        spent += time.process_time() - began
        scores[row], pit[row] = predicted.logpdf(y)[0], predicted.cdf(y)[0]
        began = time.process_time()
        calibrator.update(one, y)
        spent += time.process_time() - began
    inside = (ends[:, 0] <= stream.y) & (stream.y <= ends[:, 1])
    bare = np.abs(pit - 0.5) <= 0.5 * COVERAGE
    return Told(scores, inside, bare, ends, 1000.0 * spent / N_ROWS)


def fitted_once(stream: Stream, name: str, n_rows: int) -> np.ndarray:
    """Return the log scores after one fit on the first rows."""
    own = regcal.get_calibrator(name).fit(stream.dist[:n_rows], stream.y[:n_rows])
    return own.transform(stream.dist).logpdf(stream.y)


def measure(kind: str, name: str, half_life: object, n_streams: int) -> None:
    """Print one line of the table."""
    lines = []
    for seed in range(n_streams):
        stream = getattr(Stream, kind)(seed)
        answer = told(stream, OnlineCalibrator(name, half_life))
        base = stream.dist.logpdf(stream.y)
        begin, fit_on = (FIRST, FIRST) if kind == "drifting" else (N_ROWS // 2, N_ROWS // 2)
        once = fitted_once(stream, name, fit_on)
        lines.append(
            [
                (answer.scores - base)[begin:].mean(),
                (once - base)[begin:].mean(),
                (answer.scores - once)[begin:].mean(),
                answer.inside[FIRST:].mean(),
                answer.bare[FIRST:].mean(),
                answer.worst,
                answer.ms_per_row,
            ]
        )
    mean, worst = np.mean(lines, axis=0), np.min(lines, axis=0)
    print(
        f"{kind:9s} {name:11s} {half_life!s:6s} gain {mean[0]:+.3f}, fitted once {mean[1]:+.3f}, "
        f"difference {mean[2]:+.4f}; coverage {mean[3]:.3f}, without levels that follow "
        f"{mean[4]:.3f}, worst window {worst[5]:.3f}; {mean[6]:.1f} ms a row",
        flush=True,
    )


def measure_long(n_rows: int) -> None:
    """Print what a long stream takes, in batches of 1 000 rows."""
    rng, own, began = np.random.default_rng(0), OnlineCalibrator("scale"), time.process_time()
    for row in range(0, n_rows, 1000):
        dist = unit(np.zeros(1000))
        own.update(dist, 0.3 + 1.3 * rng.normal(size=1000))
        if row + 1000 in (n_rows // 10, n_rows):
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            spent = 1000.0 * (time.process_time() - began) / (row + 1000)
            print(f"{row + 1000} rows: {peak:.0f} MB at most, {spent:.2f} ms a row", flush=True)


def measure_refits(n_streams: int) -> None:
    """Print what more frequent fits buy."""
    for share in (0.1, 0.2, 0.4):
        with patch.object(tracks, "REFIT_SHARE", share):
            print(f"fitted anew when {share:.0%} is new:", end=" ")
            measure("drifting", "gp-density", "auto", n_streams)


def held_in_blocks(stream: Stream, size: int = 250) -> np.ndarray:
    """Return which outcomes lie in intervals that are told block by block."""
    own, inside = OnlineCalibrator("pit"), np.empty(N_ROWS, dtype=bool)
    for start in range(0, N_ROWS, size):
        rows = slice(start, start + size)
        low, high = own.interval(stream.dist[rows], COVERAGE)
        inside[rows] = (low <= stream.y[rows]) & (stream.y[rows] <= high)
        own.update(stream.dist[rows], stream.y[rows])
    return inside


def measure_blocks(n_streams: int) -> None:
    """Print what levels that move further in one call buy and cost, in blocks of 250 rows."""
    halved = np.where(np.arange(N_ROWS) < N_ROWS // 2, 1.0, 0.5)
    after = slice(N_ROWS // 2 + 500, N_ROWS // 2 + 750)
    for most in (1.0, 10.0, 20.0, 50.0, np.inf):
        drift, halving = [], []
        with patch.object(online_calibrator, "_MOST_STEPS", most):
            for seed in range(n_streams):
                drift.append(held_in_blocks(Stream.drifting(seed))[FIRST:].mean())
                changed = Stream.with_errors(seed, np.zeros(N_ROWS), halved)
                halving.append(held_in_blocks(changed)[after].mean())
        print(
            f"{most:.0f} steps in one call: coverage {np.mean(drift):.3f} under drift, "
            f"{np.mean(halving):.3f} in the third block after the spread has halved",
            flush=True,
        )


class FirstColumn(RegressorMixin, BaseEstimator):
    """Predicts what the base model predicts."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "FirstColumn":
        """Learn nothing."""
        self.fitted_ = True
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the first column."""
        return X[:, 0]


def mapie_ends(X: np.ndarray, y: np.ndarray, gamma: float) -> np.ndarray:
    """Return intervals from the first row to be judged on, each told before its outcome."""
    from mapie.regression import TimeSeriesRegressor

    peer = TimeSeriesRegressor(FirstColumn().fit(X, y), method="aci", cv="prefit")
    peer.fit(X[:FIRST], y[:FIRST])
    ends = np.empty((N_ROWS - FIRST, 2))
    for row in range(FIRST, N_ROWS):
        one = slice(row, row + 1)
        _, found = peer.predict(X[one], confidence_level=COVERAGE, allow_infinite_bounds=True)
        ends[row - FIRST] = found[0, :, 0]
        peer.adapt_conformal_inference(X[one], y[one], gamma=gamma, confidence_level=COVERAGE)
        peer.update(X[one], y[one])
    return ends


def puncc_ends(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return intervals of the residuals of the last 500 rows; it fails on batches of one row."""
    from deel.puncc.api.prediction import BasePredictor
    from deel.puncc.regression import EnbPI

    peer = EnbPI(BasePredictor(FirstColumn()), B=20, random_state=0)
    peer.fit(X[:FIRST], y[:FIRST])
    _, low, high = peer.predict(X[FIRST:], alpha=1.0 - COVERAGE, y_true=y[FIRST:], s=2)
    return np.column_stack([low, high])


def print_peer(label: str, answers: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Print coverage and width of intervals, given with their outcomes for each stream."""
    inside = [(ends[:, 0] <= y) & (y <= ends[:, 1]) for ends, y in answers]
    worst = min(np.convolve(own, np.ones(WINDOW) / WINDOW, "valid").min() for own in inside)
    widths = np.concatenate([np.diff(ends, axis=1)[:, 0] for ends, _ in answers])
    finite = np.isfinite(widths)
    print(
        f"{label}: coverage {np.mean(inside):.3f}, worst window {worst:.3f}, mean width "
        f"{widths[finite].mean():.3f}, infinite {np.count_nonzero(~finite)}",
        flush=True,
    )


def measure_peers(n_streams: int) -> None:
    """Print coverage and width of adaptive intervals of other libraries beside ours."""
    streams = [Stream.drifting(seed) for seed in range(n_streams)]
    peers = {
        f"MAPIE aci, gamma {gamma}": partial(mapie_ends, gamma=gamma) for gamma in (0.01, 0.05)
    }
    for label, ends_of in {**peers, "puncc EnbPI": puncc_ends}.items():
        try:
            answers = [(ends_of(one.dist.loc[:, np.newaxis], one.y), one.y) for one in streams]
        except ModuleNotFoundError as error:
            print(f"{label}: not measured, {error.name} is not installed")
            continue
        print_peer(label, [(ends, y[FIRST:]) for ends, y in answers])
    ours = [(told(one, OnlineCalibrator("pit")).ends, one.y) for one in streams]
    print_peer("OnlineCalibrator('pit')", [(ends[FIRST:], y[FIRST:]) for ends, y in ours])


def calibrated_pit(rng: np.random.Generator, n_learnt: int, n_rows: int) -> np.ndarray:
    """Return PIT values of skewed rows by a calibrator that was learnt from the first of them."""
    y = rng.gumbel(size=n_learnt + n_rows)
    own = regcal.get_calibrator("pit").fit(unit(y[:n_learnt]), y[:n_learnt])
    return regcal.pit(y, own.transform(unit(y)))


def false_alarms(n_streams: int) -> dict[str, int]:
    """Return how many streams without a change set off an alarm."""
    counts: dict[str, int] = {}

    def watch(label: str, values: np.ndarray, seed: int, **options: object) -> None:
        monitor = CalibrationMonitor(random_state=seed, **options).update(values)
        counts[label] = counts.get(label, 0) + (monitor.alarm_ is not None)

    for seed in range(n_streams):
        rng = np.random.default_rng(seed)
        watch("uniform", rng.uniform(size=10_000), seed)
        for n_learnt in (50, 500):
            pit, name = calibrated_pit(rng, n_learnt, n_learnt + 10_000), f"pit of {n_learnt} rows"
            learnt, held_out, new = np.split(pit, [n_learnt, 2 * n_learnt])
            watch(f"{name}, by default", new, seed)
            watch(f"{name}, against the rows it learnt from", new, seed, reference=learnt)
            watch(f"{name}, against as many others", new, seed, reference=held_out)
    return counts


def measure_alarm(n_streams: int) -> None:
    """Print false alarms, and after how many rows a change is found."""
    for label, count in false_alarms(n_streams).items():
        print(f"false alarms, {label}: {count} of {n_streams} streams of 10 000 rows", flush=True)
    for change in (0, 100, 1000, 5000):
        found = []
        for seed in range(100):
            rng = np.random.default_rng(10_000 + seed)
            z = rng.normal(size=change + 1000)
            z[change:] *= 1.5
            alarm = CalibrationMonitor(random_state=seed).update(regcal.pit(z, unit(z))).alarm_
            found.append(np.inf if alarm is None else alarm.row - change)
        print(
            f"spread 1.5 times too small from row {change} on: found after "
            f"{np.median(found):.0f} rows in the median, {np.quantile(found, 0.9):.0f} in 90 %",
            flush=True,
        )


def unit(z: np.ndarray) -> regcal.Normal:
    """Return standard normal predictions."""
    return regcal.Normal(np.zeros(len(z)), np.ones(len(z)))


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--streams", type=int, default=3)
    parser.add_argument("--alarms", type=int, default=500)
    parser.add_argument("--rows", type=int, default=10**6)
    parts = ("drift", "steady", "refits", "blocks", "peers", "alarm", "long")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    asked = parser.parse_args()
    for part, kind in (("drift", "drifting"), ("steady", "steady")):
        if part in asked.only:
            for name, half_life in (("pit", 100.0), ("pit", "auto"), ("gp-density", "auto")):
                measure(kind, name, half_life, asked.streams)
    if "refits" in asked.only:
        measure_refits(asked.streams)
    if "blocks" in asked.only:
        measure_blocks(asked.streams)
    if "peers" in asked.only:
        measure_peers(asked.streams)
    if "alarm" in asked.only:
        measure_alarm(asked.alarms)
    if "long" in asked.only:
        measure_long(asked.rows)


if __name__ == "__main__":
    main()
