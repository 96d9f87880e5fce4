"""Two Dask workers against one process, on predictions whose CDF is costly.

Every row is predicted by a mixture of normals, made where the row is. Workers and the one process
have one thread each, and the calibrated probabilities of both are compared.

    python benchmarks/dask_cluster.py
    python benchmarks/dask_cluster.py --rows 400000 --method e-beta
"""

import argparse
import os
import time

# before NumPy is imported, here and in the workers
os.environ.update(dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"], "1"))

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import regcal
import regcal.dask
from regcal.calibrators import Targets

N_COMPONENTS = 8

# Dask tells its workers to hand memory back at once, which makes NumPy's temporaries slow.
MEMORY = {"MALLOC_MMAP_THRESHOLD_": 2**25, "MALLOC_TRIM_THRESHOLD_": 2**28}


def make_rows(rows: int, block_info=None) -> np.ndarray:
    """Return location, spread and outcome of the rows of one partition."""
    seed = 0 if block_info is None else block_info[None]["chunk-location"][0]
    rng = np.random.default_rng(seed)
    loc, scale = 3 * rng.normal(size=rows), np.exp(0.3 * rng.normal(size=rows))
    noise = 1.3 * rng.normal(size=rows) + 0.3 * rng.exponential(size=rows)
    return np.column_stack([loc, scale, loc + scale * noise])


def mixture(part: np.ndarray) -> regcal.Mixture:
    loc, scale = part[:, 0], part[:, 1]
    shifts = np.linspace(-1.0, 1.0, N_COMPONENTS)
    return regcal.Mixture([regcal.Normal(loc + shift * scale, 0.5 * scale) for shift in shifts])


def partition(seed: int, rows: int) -> np.ndarray:
    return make_rows(rows, {None: {"chunk-location": (seed, 0)}})


def in_one_process(method: str, n_partitions: int, rows: int) -> regcal.Calibrator:
    """Read the outcomes, then summarise one partition after the other, as the cluster does."""
    calibrator, targets = regcal.get_calibrator(method), Targets()
    for k in range(n_partitions):
        targets = targets.merge(Targets.of(partition(k, rows)[:, 2]))
    observed = calibrator.new_observed(targets)
    for k in range(n_partitions):
        part = partition(k, rows)
        observed.add(mixture(part), part[:, 2])
    return calibrator.solve(observed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--partition", type=int, default=100_000, help="rows of a partition")
    parser.add_argument("--method", default="e-beta")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    rows, n_partitions = arguments.partition, max(1, arguments.rows // arguments.partition)
    chunks = ((rows,) * n_partitions, (3,))
    data = da.map_blocks(make_rows, rows, chunks=chunks, dtype=float, meta=np.empty((0, 0)))

    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ": MEMORY}),
        LocalCluster(
            n_workers=arguments.workers, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        begin = time.perf_counter()
        calibrator = regcal.get_calibrator(arguments.method)
        shared = regcal.dask.fit(calibrator, data, mixture, y=2)
        on_cluster = time.perf_counter() - begin

    begin = time.perf_counter()
    alone = in_one_process(arguments.method, n_partitions, rows)
    in_process = time.perf_counter() - begin

    new = mixture(partition(n_partitions, 1000))
    grid = np.linspace(-12, 12, 49)[np.newaxis, :]
    gap = np.abs(shared.transform(new).cdf(grid) - alone.transform(new).cdf(grid)).max()
    print(f"{arguments.method}, {n_partitions * rows} rows in {n_partitions} partitions")
    print(f"one process          {in_process:8.1f} s")
    print(f"{arguments.workers} workers            {on_cluster:8.1f} s")
    print(f"ratio                {in_process / on_cluster:8.2f}")
    print(f"largest difference in P(Y <= t) {gap:.1e}")


if __name__ == "__main__":
    main()
