"""Calibration that keeps up with time: of a stream of rows, and an alarm when it breaks."""

from regcal.online.calibrator import OnlineCalibrator
from regcal.online.monitor import CalibrationAlarm, CalibrationMonitor, MonitorHistory

__all__ = ["CalibrationAlarm", "CalibrationMonitor", "MonitorHistory", "OnlineCalibrator"]
