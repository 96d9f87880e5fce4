"""What predictions by many draws, or by many quantiles, cost. Prints tables of CPU time.

    OMP_NUM_THREADS=1 python benchmarks/draws.py             # half a minute
    OMP_NUM_THREADS=1 python benchmarks/draws.py --large     # 100 000 rows of 50 draws, and memory

Times are CPU seconds, beside those of sorting the draws, which none of them could do without.
"""

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

import regcal
from regcal.distributions import Distribution

METHODS = ("identity", "scale", "pit", "gpc", "gp-density", "e-beta")
GRID = np.linspace(-3.0, 9.0, 64)[np.newaxis, :]


def cpu_time(function: Callable[[], object]) -> float:
    """Return the CPU time of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def simulate(n_rows: int, n_draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Return draws of skewed predictions, and outcomes that are larger than they say."""
    rng = np.random.default_rng(0)
    loc = rng.normal(size=n_rows)
    draws = loc[:, np.newaxis] + rng.gamma(2.0, size=(n_rows, n_draws))
    return draws, loc + rng.gamma(3.0, size=n_rows)


def answers(y: np.ndarray) -> dict[str, Callable[[Distribution], object]]:
    """Return what users ask of distributions."""
    return {
        "P(Y > 2)": lambda dist: dist.sf(2.0),
        "64 thresholds": lambda dist: dist.cdf(GRID),
        "log density": lambda dist: dist.logpdf(y),
        "3 quantiles": lambda dist: dist.ppf([[0.05, 0.5, 0.95]]),
        "mean": lambda dist: dist.mean(),
        "CRPS": lambda dist: dist.crps(y),
    }


def print_times(make: Callable[[], Distribution], y: np.ndarray, least: float) -> None:
    """Print what fits and first answers cost, method by method."""
    names = list(answers(y))
    print(f"| method | fit | {' | '.join(names)} |\n|{'---|' * (len(names) + 2)}")
    for method in METHODS:
        calibrator = regcal.get_calibrator(method)
        times = [cpu_time(lambda c=calibrator: c.fit(make(), y))]
        # made and transformed anew each time, so that nothing is remembered
        times += [
            cpu_time(lambda c=calibrator, ask=ask: ask(c.transform(make())))
            for ask in answers(y).values()
        ]
        cells = " | ".join(f"{t:.3f} ({t / least:.0f})" for t in times)
        print(f"| {method} | {cells} |", flush=True)


def print_where_tables_pay(n_rows: int = 100) -> None:
    """Print the number of points from which a table is quicker than sums, in kernels of a row."""
    print("\nA table pays from so many points, or quantiles, per row on (times draws):\n")
    print("| draws | points | quantiles |\n|---|---|---|")
    for n_draws in (10, 30, 100, 300, 1000):
        draws, _ = simulate(n_rows, n_draws)
        found = [least_that_pays(draws, method) for method in ("_cdf", "_from_probit")]
        cells = " | ".join(f"{n} ({n * n_draws})" for n in found)
        print(f"| {n_draws} | {cells} |", flush=True)


def least_that_pays(draws: np.ndarray, method: str) -> int:
    """Return the least number of points, a power of two, at which a table is quicker than sums."""
    for n_points in map(int, 2 ** np.arange(12)):
        times = [least_time(draws, n_points, way, method) for way in ("curves", "kernels")]
        if times[0] < times[1]:
            break
    return n_points


def least_time(draws: np.ndarray, n_points: int, way: str, method: str) -> float:
    """Return the time of so many points by one of two ways, the least of three."""
    points = np.linspace(-1.6, 1.6, n_points)[np.newaxis, :]
    latents = [regcal.Samples(draws).latent for _ in range(3)]
    return min(
        cpu_time(lambda new=new: getattr(getattr(new, way), method)(points)) for new in latents
    )


def print_memory(n_rows: int = 100_000, n_draws: int = 50) -> None:
    """Print time and memory of many rows with few draws."""
    draws, y = simulate(n_rows, n_draws)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calibrator = regcal.get_calibrator("gpc")
    print(f"\n{n_rows:,} rows × {n_draws} draws, gpc:\n\n| what | CPU s |\n|---|---|")
    print(f"| fit | {cpu_time(lambda: calibrator.fit(regcal.Samples(draws), y)):.1f} |")
    for name, ask in answers(y).items():
        seconds = cpu_time(lambda ask=ask: ask(calibrator.transform(regcal.Samples(draws))))
        print(f"| {name} | {seconds:.1f} |", flush=True)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"\nMemory beyond the draws: {more:.0f} MB; the draws: {draws.nbytes / 2**20:.0f} MB.")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="many rows and memory instead")
    if parser.parse_args().large:
        print_memory()
        return
    draws, y = simulate(400, 1000)
    least = cpu_time(lambda: np.sort(draws, axis=1))
    print(f"400 rows × 1 000 draws, CPU s (times those of sorting, {least:.3f} s):\n")
    print_times(lambda: regcal.Samples(draws), y, least)
    levels = np.arange(1, 200) / 200
    values = np.quantile(draws, levels, axis=1).T
    print("\n400 rows × 199 quantiles:\n")
    print_times(lambda: regcal.Quantiles(levels, values), y, least)
    print_where_tables_pay()


if __name__ == "__main__":
    main()
