"""Outcomes in units of their own predictions, summed in cells.

Depends on the distributions and `_validation` only.
"""

from dataclasses import dataclass, field

import numpy as np

from regcal._validation import Array
from regcal.calibrators._rows import Rows

# Cells of the probit, about 0.0002 wide in the middle and 0.001 wide at 4.
_N_CELLS = 2**15

# Half of all cells lie within this distance of 0.
_CENTRE = 4.0


def probit_cells(u: Array, n_cells: int) -> np.ndarray:
    """Return cells of u / (4 + |u|): fine in the middle, without an end far out."""
    place = u / (np.abs(u) + _CENTRE)
    place += 1.0
    place *= 0.5 * n_cells
    return np.minimum(place.astype(np.intp), n_cells - 1)


def _sums() -> Array:
    return np.zeros((3, _N_CELLS))


@dataclass(frozen=True)
class OutcomeCells:
    """Sums of 1, z and z**2 over the rows whose outcome has the probit z, in cells of z.

    Impossible outcomes are left out.
    """

    sums: Array = field(default_factory=_sums)

    def counted(self, rows: Rows, z: Array) -> "OutcomeCells":
        """Return these sums with more rows added, whose outcomes have the probits z."""
        possible = np.isfinite(z)
        z, weights = z[possible], rows.weights[possible]
        cells = probit_cells(z, _N_CELLS)
        powers = (weights, weights * z, weights * z * z)
        return OutcomeCells(self.sums + [np.bincount(cells, p, _N_CELLS) for p in powers])

    def __add__(self, other: "OutcomeCells") -> "OutcomeCells":
        return OutcomeCells(self.sums + other.sums)

    def moved(self, other: "OutcomeCells", rows: Rows) -> "OutcomeCells":
        """Return itself: these cells are the same for all data."""
        return self

    def points(self) -> tuple[Array, Array]:
        """Return the mean of each cell in increasing order, with its weight."""
        weights, first, _ = self.sums[:, self.sums[0] > 0]
        return first / weights, weights

    @property
    def squares(self) -> tuple[float, float]:
        """The sums of all weights and of z**2, exact."""
        return float(self.sums[0].sum()), float(self.sums[2].sum())
