"""What fitting from batches costs: time per row, and peak memory, as rows grow.

Every fit runs in a process of its own, whose peak memory is printed with that of the same process
without any rows. The time is that of adding rows and fitting, without that of making them.

    python benchmarks/out_of_core.py
    python benchmarks/out_of_core.py --rows 100000 --methods e-beta gpc
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

import regcal

BATCH = 100_000


def batch(seed: int, rows: int) -> tuple[regcal.Normal, np.ndarray]:
    rng = np.random.default_rng(seed)
    loc, scale = 3 * rng.normal(size=rows), np.exp(0.3 * rng.normal(size=rows))
    noise = 1.3 * rng.normal(size=rows) + 0.3 * rng.exponential(size=rows)
    return regcal.Normal(loc, scale), loc + scale * noise


def measure(method: str, rows: int) -> dict[str, float]:
    """Fit in this process; return seconds and megabytes."""
    empty = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    calibrator = regcal.get_calibrator(method)
    observed, adding = calibrator.new_observed(), 0.0
    for start in range(0, rows, BATCH):
        dist, y = batch(start, min(BATCH, rows - start))
        begin = time.perf_counter()
        observed.add(dist, y)
        adding += time.perf_counter() - begin
    begin = time.perf_counter()
    calibrator.solve(observed)
    solving = time.perf_counter() - begin
    new, y = batch(-1 % 2**32, 20_000)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    score = calibrator.transform(new).logpdf(y).mean()
    return {"adding": adding, "solving": solving, "empty": empty, "peak": peak, "score": score}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--methods", nargs="+", default=["e-beta", "gpc", "gp-density"])
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one[0], int(arguments.one[1]))))
        return
    print(f"Batches of {BATCH} rows.")
    print(
        f"{'method':<12}{'rows':>10}{'adding':>10}{'solving':>9}{'ns / row':>10}{'peak MB':>9}"
        f"{'without':>9}{'log score':>11}"
    )
    for method in arguments.methods:
        for rows in arguments.rows:
            command = [sys.executable, __file__, "--one", method, str(rows)]
            answer = subprocess.run(command, capture_output=True, text=True, check=True)
            found = json.loads(answer.stdout)
            per_row = 1e9 * (found["adding"] + found["solving"]) / rows
            print(
                f"{method:<12}{rows:>10}{found['adding']:>9.2f}s{found['solving']:>8.2f}s"
                f"{per_row:>10.0f}{found['peak']:>9.0f}{found['empty']:>9.0f}{found['score']:>11.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
