"""The recipe for Spark in `docs/large_data.md`, line by line as it stands there, on Spark itself.

Its result is compared with one fit on all rows. Needs Java and the package pyspark:

    .venv/bin/python -m pip install pyspark
    .venv/bin/python benchmarks/spark_recipe.py
    .venv/bin/python benchmarks/spark_recipe.py --rows 10000
"""

import argparse
import os
import re
import sys
import time
from pathlib import Path

# before NumPy is imported, here and in the workers
os.environ.update(dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"], "1"))
os.environ["PYSPARK_PYTHON"] = sys.executable

import numpy as np
import pandas as pd
import pyspark
from pyspark.sql import SparkSession

import regcal

GUIDE = Path(__file__).parents[1] / "docs" / "large_data.md"


def recipe() -> str:
    """Return the lines of the guide."""
    blocks = re.findall(r"```py\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (found,) = [block for block in blocks if "mapInPandas" in block]
    return found


def made(rows: int) -> pd.DataFrame:
    """Return predictions that are too narrow, and outcomes."""
    rng = np.random.default_rng(0)
    mean, std = 3 * rng.normal(size=rows), np.exp(0.3 * rng.normal(size=rows))
    noise = 1.3 * rng.normal(size=rows) + 0.3 * rng.exponential(size=rows)
    return pd.DataFrame({"mean": mean, "std": std, "y": mean + std * noise})


def main() -> None:
    """Print what both ways take, and how far apart their probabilities are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    table = made(options.rows)

    builder = SparkSession.builder.master(f"local[{options.workers}]").appName("regcal")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    frame = spark.createDataFrame(table).repartition(4 * options.workers).cache()
    frame.count()
    names = {"frame": frame, "__name__": "__main__"}
    begin = time.perf_counter()
    exec(recipe(), names)
    on_spark = time.perf_counter() - begin
    spark.stop()

    dist = regcal.Normal(table["mean"], table["std"])
    begin = time.perf_counter()
    alone = regcal.get_calibrator("gpc").fit(dist, table["y"])
    in_process = time.perf_counter() - begin

    new, grid = dist[:1000], np.linspace(-12, 12, 49)[np.newaxis, :]
    found = names["calibrator"].transform(new).cdf(grid)
    gap = np.abs(found - alone.transform(new).cdf(grid)).max()
    print(f"Spark {pyspark.__version__}, {options.workers} workers, gpc, {options.rows} rows")
    print(f"on Spark {on_spark:.1f} s, in one process {in_process:.1f} s")
    print(f"largest difference in P(Y <= t) {gap:.1e}")


if __name__ == "__main__":
    main()
