"""What every loader returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A regression problem: features, targets and where they come from.

    Parameters
    ----------
    name : str
        Short name, as in the loader.
    X : ndarray of shape (n_samples, n_features)
        Features as floats.
    y : ndarray of shape (n_samples,)
        Targets as floats.
    feature_names : tuple of str
        One name per column of `X`.
    target_name : str
        The name of `y`.
    description : str
        What a row is, and every change made to the original.
    citation : str
        Whom to cite, and the licence.
    units : mapping of str to str
        Unit by column name, for the columns that have one.

    Examples
    --------
    >>> from regcal.datasets import load_airfoil
    >>> data = load_airfoil()
    >>> data
    Dataset('airfoil', n_samples=1503, n_features=5, target='sound_pressure')
    >>> data.units["sound_pressure"]
    'dB'
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    feature_names: tuple[str, ...]
    target_name: str
    description: str
    citation: str
    units: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        n_samples, n_features = self.X.shape
        return (
            f"Dataset({self.name!r}, n_samples={n_samples}, n_features={n_features}, "
            f"target={self.target_name!r})"
        )

    def __len__(self) -> int:
        return len(self.y)

    def as_frame(self) -> pd.DataFrame:
        """Return features and target as one pandas DataFrame, target last.

        Returns
        -------
        pandas.DataFrame of shape (n_samples, n_features + 1)
            A copy, so that changing it leaves the data set as it is.

        Examples
        --------
        >>> from regcal.datasets import load_concrete
        >>> load_concrete().as_frame().shape
        (1030, 9)
        """
        try:
            import pandas as pd
        except ImportError as error:
            msg = "as_frame() needs pandas. Install it with: pip install 'regcal[cli]'."
            raise ImportError(msg) from error

        frame = pd.DataFrame(self.X, columns=list(self.feature_names), copy=True)
        frame[self.target_name] = self.y
        return frame
