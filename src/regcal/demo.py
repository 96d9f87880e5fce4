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
from regcal.metrics import joint_calibration_test

METHODS = ("identity", "e-beta", "gpc", "gp-density")

# A question that people have of concrete, in MPa, and ranges of the model's answer.
STRENGTH = 30.0
RANGES = np.linspace(0.0, 1.0, 6)


def run_demo(folder: str | Path | None = None) -> str:
    """Calibrate a Bayesian ridge regression on the concrete data and say what changed.

    Parameters
    ----------
    folder : str or Path, optional
        Where to write ``report.html``; made if it does not exist. No page is written without it.

    Returns
    -------
    str
        Tables of probabilities and scores before and after, for people to read.

    Examples
    --------
    >>> from regcal.demo import run_demo
    >>> print(run_demo().splitlines()[0])
    Concrete strength, 1030 rows: Bayesian ridge on 412, calibrated on 309, judged on 309.
    """
    n_train, (held_out, y_cal), (new, y_test) = _predictions()
    dists = {
        name: regcal.get_calibrator(name).fit(held_out, y_cal).transform(new) for name in METHODS
    }
    best = METHODS[-1]
    lines = [
        f"Concrete strength, {n_train + len(y_cal) + len(y_test)} rows: Bayesian ridge on "
        f"{n_train}, calibrated on {len(y_cal)}, judged on {len(y_test)}.",
        "",
        f"How likely is more than {STRENGTH:g} MPa? Rows by the model's answer:",
        *_answers(y_test, new, dists[best], best),
        "",
        *_scores(y_test, dists),
        "",
        "A larger log score and a smaller CRPS are better, and 90 % intervals should hold 90 %.",
        "p is that of one test of thresholds, coverage, tails and the mean; below 0.05 a model is",
        f"not calibrated. Above it is, as far as {len(y_test)} rows can tell.",
    ]
    if folder is not None:
        lines += ["", _written_report(Path(folder), best, y_test, dists[best], new)]
    lines += [
        "",
        "Next, with your own model: regcal.CalibratedRegressorCV(model).fit(X, y), see README.md.",
    ]
    return "\n".join(lines)


def _answers(
    y: np.ndarray, model: regcal.Distribution, calibrated: regcal.Distribution, name: str
) -> list[str]:
    """Return what was said of the rows in each range of the model's answer, and what happened."""
    before, after, happened = model.sf(STRENGTH), calibrated.sf(STRENGTH), y > STRENGTH
    range_of = np.minimum(np.searchsorted(RANGES, before, side="right"), len(RANGES) - 1) - 1
    lines = [f"{'model says':>12} {'rows':>6} {'on average':>11} {name:>11} {'it happened':>12}"]
    for k in range(len(RANGES) - 1):
        rows = range_of == k
        said = f"{100 * RANGES[k]:.0f} to {100 * RANGES[k + 1]:.0f} %"
        shares = (f"{one[rows].mean():.0%}".replace("%", " %") for one in (before, after, happened))
        mean, corrected, share = shares
        lines.append(f"{said:>12} {rows.sum():>6} {mean:>11} {corrected:>11} {share:>12}")
    return lines


def _scores(y: np.ndarray, dists: dict[str, regcal.Distribution]) -> list[str]:
    """Return scores of each method, and whether its predictions are calibrated."""
    head = f"{'method':<12} {'log score':>10} {'CRPS':>8} {'90 % hold':>10} {'p':>7}  calibrated"
    lines = [head]
    for name, dist in dists.items():
        test = joint_calibration_test(y, dist)
        score, error = regcal.log_score(y, dist).mean(), regcal.crps(y, dist).mean()
        held = f"{100 * test.of('coverage', 0.9).observed:.1f} %"
        verdict = "yes" if test.calibrated else "no"
        lines.append(
            f"{name:<12} {score:>10.3f} {error:>8.3f} {held:>10} {test.p_value:>7.3f}  {verdict}"
        )
    return lines


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


if __name__ == "__main__":
    sys.stdout.write(run_demo("demo-output") + "\n")
