"""Calibrate predictive distributions.

A regression model says, for every row, how the target will be distributed. regcal learns from
held-out rows how those statements are wrong, and corrects them.
"""

from regcal._version import __version__
from regcal.binary import BetaCalibrator, LogisticCalibrator
from regcal.calibrators import (
    Calibrator,
    DensityCalibrator,
    GPCalibrator,
    IdentityCalibrator,
    OneVsRestCalibrator,
    PaperGPCalibrator,
    calibrator_names,
    get_calibrator,
)
from regcal.distributions import (
    CrossingQuantilesWarning,
    CustomDistribution,
    Distribution,
    Histogram,
    Mixture,
    Normal,
    Quantiles,
    Samples,
    ScipyDistribution,
    as_distribution,
)
from regcal.grids import EqualGrid, QuantileGrid
from regcal.metrics import compare, crps, log_score, pit
from regcal.report import report

__all__ = [
    "BetaCalibrator",
    "Calibrator",
    "CrossingQuantilesWarning",
    "CustomDistribution",
    "DensityCalibrator",
    "Distribution",
    "EqualGrid",
    "GPCalibrator",
    "Histogram",
    "IdentityCalibrator",
    "LogisticCalibrator",
    "Mixture",
    "Normal",
    "OneVsRestCalibrator",
    "PaperGPCalibrator",
    "QuantileGrid",
    "Quantiles",
    "Samples",
    "ScipyDistribution",
    "__version__",
    "as_distribution",
    "calibrator_names",
    "compare",
    "crps",
    "get_calibrator",
    "log_score",
    "pit",
    "report",
]
