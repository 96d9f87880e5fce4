"""The rows: cells of the paper's data sets and base models, and a large simulated set.

A cell is a data set with a base model, in the outer folds of `protocol`. Within each outer
training set the base model is cross-fitted over three folds, and its predictions for the rows held
out are pooled: every method learns from the same arrays, one prediction for every training row.
The base model is then fitted on all training rows and predicts the test rows. Averaging over folds
as in the paper would need every peer's predictions to be averaged too, and a single split would
leave a third of few rows to learn from. Of development sets at most 3 000 rows are taken; rows of a
group stay in one outer fold.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import protocol
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold

import regcal
from peers.method import Rows

MOST_DEVELOPMENT_ROWS = 3000


def ngboost():
    from ngboost import NGBRegressor

    return NGBRegressor(n_estimators=300, verbose=False, random_state=0)


def network():
    from peers.network import Network

    return Network()


BASES = {**protocol.BASES, "NGBoost": ngboost, "network": network}


def loaded(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return features, targets and groups, if there are any."""
    if name in protocol.LOADERS:
        data = protocol.load(name)
        if data is None:
            msg = f"{name} could not be loaded"
            raise OSError(msg)
        return data.X, data.y, None
    from devsets import load_devset

    data = load_devset(name, max_rows=MOST_DEVELOPMENT_ROWS)
    return np.asarray(data.X, float), np.asarray(data.y, float), data.groups


def outer_folds(X: np.ndarray, groups: np.ndarray | None) -> list:
    """Return pairs of training and test rows: the paper's, or folds of whole groups."""
    if groups is not None:
        return list(GroupKFold(5).split(X, groups=groups))
    return list(KFold(5, shuffle=True, random_state=0).split(X))


@dataclass(frozen=True)
class Split:
    """Rows to calibrate on and rows to be scored on."""

    held_out: Rows
    y: np.ndarray
    new: Rows
    y_new: np.ndarray

    @property
    def spread(self) -> float:
        """The interquartile range of the calibration outcomes, or else their spread."""
        low, high = np.quantile(self.y, [0.25, 0.75])
        return float(high - low) or float(np.std(self.y))

    def save(self, path: Path) -> None:
        """Write the arrays."""
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = {"y": self.y, "y_new": self.y_new}
        for name, rows in (("old", self.held_out), ("new", self.new)):
            parts |= {f"{name}_X": rows.X, f"{name}_loc": rows.loc, f"{name}_scale": rows.scale}
        np.savez(path, **parts)

    @classmethod
    def load(cls, path: Path) -> "Split":
        """Read the arrays."""
        with np.load(path) as parts:
            old, new = (
                Rows(parts[f"{name}_X"], parts[f"{name}_loc"], parts[f"{name}_scale"])
                for name in ("old", "new")
            )
            return cls(old, parts["y"], new, parts["y_new"])


def _moments(model, X: np.ndarray) -> Rows:
    dist = regcal.predict_dist(model, X)
    return Rows(X, dist.mean(), dist.std())


def cell_splits(name: str, base: str, n_folds: int) -> list[Split]:
    """Cross-fit a base model in the first outer folds of a data set."""
    all_X, all_y, groups = loaded(name)
    splits = []
    for train, test in outer_folds(all_X, groups)[:n_folds]:
        X, y = all_X[train], all_y[train]
        loc, scale = np.empty((2, len(train)))
        for rest, held_out in KFold(3, shuffle=True, random_state=0).split(X):
            rows = _moments(clone(BASES[base]()).fit(X[rest], y[rest]), X[held_out])
            loc[held_out], scale[held_out] = rows.loc, rows.scale
        new = _moments(BASES[base]().fit(X, y), all_X[test])
        splits.append(Split(Rows(X, loc, scale), y, new, all_y[test]))
    return splits


def fold_path(directory: Path, data: str, base: str, fold: int) -> Path:
    """Return where a fold of a cell is kept."""
    return directory / "folds" / f"{data.replace(' ', '_')}-{base}-{fold}.npz"


def prepare_cell(directory: Path, data: str, base: str, n_folds: int) -> None:
    """Make the folds of a cell, unless they are there."""
    paths = [fold_path(directory, data, base, fold) for fold in range(n_folds)]
    if all(path.exists() for path in paths):
        return
    for path, split in zip(paths, cell_splits(data, base, n_folds), strict=True):
        split.save(path)


def simulated(n: int, seed: int, n_features: int = 4) -> tuple[Rows, np.ndarray]:
    """Draw rows whose base is biased in shape and spread: y = loc + scale s(loc) e.

    e is a centred Gumbel variable, skewed, and s(loc) = exp(0.3 sin(loc)), so that the right
    correction depends on the predicted mean. Two of the four features are the mean and the log
    spread, two are noise.
    """
    rng = np.random.default_rng(seed)
    loc, log_scale = 3 * rng.normal(size=n), 0.3 * rng.normal(size=n)
    scale = np.exp(log_scale)
    y = loc + scale * np.exp(0.3 * np.sin(loc)) * (rng.gumbel(size=n) - np.euler_gamma)
    columns = [loc, log_scale, rng.normal(size=n), rng.normal(size=n)][:n_features]
    X = np.column_stack(columns) if columns else np.empty((n, 0))
    return Rows(X, loc, scale), y


def true_log_density(rows: Rows, y: np.ndarray) -> np.ndarray:
    """Return the log density from which `simulated` drew."""
    spread = rows.scale * np.exp(0.3 * np.sin(rows.loc))
    e = (y - rows.loc) / spread + np.euler_gamma
    return -e - np.exp(-e) - np.log(spread)
