"""The paper's figures on the toy mixture, and the numbers that tell whether they look right.

Calls the public API; matplotlib is imported inside functions.
"""

import csv
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import regcal
from regcal._validation import Array
from regcal.datasets import Dataset, ToyMixture
from regcal.metrics import reliability_curve
from regcal.plots import CalibrationMapDisplay, DensityDisplay, ReliabilityDisplay, RowDisplay
from regcal.reproduce.cells import N_FOLDS, Unit
from regcal.reproduce.figure import blank_figure
from regcal.reproduce.scores import OuterFold

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_ROWS = 600
THRESHOLDS, MAP_THRESHOLDS, PREDICTION_THRESHOLDS = 16, 32, 256
BINS = 8
_N_JUDGED = 1000
_DRAWN_POINTS = 200

# From here on the branches are well apart.
_SEPARATE = 0.8

_RECIPES = {"OLS": regcal.paper_ols, "BRR": regcal.paper_brr, "GPR": regcal.paper_gpr}

# As the paper has them, and as regcal would have them.
PAPER: dict[str, Callable[[], regcal.Calibrator]] = {
    "e-logistic": lambda: regcal.get_calibrator(
        "e-logistic", thresholds=THRESHOLDS, shape="uniform"
    ),
    "e-beta": lambda: regcal.get_calibrator("e-beta", thresholds=THRESHOLDS, shape="uniform"),
    "GPC": lambda: regcal.GPCalibrator(
        THRESHOLDS, prior="zero", prediction_thresholds=PREDICTION_THRESHOLDS
    ),
}
OURS: dict[str, Callable[[], regcal.Calibrator]] = {
    "e-beta, base shape": lambda: regcal.get_calibrator("e-beta", thresholds=THRESHOLDS),
    "GPC, identity prior": lambda: regcal.GPCalibrator(THRESHOLDS),
    "gp-density": regcal.DensityCalibrator,
}


class Training:
    """A base model on two thirds of the rows, and calibrators on the others."""

    def __init__(self, base: str, data: Dataset) -> None:
        n_base = 2 * len(data) // 3
        self.data = data
        self.model = _RECIPES[base]().fit(data.X[:n_base], data.y[:n_base])
        self.held_out = regcal.predict_dist(self.model, data.X[n_base:])
        self.y_held_out = data.y[n_base:]

    def calibrator(self, make: Callable[[], regcal.Calibrator]) -> regcal.Calibrator:
        """Return a calibrator fitted on the held-out rows."""
        return make().fit(self.held_out, self.y_held_out)

    def predictions(
        self, X: Array, methods: dict[str, Callable[[], regcal.Calibrator]]
    ) -> dict[str, regcal.Distribution]:
        """Return the base model's distributions and those after each method."""
        new = regcal.predict_dist(self.model, X)
        calibrated = {name: self.calibrator(make).transform(new) for name, make in methods.items()}
        return {"base model": new, **calibrated}


@dataclass(frozen=True)
class ToyRow:
    """How one method did on the toy mixture.

    Attributes
    ----------
    base, method : str
    log_score : float
        Mean log density of new outcomes; `best` is that of the true distribution.
    best : float
    cdf_error : float
        Mean absolute difference between the predicted and the true P(Y <= t).
    both_branches : float
        Share of the rows with well separated branches whose density has two peaks, one for each.
    reliability_gap : float or None
        Mean distance of the reliability lines from the diagonal, in 5-fold cross-validation.
    """

    base: str
    method: str
    log_score: float
    best: float
    cdf_error: float
    both_branches: float
    reliability_gap: float | None


def both_branches(dist: regcal.Distribution, x: Array, toy: ToyMixture) -> Array:
    """Return, per row, whether the density has a peak on either side of the branches' middle.

    The smaller peak has to be 1.5 times as high as the valley between the two.
    """
    share = np.linspace(-0.5, 1.5, 201)[np.newaxis, :]
    # from half the branches' distance below the flat one to as much above the other
    points = toy.flat + (x - toy.flat)[:, np.newaxis] * share
    density = dist.pdf(points)
    lower, upper = density[:, :101], density[:, 100:]
    peaks = np.minimum(lower.max(axis=1), upper.max(axis=1))
    places = np.arange(201)
    first, last = lower.argmax(axis=1), 100 + upper.argmax(axis=1)
    between = (places >= first[:, np.newaxis]) & (places <= last[:, np.newaxis])
    valley = np.where(between, density, np.inf).min(axis=1)
    return peaks > 1.5 * valley


