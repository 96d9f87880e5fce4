"""Mean log scores of the study's rows, with standard errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from regcal._validation import Array
from regcal.reproduce.cells import BASES, CHECK_METHOD, DATASETS, N_FOLDS, PAPER_METHODS, Cell
from regcal.reproduce.scores import Row

# Training sets of different folds overlap: test rows / training rows are added to 1 / folds
# (Nadeau and Bengio, 2003).
_OVERLAP = 1.0 / (N_FOLDS - 1)

# Data set and base model; method and number of thresholds.
Setting = tuple[str, str]
Variant = tuple[str, int]

UNCALIBRATED: Variant = ("uncalibrated", 0)


@dataclass(frozen=True)
class Mean:
    """A mean over folds and repetitions with its standard error."""

    value: float
    error: float

    @classmethod
    def of(cls, folds: Array) -> "Mean":
        """Return the mean, with the error that allows for overlapping training sets."""
        variance = float(np.var(folds, ddof=1)) if len(folds) > 1 else float("nan")
        return cls(float(folds.mean()), float(np.sqrt(variance * (1 / len(folds) + _OVERLAP))))

    @property
    def clear(self) -> bool:
        """Whether it is more than two standard errors from 0."""
        return abs(self.value) > 2 * self.error


class Scores:
    """Log scores of the study by (data set, base model, method, number of thresholds).

    Parameters
    ----------
    rows : mapping from Cell to Row
        Of a finished study, or of the folds that are done.

    Examples
    --------
    >>> from regcal.reproduce import Cell, Row, Scores
    >>> cells = [Cell.from_name(f"boston/OLS/0/{fold}/gpc/8") for fold in range(2)]
    >>> rows = {cell: Row(cell, 100, score, 0, None, None, "", 0.1)
    ...         for cell, score in zip(cells, (-2.0, -2.2))}
    >>> round(Scores(rows).mean(("boston", "OLS"), ("gpc", 8)).value, 3)
    -2.1
    """

    def __init__(self, rows: Mapping[Cell, Row]) -> None:
        self.rows = dict(sorted(rows.items()))
        self._folds: dict[tuple[Setting, Variant], dict[tuple[int, int], float]] = {}
        for cell, row in rows.items():
            unit = cell.unit
            key = ((unit.dataset, unit.base), (cell.method, cell.thresholds))
            self._folds.setdefault(key, {})[unit.repetition, unit.fold] = row.log_score
        self.datasets = [name for name in DATASETS if any(key[0][0] == name for key in self._folds)]
        self.thresholds = sorted(
            {count for _, (name, count) in self._folds if name in PAPER_METHODS}
        )
        self.repetitions = 1 + max((cell.unit.repetition for cell in rows), default=-1)

    def has(self, setting: Setting, variant: Variant) -> bool:
        """Return whether there are rows."""
        return (setting, variant) in self._folds

    def mean(self, setting: Setting, variant: Variant) -> Mean:
        """Return the mean log score."""
        return Mean.of(np.array(list(self._folds[setting, variant].values())))

    def gain(self, setting: Setting, better: Variant, worse: Variant) -> Mean:
        """Return the mean difference of two methods on the folds that both have."""
        first, second = self._folds[setting, better], self._folds[setting, worse]
        shared = [fold for fold in first if fold in second]
        return Mean.of(np.array([first[fold] - second[fold] for fold in shared]))

    def best(self, setting: Setting, method: str) -> int:
        """Return the number of thresholds with which a method scores best, 0 without any."""
        counts = [k for k in (0, *self.thresholds) if self.has(setting, (method, k))]
        return max(counts, key=lambda k: self.mean(setting, (method, k)).value, default=0)

    @property
    def compared(self) -> list[int]:
        """Numbers of thresholds with which all of the paper's methods were run everywhere."""
        pairs = list(product(self.settings(), PAPER_METHODS))
        return [k for k in self.thresholds if all(self.has(s, (m, k)) for s, m in pairs)]

    def settings(self) -> list[Setting]:
        """Return the pairs of data set and base model."""
        return [
            (dataset, base)
            for dataset, base in product(self.datasets, BASES)
            if self.has((dataset, base), UNCALIBRATED)
        ]

    def checked(self) -> list[Row]:
        """Return the rows of the paper's own classifier."""
        return [row for cell, row in self.rows.items() if cell.method == CHECK_METHOD]
