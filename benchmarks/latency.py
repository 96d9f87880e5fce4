"""What users wait for after a fit, as multiples of what cannot be avoided.

One row: an answer of a fitted `CalibratedRegressorCV` over the base model's own prediction of mean
and spread. Many rows: mean, variance and CRPS of distributions over their own CDF at 64 thresholds.
Both on concrete with Bayesian ridge, in one run, so that the ratios do not depend on the machine.

Run: OMP_NUM_THREADS=1 python benchmarks/latency.py [--quick] [--one-row] [--only NAME ...]
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import cross_val_predict

import regcal
from regcal.datasets import load_concrete

METHODS = ["identity", "scale", "pit", "isotonic", "e-logistic", "e-beta", "e-isotonic"]
METHODS += ["gpc", "gp-density"]
STACK = ["gp-density", "gpc", "e-beta"]
LEVELS = [0.05, 0.5, 0.95]
QUANTILE_LEVELS = np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95])
LIMITS = {"mean": 5, "var": 5, "crps": 6}


def best_of(function: Callable[[], object], seconds: float = 0.15) -> float:
    """Return the shortest processor time of a call, of as many as fit and at least three."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < seconds and len(times) < 300):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def calibrator_of(name: str) -> regcal.Calibrator:
    """Return a calibrator, or the average of three with equal weights."""
    if name != "stack":
        return regcal.get_calibrator(name)
    parts = [(part, regcal.get_calibrator(part)) for part in STACK]
    return regcal.StackCalibrator(parts, np.full(len(parts), 1.0 / len(parts)))


def bases(X: np.ndarray, y: np.ndarray) -> dict[str, regcal.Distribution]:
    """Return what a model says of rows that it has not seen, in three forms."""
    rng = np.random.default_rng(0)
    mean = cross_val_predict(BayesianRidge(), X, y, cv=3)
    spread = np.full(len(y), np.std(y - mean))
    normal = regcal.Normal(mean, spread)
    skew = np.exp(0.2 * rng.normal(size=(len(y), 1)))
    z = normal.probit(normal.ppf(QUANTILE_LEVELS[np.newaxis, :]))
    values = mean[:, np.newaxis] + spread[:, np.newaxis] * np.sinh(skew * z) / skew
    return {
        "Normal": normal,
        "Quantiles": regcal.Quantiles(QUANTILE_LEVELS, values),
        "Samples": regcal.Samples(normal.sample(50, random_state=1)),
    }


def many_rows(name: str, base: regcal.Distribution, y: np.ndarray, parts: int) -> dict[str, float]:
    """Return the ratios of one method; with several parts, of their average."""
    folds = np.arange(len(y)) % parts
    fits = [calibrator_of(name).fit(base[folds == k], y[folds == k]) for k in range(parts)]
    grid = np.linspace(y.min(), y.max(), 64)[np.newaxis, :]
    row = list(range(len(y)))

    def fresh() -> regcal.Distribution:
        """Return the distributions without anything that an earlier question has left behind."""
        calibrated = [fit.transform(base[row]) for fit in fits]
        return calibrated[0] if parts == 1 else regcal.Mixture(calibrated)

    start = best_of(fresh)
    cdf = best_of(lambda: fresh().cdf(grid)) - start
    answers = {
        "mean": lambda: fresh().mean(),
        "var": lambda: fresh().var(),
        "crps": lambda: fresh().crps(y),
    }
    times = {answer: (best_of(call) - start) / cdf for answer, call in answers.items()}
    return times | {"cdf": 1e6 * cdf / len(y)}


def one_row(name: str, X: np.ndarray, y: np.ndarray, ensemble: bool) -> dict[str, float]:
    """Return the ratios of one method for one row."""
    model = regcal.CalibratedRegressorCV(
        BayesianRidge(), calibrator_of(name), cv=3, ensemble=ensemble
    ).fit(X, y)
    base, x = BayesianRidge().fit(X, y), X[:1]
    model.predict_quantiles(x, LEVELS)
    own = best_of(lambda: base.predict(x, return_std=True))
    answers = {
        "quantiles": lambda: model.predict_quantiles(x, LEVELS),
        "probability": lambda: model.predict_above(x, 40.0),
        "mean": lambda: model.predict(x),
    }
    times = {answer: best_of(call) / own for answer, call in answers.items()}
    return times | {"base": 1e6 * own}


def print_row(cells: list[str], values: dict[str, float], limits: dict[str, float]) -> None:
    """Print a row of a table; what is above its limit is marked."""
    marks = [
        f"{value:.1f}{'*' if value > limits.get(name, np.inf) else ''}"
        for name, value in values.items()
    ]
    print("| " + " | ".join([*cells, *marks]) + " |", flush=True)


def print_head(*names: str) -> None:
    """Print the head of a table."""
    print("\n| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer methods, Normal bases only")
    parser.add_argument("--one-row", action="store_true", help="the first table alone")
    parser.add_argument("--only", nargs="+", default=None, help="names of methods")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data = load_concrete()
    X, y = data.X, data.y
    names = options.only or (["scale", "pit", "e-beta", "gpc"] if options.quick else METHODS)
    names = [*names, *([] if options.only else ["stack"])]
    print("Ratios; an asterisk marks what is above its limit.")
    print("\nOne row, over the base model's prediction (limits: 5 and 8 for the mean; averages of")
    print("three and stacks 8 and 12):")
    print_head("method", "models", "quantiles", "probability", "mean", "base, us")
    for name in names:
        for ensemble in (False, True):
            many = ensemble or name == "stack"
            limits = {"quantiles": 8 if many else 5, "probability": 8 if many else 5}
            limits["mean"] = 12 if many else 8
            cells = [name, "3, averaged" if ensemble else "1"]
            print_row(cells, one_row(name, X, y, ensemble), limits)
    if options.one_row:
        return
    print(f"\n{len(y)} rows, over the CDF at 64 thresholds (limits: 5, 5 and 6):")
    print_head("method", "base", "models", "mean", "var", "CRPS", "CDF, us a row")
    for kind, base in bases(X, y).items():
        if options.quick and kind != "Normal":
            continue
        for name in names:
            for parts in (1, 3):
                cells = [name, kind, "3, averaged" if parts > 1 else "1"]
                print_row(cells, many_rows(name, base, y, parts), LIMITS)


if __name__ == "__main__":
    main()
