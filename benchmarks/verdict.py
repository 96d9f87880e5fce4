"""Measure the verdict of the report: how often it is a false alarm, and what it notices.

    python benchmarks/verdict.py [--simulations 1000] [--only level power sizes few]

Level: how often `joint_calibration_test` says p < 0.05 of predictions that are the truth: with few
and many rows, sure predictions, weights, point masses, counts and outcomes that are censored, to
one side or between visits that are common to all rows or a row's own. Power: how
often it does where predictions are wrong in one way, beside three tests that share the level (the
threshold test, Kolmogorov and Smirnov's, chi-squared), which the report used before. Sizes: how
often errors of the size that `Noticed` names are noticed; 0.8 or more is meant. Few: the coverage
of 90 % intervals that few rows would notice, in the median of 20 simulations.
"""

import argparse
from collections.abc import Callable

import numpy as np

import regcal
from regcal.metrics import joint_calibration_test, pit_test, threshold_calibration_test

Rows = tuple[object, regcal.Distribution, np.ndarray | None]
World = Callable[[np.random.Generator], Rows]


def normal(rng: np.random.Generator, n: int, spread: float = 1.0) -> Rows:
    loc = rng.normal(size=n)
    return rng.normal(loc, spread), regcal.Normal(loc, np.full(n, spread)), None


def weighted(rng: np.random.Generator, n: int) -> Rows:
    y, dist, _ = normal(rng, n)
    return y, dist, rng.exponential(size=n)


def rain(rng: np.random.Generator, n: int, high: float | None = None) -> Rows:
    loc = rng.uniform(-1.0, 2.0, n)
    dist = regcal.Clipped(regcal.Normal(loc, np.ones(n)), low=0.0, high=high)
    return np.clip(rng.normal(loc), 0.0, high), dist, None


def counts(rng: np.random.Generator, n: int, spread: float = 1.5) -> Rows:
    loc = rng.uniform(2.0, 6.0, n)
    dist = regcal.Rounded(regcal.Normal(loc, np.full(n, spread)), step=1.0)
    return np.rint(rng.normal(loc, spread)), dist, None


def right_censored(rng: np.random.Generator, n: int, end: float = np.inf) -> Rows:
    y, dist, _ = normal(rng, n)
    limit = np.minimum(rng.normal(0.5, 1.5, n), end)
    return regcal.Outcomes.right_censored(np.minimum(y, limit), y <= limit), dist, None


def left_censored(rng: np.random.Generator, n: int) -> Rows:
    y, dist, _ = normal(rng, n)
    limit = rng.choice([-1.0, 0.0, 1.0], size=n)
    return regcal.Outcomes.left_censored(np.maximum(y, limit), y >= limit), dist, None


def both_limits(rng: np.random.Generator, n: int) -> Rows:
    y, dist, _ = normal(rng, n)
    lower, upper = np.where(y < -1.0, -np.inf, y), np.where(y > 1.0, np.inf, y)
    return regcal.Outcomes(np.minimum(lower, 1.0), np.maximum(upper, -1.0)), dist, None


