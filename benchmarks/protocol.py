"""The paper's protocol: 5 folds outside, 3 inside, five data sets, three base models.

Prints, for every data set and base model, the mean test log score and CRPS of every method with
the standard error of its difference to the uncalibrated model (table "paper"); the same for e-beta
with several segments and shapes ("segments"), for the Gaussian-process methods beside the paper's
("processes") and for boosted trees with and without averaging over folds ("boosting"). On the toy
mixture, "toy" compares probabilities with the truth, and "convergence" tells which share of the
attainable gain in log score is reached with more and more calibration rows.

    python benchmarks/protocol.py                       # everything
    python benchmarks/protocol.py --tables paper --datasets diabetes --methods scale pit
"""

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Memory
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold

import regcal
from regcal import datasets

BASES = {"OLS": regcal.paper_ols, "BRR": regcal.paper_brr, "GPR": regcal.paper_gpr}
LOADERS = {
    "diabetes": datasets.load_diabetes,
    "boston": datasets.load_boston,
    "airfoil": datasets.load_airfoil,
    "forest_fires": datasets.load_forest_fires,
    "concrete": datasets.load_concrete,
}


TABLES = ["paper", "segments", "processes", "boosting", "toy", "convergence"]


def fit_clone(estimator, X, y):
    return clone(estimator).fit(X, y)


class Remembered(RegressorMixin, BaseEstimator):
    """Fits an estimator once per training set, however many methods calibrate it."""

    def __init__(self, estimator, directory):
        self.estimator = estimator
        self.directory = directory

    def fit(self, X, y):
        """Fit, or recall the model fitted on the same rows."""
        fit = Memory(self.directory, verbose=0).cache(fit_clone)
        self.estimator_ = fit(self.estimator, X, y)
        return self

    def predict(self, X):
        """Return what the model predicts."""
        return self.estimator_.predict(X)

    def predict_dist(self, X):
        """Return the model's distributions."""
        return regcal.predict_dist(self.estimator_, X)


def load(name):
    """Return a data set, or None with a message if it cannot be had here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return LOADERS[name]()
    except OSError as error:
        print(f"{name} skipped: {error}")
        return None


def outer_folds(data):
    return KFold(5, shuffle=True, random_state=0).split(data.X)


def test_scores(model, data):
    """Return log score and CRPS of every row, each from the fold that did not train on it."""
    log_scores, crps = np.empty((2, len(data)))
    for train, test in outer_folds(data):
        dist = clone(model).fit(data.X[train], data.y[train]).predict_dist(data.X[test])
        log_scores[test] = regcal.log_score(data.y[test], dist)
        crps[test] = regcal.crps(data.y[test], dist)
    return log_scores, crps


def mean_gains(scores, baseline):
    """Return mean, mean difference to the baseline, and its standard error, per score."""
    rows = {}
    for name, own, other in zip(("log_score", "crps"), scores, baseline, strict=True):
        gain = own - other
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        rows[name] = {"mean": own.mean(), "gain": gain.mean(), "error": error}
    return rows


def report(cell, name, scores, baseline, seconds):
    row = {
        **cell,
        "method": name,
        "seconds": round(seconds, 1),
        **mean_gains(scores, baseline),
    }
    log, crps = row["log_score"], row["crps"]
    print(
        f"{' '.join(map(str, cell.values())):24} {name:24} {log['mean']:8.3f} "
        f"{log['gain']:+7.3f} ± {log['error']:.3f}   {crps['mean']:8.3f} "
        f"{crps['gain']:+7.3f} ± {crps['error']:.3f}   {seconds:6.1f} s",
        flush=True,
    )
    return row


def timed_scores(model, data):
    start = time.perf_counter()
    scores = test_scores(model, data)
    return scores, time.perf_counter() - start


def paper_table(names, calibrators, directory, bases):
    """Score calibrators, a dictionary by label, on every data set and base model."""
    calibrators = {"identity": "identity", **calibrators}
    rows = []
    for name in names:
        data = load_toy() if name == "toy" else load(name)
        for base in bases if data else ():
            estimator = Remembered(BASES[base](), directory)
            models = {
                label: regcal.CalibratedRegressorCV(estimator, calibrator, cv=3, ensemble=True)
                for label, calibrator in calibrators.items()
            }
            rows += compare({"data": name, "base": base}, models, data)
    return rows


def load_toy():
    return datasets.make_toy_mixture(600, random_state=0)


def segment_calibrators():
    """Return e-beta with several numbers of thresholds and both shapes."""
    return {
        f"e-beta K={k} {shape}": regcal.get_calibrator("e-beta", thresholds=k, shape=shape)
        for k in (8, 16, 32, 64)
        for shape in ("base", "uniform")
    }


def process_calibrators():
    """Return the Gaussian-process methods, with the paper's classifier on few pairs."""
    calibrators = {f"gpc K={k}": regcal.GPCalibrator(k) for k in (16, 32, 64)}
    calibrators["gp-density"] = regcal.DensityCalibrator()
    calibrators["gpc-paper 500 pairs"] = regcal.PaperGPCalibrator(32, n_pairs=500, random_state=0)
    return calibrators


