"""Real models before and after calibration: log score, CRPS and coverage of 90 % intervals.

    python benchmarks/models.py [--data concrete airfoil] [--calibrator auto] [--models NGBoost]

Two thirds of the rows train the model and, through `CalibratedRegressorCV`, its calibrator; the
others are predicted. NGBoost, quantile-forest and skpro are left out where they are missing.
"""

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import train_test_split

import regcal
from regcal import datasets

LOADERS = {"concrete": datasets.load_concrete, "airfoil": datasets.load_airfoil}


def ngboost() -> Any:
    from ngboost import NGBRegressor

    return NGBRegressor(n_estimators=300, verbose=False, random_state=0)


def quantile_forest() -> Any:
    from quantile_forest import RandomForestQuantileRegressor

    return RandomForestQuantileRegressor(n_estimators=200, random_state=0)


def skpro() -> Any:
    from skpro.regression.residual import ResidualDouble

    return ResidualDouble(RandomForestRegressor(100, random_state=0))


def boosted_quantiles() -> Any:
    trees = HistGradientBoostingRegressor(loss="quantile", random_state=0)
    return regcal.MultiQuantileRegressor(trees)


def forest() -> Any:
    return regcal.NormalResidualRegressor(RandomForestRegressor(200, random_state=0))


MODELS: dict[str, Callable[[], Any]] = {
    "NGBoost": ngboost,
    "quantile-forest": quantile_forest,
    "boosted quantiles": boosted_quantiles,
    "random forest": forest,
    "skpro ResidualDouble": skpro,
}


def figures(dist: regcal.Distribution, y: np.ndarray) -> str:
    """Return the three figures of predictions."""
    low, high = dist.interval(0.9)
    with np.errstate(divide="ignore"):
        scores = dist.logpdf(y).mean(), dist.crps(y).mean()
    return f"{scores[0]:9.3f}{scores[1]:8.3f}{100 * np.mean((low <= y) & (y <= high)):7.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=list(LOADERS), choices=list(LOADERS))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--calibrator", default="auto")
    options = parser.parse_args()
    print(f"{'data':10}{'model':22}{'':8}{'log score':>9}{'CRPS':>8}{'in 90 %':>9}  chosen")
    for data in options.data:
        rows = LOADERS[data]()
        X, X_new, y, y_new = train_test_split(rows.X, rows.y, train_size=2 / 3, random_state=0)
        for name in options.models:
            try:
                model = MODELS[name]()
            except ImportError as error:
                print(f"{data:10}{name:22}left out: {error}")
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", regcal.CrossingQuantilesWarning)
                before = regcal.predict_dist(MODELS[name]().fit(X, y), X_new)
                wrapped = regcal.CalibratedRegressorCV(model, options.calibrator).fit(X, y)
                after = wrapped.predict_dist(X_new)
            chosen = type(wrapped.members_[0].calibrator).__name__
            averaged = ", averaged" if wrapped.ensemble_ else ", refitted"
            print(f"{data:10}{name:22}{'before':8}{figures(before, y_new)}", flush=True)
            print(f"{'':32}{'after':8}{figures(after, y_new)}  {chosen}{averaged}", flush=True)


if __name__ == "__main__":
    main()
