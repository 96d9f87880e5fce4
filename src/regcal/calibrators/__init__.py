"""Calibrators: Distribution in, Distribution out."""

from regcal.calibrators.base import Calibrator, IdentityCalibrator
from regcal.calibrators.one_vs_rest import OneVsRestCalibrator
from regcal.calibrators.registry import calibrator_names, get_calibrator

__all__ = [
    "Calibrator",
    "IdentityCalibrator",
    "OneVsRestCalibrator",
    "calibrator_names",
    "get_calibrator",
]
