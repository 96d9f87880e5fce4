"""Calibrators: Distribution in, Distribution out."""

from regcal.calibrators.base import Calibrator, IdentityCalibrator
from regcal.calibrators.gp_density import DensityCalibrator
from regcal.calibrators.gp_paper import PaperGPCalibrator
from regcal.calibrators.gp_threshold import GPCalibrator
from regcal.calibrators.one_vs_rest import OneVsRestCalibrator
from regcal.calibrators.registry import calibrator_names, get_calibrator

__all__ = [
    "Calibrator",
    "DensityCalibrator",
    "GPCalibrator",
    "IdentityCalibrator",
    "OneVsRestCalibrator",
    "PaperGPCalibrator",
    "calibrator_names",
    "get_calibrator",
]
