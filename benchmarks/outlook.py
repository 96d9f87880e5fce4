"""What the paper's outlook is worth: output codes, joint calibration, expectation propagation.

    OMP_NUM_THREADS=1 python benchmarks/outlook.py                     # all tables, two minutes
    python benchmarks/outlook.py --tables methods --datasets diabetes

"methods": e-beta with one map per segment, per threshold and per union of a dense code; Dirichlet
calibration of all segments; and gpc. Five folds outside and three inside, whose calibrated models
are averaged, as in the paper, with Bayesian ridge regression as the model. All have their
defaults: 16 thresholds, gpc 64, and a point mass where outcomes pile up. Times are those of the
processor while calibrators are fitted, as multiples of e-beta's. Of all data sets, it writes
`outlook.csv`, from which `docs/tables.py` makes the table of the theory page.

"inference": gpc with expectation propagation (`tests/expectation_propagation.py`) in place of
Laplace inference, at the same hyper-parameters. The model and its calibrator learn from 300 rows,
three folds of which are held out in turn, and are scored on the others; five draws of rows.

"strengths": Dirichlet calibration with and without the prior on its strengths, in a simulated world
where the model is right and one where it is shifted and too wide; 30 draws of rows.
"""

import argparse
import csv
import sys
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from protocol import LOADERS, load, mean_gains, outer_folds
from sklearn.base import clone
from sklearn.model_selection import KFold

import regcal
from regcal.calibrators import dirichlet, gp_threshold

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from expectation_propagation import propagated

RESULTS = Path(__file__).with_name("outlook.csv")
HEADER = ("dataset", "method", "gain", "crps_change", "time")
TABLES = ["methods", "inference", "strengths"]
METHODS = {
    "e-beta": regcal.get_calibrator("e-beta"),
    "e-beta, thresholds": regcal.get_calibrator("e-beta", code=regcal.ThresholdCode()),
    "e-beta, dense code": regcal.get_calibrator("e-beta", code=regcal.DenseCode()),
    "Dirichlet": regcal.DirichletCalibrator(),
    "gpc": regcal.get_calibrator("gpc"),
}
N_ROWS, N_DRAWS = 300, 5


def inner_folds(X):
    return KFold(3, shuffle=True, random_state=0).split(X)


def scores_of(dist, y):
    return np.stack([regcal.log_score(y, dist), regcal.crps(y, dist)])


# ------------------------------------------------------------------------------------------ methods


def averaged_scores(data, train, test, calibrator):
    """Return scores of the average of three calibrated models, and the time of calibrating them."""
    parts, seconds = [], 0.0
    X, y = data.X[train], data.y[train]
    for fit, held_out in inner_folds(X):
        model = regcal.paper_brr().fit(X[fit], y[fit])
        rows = regcal.predict_dist(model, X[held_out])
        start = time.process_time()
        fitted = clone(calibrator).fit(rows, y[held_out])
        seconds += time.process_time() - start
        parts.append(fitted.transform(regcal.predict_dist(model, data.X[test])))
    return scores_of(regcal.Mixture(parts), data.y[test]), seconds


def methods_table(names):
    """Print scores of every method, with their differences to one map per segment."""
    print(f"{'':33}{'log score':>10}{'gain':>18}{'CRPS':>10}{'change':>18}{'time':>7}")
    lines = []
    for name in names:
        data = load(name)
        if data is None:
            continue
        baseline, unit = None, 1.0
        for label, calibrator in METHODS.items():
            scores, seconds = np.empty((2, len(data))), 0.0
            for train, test in outer_folds(data):
                scores[:, test], taken = averaged_scores(data, train, test, calibrator)
                seconds += taken
            if baseline is None:
                baseline, unit = scores, seconds
            gains = mean_gains(scores, baseline)
            log, crps = gains["log_score"], gains["crps"]
            print(
                f"{name:13}{label:20}{log['mean']:10.3f}{log['gain']:+10.3f} ± {log['error']:.3f}"
                f"{crps['mean']:10.3f}{crps['gain']:+10.3f} ± {crps['error']:.3f}"
                f"{seconds / unit:7.1f}",
                flush=True,
            )
            change = crps["gain"] / (crps["mean"] - crps["gain"])
            lines.append((name, label, f"{log['gain']:.5f}", f"{change:.5f}", seconds / unit))
    if list(names) != list(LOADERS):
        print(f"{RESULTS.name} holds all data sets, and stays as it is")
        return
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([HEADER, *((*line, f"{time:.2f}") for *line, time in lines)])


