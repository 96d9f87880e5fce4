"""The Boston housing data, which regcal does not ship.

No licence is stated for the values, so they come from mlxtend or from OpenML and are checked
against a checksum.
"""

from __future__ import annotations

import hashlib
import warnings

import numpy as np
from numpy.typing import NDArray

from regcal.datasets._dataset import Dataset

_FEATURE_NAMES = (
    "CRIM",
    "ZN",
    "INDUS",
    "CHAS",
    "NOX",
    "RM",
    "AGE",
    "DIS",
    "RAD",
    "TAX",
    "PTRATIO",
    "B",
    "LSTAT",
)
_SHA256 = "832e894115c56dd24ec63848d4a3d9bd921d268d0be1bee2a8f4ee5ea318f5f7"
_OPENML_ID = 531


def load_boston() -> Dataset:
    """Load the Boston housing data: 506 census tracts, 13 features.

    regcal does not ship these values. They are taken from the package mlxtend if it is
    installed, otherwise downloaded from OpenML (which needs pandas and a network), and
    refused unless they equal the original.

    Returns
    -------
    Dataset
        The target is the median home value in thousands of 1970s US dollars.

    Raises
    ------
    OSError
        If neither source can be reached; the message says what to install.
    ValueError
        If a source returns other values than the original.

    Warns
    -----
    UserWarning
        At every call, about the column ``B``: it was constructed on the assumption that racial
        segregation affects house prices, and scikit-learn removed the data for that reason.

    Examples
    --------
    >>> from regcal.datasets import load_boston
    >>> load_boston()  # doctest: +SKIP
    Dataset('boston', n_samples=506, n_features=13, target='MEDV')
    """
    warnings.warn(
        "The Boston housing data have an ethical problem: the column B was constructed on the "
        "assumption that racial segregation affects house prices, and scikit-learn removed the "
        "data for that reason. Use them only to compare with published results.",
        UserWarning,
        stacklevel=2,
    )
    X, y = _fetch()
    _check_values(X, y)
    return Dataset(
        name="boston",
        X=X,
        y=y,
        feature_names=_FEATURE_NAMES,
        target_name="MEDV",
        description="Median home values around Boston; one row a census tract of 1970.",
        citation=(
            "Harrison, Rubinfeld (1978). Hedonic prices and the demand for clean air. Journal "
            "of Environmental Economics and Management 5, 81-102. No licence is stated."
        ),
        units={"AGE": "%", "INDUS": "%", "LSTAT": "%", "ZN": "%", "MEDV": "1000 USD"},
    )


def _fetch() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return features and target from the first source that has them."""
    try:
        return _from_mlxtend()
    except ImportError:
        pass
    try:
        return _from_openml()
    except (ImportError, OSError) as error:
        msg = (
            "regcal does not ship the Boston housing data: mlxtend is not installed, and "
            f"fetching data set {_OPENML_ID} from OpenML failed ({error}). Install a package that "
            "holds them with: pip install mlxtend. Or connect to a network, with pandas installed."
        )
        raise OSError(msg) from error


def _from_mlxtend() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from mlxtend.data import boston_housing_data

    X, y = boston_housing_data()
    return _as_floats(X), _as_floats(y)


def _from_openml() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from sklearn.datasets import fetch_openml

    # As a frame: as an array, CHAS and RAD would arrive as category codes.
    bunch = fetch_openml(data_id=_OPENML_ID, as_frame=True)
    return _as_floats(bunch.data.astype(float)), _as_floats(bunch.target.astype(float))


def _as_floats(values: object) -> NDArray[np.float64]:
    return np.ascontiguousarray(values, dtype=np.float64)


def _check_values(X: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    """Refuse values that are not the original ones."""
    found = _checksum(X, y)
    if found != _SHA256:
        msg = (
            f"The Boston housing data found have checksum {found} instead of {_SHA256}, so they "
            "are not the original values. Upgrade mlxtend, or clear scikit-learn's data folder "
            "if they came from OpenML."
        )
        raise ValueError(msg)


def _checksum(X: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """Return the SHA-256 of rows ``[X, y]`` as little-endian doubles, row by row."""
    canonical = np.column_stack([X, y]).astype("<f8", order="C")
    return hashlib.sha256(canonical.tobytes()).hexdigest()
