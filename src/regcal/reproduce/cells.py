"""The cells of the study on real data: their names, their order and their seeds."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

DATASETS = ("diabetes", "boston", "airfoil", "forest_fires", "concrete")
BASES = ("OLS", "BRR", "GPR")
THRESHOLDS = (8, 16, 32, 48, 64)
N_FOLDS = 5

# The paper's methods as it has them, ours, what its outlook names, and what all are compared with.
PAPER_METHODS = ("e-logistic-uniform", "e-beta-uniform", "gpc-zero")
OUR_METHODS = ("e-logistic", "e-beta", "gpc")
OUTLOOK_METHODS = ("e-beta-thresholds", "e-beta-dense", "dirichlet")
WITHOUT_THRESHOLDS = ("uncalibrated", "averaged", "isotonic", "gp-density", "auto")

# The paper's classifier itself is slow, so that only few cells have it.
CHECK_METHOD = "gpc-paper"
CHECK_THRESHOLDS = 32


@dataclass(frozen=True, order=True)
class Unit:
    """One outer fold of one base model on one data set: what cells share the fitted models of.

    Examples
    --------
    >>> from regcal.reproduce import Unit
    >>> Unit("boston", "GPR", repetition=3, fold=2).name
    'boston/GPR/3/2'
    """

    dataset: str
    base: str
    repetition: int
    fold: int

    @property
    def name(self) -> str:
        """Data set, base model, repetition and fold."""
        return f"{self.dataset}/{self.base}/{self.repetition}/{self.fold}"


@dataclass(frozen=True, order=True)
class Cell:
    """One number of the study: a method with so many thresholds in a unit.

    Examples
    --------
    >>> from regcal.reproduce import Cell
    >>> cell = Cell.from_name("boston/GPR/3/2/gpc/32")
    >>> cell.method, cell.thresholds
    ('gpc', 32)
    """

    unit: Unit
    method: str
    thresholds: int = 0

    @property
    def name(self) -> str:
        """The unit's name, the method and the number of thresholds, 0 if it has none."""
        return f"{self.unit.name}/{self.method}/{self.thresholds}"

    @classmethod
    def from_name(cls, name: str) -> "Cell":
        """Return the cell of a name."""
        parts = name.split("/")
        numbers = [part for k, part in enumerate(parts) if k in (2, 3, 5)]
        if len(parts) != 6 or not all(number.isdigit() for number in numbers):
            msg = (
                f"{name!r} is not the name of a cell. Write data set, base model, repetition, "
                "fold, method and number of thresholds, such as boston/GPR/3/2/gpc/32."
            )
            raise ValueError(msg)
        unit = Unit(parts[0], parts[1], int(parts[2]), int(parts[3]))
        return cls(unit, parts[4], int(parts[5]))


def seed_of(name: str) -> int:
    """Return the seed that belongs to a name, the same on every machine.

    Examples
    --------
    >>> from regcal.reproduce import seed_of
    >>> seed_of("boston/0")
    1454562233
    """
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")


@dataclass(frozen=True)
class Study:
    """Which cells are computed.

    Parameters
    ----------
    repetitions : int
        How often the data are dealt into 5 folds.
    bases : tuple of str
        Base models.
    thresholds : tuple of int
        Numbers of target values of the methods that have them.
    methods : tuple of str
    check : bool
        Whether the paper's own classifier is run, in the first fold of the first repetition.

    Examples
    --------
    >>> from regcal.reproduce import FULL, QUICK
    >>> len(FULL.cells(["boston"])), len(QUICK.cells(["boston"]))
    (7503, 465)
    """

    repetitions: int = 10
    bases: tuple[str, ...] = BASES
    thresholds: tuple[int, ...] = THRESHOLDS
    methods: tuple[str, ...] = WITHOUT_THRESHOLDS + PAPER_METHODS + OUR_METHODS + OUTLOOK_METHODS
    check: bool = True

    def cells(self, datasets: Iterable[str] = DATASETS) -> list[Cell]:
        """Return the cells in order: whole repetitions one after the other."""
        units = [
            Unit(dataset, base, repetition, fold)
            for repetition, fold, dataset, base in product(
                range(self.repetitions), range(N_FOLDS), list(datasets), self.bases
            )
        ]
        return [cell for unit in units for cell in self._cells_of(unit)]

    def _cells_of(self, unit: Unit) -> Iterator[Cell]:
        for method in self.methods:
            counts = (0,) if method in WITHOUT_THRESHOLDS else self.thresholds
            yield from (Cell(unit, method, count) for count in counts)
        if self.check and unit.repetition == unit.fold == 0:
            yield Cell(unit, CHECK_METHOD, CHECK_THRESHOLDS)


FULL = Study()
QUICK = Study(
    repetitions=1,
    thresholds=(8, 32, 64),
    methods=tuple(method for method in FULL.methods if method != "auto"),
    check=False,
)


def grouped(cells: Iterable[Cell]) -> dict[Unit, list[Cell]]:
    """Return the cells of each unit, in the order in which units appear."""
    units: dict[Unit, list[Cell]] = {}
    for cell in cells:
        units.setdefault(cell.unit, []).append(cell)
    return units
