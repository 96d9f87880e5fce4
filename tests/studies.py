"""Small and made-up runs of the paper's study."""

from pathlib import Path

import numpy as np

from regcal.reproduce import Cell, Row, Study
from regcal.reproduce.cells import BASES, PAPER_METHODS, THRESHOLDS

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
TINY = Study(1, ("OLS",), (8,), ("uncalibrated", "e-beta"), check=False)


def a_row(name: str, score: float = -1.0) -> Row:
    return Row(Cell.from_name(name), 10, score, 0, None, None, "", 0.5)


def as_the_paper_says(method: str, k: int) -> float:
    """Return a score with which all claims hold."""
    if method == "gpc-zero":
        return {8: -0.1, 16: 2.0, 32: 3.0, 48: 4.0, 64: 3.5}[k]
    curve = {8: -2.0, 16: 1.0, 32: 0.8, 48: 0.5, 64: 0.2}
    return {"e-logistic-uniform": curve[k] - 0.1, "e-beta-uniform": curve[k]}[method]


def made_up(score, sign: float = 1.0) -> dict[Cell, Row]:
    rows = {}
    for base, fold in [(base, fold) for base in BASES for fold in range(5)]:
        unit, noise = f"airfoil/{base}/0/{fold}", 1e-3 * np.sin(fold)
        rows[f"{unit}/uncalibrated/0"] = noise
        for method in PAPER_METHODS:
            for k in THRESHOLDS:
                value = sign * score(method, k) + noise * (1 + 0.1 * np.cos(fold * k))
                rows[f"{unit}/{method}/{k}"] = value
    return {Cell.from_name(name): a_row(name, value) for name, value in rows.items()}
