"""Increasing functions that turn the probit of a predictive distribution into a better one.

Maps know nothing of how they were learnt, nor of distributions: `regcal.distributions.Transformed`
applies them.
"""

from regcal.maps.axis import Axis
from regcal.maps.base import Chain, Curve, Path, ProbitMap, log_change
from regcal.maps.lines import RowLines
from regcal.maps.piecewise import PiecewiseMap
from regcal.maps.scale import ScaleMap
from regcal.maps.sinh_arcsinh import SinhArcsinhMap
from regcal.maps.spline import RationalQuadraticSpline, count_reached
from regcal.maps.surface import Surface

__all__ = [
    "Axis",
    "Chain",
    "Curve",
    "Path",
    "PiecewiseMap",
    "ProbitMap",
    "RationalQuadraticSpline",
    "RowLines",
    "ScaleMap",
    "SinhArcsinhMap",
    "Surface",
    "count_reached",
    "log_change",
]
