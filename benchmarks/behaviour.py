"""Do two versions of regcal predict the same? Record one, compare the other with the record.

    python benchmarks/behaviour.py record before.npz                      # in the one version
    python benchmarks/behaviour.py compare before.npz                     # in the other
    python benchmarks/behaviour.py compare before.npz --only gpc --tolerance 1e-6

Every calibrator learns from some two dozen sets of rows, from plain ones to hostile ones, and
predicts new rows; kept are the CDF on a grid, the log density at the outcomes and some quantiles.
`compare` prints the largest differences of each fit, the worst first, and ends with 1 if any is
above the tolerance. It asks for what the record holds, so that new calibrators do not matter to
it. A fit that raises is recorded by its message, and another message is a difference.

A refactoring should change no line. Differences of the last digits are to be expected where sums
run in another order, and are larger where a search over hyper-parameters stops at a tolerance.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import BayesianRidge

import regcal
from regcal.gp import Logit

N_NEW = 40
N_GRID = 33
LEVELS = np.array([[0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999]])
ANSWERS = ("cdf", "logpdf", "ppf")

# -------------------------------------------------------------------------------------- calibrators

# Settings that keep the slow ones quick.
QUICK = {
    "gpc-paper": {"n_pairs": 100, "prediction_thresholds": 48, "random_state": 0},
}
VARIANTS: dict[str, Callable[[], regcal.Calibrator]] = {
    "gpc, prior zero": lambda: regcal.get_calibrator("gpc", prior="zero"),
    "gpc, logit": lambda: regcal.get_calibrator("gpc", link=Logit()),
    "gpc, differences": lambda: regcal.get_calibrator("gpc", prediction_thresholds=48),
    "gpc, at quantiles": lambda: regcal.get_calibrator("gpc", thresholds=regcal.QuantileGrid(24)),
    "e-beta, uniform": lambda: regcal.get_calibrator("e-beta", shape="uniform"),
    "pit, not smooth": lambda: regcal.get_calibrator("pit", smooth=False),
}


def build(name: str) -> regcal.Calibrator:
    """Return the calibrator or variant of this name, not fitted."""
    if name in VARIANTS:
        return VARIANTS[name]()
    return regcal.get_calibrator(name, **QUICK.get(name, {}))


# --------------------------------------------------------------------------------------------- rows


@dataclass(frozen=True)
class Fit:
    """Batches of (dist, y) or (dist, y, weights) to learn from, and new rows with outcomes."""

    batches: list[tuple]
    new: regcal.Distribution
    y: np.ndarray

    def calibrated(self, calibrator: regcal.Calibrator) -> regcal.Distribution:
        """Return calibrated predictions of the new rows."""
        if len(self.batches) == 1:
            calibrator.fit(*self.batches[0])
        else:
            calibrator.fit_batches(self.batches)
        return calibrator.transform(self.new)


@dataclass(frozen=True)
class WrappedFit:
    """A model in a `CalibratedRegressorCV`, and new rows with outcomes."""

    ensemble: bool
    X: np.ndarray
    targets: np.ndarray
    new: np.ndarray
    y: np.ndarray

    def calibrated(self, calibrator: regcal.Calibrator) -> regcal.Distribution:
        """Return calibrated predictions of the new rows."""
        model = regcal.CalibratedRegressorCV(BayesianRidge(), calibrator, ensemble=self.ensemble)
        return model.fit(self.X, self.targets).predict_dist(self.new)


def normal_rows(n_rows: int, seed: int) -> tuple[regcal.Normal, np.ndarray]:
    """Return rows whose noise is skewed and whose spread the model misses."""
    rng = np.random.default_rng([seed, n_rows])
    mean, spread = 2 * rng.normal(size=n_rows), np.exp(0.3 * rng.normal(size=n_rows))
    noise = 0.9 * rng.normal(size=n_rows) + 0.6 * (rng.exponential(size=n_rows) - 1)
    return regcal.Normal(mean, spread), mean + (1 + 0.2 * np.tanh(mean)) * spread * noise


def plain(n_rows: int, change: Callable[[np.ndarray], np.ndarray] | None = None) -> Fit:
    """Return normal rows, with outcomes that `change` has altered."""
    change = change or (lambda y: y)
    dist, y = normal_rows(n_rows, 0)
    new, y_new = normal_rows(N_NEW, 1)
    return Fit([(dist, change(y))], new, change(y_new))


def cut(fit: Fit, size: int) -> Fit:
    """Return the same rows in batches."""
    (rows,) = fit.batches
    starts = range(0, len(rows[0]), size)
    return Fit([tuple(part[s : s + size] for part in rows) for s in starts], fit.new, fit.y)


def weighted(fit: Fit) -> Fit:
    """Return the same rows with weights, one in ten of them 0."""
    ((dist, y),) = fit.batches
    weights = np.random.default_rng(2).gamma(2.0, size=len(y))
    weights[::10] = 0.0
    return Fit([(dist, y, weights)], fit.new, fit.y)


def repeated() -> Fit:
    fit = plain(80)
    ((dist, y),) = fit.batches
    rows = np.repeat(np.arange(len(y)), 3)
    return Fit([(dist[rows], y[rows])], fit.new, fit.y)


def rounded(y: np.ndarray) -> np.ndarray:
    return 0.5 * np.round(2 * y)


def half_equal(y: np.ndarray) -> np.ndarray:
    return np.maximum(y, 0.0)


def with_outlier() -> Fit:
    fit = plain(200)
    fit.batches[0][1][17] += 1e4
    return fit


def rescaled(unit: float = 1.0, offset: float = 0.0, spread: float = 1.0) -> Fit:
    """Return the plain rows in another unit, from another origin, and with a wrong spread."""
    fit = plain(200)
    ((dist, y),) = fit.batches

    def changed(dist: regcal.Normal) -> regcal.Normal:
        return regcal.Normal(offset + unit * dist.loc, spread * unit * dist.scale)

    return Fit([(changed(dist), offset + unit * y)], changed(fit.new), offset + unit * fit.y)


# -------------------------------------------------------------------------------------- other bases


def centres(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=n_rows), rng.uniform(0.3, 2.0, n_rows)


def t_rows(rng: np.random.Generator, n_rows: int) -> regcal.Distribution:
    loc, scale = centres(rng, n_rows)
    return regcal.ScipyDistribution(stats.t(rng.uniform(5, 12, n_rows), loc=loc, scale=scale))


def gamma_rows(rng: np.random.Generator, n_rows: int) -> regcal.Distribution:
    loc, scale = centres(rng, n_rows)
    return regcal.ScipyDistribution(stats.gamma(rng.uniform(1.2, 5, n_rows), loc=loc, scale=scale))


def quantile_rows(rng: np.random.Generator, n_rows: int) -> regcal.Distribution:
    levels = np.array([0.01, 0.1, 0.25, 0.5, 0.7, 0.95])
    loc, scale = centres(rng, n_rows)
    steps = rng.uniform(0.2, 1.5, (n_rows, len(levels)))
    return regcal.Quantiles(levels, loc[:, None] + scale[:, None] * np.cumsum(steps, axis=1))


def sample_rows(rng: np.random.Generator, n_rows: int) -> regcal.Distribution:
    loc, scale = centres(rng, n_rows)
    return regcal.Samples(loc[:, None] + scale[:, None] * rng.gamma(2.0, size=(n_rows, 30)))


def histogram_rows(rng: np.random.Generator, n_rows: int) -> regcal.Distribution:
    return regcal.Histogram(
        np.array([0.0, 0.4, 1.1, 1.5, 2.6, 3.3, 4.0]),
        rng.dirichlet(np.ones(6), n_rows) * 0.98 + 0.02 / 6,
    )


def gapped_histogram_rows(rng: np.random.Generator, n_rows: int) -> regcal.Distribution:
    masses = np.tile([0.3, 0.0, 0.5, 0.0, 0.2], (n_rows, 1))
    edges = np.cumsum(rng.uniform(0.5, 1.5, (n_rows, 6)), axis=1)
    return regcal.Histogram(edges, masses)


def separated_rows(rng: np.random.Generator, n_rows: int) -> regcal.Distribution:
    loc, scale = centres(rng, n_rows)
    return regcal.Mixture([regcal.Normal(loc, scale), regcal.Normal(loc + 20, 0.01 * scale)])


def custom_rows(rng: np.random.Generator, n_rows: int) -> regcal.Distribution:
    """Return rows known by CDF and density only, so that upper tails are 1 - CDF."""
    loc, scale = centres(rng, n_rows)

    def cdf(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return stats.norm.cdf(points, loc[rows, None], scale[rows, None])

    def pdf(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return stats.norm.pdf(points, loc[rows, None], scale[rows, None])

    return regcal.CustomDistribution(cdf, n_rows, pdf=pdf)


def on_base(rows: Callable, n_rows: int = 120) -> Fit:
    """Return rows of another base, with outcomes that it predicts badly but does not exclude."""

    def drawn(n_rows: int, seed: int) -> tuple[regcal.Distribution, np.ndarray]:
        rng = np.random.default_rng([seed, n_rows])
        dist = rows(rng, n_rows)
        return dist, dist.ppf(rng.beta(2.0, 3.0, size=n_rows))

    return Fit([drawn(n_rows, 0)], *drawn(N_NEW, 1))


def impossible() -> Fit:
    """Return a few outcomes below the lower end of their predicted distribution."""
    fit = on_base(gamma_rows)
    fit.batches[0][1][::25] -= 10.0
    return fit


def wrapped(ensemble: bool) -> WrappedFit:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(160, 3))
    y = X @ [1.0, 0.5, 0.0] + np.exp(0.3 * X[:, 0]) * (rng.exponential(size=160) - 1)
    return WrappedFit(ensemble, X[N_NEW:], y[N_NEW:], X[:N_NEW], y[:N_NEW])


FITS: dict[str, Callable[[], Fit | WrappedFit]] = {
    "2 rows": lambda: plain(2),
    "30 rows": lambda: plain(30),
    "200 rows": lambda: plain(200),
    "1000 rows": lambda: plain(1000),
    "weights": lambda: weighted(plain(200)),
    "repeated rows": repeated,
    "rounded": lambda: plain(200, rounded),
    "half equal": lambda: plain(200, half_equal),
    "small batches": lambda: cut(plain(200), 7),
    "small batches, weights": lambda: cut(weighted(plain(200)), 7),
    "spread too small": lambda: rescaled(spread=1e-5),
    "spread too large": lambda: rescaled(spread=1e5),
    "unit 1e-9": lambda: rescaled(unit=1e-9),
    "offset 1e6": lambda: rescaled(offset=1e6),
    "outlier": with_outlier,
    "t": lambda: on_base(t_rows),
    "gamma": lambda: on_base(gamma_rows),
    "impossible rows": impossible,
    "quantiles": lambda: on_base(quantile_rows),
    "samples": lambda: on_base(sample_rows),
    "histogram": lambda: on_base(histogram_rows),
    "gapped histogram": lambda: on_base(gapped_histogram_rows),
    "separated mixture": lambda: on_base(separated_rows),
    "custom without sf": lambda: on_base(custom_rows),
    "wrapped, averaged": lambda: wrapped(True),
    "wrapped, refitted": lambda: wrapped(False),
}
# More rows than are kept as they are.
MANY = {
    "20000 rows": lambda: plain(20_000),
    "20000 rows, batches": lambda: cut(plain(20_000), 3000),
    "20000 rows, rounded": lambda: plain(20_000, rounded),
    "20000 rows, half equal": lambda: plain(20_000, half_equal),
    "20000 rows, weights": lambda: cut(weighted(plain(20_000)), 3000),
}
# What takes a minute or more.
TOO_SLOW = {
    *((name, label) for name in ("gpc-paper", "auto") for label in MANY),
    ("gp-density", "20000 rows, half equal"),
}


# -------------------------------------------------------------------------------- record, compare


def cells(names: list[str]) -> Iterator[tuple[str, str, Fit | WrappedFit]]:
    """Yield the calibrators and fits to record, each fit built once."""
    for label, make in (FITS | MANY).items():
        fit = make()
        for name in names:
            if (name, label) not in TOO_SLOW:
                yield name, label, fit


def predictions(name: str, fit: Fit | WrappedFit) -> dict[str, np.ndarray]:
    """Return what a calibrator says of new rows, or the error that it raises."""
    low, high = fit.y.min(), fit.y.max()
    grid = np.linspace(low - 0.5 * (high - low), high + 0.5 * (high - low), N_GRID)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            dist = fit.calibrated(clone(build(name)))
            return {
                "cdf": dist.cdf(grid[np.newaxis, :]),
                "logpdf": dist.logpdf(fit.y),
                "ppf": dist.ppf(LEVELS),
            }
    except Exception as error:
        return {"error": np.array(f"{type(error).__name__}: {error}")}


def largest(after: np.ndarray, before: np.ndarray, unit: np.ndarray | float) -> float:
    """Return the largest difference in a unit; equal infinities and NaNs do not differ."""
    same = (after == before) | (np.isnan(after) & np.isnan(before))
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, np.abs(after - before) / unit)
    return float(np.where(np.isnan(difference), np.inf, difference).max())


def differences(after: dict, before: dict) -> tuple[list[float], str]:
    """Return the differences in CDF, log density and quantiles, and the errors if there are any.

    Log densities are compared relative to their size where that is above 1, quantiles relative
    to the mean distance between the 5 % and 95 % quantiles of the record.
    """
    if "error" in after or "error" in before:
        texts = [str(found.get("error", "no error")) for found in (before, after)]
        if texts[0] == texts[1]:
            return [0.0] * 3, ""
        return [np.inf] * 3, f"  before: {texts[0]}  now: {texts[1]}"
    width = np.mean(before["ppf"][:, -2] - before["ppf"][:, 1])
    units = {
        "cdf": 1.0,
        "logpdf": np.maximum(1.0, np.abs(before["logpdf"])),
        "ppf": max(width, np.finfo(float).tiny),
    }
    return [largest(after[answer], before[answer], units[answer]) for answer in ANSWERS], ""


def record(path: Path, only: list[str]) -> int:
    """Write the predictions of the installed version."""
    names = [*regcal.calibrator_names(), *VARIANTS]
    kept, started = {}, time.perf_counter()
    for name, label, fit in cells([name for name in names if name in only] or names):
        for answer, values in predictions(name, fit).items():
            kept[f"{name}/{label}/{answer}"] = values
    np.savez_compressed(path, **kept)
    n_cells = len({key.rpartition("/")[0] for key in kept})
    n_errors = sum(key.endswith("/error") for key in kept)
    seconds = time.perf_counter() - started
    print(f"{n_cells} fits recorded in {seconds:.0f} s, {n_errors} of which raise an error.")
    return 0


def compare(path: Path, only: list[str], tolerance: float) -> int:
    """Print how the installed version differs from a record; return 1 if it does."""
    held: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    with np.load(path) as stored:
        for key in stored:
            name, label, answer = key.split("/")
            if not only or name in only:
                held.setdefault(name, {}).setdefault(label, {})[answer] = stored[key]
    lines = []
    for name, label, fit in cells(list(held)):
        if label in held[name]:
            found, text = differences(predictions(name, fit), held[name][label])
            lines.append((max(found), name, label, found, text))
    lines.sort(key=lambda line: (-line[0], *line[1:3]))
    print(f"{'calibrator':20}{'fit':26}{'cdf':>9}{'logpdf':>9}{'ppf':>9}")
    for _, name, label, found, text in lines:
        print(f"{name:20}{label:26}" + "".join(f"{value:9.1e}" for value in found) + text)
    n_above = sum(line[0] > tolerance for line in lines)
    print(f"{n_above} of {len(lines)} fits differ by more than {tolerance:g}.")
    return int(n_above > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--tolerance", type=float, default=1e-9)
    parser.add_argument("--only", nargs="+", default=[], help="calibrators, all without it")
    options = parser.parse_args()
    if options.action == "record":
        return record(options.file, options.only)
    return compare(options.file, options.only, options.tolerance)


if __name__ == "__main__":
    sys.exit(main())
