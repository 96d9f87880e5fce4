"""The paper's toy mixture and its five real data sets, and two years of bikes."""

from regcal.datasets._boston import load_boston
from regcal.datasets._dataset import Dataset
from regcal.datasets._real import (
    load_airfoil,
    load_bike_sharing,
    load_concrete,
    load_diabetes,
    load_forest_fires,
)
from regcal.datasets._toy import ToyMixture, make_toy_mixture

__all__ = [
    "Dataset",
    "ToyMixture",
    "load_airfoil",
    "load_bike_sharing",
    "load_boston",
    "load_concrete",
    "load_diabetes",
    "load_forest_fires",
    "make_toy_mixture",
]