def between(visits: np.ndarray, y: np.ndarray) -> regcal.Outcomes:
    """Return between which visits, rows × visits in order, outcomes lie."""
    ends = np.pad(visits, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
    last = (visits < y[:, np.newaxis]).sum(axis=1, keepdims=True)
    lower, upper = (np.take_along_axis(ends, last + k, axis=1)[:, 0] for k in (0, 1))
    return regcal.Outcomes(lower, upper)


def common_visits(rng: np.random.Generator, n: int, step: float = 1.0) -> Rows:
    y, dist, _ = normal(rng, n)
    return between(np.tile(np.arange(-9.0, 9.0, step), (n, 1)), y), dist, None


def own_visits(rng: np.random.Generator, n: int, most: int) -> Rows:
    """Each row has visits at random times; what comes after the last is not known."""
    y, dist, _ = normal(rng, n)
    visits = np.sort(rng.normal(0.0, 1.5, (n, most)), axis=1)
    missed = rng.random((n, most)) < 0.3
    missed[:, most // 2] = False
    return between(np.sort(np.where(missed, np.inf, visits), axis=1), y), dist, None


def half_between_visits(rng: np.random.Generator, n: int) -> Rows:
    y, dist, _ = normal(rng, n)
    start, known = np.floor(y), rng.random(n) < 0.5
    lower, upper = np.where(known, y, start), np.where(known, y, start + 1.0)
    return regcal.Outcomes(lower, upper), dist, None


LEVELS: dict[str, World] = {
    "20 rows": lambda rng: normal(rng, 20),
    "100 rows": lambda rng: normal(rng, 100),
    "309 rows": lambda rng: normal(rng, 309),
    "2 000 rows": lambda rng: normal(rng, 2000),
    "309 rows, sure predictions": lambda rng: normal(rng, 309, 0.05),
    "309 rows, weights": lambda rng: weighted(rng, 309),
    "309 rows, point mass at 0": lambda rng: rain(rng, 309),
    "309 rows, counts": lambda rng: counts(rng, 309),
    "60 rows, counts": lambda rng: counts(rng, 60),
    "309 rows, few different counts": lambda rng: counts(rng, 309, 0.5),
    "309 rows, masses at both ends": lambda rng: rain(rng, 309, 2.0),
    "309 rows, right-censored": lambda rng: right_censored(rng, 309),
    "309 rows, follow-up ends": lambda rng: right_censored(rng, 309, 1.0),
    "309 rows, left-censored": lambda rng: left_censored(rng, 309),
    "309 rows, limits on both sides": lambda rng: both_limits(rng, 309),
    "309 rows, common visits": lambda rng: common_visits(rng, 309),
    "309 rows, frequent visits": lambda rng: common_visits(rng, 309, 0.3),
    "60 rows, common visits": lambda rng: common_visits(rng, 60),
    "309 rows, four own visits": lambda rng: own_visits(rng, 309, 4),
    "309 rows, one own visit": lambda rng: own_visits(rng, 309, 1),
    "309 rows, half between visits": lambda rng: half_between_visits(rng, 309),
}


def off(spread: float = 1.0, shift: float = 0.0, slope: float = 1.0) -> World:
    """Return 309 rows with these errors of the predicted location and spread."""

    def world(rng: np.random.Generator) -> Rows:
        loc = rng.normal(size=309)
        return rng.normal(loc), regcal.Normal(slope * loc + shift, np.full(309, spread)), None

    return world


def heavy_tails(rng: np.random.Generator) -> Rows:
    loc = rng.normal(size=309)
    y = loc + rng.standard_t(3, size=309) / np.sqrt(3.0)
    return y, regcal.Normal(loc, np.ones(309)), None


def skewed(rng: np.random.Generator) -> Rows:
    loc = rng.normal(size=309)
    y = loc + (rng.gamma(4.0, size=309) - 4.0) / 2.0
    return y, regcal.Normal(loc, np.ones(309)), None


POWERS: dict[str, World] = {
    "spread 1.2 times too large": off(spread=1.2),
    "spread 1.2 times too small": off(spread=1 / 1.2),
    "0.2 standard deviations too high": off(shift=0.2),
    "locations 0.7 times as far out": off(slope=0.7),
    "heavy tails": heavy_tails,
    "skewed": skewed,
}


def rejected(world: World, seed: int) -> bool:
    y, dist, weights = world(np.random.default_rng(seed))
    test = joint_calibration_test(y, dist, sample_weight=weights, random_state=seed)
    return not test.calibrated


def rejected_by_three(world: World, seed: int) -> bool:
    y, dist, _ = world(np.random.default_rng(seed))
    marginal = pit_test(y, dist)
    by_threshold = threshold_calibration_test(y, dist, random_state=seed).p_value
    return 3 * min(by_threshold, marginal.ks_p_value, marginal.chi2_p_value) < 0.05


def noticed_sizes(n: int, seed: int) -> tuple[bool, bool]:
    """Return whether intervals that are too narrow, and too wide, by what is named are noticed."""
    rng = np.random.default_rng(seed)
    found = joint_calibration_test(*normal(rng, n)[:2], random_state=seed).noticed
    # PIT values of 90 % intervals that hold another share, and are right inside and outside.
    results = []
    for coverage in (found.too_narrow, found.too_wide):
        outside = rng.random(n) >= coverage
        u = np.where(outside, rng.random(n) * 0.1, 0.1 + 0.9 * rng.random(n))
        y = np.where(outside, np.where(u < 0.05, u, 0.9 + u), 0.05 + (u - 0.1))
        uniform = regcal.Histogram([0.0, 1.0], np.ones((n, 1)))
        results.append(not joint_calibration_test(y, uniform, random_state=seed).calibrated)
    return results[0], results[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--only", nargs="+", default=["level", "power", "sizes", "few"])
    options = parser.parse_args()
    seeds = range(options.simulations)
    if "level" in options.only:
        print(f"false alarms at 0.05 in {options.simulations} simulations")
        for name, world in LEVELS.items():
            print(f"  {name:<34} {np.mean([rejected(world, seed) for seed in seeds]):.3f}")
    if "power" in options.only:
        print("noticed, 309 rows                       joint   three tests")
        for name, world in POWERS.items():
            shares = [
                np.mean([one(world, seed) for seed in seeds])
                for one in (rejected, rejected_by_three)
            ]
            print(f"  {name:<34} {shares[0]:8.3f} {shares[1]:8.3f}")
    if "sizes" in options.only:
        print("errors of the named size that are noticed: too narrow, too wide")
        for n in (100, 309, 2000):
            narrow, wide = np.mean([noticed_sizes(n, seed) for seed in seeds], axis=0)
            print(f"  {n:>5} rows {narrow:8.3f} {wide:8.3f}")
    if "few" in options.only:
        print("the coverage of 90 % intervals that few rows would notice")
        for n in (3, 5, 10, 15, 20, 30, 50):
            tests = (
                joint_calibration_test(*normal(np.random.default_rng(k), n)[:2]) for k in range(20)
            )
            print(f"  {n:>5} rows {np.median([one.noticed.too_narrow for one in tests]):8.2f}")


if __name__ == "__main__":
    main()
