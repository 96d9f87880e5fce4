"""Calibrators: Distribution in, Distribution out."""

from regcal.calibrators.auto import AutoCalibrator, CandidateScore
from regcal.calibrators.base import Calibrator, IdentityCalibrator
from regcal.calibrators.one_vs_rest import OneVsRestCalibrator
from regcal.calibrators.pit import PITCalibrator
from regcal.calibrators.registry import calibrator_names, get_calibrator
from regcal.calibrators.scale import ScaleCalibrator

__all__ = [
    "AutoCalibrator",
    "Calibrator",
    "CandidateScore",
    "IdentityCalibrator",
    "OneVsRestCalibrator",
    "PITCalibrator",
    "ScaleCalibrator",
    "calibrator_names",
    "get_calibrator",
]
