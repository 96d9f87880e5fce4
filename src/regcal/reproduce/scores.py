"""One outer fold of the study: base models fitted once, and the score of every method on them.

Calls the public API, and the arithmetic of distributions where the paper's has to be imitated.
"""

import math
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.model_selection import KFold

import regcal
from regcal._validation import Array
from regcal.datasets import Dataset
from regcal.distributions.primitives import log_difference
from regcal.gp import BasisWarning
from regcal.reproduce.cells import N_FOLDS, Cell, Unit, grouped, seed_of

N_INNER_FOLDS = 3
PREDICTION_THRESHOLDS = 1024

# Pairs (row, threshold) of the paper's own classifier, whose cost grows with their cube.
CHECK_PAIRS = 500

# A density that is not above this share of an even spread over the thresholds' range is set to it.
FLOOR = 1e-6

_RECIPES = {"OLS": regcal.paper_ols, "BRR": regcal.paper_brr, "GPR": regcal.paper_gpr}


@dataclass(frozen=True)
class Row:
    """The result of one cell.

    Attributes
    ----------
    cell : Cell
    n_test : int
        Rows that were judged.
    log_score : float
        Mean log density of their outcomes.
    n_floored : int
        Rows whose density had to be replaced because it was 0.
    raw_log_score, raw_n_floored : float, int or None
        The same before the CDF is made increasing, for the methods whose CDF need not be.
    chosen : str
        What "auto" has chosen.
    seconds : float
        Computing time it took, with what it was the first of its unit to need.
    """

    cell: Cell
    n_test: int
    log_score: float
    n_floored: int
    raw_log_score: float | None
    raw_n_floored: int | None
    chosen: str
    seconds: float


@dataclass(frozen=True)
class Evaluation:
    """Log densities of the outcomes, and raw densities where a method has them."""

    logpdf: Array
    raw_pdf: Array | None = None
    chosen: str = ""


class OuterFold:
    """Training and test rows of a unit, with the base models fitted when they are needed.

    All base models and methods of a data set get the same folds.
    """

    def __init__(self, data: Dataset, unit: Unit) -> None:
        seed = seed_of(f"{unit.dataset}/{unit.repetition}")
        folds = list(KFold(N_FOLDS, shuffle=True, random_state=seed).split(data.X))
        train, test = folds[unit.fold]
        self.X, self.y = data.X[train], data.y[train]
        self.X_test, self.y_test = data.X[test], data.y[test]
        self.recipe = _RECIPES[unit.base]
        self.inner_seed = seed_of(f"{unit.dataset}/{unit.repetition}/{unit.fold}")

    def thresholds(self, count: int) -> Array:
        """Return thresholds over the paper's range of the training targets."""
        return regcal.EqualGrid(count).thresholds(self.y)

    @cached_property
    def prediction_thresholds(self) -> Array:
        """The thresholds between which the paper's densities are difference quotients."""
        return self.thresholds(PREDICTION_THRESHOLDS)

    @cached_property
    def _fitted(self) -> list[tuple[regcal.Distribution, Array, regcal.Distribution]]:
        """Per inner fold: predictions and outcomes of its held-out rows, and for the test rows."""
        parts = []
        inner = KFold(N_INNER_FOLDS, shuffle=True, random_state=self.inner_seed)
        for train, held_out in inner.split(self.X):
            model = self.recipe().fit(self.X[train], self.y[train])
            dist = regcal.predict_dist(model, self.X[held_out])
            parts.append((dist, self.y[held_out], regcal.predict_dist(model, self.X_test)))
        return parts

    @property
    def new(self) -> list[regcal.Distribution]:
        """The inner models' predictions for the test rows."""
        return [new for _, _, new in self._fitted]

    def full_model(self) -> regcal.Distribution:
        """Return the predictions of the base model that is fitted on all training rows."""
        return regcal.predict_dist(self.recipe().fit(self.X, self.y), self.X_test)

    def calibrated(self, calibrator: regcal.Calibrator) -> list[regcal.Calibrator]:
        """Return a copy of the calibrator for each inner model, fitted on its held-out rows."""
        # the paper has densities, and no point masses
        own = [clone(calibrator).set_params(support=None) for _ in self._fitted]
        return [one.fit(dist, y) for one, (dist, y, _) in zip(own, self._fitted, strict=True)]

    def pooled(self) -> tuple[regcal.Distribution, Array]:
        """Return held-out predictions and outcomes of all inner models."""
        return (
            regcal.concatenate([dist for dist, _, _ in self._fitted]),
            np.concatenate([y for _, y, _ in self._fitted]),
        )

    def average(self, dists: list[regcal.Distribution]) -> Array:
        """Return log densities of the test outcomes, averaged over the inner models."""
        return regcal.Mixture(dists).logpdf(self.y_test)

    def transformed(self, calibrator: regcal.Calibrator) -> Array:
        """Return log densities after calibration, averaged over the inner models."""
        pairs = zip(self.calibrated(calibrator), self.new, strict=True)
        return self.average([fitted.transform(new) for fitted, new in pairs])

    @cached_property
    def density_calibrated(self) -> Array:
        """Log densities of `gp-density`, which "auto" often chooses."""
        return self.transformed(regcal.get_calibrator("gp-density"))


