"""What fitting e-beta costs, as multiples of evaluating the base CDF at the same points.

Run: .venv/bin/python benchmarks/one_vs_rest.py
"""

import resource
import time

import numpy as np

import regcal


def simulated(n: int) -> tuple[regcal.Normal, np.ndarray]:
    rng = np.random.default_rng(0)
    loc, scale = 3 * rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))
    return regcal.Normal(loc, scale), loc + 1.3 * scale * rng.normal(size=n)


def best_of(repeats: int, function) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    print(
        f"{'rows':>8} {'K':>4} {'base CDF':>10} {'e-beta fit':>11} {'ratio':>6} {'ns / pair':>10}"
    )
    for n, k in [(10_000, 64), (100_000, 16), (100_000, 32), (100_000, 64), (1_000_000, 64)]:
        dist, y = simulated(n)
        grid = regcal.EqualGrid(k).thresholds(y)[np.newaxis, :]
        repeats = 2 if n > 200_000 else 5
        base = best_of(repeats, lambda dist=dist, grid=grid: dist.cdf(grid))
        calibrator = regcal.get_calibrator("e-beta", thresholds=k)
        fit = best_of(repeats, lambda c=calibrator, dist=dist, y=y: c.fit(dist, y))
        pair = 1e9 * fit / (n * k)
        print(f"{n:>8} {k:>4} {base:>9.3f}s {fit:>10.3f}s {fit / base:>6.2f} {pair:>10.1f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"Peak memory of the whole run: {peak:.0f} MB")


if __name__ == "__main__":
    main()
