"""Calibrators by name."""

from collections.abc import Callable
from typing import Any

from sklearn.isotonic import IsotonicRegression

from regcal.binary import BetaCalibrator, LogisticCalibrator
from regcal.calibrators.auto import AutoCalibrator
from regcal.calibrators.base import Calibrator, IdentityCalibrator
from regcal.calibrators.conditional import ConditionalCalibrator
from regcal.calibrators.dirichlet import DirichletCalibrator
from regcal.calibrators.gp_density import DensityCalibrator
from regcal.calibrators.gp_paper import PaperGPCalibrator
from regcal.calibrators.gp_threshold import GPCalibrator
from regcal.calibrators.isotonic import IsotonicCalibrator
from regcal.calibrators.one_vs_rest import OneVsRestCalibrator
from regcal.calibrators.pit import PITCalibrator
from regcal.calibrators.scale import ScaleCalibrator


def _isotonic() -> IsotonicRegression:
    return IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")


# The one place where a name is resolved.
_BY_NAME: dict[str, Callable[..., Calibrator]] = {
    "identity": IdentityCalibrator,
    "scale": ScaleCalibrator,
    "pit": PITCalibrator,
    "isotonic": IsotonicCalibrator,
    "e-logistic": lambda **kw: OneVsRestCalibrator(LogisticCalibrator(), **kw),
    "e-beta": lambda **kw: OneVsRestCalibrator(BetaCalibrator(), **kw),
    "e-isotonic": lambda **kw: OneVsRestCalibrator(_isotonic(), **kw),
    "dirichlet": DirichletCalibrator,
    "gpc": GPCalibrator,
    "gpc-paper": PaperGPCalibrator,
    "gp-density": DensityCalibrator,
    "conditional": ConditionalCalibrator,
    "auto": AutoCalibrator,
}


def get_calibrator(name: str, **parameters: Any) -> Calibrator:
    """Return a new calibrator by its name.

    Parameters
    ----------
    name : str
        See `calibrator_names`.
    **parameters
        Passed on to the calibrator, for example ``thresholds=32``.

    Returns
    -------
    Calibrator

    Examples
    --------
    >>> import regcal
    >>> regcal.get_calibrator("e-beta", thresholds=8)
    OneVsRestCalibrator(binary=BetaCalibrator(), thresholds=8)
    """
    if name not in _BY_NAME:
        msg = f"There is no calibrator {name!r}. Known names: {', '.join(_BY_NAME)}."
        raise ValueError(msg)
    try:
        return _BY_NAME[name](**parameters)
    except TypeError as error:
        known = ", ".join(_BY_NAME[name]().get_params(deep=False)) or "none"
        msg = f"{name} does not take {', '.join(parameters)}. Its parameters: {known}."
        raise TypeError(msg) from error


def calibrator_names() -> list[str]:
    """Return the names that `get_calibrator` knows.

    Examples
    --------
    >>> import regcal
    >>> "e-beta" in regcal.calibrator_names()
    True
    """
    return list(_BY_NAME)