def _predictions(fold: OuterFold, method: str) -> regcal.Distribution:
    """Return a fold's predictions: of the base model, or averaged over three calibrated ones."""
    if method == "base model":
        return fold.full_model()
    pairs = zip(fold.calibrated(PAPER[method]()), fold.new, strict=True)
    return regcal.Mixture([calibrator.transform(new) for calibrator, new in pairs])


class ToyStudy:
    """The toy data and everything that the figures and the table need.

    Parameters
    ----------
    n_rows : int, default=600
    random_state : int, default=0
    """

    def __init__(self, n_rows: int = N_ROWS, random_state: int = 0) -> None:
        self.toy = ToyMixture()
        self.data = self.toy.sample(n_rows, random_state=random_state)
        self.test = self.toy.sample(_N_JUDGED, random_state=random_state + 1)
        self._predictions: dict[tuple[str, str], regcal.Distribution] = {}
        self.trained = {base: Training(base, self.data) for base in _RECIPES}

    @cached_property
    def _folds(self) -> dict[str, list[OuterFold]]:
        return {
            base: [OuterFold(self.data, Unit("toy", base, 0, fold)) for fold in range(N_FOLDS)]
            for base in ("BRR", "GPR")
        }

    def cross_validated(self, base: str, method: str) -> regcal.Distribution:
        """Return predictions of 5-fold cross-validation, in the order `y_cv`."""
        if (base, method) not in self._predictions:
            folds = [_predictions(fold, method) for fold in self._folds[base]]
            self._predictions[base, method] = regcal.concatenate(folds)
        return self._predictions[base, method]

    @property
    def y_cv(self) -> Array:
        """Outcomes in the order of `cross_validated`."""
        return np.concatenate([fold.y_test for fold in self._folds["BRR"]])

    @property
    def thresholds(self) -> Array:
        """The 16 training thresholds of the paper's range."""
        return regcal.EqualGrid(THRESHOLDS).thresholds(self.data.y)

    # -------------------------------------------------------------------------------------- numbers

    def table(self) -> list[ToyRow]:
        """Return how every method did, after every base model."""
        return [
            self._row(base, method, dist)
            for base, training in self.trained.items()
            for method, dist in training.predictions(self.test.X, PAPER | OURS).items()
        ]

    def _row(self, base: str, method: str, dist: regcal.Distribution) -> ToyRow:
        x, y = self.test.X, self.test.y
        grid = np.linspace(self.data.y.min(), self.data.y.max(), 101)[np.newaxis, :]
        separate = np.flatnonzero(x[:, 0] > _SEPARATE)
        branches = both_branches(dist[separate], x[separate, 0], self.toy)
        return ToyRow(
            base,
            method,
            log_score=float(dist.logpdf(y).mean()),
            best=float(self.toy.logpdf(x[:, 0], y).mean()),
            cdf_error=float(np.abs(dist.cdf(grid) - self.toy.cdf(x, grid)).mean()),
            both_branches=float(branches.mean()),
            reliability_gap=self._reliability_gap(base, method),
        )

    def _reliability_gap(self, base: str, method: str) -> float | None:
        if base not in self._folds or method not in ("base model", *PAPER):
            return None
        dist = self.cross_validated(base, method)
        curve = reliability_curve(self.y_cv, dist, self.thresholds, bins=BINS)
        gap = np.abs(curve.observed - curve.predicted)
        return float(np.nansum(gap * curve.share) / np.nansum(curve.share))

    # -------------------------------------------------------------------------------------- figures

    def figures(self) -> dict[str, "Figure"]:
        """Return the figures by the name of their file."""
        return {
            "toy_example": self.draw_example(),
            "toy_densities": self.draw_densities(PAPER),
            "toy_densities_regcal": self.draw_densities(OURS),
            "toy_reliability": self.draw_reliability(),
            "toy_calibration_maps": self.draw_maps(),
            "toy_row": self.draw_row(),
        }

    @property
    def _x(self) -> Array:
        return np.linspace(-1.0, 1.0, 200)

    @property
    def _targets(self) -> Array:
        low, high = self.data.y.min(), self.data.y.max()
        return np.linspace(low - 0.3, high + 0.3, 300)

    def draw_example(self) -> "Figure":
        """Draw the true density, OLS, and OLS calibrated by GPC."""
        figure, axes = _panels(1, 3)
        truth = self.toy.pdf(self._x, self._targets[:, np.newaxis])
        display = self._draw_density(
            axes[0, 0], "true density", truth, 0.5 * (self._x + self.toy.flat)
        )
        legend: Any = display.ax_.get_legend()
        legend.get_texts()[-1].set_text("mean")
        display.colorbar_.set_label("Density")
        self._draw_predictions(axes[0, 1:], "OLS", {"GPC": PAPER["GPC"]})
        return figure

    def draw_densities(self, methods: dict[str, Callable[[], regcal.Calibrator]]) -> "Figure":
        """Draw the densities of BRR and GPR before and after three methods."""
        figure, axes = _panels(2, 4)
        for line, base in zip(axes, ("BRR", "GPR"), strict=True):
            self._draw_predictions(line, base, methods)
        return figure

    def _draw_predictions(
        self, axes: Any, base: str, methods: dict[str, Callable[[], regcal.Calibrator]]
    ) -> None:
        """Draw a base model before and after methods, all with the base model's mean."""
        dists = self.trained[base].predictions(self._x[:, np.newaxis], methods)
        mean = dists["base model"].mean()
        for ax, (name, dist) in zip(axes, dists.items(), strict=True):
            density = dist.pdf(self._targets[np.newaxis, :]).T
            self._draw_density(ax, f"{base}, {name}", density, mean)

    def _draw_density(self, ax: Any, name: str, density: Array, mean: Array) -> DensityDisplay:
        drawn = np.column_stack([self.data.X[:_DRAWN_POINTS, 0], self.data.y[:_DRAWN_POINTS]])
        return DensityDisplay(self._x, self._targets, density, mean, drawn, name=name).plot(ax)

    def draw_reliability(self) -> "Figure":
        """Draw reliability diagrams of BRR and GPR before and after the paper's methods."""
        figure, axes = _panels(2, 4)
        panels = product(self._folds, ("base model", *PAPER))
        for ax, (base, method) in zip(axes.ravel(), panels, strict=True):
            ReliabilityDisplay.from_predictions(
                self.y_cv,
                self.cross_validated(base, method),
                thresholds=self.thresholds,
                bins=BINS,
                name=f"{base}, {method}",
                ax=ax,
            )
        return figure

    def draw_maps(self) -> "Figure":
        """Draw what GPC has learnt from 32 thresholds, with training pairs."""
        figure, axes = _panels(1, 2)
        for ax, base in zip(axes[0], ("BRR", "GPR"), strict=True):
            training = self.trained[base]
            CalibrationMapDisplay.from_predictions(
                training.y_held_out,
                training.held_out,
                calibrator=training.calibrator(
                    lambda: regcal.GPCalibrator(MAP_THRESHOLDS, prior="zero")
                ),
                random_state=0,
                name=f"{base}, GPC",
                ax=ax,
            )
        return figure

    def draw_row(self) -> "Figure":
        """Draw one test row's densities, marginal calibration maps and CDFs, after GPR."""
        figure, axes = _panels(1, 3)
        row = int(np.flatnonzero(self.test.X[:, 0] > 0.5)[0])
        X, y = self.test.X[[row]], self.test.y[[row]]
        dists = self.trained["GPR"].predictions(X, PAPER)
        default = regcal.paper_gpr().fit(self.data.X, self.data.y)
        dists["default model"] = regcal.predict_dist(default, X)
        RowDisplay.from_predictions(y, dists, name=f"GPR at x = {X[0, 0]:.2f}", ax=axes[0])
        return figure


