"""What the command line costs: to start, and on a long file beside pandas that only copies it.

    python benchmarks/command_line.py                    a million rows, every calibrator
    python benchmarks/command_line.py --rows 100000 gpc  fewer rows, one calibrator
    python benchmarks/command_line.py --start            only how long one waits for the first line

Starts are the least of seven, in processor seconds, and divided by those of Python with NumPy, or
with what regcal stands on. On a long file both run one after the other, each as a fresh command:
starting Python and importing counts on both sides. Prints seconds and their ratio, by the clock and
of the processor (the latter also tells on a machine that is busy otherwise), and the peak memory.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

CALIBRATORS = ("identity", "scale", "pit", "e-beta", "gpc", "gp-density")
PANDAS = "import sys, pandas; pandas.read_csv(sys.argv[1]).to_csv(sys.argv[2], index=False)"


@dataclass(frozen=True)
class Cost:
    """What a command took: seconds by the clock and of the processor, and MB at its peak."""

    clock: float
    processor: float
    memory: float


def measured(command: list[str]) -> Cost:
    """Run a command and return what it took."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"{' '.join(command)} failed.")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def write_tables(folder: Path, n_rows: int) -> None:
    """Write predictions with outcomes, of a model whose spread is wrong, and many without."""
    rng = np.random.default_rng(0)
    for name, rows in (("past.csv", 2000), ("new.csv", n_rows)):
        mean, std = rng.normal(30.0, 10.0, rows), rng.uniform(1.0, 5.0, rows)
        y = mean + std * np.where(mean > 30.0, 1.5, 0.7) * rng.standard_t(5, rows)
        table = pd.DataFrame({"id": np.arange(rows), "mu": mean, "sigma": std, "y": y})
        table.iloc[:, : 4 if name == "past.csv" else 3].to_csv(folder / name, index=False)


def print_starts() -> None:
    """Print what it takes to get help, and to import what a program uses."""
    python = [sys.executable, "-c"]
    regcal = [sys.executable, "-m", "regcal"]
    groups = {
        "import numpy": {
            "regcal --help": [*regcal, "--help"],
            "regcal --version": [*regcal, "--version"],
            "regcal fit --help": [*regcal, "fit", "--help"],
            "import regcal": [*python, "import regcal"],
        },
        "import sklearn.linear_model, sklearn.model_selection, scipy.stats, scipy.optimize": {
            "from regcal import Normal": [*python, "from regcal import Normal"],
            "from regcal import *": [*python, "from regcal import *"],
        },
    }
    for base, commands in groups.items():
        own = least([*python, base])
        print(f"{own * 1e3:7.0f} ms  {base}")
        for name, command in commands.items():
            seconds = least(command)
            print(
                f"{seconds * 1e3:7.0f} ms  {name:<30} {seconds / own:5.2f} times that", flush=True
            )


def least(command: list[str]) -> float:
    """Return the least processor seconds of seven runs."""
    return min(measured(command).processor for _ in range(7))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("calibrators", nargs="*", default=CALIBRATORS)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--start", action="store_true")
    options = parser.parse_args()
    if options.start:
        print_starts()
        return
    regcal = [sys.executable, "-m", "regcal"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder, options.rows)
        past, new, out = (str(folder / one) for one in ("past.csv", "new.csv", "out.csv"))
        predictions = ["--target", "y", "--mean", "mu", "--std", "sigma"]
        print(f"{options.rows} rows, {Path(new).stat().st_size / 1e6:.0f} MB")
        print(f"{'':<12} {'clock':^27}  {'processor':^27}  {'peak':>6}")
        print(f"{'':<12}" + 2 * f" {'pandas s':>9} {'regcal s':>9} {'ratio':>7} " + f" {'MB':>6}")
        for calibrator in options.calibrators:
            model = str(folder / "model.regcal")
            measured([*regcal, "calibrate", past, *predictions, "--calibrator", calibrator,
                      "--save", model])  # fmt: skip
            plain = measured([sys.executable, "-c", PANDAS, new, out])
            ours = measured([*regcal, "predict", model, new, "--output", out])
            pairs = ((plain.clock, ours.clock), (plain.processor, ours.processor))
            cells = [f" {one:>9.1f} {two:>9.1f} {two / one:>7.2f} " for one, two in pairs]
            print(f"{calibrator:<12}{''.join(cells)} {ours.memory:>6.0f}", flush=True)


if __name__ == "__main__":
    main()
