"""Which method repairs which defect of a model, and how many calibration rows it needs.

Simulates models that are wrong in one known way, so that the best attainable log score is known
too, and writes one line per defect, number of calibration rows, draw and method. The tables in
`docs/which_method.md` and `docs/small_sets.md` are made from these lines by `docs/tables.py`.

    python benchmarks/defects.py                            # some minutes on one core
    python benchmarks/defects.py --draws 1 --rows 100 --output try.csv
"""

import argparse
import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

import regcal

RESULTS = Path(__file__).with_name("defects.csv")
HEADER = ("defect", "rows", "draw", "method", "gain", "attainable")
METHODS = ("scale", "pit", "e-beta", "gpc", "gp-density", "auto")
ROWS = [30, 100, 300, 1000]
N_DRAWS, N_TEST = 5, 4000

# How far a model's P(Y <= t) is from 1/2, and where t is, is all that calibration can look at.
SPREAD_OF_MEANS = 1.5


@dataclass(frozen=True)
class Drawn:
    """What the model says, what is true, and what happened."""

    model: regcal.Distribution
    truth: regcal.Distribution
    y: np.ndarray


Simulation = Callable[[np.random.Generator, np.ndarray], tuple]


def right(rng: np.random.Generator, mean: np.ndarray) -> tuple:
    return regcal.Normal(mean, np.ones(len(mean))), stats.norm(mean, 1.0)


def too_narrow(rng: np.random.Generator, mean: np.ndarray) -> tuple:
    return regcal.Normal(mean, np.full(len(mean), 0.6)), stats.norm(mean, 1.0)


def shifted(rng: np.random.Generator, mean: np.ndarray) -> tuple:
    return regcal.Normal(mean + 0.7, np.ones(len(mean))), stats.norm(mean, 1.0)


def skewed(rng: np.random.Generator, mean: np.ndarray) -> tuple:
    return regcal.Normal(mean, np.ones(len(mean))), stats.gamma(1.0, loc=mean - 1.0)


def heavy_tailed(rng: np.random.Generator, mean: np.ndarray) -> tuple:
    return regcal.Normal(mean, np.ones(len(mean))), stats.t(3, loc=mean, scale=1 / np.sqrt(3))


def by_level(rng: np.random.Generator, mean: np.ndarray) -> tuple:
    """Noise that grows with the predicted mean, which a constant spread misses."""
    spread = np.exp(0.5 * mean)
    average = np.sqrt(np.exp(0.5 * SPREAD_OF_MEANS**2))
    return regcal.Normal(mean, np.full(len(mean), average)), stats.norm(mean, spread)


def curved(rng: np.random.Generator, mean: np.ndarray) -> tuple:
    """Targets that flatten out at high values, where the model goes on rising."""
    return regcal.Normal(mean, np.full(len(mean), 0.6)), stats.norm(2 * np.tanh(mean / 2), 0.4)


def unseen(rng: np.random.Generator, mean: np.ndarray) -> tuple:
    """Noise that depends on something the model's output does not tell."""
    spread = np.where(rng.uniform(size=len(mean)) < 0.5, 0.4, 1.36)
    return regcal.Normal(mean, np.ones(len(mean))), stats.norm(mean, spread)


DEFECTS: dict[str, Simulation] = {
    "none": right,
    "spread too small": too_narrow,
    "shifted": shifted,
    "skewed noise": skewed,
    "heavy tails": heavy_tailed,
    "spread depends on the level": by_level,
    "mean bends, model is straight": curved,
    "spread depends on something unseen": unseen,
}


def draw(defect: str, n_rows: int, rng: np.random.Generator) -> Drawn:
    """Draw rows of a model with this defect."""
    mean = rng.normal(scale=SPREAD_OF_MEANS, size=n_rows)
    model, truth = DEFECTS[defect](rng, mean)
    return Drawn(model, regcal.ScipyDistribution(truth), truth.rvs(random_state=rng))


def measure(defect: str, n_rows: int, number: int) -> Iterator[tuple]:
    """Yield a line per method: its gain in mean log score, and the gain of knowing the truth."""
    past = draw(defect, n_rows, np.random.default_rng([number, n_rows]))
    new = draw(defect, N_TEST, np.random.default_rng([number, 1_000_000]))
    before = regcal.log_score(new.y, new.model).mean()
    attainable = regcal.log_score(new.y, new.truth).mean() - before
    for method in METHODS:
        after = regcal.get_calibrator(method).fit(past.model, past.y).transform(new.model)
        gain = regcal.log_score(new.y, after).mean() - before
        yield defect, n_rows, number, method, f"{gain:.5f}", f"{attainable:.5f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--defects", nargs="+", default=list(DEFECTS), choices=list(DEFECTS))
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    parser.add_argument("--output", type=Path, help="needed for a part; else defects.csv")
    options = parser.parse_args()
    whole = (options.defects, options.rows, options.draws) == (list(DEFECTS), ROWS, N_DRAWS)
    if options.output is None and not whole:
        parser.error("name a file with --output: defects.csv holds all defects, rows and draws")
    with (options.output or RESULTS).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEADER)
        for defect in options.defects:
            for n_rows in options.rows:
                for number in range(options.draws):
                    writer.writerows(measure(defect, n_rows, number))
                print(defect, n_rows, flush=True)


if __name__ == "__main__":
    main()
