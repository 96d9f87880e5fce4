"""Loaders of the data sets that come with regcal or with scikit-learn."""

from __future__ import annotations

import csv
from importlib.resources import files

import numpy as np
from sklearn.datasets import load_diabetes as sklearn_load_diabetes

from regcal.datasets._dataset import Dataset

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CALENDAR = {
    name: str(number) for names in (_MONTHS, _DAYS) for number, name in enumerate(names, start=1)
}


def load_airfoil() -> Dataset:
    """Load the airfoil self-noise data: 1503 wind-tunnel measurements, 5 features.

    Returns
    -------
    Dataset
        The target is the sound pressure level in dB.

    Examples
    --------
    >>> from regcal.datasets import load_airfoil
    >>> data = load_airfoil()
    >>> data.X.shape, data.y[:2]
    ((1503, 5), array([126.201, 125.201]))
    """
    return _load_shipped(
        "airfoil",
        description="NASA wind-tunnel tests of NACA 0012 airfoil sections; one row a measurement.",
        citation=(
            "Brooks, Pope, Marcolini (1989). Airfoil Self-Noise. UCI Machine Learning "
            "Repository, doi:10.24432/C5VW2C. Licence CC BY 4.0."
        ),
        units={
            "frequency": "Hz",
            "angle_of_attack": "deg",
            "chord_length": "m",
            "free_stream_velocity": "m/s",
            "displacement_thickness": "m",
            "sound_pressure": "dB",
        },
    )


def load_bike_sharing() -> Dataset:
    """Load the bike sharing data: 731 days of Washington's rented bikes, 11 features.

    Rows are the days of 2011 and 2012 in their order. Rentals grew by two thirds from the first
    year to the second, so that a model of 2011 is wrong in 2012. Temperatures, humidity
    and wind speed are scaled to at most 1, as in the original.

    Returns
    -------
    Dataset
        The target is the number of rentals of a day.

    Examples
    --------
    >>> from regcal.datasets import load_bike_sharing
    >>> data = load_bike_sharing()
    >>> data.X.shape, data.y[:2]
    ((731, 11), array([985., 801.]))
    >>> year = data.X[:, data.feature_names.index("year")]  # 0 is 2011
    >>> round(float(data.y[year == 1].mean() / data.y[year == 0].mean()), 2)
    1.64
    """
    return _load_shipped(
        "bike_sharing",
        description="Bikes rented in Washington, D.C., in 2011 and 2012; one row a day.",
        citation=(
            "Fanaee-T (2013). Bike Sharing. UCI Machine Learning Repository, "
            "doi:10.24432/C5W894. Licence CC BY 4.0."
        ),
        units={},
    )


def load_concrete() -> Dataset:
    """Load the concrete compressive strength data: 1030 mixtures, 8 features.

    These are the full-precision values of the original spreadsheet; copies rounded to two
    digits also circulate. 25 rows repeat an earlier one, as in the original.

    Returns
    -------
    Dataset
        The target is the compressive strength in MPa.

    Examples
    --------
    >>> from regcal.datasets import load_concrete
    >>> data = load_concrete()
    >>> data.X.shape, data.y[:2]
    ((1030, 8), array([79.98611076, 61.88736576]))
    """
    components = (
        "cement",
        "blast_furnace_slag",
        "fly_ash",
        "water",
        "superplasticizer",
        "coarse_aggregate",
        "fine_aggregate",
    )
    return _load_shipped(
        "concrete",
        description="Strength of concrete by mixture and age; one row a tested specimen.",
        citation=(
            "Yeh (1998). Concrete Compressive Strength. UCI Machine Learning Repository, "
            "doi:10.24432/C5PK67. Licence CC BY 4.0."
        ),
        units=dict.fromkeys(components, "kg/m^3") | {"age": "d", "compressive_strength": "MPa"},
    )


def load_forest_fires() -> Dataset:
    """Load the forest fires data: 517 fires in a Portuguese park, 12 features.

    The original gives month and day as text. Here they are numbers, month 1 (January) to 12
    and day 1 (Monday) to 7, so that `X` keeps its 12 columns. The target is the burnt area
    in hectares, not log-transformed; 247 rows have an area of 0.

    Returns
    -------
    Dataset
        The target is the burnt area in ha.

    Examples
    --------
    >>> from regcal.datasets import load_forest_fires
    >>> data = load_forest_fires()
    >>> data.X.shape, int((data.y == 0).sum())
    ((517, 12), 247)
    >>> data.X[0, 2:4]  # a Friday in March
    array([3., 5.])
    """
    return _load_shipped(
        "forest_fires",
        description=(
            "Fires in Montesinho park; one row a fire. Text in the columns month and day was "
            "replaced by 1..12 (January first) and 1..7 (Monday first)."
        ),
        citation=(
            "Cortez, Morais (2007). Forest Fires. UCI Machine Learning Repository, "
            "doi:10.24432/C5D88D. Licence CC BY 4.0."
        ),
        units={"temp": "°C", "RH": "%", "wind": "km/h", "rain": "mm/m^2", "area": "ha"},
    )


def load_diabetes() -> Dataset:
    """Load scikit-learn's diabetes data: 442 patients, 10 scaled features.

    Returns
    -------
    Dataset
        The target measures disease progression one year after the baseline; it has no unit.

    Examples
    --------
    >>> from regcal.datasets import load_diabetes
    >>> data = load_diabetes()
    >>> data.X.shape, data.y[:2]
    ((442, 10), array([151.,  75.]))
    """
    bunch = sklearn_load_diabetes()
    return Dataset(
        name="diabetes",
        X=np.asarray(bunch.data, dtype=np.float64),
        y=np.asarray(bunch.target, dtype=np.float64),
        feature_names=tuple(bunch.feature_names),
        target_name="progression",
        description=(
            "Disease progression by ten baseline variables; one row a patient. Features are "
            "centred and every column has unit norm, as scikit-learn ships them."
        ),
        citation=(
            "Efron, Hastie, Johnstone, Tibshirani (2004). Least Angle Regression. Annals of "
            "Statistics 32(2), 407-499. From scikit-learn (BSD-3-Clause)."
        ),
    )


def _load_shipped(name: str, *, description: str, citation: str, units: dict[str, str]) -> Dataset:
    """Read ``data/<name>.csv``: one header row, the target in the last column."""
    resource = files("regcal.datasets") / "data" / f"{name}.csv"
    with resource.open(encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)

    values = np.array([[_CALENDAR.get(cell, cell) for cell in row] for row in rows], np.float64)
    return Dataset(
        name=name,
        X=values[:, :-1].copy(),
        y=values[:, -1].copy(),
        feature_names=tuple(header[:-1]),
        target_name=header[-1],
        description=description,
        citation=citation,
        units=units,
    )