# ---------------------------------------------------------------------------------------- inference


def fit_by_propagation(likelihood_for, *arguments):
    """Fit a process, then its coefficients again by expectation propagation."""
    process = fit_by_laplace(likelihood_for, *arguments)
    posterior = propagated(likelihood_for(process.basis), process.posterior)
    return replace(process, posterior=posterior)


fit_by_laplace = gp_threshold.fit_map_process


def calibrated_on_few(data, train, test):
    """Return scores of gpc that has learnt from few rows, and the time of its fit."""
    X, y = data.X[train], data.y[train]
    parts = [
        regcal.predict_dist(regcal.paper_brr().fit(X[fit], y[fit]), X[held_out])
        for fit, held_out in inner_folds(X)
    ]
    order = np.concatenate([held_out for _, held_out in inner_folds(X)])
    start = time.process_time()
    fitted = regcal.get_calibrator("gpc").fit(regcal.concatenate(parts), y[order])
    seconds = time.process_time() - start
    model = regcal.paper_brr().fit(X, y)
    dist = fitted.transform(regcal.predict_dist(model, data.X[test]))
    return scores_of(dist, data.y[test]), seconds


def inference_table(names):
    """Print what expectation propagation adds to Laplace inference."""
    print(f"{'':13}{'log score':>10}{'gain by EP':>12}{'largest':>9}{'CRPS':>10}{'time':>7}")
    for name in names:
        data = load(name)
        if data is None:
            continue
        gains, means, times = [], [], []
        for seed in range(N_DRAWS):
            order = np.random.default_rng(seed).permutation(len(data))
            split = order[:N_ROWS], order[N_ROWS:]
            before, first = calibrated_on_few(data, *split)
            with patch.object(gp_threshold, "fit_map_process", fit_by_propagation):
                after, second = calibrated_on_few(data, *split)
            means.append(before.mean(axis=1))
            gains.append((after - before).mean(axis=1))
            times.append(second / first)
        (log, crps), gain = np.mean(means, axis=0), np.array(gains)
        print(
            f"{name:13}{log:10.3f}{gain[:, 0].mean():+12.4f}{np.abs(gain[:, 0]).max():9.4f}"
            f"{gain[:, 1].mean() / crps:+10.2%}{np.median(times):7.1f}",
            flush=True,
        )


# ---------------------------------------------------------------------------------------- strengths

WORLDS = {"right": (0.0, 1.0), "shifted and too wide": (0.5, 0.6)}


def gain_in_world(shift, spread, n_rows, seed):
    """Return what Dirichlet calibration adds to the mean log score of a model of spread 1."""
    rng = np.random.default_rng(seed)
    loc = 2.0 * rng.normal(size=n_rows + 200)
    dist, y = regcal.Normal(loc, 1.0), loc + shift + spread * rng.normal(size=len(loc))
    fitted = regcal.DirichletCalibrator().fit(dist[:n_rows], y[:n_rows])
    new, seen = dist[n_rows:], y[n_rows:]
    return (regcal.log_score(seen, fitted.transform(new)) - regcal.log_score(seen, new)).mean()


def strengths_table():
    """Print mean and least gains with and without the prior on strengths."""
    free = replace(dirichlet._SEARCH, prior=None)
    print(f"{'':22}{'rows':>6}{'gain':>9}{'least':>8}{'without':>9}{'least':>8}")
    for world, truth in WORLDS.items():
        for n_rows in (5, 10, 30, 100, 300):
            line = f"{world:22}{n_rows:6}"
            for search in (dirichlet._SEARCH, free):
                with patch.object(dirichlet, "_SEARCH", search):
                    gains = [gain_in_world(*truth, n_rows, seed) for seed in range(30)]
                line += f"{np.mean(gains):+9.3f}{np.min(gains):+8.2f}"
            print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--datasets", nargs="+", default=list(LOADERS), choices=list(LOADERS))
    options = parser.parse_args()
    if "methods" in options.tables:
        methods_table(options.datasets)
    if "inference" in options.tables:
        inference_table(options.datasets)
    if "strengths" in options.tables:
        strengths_table()


if __name__ == "__main__":
    main()