def _panels(n_lines: int, n_columns: int) -> tuple["Figure", np.ndarray]:
    """Return a figure and its axes."""
    figure = blank_figure(5.4 * n_columns, 4.4 * n_lines)
    return figure, figure.subplots(n_lines, n_columns, squeeze=False)


def reproduce_toy(folder: str | Path, *, n_rows: int = N_ROWS, random_state: int = 0) -> list[Path]:
    """Write the paper's toy figures as PNG and the numbers beside them as ``toy.csv``.

    Parameters
    ----------
    folder : str or Path
        Made if it does not exist.
    n_rows : int, default=600
        Rows of the toy mixture; a third of them calibrates.
    random_state : int, default=0

    Returns
    -------
    list of Path
        The files written.
    """
    folder = Path(folder)
    study = ToyStudy(n_rows, random_state)
    figures = study.figures()
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, figure in figures.items():
        files.append(folder / f"{name}.png")
        figure.savefig(files[-1], dpi=90)
    files.append(folder / "toy.csv")
    with files[-1].open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(ToyRow))
        writer.writerows(_rounded(asdict(row).values()) for row in study.table())
    return files


def _rounded(values: Any) -> list[str]:
    return [
        f"{value:.4f}" if isinstance(value, float) else "" if value is None else str(value)
        for value in values
    ]