def neighbours(y: Array, grid: Array) -> tuple[Array, np.ndarray]:
    """Return the ends of each target's step on the grid, and whether it is inside the grid."""
    place = np.searchsorted(grid, y, side="left")
    inside = (place > 0) & (place < len(grid))
    place = np.clip(place, 1, len(grid) - 1)
    return np.stack([grid[place - 1], grid[place]], axis=1), inside


def log_quotients(dist: regcal.Distribution, y: Array, grid: Array) -> Array:
    """Return logs of the difference quotients of the CDF around each target.

    They are those of ``GPCalibrator(prediction_thresholds=grid)``, at two thresholds per row
    instead of all. Outside the grid the density is taken as it is.
    """
    ends, inside = neighbours(y, grid)
    logcdf, logsf = dist.logcdf(ends), dist.logsf(ends)
    mass = log_difference((logcdf[:, 0], logsf[:, 0]), (logcdf[:, 1], logsf[:, 1]))
    return np.where(inside, mass - np.log(ends[:, 1] - ends[:, 0]), dist.logpdf(y))


def raw_quotients(
    calibrator: regcal.GPCalibrator, dist: regcal.Distribution, y: Array, grid: Array
) -> Array:
    """Return difference quotients of the map itself, which may be negative; 0 off the grid."""
    ends, inside = neighbours(y, grid)
    below = calibrator.calibration_map(ends, dist.cdf(ends))
    return np.where(inside, (below[:, 1] - below[:, 0]) / (ends[:, 1] - ends[:, 0]), 0.0)


def _uncalibrated(fold: OuterFold, cell: Cell) -> Evaluation:
    return Evaluation(fold.full_model().logpdf(fold.y_test))


def _averaged(fold: OuterFold, cell: Cell) -> Evaluation:
    return Evaluation(fold.average(fold.new))


def _with_thresholds(calibrator: regcal.Calibrator) -> Callable[[OuterFold, Cell], Evaluation]:
    def evaluate(fold: OuterFold, cell: Cell) -> Evaluation:
        own = clone(calibrator).set_params(thresholds=fold.thresholds(cell.thresholds))
        return Evaluation(fold.transformed(own))

    return evaluate


def _zero_gpc(fold: OuterFold, cell: Cell) -> Evaluation:
    calibrator = regcal.GPCalibrator(fold.thresholds(cell.thresholds), prior="zero")
    y, grid = fold.y_test, fold.prediction_thresholds
    pairs = list(zip(fold.calibrated(calibrator), fold.new, strict=True))
    logs = [log_quotients(fitted.transform(new), y, grid) for fitted, new in pairs]
    raw = [raw_quotients(fitted, new, y, grid) for fitted, new in pairs]
    return Evaluation(logsumexp(logs, axis=0) - math.log(len(logs)), np.mean(raw, axis=0))


