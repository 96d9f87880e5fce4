"""What it buys to deal equal rows one by one to the folds by which methods are judged.

    OMP_NUM_THREADS=1 python benchmarks/equal_rows.py [--worlds 4]     # two minutes

Draws worlds in which predictions repeat, or rows have weights, and prints what `isotonic` and
`auto` (of identity, pit and isotonic) lose on 1 500 new rows, in nats of log score and per cent of
CRPS, if equal rows are never divided, or only where outcomes are intervals, or also where nothing
but their weight says that they are several.
"""

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import numpy as np

import regcal
from regcal.calibrators import held_out

N_NEW, LEAST_LOG = 1500, -20.0
RULE = held_out._are_masses


def never(rows, totals, first, support):
    return np.zeros(len(totals), dtype=bool)


def intervals_only(rows, totals, first, support):
    return RULE(rows, totals, first, support) & ~support.seen(rows.seen[first]).exact_rows


def by_weight_too(rows, totals, first, support):
    return RULE(rows, totals, first, support) | (totals >= held_out.least_mass(totals.sum()))


RULES: dict[str, Callable] = {
    "as it is": RULE,
    "never": never,
    "intervals only": intervals_only,
    "by weight too": by_weight_too,
}


def zeros(rng: np.random.Generator, loc: np.ndarray) -> np.ndarray:
    return np.where(rng.uniform(size=len(loc)) < 0.4, 0.0, rng.gamma(2.0, loc / 2.0))


def favourite(rng: np.random.Generator, loc: np.ndarray) -> np.ndarray:
    return np.where(rng.uniform(size=len(loc)) < 0.3, 2.0, rng.gamma(2.0, loc / 2.0))


def quarters(rng: np.random.Generator, loc: np.ndarray) -> np.ndarray:
    return np.round(4.0 * rng.gamma(2.0, loc / 2.0)) / 4.0


def numbers(rng: np.random.Generator, loc: np.ndarray) -> np.ndarray:
    return rng.gamma(2.0, loc / 2.0)


# Outcomes, how many predictions there are (0: each row has its own), and the weight of rows.
WORLDS: dict[str, tuple[Callable, int, float]] = {
    "zeros, one prediction": (zeros, 1, 1.0),
    "a favourite value, one prediction": (favourite, 1, 1.0),
    "a favourite value, three predictions": (favourite, 3, 1.0),
    "quarters, one prediction": (quarters, 1, 1.0),
    "quarters, three predictions": (quarters, 3, 1.0),
    "rows of weight 10": (numbers, 0, 10.0),
}
SIZES = (40, 150)


def drawn(outcomes: Callable, n_predictions: int, n: int, rng: np.random.Generator) -> tuple:
    """Return predictions and outcomes."""
    few = [3.0] if n_predictions == 1 else np.linspace(2.0, 5.0, n_predictions)
    loc = rng.choice(few, n) if n_predictions else rng.uniform(2.0, 5.0, n)
    return regcal.Normal(loc, np.full(n, 2.0)), outcomes(rng, loc)


def small_auto() -> regcal.AutoCalibrator:
    known = ("identity", "pit", "isotonic")
    return regcal.AutoCalibrator([(one, regcal.get_calibrator(one)) for one in known])


METHODS = {"isotonic": regcal.IsotonicCalibrator, "auto": small_auto}


def scores(method: str, world: str, n: int, seed: int) -> tuple[float, float]:
    """Return log score and CRPS of new rows."""
    outcomes, n_predictions, weight = WORLDS[world]
    draw = partial(drawn, outcomes, n_predictions, rng=np.random.default_rng([7, seed]))
    (dist, y), (new, new_y) = draw(n), draw(N_NEW)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calibrator = METHODS[method]().fit(dist, y, sample_weight=np.full(n, weight))
    calibrated = calibrator.transform(new)
    logs = np.maximum(regcal.log_score(new_y, calibrated), LEAST_LOG)
    return float(logs.mean()), float(regcal.crps(new_y, calibrated).mean())


def line(method: str, world: str, n: int, n_worlds: int) -> str:
    """Return what each other rule loses on the one that is used."""
    found = {}
    for name, rule in RULES.items():
        with patch.object(held_out, "_are_masses", rule):
            each = [scores(method, world, n, seed) for seed in range(n_worlds)]
        found[name] = np.mean(each, axis=0)
    logs, crps = found.pop("as it is")
    losses = (f"{own[0] - logs:+.3f}, {own[1] / crps - 1:+.1%}" for own in found.values())
    return f"| {world} | {n} | {method} | {' | '.join(losses)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=4)
    options = parser.parse_args()
    print(f"| world | rows | method | {' | '.join(list(RULES)[1:])} |\n|---|---|---|---|---|---|")
    for world in WORLDS:
        for n in SIZES:
            for method in METHODS:
                print(line(method, world, n, options.worlds), flush=True)


if __name__ == "__main__":
    main()
