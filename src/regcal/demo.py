"""The demonstration: calibrate a real model and show what changed.

Calls the public API only and prints.
"""

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split

import regcal
from regcal.datasets import load_concrete

METHODS = ("identity", "e-beta", "gpc", "gp-density")


def run_demo(folder: str | Path | None = None) -> str:
    """Calibrate a Bayesian ridge regression on the concrete data and say what changed.

    Parameters
    ----------
    folder : str or Path, optional
        Where to write ``report.html``; made if it does not exist. No page is written without it.

    Returns
    -------
    str
        A table of scores before and after, for people to read.

    Examples
    --------
    >>> from regcal.demo import run_demo
    >>> print(run_demo().splitlines()[0])
    Concrete strength, 1030 rows: Bayesian ridge on 412, calibrated on 309, judged on 309.
    """
    n_train, (held_out, y_cal), (new, y_test) = _predictions()
    lines = [
        f"Concrete strength, {n_train + len(y_cal) + len(y_test)} rows: Bayesian ridge on "
        f"{n_train}, calibrated on {len(y_cal)}, judged on {len(y_test)}.",
        "",
        f"{'method':<12} {'log score':>10} {'CRPS':>8} {'90 % interval holds':>20}",
    ]
    for name in METHODS:
        calibrator = regcal.get_calibrator(name).fit(held_out, y_cal)
        calibrated = calibrator.transform(new)
        lines.append(_row(name, y_test, calibrated))
    if folder is not None:
        lines += ["", _written_report(Path(folder), METHODS[-1], y_test, calibrated, new)]
    lines += [
        "",
        "A larger log score and a smaller CRPS are better; the interval should hold for 90 %.",
        "Next, with your own model: regcal.CalibratedRegressorCV(model).fit(X, y), see README.md.",
    ]
    return "\n".join(lines)


def write_tables(folder: str | Path) -> list[Path]:
    """Write tables to try regcal on: the concrete data, and predictions of a Bayesian ridge.

    Parameters
    ----------
    folder : str or Path
        Made if it does not exist.

    Returns
    -------
    list of Path
        ``concrete.csv`` (features and strength), ``held_out.csv`` (predicted mean and standard
        deviation, and the strength) and ``new.csv`` (the same for other rows).

    Examples
    --------
    >>> import tempfile
    >>> from regcal.demo import write_tables
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print([path.name for path in write_tables(folder)])
    ['concrete.csv', 'held_out.csv', 'new.csv']
    """
    data = load_concrete()
    _, held_out, new = _predictions()
    tables = {
        "concrete.csv": [
            (*data.feature_names, data.target_name),
            *np.column_stack([data.X, data.y]),
        ],
        "held_out.csv": _prediction_rows(*held_out),
        "new.csv": _prediction_rows(*new),
    }
    Path(folder).mkdir(parents=True, exist_ok=True)
    files = [Path(folder) / name for name in tables]
    for file, rows in zip(files, tables.values(), strict=True):
        with file.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerows(rows)
    return files


def _prediction_rows(dist: regcal.Normal, y: np.ndarray) -> list[Any]:
    numbers = np.round(np.column_stack([dist.loc, dist.scale, y]), 4).tolist()
    rows = [(f"sample {k}", *row) for k, row in enumerate(numbers, start=1)]
    return [("id", "mean", "std", "strength"), *rows]


def _predictions() -> tuple[
    int, tuple[regcal.Normal, np.ndarray], tuple[regcal.Normal, np.ndarray]
]:
    """Train on some rows; return their number, and predictions and outcomes of two other parts."""
    data = load_concrete()
    x_train, x_rest, y_train, y_rest = train_test_split(
        data.X, data.y, train_size=0.4, random_state=0
    )
    x_cal, x_test, y_cal, y_test = train_test_split(x_rest, y_rest, test_size=0.5, random_state=0)
    model = BayesianRidge().fit(x_train, y_train)
    held_out = regcal.Normal(*model.predict(x_cal, return_std=True))
    new = regcal.Normal(*model.predict(x_test, return_std=True))
    return len(y_train), (held_out, y_cal), (new, y_test)


def _written_report(
    folder: Path, name: str, y: np.ndarray, after: regcal.Distribution, before: regcal.Distribution
) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    file = regcal.report(
        y,
        after,
        before,
        folder / "report.html",
        title=f"Concrete strength: Bayesian ridge, calibrated by {name}",
        target_name="strength",
    )
    return f"The report on {name} is in {file.resolve()}: open it with a double click."


def _row(name: str, y: np.ndarray, dist: regcal.Distribution) -> str:
    low, high = dist.interval(0.9)
    covered = np.mean((low <= y) & (y <= high))
    score, error = regcal.log_score(y, dist).mean(), regcal.crps(y, dist).mean()
    return f"{name:<12} {score:>10.3f} {error:>8.3f} {covered:>19.1%}"


if __name__ == "__main__":
    sys.stdout.write(run_demo("demo-output") + "\n")