def _paper_gpc(fold: OuterFold, cell: Cell) -> Evaluation:
    calibrator = regcal.PaperGPCalibrator(
        fold.thresholds(cell.thresholds),
        n_pairs=CHECK_PAIRS,
        prediction_thresholds=fold.prediction_thresholds,
        random_state=seed_of(cell.name),
    )
    pairs = list(zip(fold.calibrated(calibrator), fold.new, strict=True))
    raw = [fitted.raw_pdf(new, fold.y_test) for fitted, new in pairs]
    return Evaluation(
        fold.average([fitted.transform(new) for fitted, new in pairs]), np.mean(raw, axis=0)
    )


def _isotonic(fold: OuterFold, cell: Cell) -> Evaluation:
    return Evaluation(fold.transformed(regcal.get_calibrator("isotonic")))


def _gp_density(fold: OuterFold, cell: Cell) -> Evaluation:
    return Evaluation(fold.density_calibrated)


def _auto(fold: OuterFold, cell: Cell) -> Evaluation:
    selection = regcal.AutoCalibrator(support=None)
    chosen = selection.select(*fold.pooled())
    if selection.chosen_ == "gp-density":
        return Evaluation(fold.density_calibrated, chosen=selection.chosen_)
    return Evaluation(fold.transformed(chosen), chosen=selection.chosen_)


METHODS: dict[str, Callable[[OuterFold, Cell], Evaluation]] = {
    "uncalibrated": _uncalibrated,
    "averaged": _averaged,
    "e-logistic-uniform": _with_thresholds(regcal.get_calibrator("e-logistic", shape="uniform")),
    "e-beta-uniform": _with_thresholds(regcal.get_calibrator("e-beta", shape="uniform")),
    "gpc-zero": _zero_gpc,
    "e-logistic": _with_thresholds(regcal.get_calibrator("e-logistic")),
    "e-beta": _with_thresholds(regcal.get_calibrator("e-beta")),
    "gpc": _with_thresholds(regcal.get_calibrator("gpc")),
    "e-beta-thresholds": _with_thresholds(
        regcal.get_calibrator("e-beta", code=regcal.ThresholdCode())
    ),
    "e-beta-dense": _with_thresholds(regcal.get_calibrator("e-beta", code=regcal.DenseCode())),
    "dirichlet": _with_thresholds(regcal.DirichletCalibrator()),
    "isotonic": _isotonic,
    "gp-density": _gp_density,
    "auto": _auto,
    "gpc-paper": _paper_gpc,
}


def _floored(pdf: Array, floor: float) -> tuple[float, int]:
    """Return the mean log of densities that are at least `floor`, and how many were not."""
    low = ~(pdf > floor)
    return float(np.log(np.where(low, floor, pdf)).mean()), int(low.sum())


def score_cell(fold: OuterFold, cell: Cell) -> Row:
    """Return the result of one cell on its fold."""
    start = time.thread_time()
    result = METHODS[cell.method](fold, cell)
    floor = FLOOR / float(np.ptp(fold.prediction_thresholds))
    impossible = np.isneginf(result.logpdf)
    raw_score, raw_count = None, None
    if result.raw_pdf is not None:
        raw_score, raw_count = _floored(result.raw_pdf, floor)
    return Row(
        cell=cell,
        n_test=len(fold.y_test),
        log_score=float(np.where(impossible, math.log(floor), result.logpdf).mean()),
        n_floored=int(impossible.sum()),
        raw_log_score=raw_score,
        raw_n_floored=raw_count,
        chosen=result.chosen,
        seconds=time.thread_time() - start,
    )


def score_unit(data: Dataset, cells: Iterable[Cell]) -> list[Row]:
    """Return the results of cells of one unit, whose base models are fitted once.

    The result of a cell does not depend on the others, nor on the number of threads.
    """
    from threadpoolctl import threadpool_limits

    cells = list(cells)
    (unit,) = grouped(cells)
    with threadpool_limits(1), warnings.catch_warnings():
        # said once per fit, it would bury the progress; the fit is as good as the basis allows
        warnings.simplefilter("ignore", BasisWarning)
        # how wrong a method of the paper is, its score tells
        warnings.simplefilter("ignore", regcal.DisagreementWarning)
        warnings.simplefilter("ignore", regcal.RoundedOutcomesWarning)  # densities are wanted
        fold = OuterFold(data, unit)
        return [score_cell(fold, cell) for cell in cells]