def boosting_table(names, directory, calibrator):
    """Boosted trees with out-of-fold residual spread; averaging over 3 or 10 folds, or not."""
    rows = []
    boosting = regcal.NormalResidualRegressor(HistGradientBoostingRegressor(random_state=0))
    estimator = Remembered(boosting, directory)
    for name in names:
        data = load(name)
        if data is None:
            continue
        models = {"uncalibrated": estimator}
        for cv in (3, 10):
            for ensemble in (True, False, "auto"):
                models[f"cv={cv} ensemble={ensemble}"] = regcal.CalibratedRegressorCV(
                    estimator, calibrator, cv=cv, ensemble=ensemble
                )
        rows += compare({"data": name, "base": "boosting"}, models, data)
    return rows


def compare(cell, models, data):
    """Score models on one data set; the first is the baseline."""
    rows, baseline = [], None
    for method, model in models.items():
        scores, seconds = timed_scores(model, data)
        baseline = scores if baseline is None else baseline
        rows.append(report(cell, method, scores, baseline, seconds))
    return rows


def toy_table(methods, n_rows=600):
    """Mean absolute error of P(Y <= t) against the truth on the toy mixture."""
    toy = datasets.ToyMixture()
    data, test = toy.sample(n_rows, random_state=0), toy.sample(500, random_state=1)
    grid = np.linspace(data.y.min(), data.y.max(), 101)[np.newaxis, :]
    truth = toy.cdf(test.X, grid)
    rows = []
    for method in methods:
        model = regcal.CalibratedRegressorCV(regcal.paper_brr(), method, ensemble=True)
        below = model.fit(data.X, data.y).predict_below(test.X, grid)
        error = np.abs(below - truth).mean()
        rows.append({"data": "toy", "method": method, "error": error})
        print(f"toy {method:12} mean |P - truth| = {error:.4f}", flush=True)
    return rows


def convergence_table(sizes=(750, 3000, 15000), n_seeds=3):
    """Share of the attainable gain in log score on the toy mixture, by calibration rows."""
    toy, rows = datasets.ToyMixture(), []
    methods = {"gpc K=64": regcal.GPCalibrator(64), "gpc K=128": regcal.GPCalibrator(128)}
    methods |= {name: regcal.get_calibrator(name) for name in ("gp-density", "isotonic", "auto")}
    for n in sizes:
        shares = {name: [] for name in methods}
        for seed in range(1, 2 * n_seeds, 2):
            data, test = toy.sample(2 * n, random_state=seed), toy.sample(20_000, seed + 1)
            model = regcal.paper_brr().fit(data.X[:n], data.y[:n])
            held_out = regcal.predict_dist(model, data.X[n:])
            new = regcal.predict_dist(model, test.X)
            base = regcal.log_score(test.y, new).mean()
            best = toy.logpdf(test.X, test.y[:, np.newaxis]).mean()
            for name, calibrator in methods.items():
                after = clone(calibrator).fit(held_out, data.y[n:]).transform(new)
                gain = regcal.log_score(test.y, after).mean() - base
                shares[name].append(gain / (best - base))
        for name, own in shares.items():
            rows.append({"data": "toy", "rows": n, "method": name, "share": np.mean(own)})
            print(f"toy {n:6} rows {name:12} {np.mean(own):.3f} of the attainable gain", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    slow = {"gpc-paper"}
    methods = [name for name in regcal.calibrator_names() if name not in slow]
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--datasets", nargs="+", choices=["toy", *LOADERS])
    parser.add_argument("--bases", nargs="+", default=list(BASES), choices=list(BASES))
    parser.add_argument("--methods", nargs="+", default=methods)
    parser.add_argument("--calibrator", default="auto", help="of the boosting table")
    parser.add_argument("--output", type=Path, help="also write the rows as JSON")
    options = parser.parse_args()
    names = options.datasets or list(LOADERS)
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        labels = {method: method for method in options.methods}
        calibrators = {"paper": labels, "segments": segment_calibrators()}
        for table, chosen in calibrators.items():
            if table in options.tables:
                rows += paper_table(names, chosen, directory, options.bases)
        if "processes" in options.tables:
            with_toy = options.datasets or ["toy", *LOADERS]
            rows += paper_table(with_toy, process_calibrators(), directory, options.bases)
        if "boosting" in options.tables:
            rows += boosting_table(names, directory, options.calibrator)
    if "toy" in options.tables:
        rows += toy_table(options.methods)
    if "convergence" in options.tables:
        rows += convergence_table()
    if options.output:
        options.output.write_text(json.dumps(rows, indent=1, default=float), encoding="utf-8")


if __name__ == "__main__":
    main()
