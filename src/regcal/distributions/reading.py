"""How draws and quantiles are read: what a row takes from the other rows of its batch."""

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from regcal._validation import Array
from regcal.ends import Ends

# The spreads of so many rows are kept, half a megabyte, for the usual one of several batches.
_MOST_SPREADS = 2**16


@dataclass(frozen=True)
class Reading:
    """Ends at which the values of a batch pile up, and its usual spread.

    No row tells by itself that its zeros are an end of the support, nor how far rain would go
    where all draws are 0. Calibrators remember it, so that a row says the same in any batch.

    Parameters
    ----------
    kind : str
        What is read, as spreads of draws are not those of quantiles.
    low, high : float
        Ends with a point mass; infinite where there is none.
    least, most : float
        Smallest and largest value.
    spread : float
        Bandwidth of draws, or slope of quantiles along probits.
    n_rows : int
        How many rows have told the spread.
    spreads : ndarray of shape (n_rows,), optional
        What each has told, while they are few. Files leave them out.

    Examples
    --------
    >>> from regcal import Samples
    >>> dry = Samples([[0.0, 0.0, 0.0, 0.0, 0.0]]).reading
    >>> wet = Samples([[1.0, 2.0, 3.0, 4.0, 5.0]]).reading
    >>> both = dry.merge(wet)
    >>> both.low, both.spread == wet.spread
    (0.0, True)
    """

    kind: str
    low: float = -np.inf
    high: float = np.inf
    least: float = np.inf
    most: float = -np.inf
    spread: float = 0.0
    n_rows: int = 0
    spreads: Array | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "spreads"}

    @classmethod
    def of(cls, kind: str, ends: Ends, values: Array, spreads: Array) -> "Reading":
        """Return what is told by values, and by the spread of each row; 0 tells nothing."""
        if values.size == 0:
            return cls(kind, *ends)
        low, high = ends
        least = low if np.isfinite(low) else float(values.min())
        most = high if np.isfinite(high) else float(values.max())
        known = spreads[spreads > 0]
        spread = float(np.median(known)) if len(known) else 0.0
        return cls(kind, low, high, least, most, spread, len(known), _few(known))

    def merge(self, other: "Reading") -> "Reading":
        """Return what both batches tell: an end stays one if nothing lies beyond it.

        The spread is the median of all rows; the mean by rows of the two if these are many.
        """
        least, most = min(self.least, other.least), max(self.most, other.most)
        lows, highs = (self.low, other.low), (self.high, other.high)
        n_rows = self.n_rows + other.n_rows
        share = other.n_rows / max(n_rows, 1)
        spread, spreads = self.spread + share * (other.spread - self.spread), None
        if n_rows and self.spreads is not None and other.spreads is not None:
            spreads = np.concatenate([self.spreads, other.spreads])
            spread = float(np.median(spreads))
        return replace(
            self,
            low=least if least in lows else -np.inf,
            high=most if most in highs else np.inf,
            least=least,
            most=most,
            spread=spread,
            n_rows=n_rows,
            spreads=_few(spreads),
        )


def _few(spreads: Array | None) -> Array | None:
    """Return spreads that are few enough to be kept, or none."""
    return spreads if spreads is not None and len(spreads) <= _MOST_SPREADS else None


def warn_of_values_beyond(values: Array, reading: Reading, name: str) -> None:
    """Tell of values beyond an end that others have piled up at, which are taken to be at it."""
    beyond = (values < reading.low) | (values > reading.high)
    if beyond.any():
        low, high = (None if np.isinf(end) else end for end in (reading.low, reading.high))
        msg = (
            f"{int(beyond.sum())} of {values.size} {name}, the first is {values[beyond][0]:g}, lie "
            f"beyond the ends ({low}, {high}) at which those of the calibration rows pile up, and "
            "are taken to be at them. Calibrate on rows that are like these, or give the ends: "
            f"support= of the {name}."
        )
        warnings.warn(msg, UserWarning, stacklevel=6)
