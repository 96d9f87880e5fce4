"""What numbers of objects must be: rules by class, applied to what was loaded.

A file bypasses constructors, so that their checks are repeated here, for regcal's own classes and
the models of scikit-learn that are most common. A class of regcal without rules of its own only has
to be complete and free of NaN.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import BayesianRidge
from sklearn.linear_model._base import LinearModel
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

from regcal.binary import BetaCalibrator, BinaryMap, LogisticCalibrator
from regcal.calibrators.auto import AutoCalibrator
from regcal.calibrators.axes import MapAxes
from regcal.calibrators.base import Calibrator
from regcal.calibrators.conditional import ConditionalCalibrator, LearnerScore
from regcal.calibrators.conformal import ConformalLevels
from regcal.calibrators.dirichlet import BandedMap, DirichletCalibrator
from regcal.calibrators.gp_fitted import ProcessCalibrator
from regcal.calibrators.gp_paper import PaperGPCalibrator
from regcal.calibrators.held_out import HeldOut
from regcal.calibrators.isotonic import IndexCoordinates, IndexTable, IsotonicCalibrator
from regcal.calibrators.observed import Observed
from regcal.calibrators.one_vs_rest import (
    ColumnMaps,
    DecodedMaps,
    OneVsRestCalibrator,
    Reweighting,
)
from regcal.calibrators.pit import PITCalibrator
from regcal.calibrators.scale import ScaleCalibrator
from regcal.calibrators.sinh_arcsinh import SinhArcsinhCalibrator
from regcal.calibrators.stack import StackCalibrator
from regcal.calibrators.support import Support
from regcal.codes import LeastSquaresDecoder, tells_apart
from regcal.corrections.additive import Additive, LevelTerm, SmoothTerm
from regcal.corrections.base import Regression
from regcal.corrections.cross_fit import Averaged, Blend, Correction
from regcal.corrections.regressors import Fitted
from regcal.covariates import Column, Covariates
from regcal.distributions import (
    Bounded,
    Clipped,
    Distribution,
    Histogram,
    Mixture,
    Normal,
    Quantiles,
    Rounded,
    Samples,
    ScipyDistribution,
    Segmented,
    Transformed,
)
from regcal.distributions.stacked import Stacked
from regcal.gp.basis import HilbertBasis
from regcal.gp.laplace import LaplacePosterior, ProcessPrior
from regcal.gp.process import FittedProcess
from regcal.grids import EqualGrid, QuantileGrid
from regcal.maps import (
    Axis,
    PiecewiseMap,
    ProbitMap,
    RationalQuadraticSpline,
    RowLines,
    ScaleMap,
    SinhArcsinhMap,
    Surface,
)
from regcal.online import CalibrationMonitor, OnlineCalibrator
from regcal.online.bets import BETS, Money
from regcal.online.levels import LEVELS, AdaptiveLevels
from regcal.online.monitor import CELLS
from regcal.online.tracks import Track
from regcal.outcomes import Outcomes
from regcal.persistence._archive import FileError
from regcal.persistence.other_libraries import StoredModel
from regcal.regressor import CalibratedRegressorCV, MultiQuantileRegressor, NormalResidualRegressor
from regcal.regressor._calibrated import CalibratedModel
from regcal.regressor._guarantee import Difference, Guarantee
from regcal.tables import (
    CovariateColumns,
    OutcomeColumns,
    PredictionColumns,
    TableCalibrator,
    TableRegressor,
)

# Tables of maps end long before.
_FARTHEST_PROBIT = 100.0

# Probits that are shifted so far still have ten digits.
_LARGEST_SHIFT = 1e6

# What learners find is taken as it is, or a little more or less of it.
_LARGEST_SHARE = 1e3

# Factors of probits have logs that are smaller.
_LARGEST_LOG = 100.0

# Squares of what maps are made of are numbers still.
_FARTHEST = 1e100

# No axis of a basis, no grid and no ensemble has more parts.
_MANY = 10**6

_LARGEST_INTEGER = 2**63 - 1

Sizes = dict[str, int]
Check = Callable[[Any, Sizes], bool]


def check_numbers(value: Any) -> None:
    """Refuse an object whose attributes break the rules of its class."""
    known = vars(value) if hasattr(value, "__dict__") else {}
    for name in known:
        if isinstance(getattr(type(value), str(name), None), cached_property):
            _refuse(value, name, "is computed when it is needed, and never stored")
    sizes: Sizes = {}
    optional = isinstance(value, BaseEstimator)
    for name, check in _rules_of(type(value)).items():
        if name not in known and not optional:
            _refuse(value, name, "is missing")
        if name in known and not check(known[name], sizes):
            _refuse(value, name, "is not what it should be")
    for kind, law in _LAWS.items():
        if isinstance(value, kind) and not _holds(law, value):
            msg = f"the parts of a {type(value).__name__} do not fit together"
            raise FileError(msg)


def _holds(law: Callable[[Any], bool], value: Any) -> bool:
    with np.errstate(all="ignore"):
        return law(value)


def _refuse(value: Any, name: str, reason: str) -> NoReturn:
    msg = f"{name!r} of a {type(value).__name__} {reason}"
    raise FileError(msg)


def _rules_of(kind: type) -> dict[str, Check]:
    """Return the rules of a class and of its bases."""
    found: dict[str, Check] = {}
    if is_dataclass(kind):
        found.update({field.name: _no_nan for field in fields(kind)})
    for base in reversed(kind.__mro__):
        found.update(_RULES.get(base, {}))
    return found


# ------------------------------------------------------------------------------------------ checks


def _no_nan(value: Any, sizes: Sizes) -> bool:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return not np.isnan(value).any()
    return True


def _is_number(value: Any) -> bool:
    """Return whether NumPy takes a value for one number; longer whole numbers are objects to it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return bool(abs(value) <= _LARGEST_INTEGER)
    return isinstance(value, float | np.integer | np.floating)


@dataclass(frozen=True)
class Number:
    """A finite number within bounds."""

    above: float = -np.inf
    least: float = -np.inf
    most: float = np.inf

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        good = _is_number(value) and np.isfinite(value)
        return bool(good and self.above < value and self.least <= value <= self.most)


def number_or_infinite(value: Any, sizes: Sizes) -> bool:
    """Return whether a value is an end of a support."""
    return bool(_is_number(value) and not np.isnan(value))


def above_zero(value: Any, sizes: Sizes) -> bool:
    """Return whether a value is a width or a time, which may have no end."""
    return bool(_is_number(value) and value > 0)


@dataclass(frozen=True)
class Count:
    """A whole number within bounds."""

    least: int = 0
    most: int = 2**62

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        return bool(whole and self.least <= value <= self.most)


class Numbers:
    """An array of numbers, finite unless told otherwise.

    Equal names of sizes are equal sizes, and ``"n-1"`` is one less than ``"n"``. With `missing`
    the values are not looked at.
    """

    def __init__(
        self,
        *shape: str | int,
        above: float = -np.inf,
        least: float = -np.inf,
        most: float = np.inf,
        kind: str = "f",
        rising: bool = False,
        infinite: bool = False,
        missing: bool = False,
    ) -> None:
        self.shape, self.above, self.least, self.most = shape, above, least, most
        self.kind, self.rising = kind, rising
        self.infinite, self.missing = infinite, missing

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, np.ndarray) or value.dtype.kind != self.kind:
            return False
        if value.ndim != len(self.shape) or not self._fits(value.shape, sizes):
            return False
        if self.missing:
            return True
        if not (np.isfinite(value) | (self.infinite & ~np.isnan(value))).all():
            return False
        bounded = ((value > self.above) | np.isinf(self.above)).all() and (
            (value >= self.least) & (value <= self.most)
        ).all()
        return bool(bounded and (not self.rising or (value[..., 1:] > value[..., :-1]).all()))

    def _fits(self, shape: tuple[int, ...], sizes: Sizes) -> bool:
        for size, wanted in zip(shape, self.shape, strict=True):
            if isinstance(wanted, int):
                good = size == wanted
            else:
                name, minus, _ = wanted.partition("-1")
                good = size > 0 and sizes.setdefault(name, size + bool(minus)) == size + bool(minus)
            if not good:
                return False
        return True


class Size:
    """A whole number that is a size of other parts."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        return Count()(value, sizes) and sizes.setdefault(self.name, int(value)) == value


class Names:
    """An array of texts."""

    def __init__(self, size: str) -> None:
        self.size = size

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, np.ndarray) or value.ndim != 1:
            return False
        texts = all(isinstance(name, str) for name in value)
        return texts and sizes.setdefault(self.size, len(value)) == len(value)


class Instance:
    """An instance of one of these classes."""

    def __init__(self, *kinds: type) -> None:
        self.kinds = kinds

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        return isinstance(value, self.kinds)


class Several:
    """A list or a tuple of parts that all obey a check; equal names are equal lengths."""

    def __init__(self, check: Check, length: str | int | None = None, least: int = 1) -> None:
        self.check, self.length, self.least = check, length, least

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, list | tuple) or not self.least <= len(value) <= _MANY:
            return False
        if isinstance(self.length, int) and len(value) != self.length:
            return False
        if isinstance(self.length, str) and sizes.setdefault(self.length, len(value)) != len(value):
            return False
        return all(self.check(part, sizes) for part in value)


class Either:
    """Whatever one of several checks lets through."""

    def __init__(self, *checks: Check) -> None:
        self.checks = checks

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        return any(check(value, sizes) for check in self.checks)


def nothing(value: Any, sizes: Sizes) -> bool:
    """Return whether there is no value."""
    return value is None


# ------------------------------------------------------------------------------------------- rules

_A_MAP = Instance(ProbitMap, Surface)
_COLUMN_MAPS = Instance(BetaCalibrator, LogisticCalibrator, ColumnMaps)
_SOME_MAPS = Either(_COLUMN_MAPS, Instance(DecodedMaps))
_WORK = {"_work_per_point": Count(most=10**12)}

_A_COLUMN = Instance(str, int, np.integer)

_COLUMNS = Either(nothing, Numbers("features", missing=True))

_RULES: dict[type, dict[str, Check]] = {
    # scikit-learn
    BaseEstimator: {"n_features_in_": Size("features"), "feature_names_in_": Names("features")},
    LinearModel: {
        "coef_": Either(
            Numbers("features", missing=True), Numbers("targets", "features", missing=True)
        ),
        "intercept_": Either(Instance(float, np.floating), Numbers("constants", missing=True)),
    },
    BayesianRidge: {
        "sigma_": Numbers("features", "features", missing=True),
        "X_offset_": Numbers("features", missing=True),
        "X_scale_": Numbers("features", missing=True),
    },
    BaggingRegressor: {
        "estimators_features_": Several(Numbers("chosen", kind="i", least=0)),
        "estimators_": Several(Instance(BaseEstimator)),
    },
    StandardScaler: {"mean_": _COLUMNS, "var_": _COLUMNS, "scale_": _COLUMNS},
    KBinsDiscretizer: {
        "n_bins_": Numbers("features", kind="i", least=1),
        "bin_edges_": Numbers("features", kind="O", missing=True),
    },
    IsotonicRegression: {
        "X_thresholds_": Numbers("n", rising=True),
        "y_thresholds_": Numbers("n"),
        "X_min_": Number(),
        "X_max_": Number(),
    },
    # maps
    ScaleMap: {"factor": Number(least=1.0 / _FARTHEST, most=_FARTHEST)},
    SinhArcsinhMap: {
        "shift": Number(least=-_FARTHEST, most=_FARTHEST),
        "factor": Number(least=1.0 / _FARTHEST, most=_FARTHEST),
        "skew": Number(least=-4.0, most=4.0),
        "tail": Number(least=0.2, most=5.0),
    },
    PiecewiseMap: {
        "edges": Numbers("n", least=-_FARTHEST, most=_FARTHEST, rising=True),
        "heights": Numbers("n", least=-_FARTHEST, most=_FARTHEST),
        "left": Numbers("n-1", least=0.0, most=_FARTHEST),
        "right": Numbers("n-1", least=0.0, most=_FARTHEST),
    },
    RationalQuadraticSpline: {
        "x": Numbers("rows", "n", rising=True),
        "z": Numbers("rows", "n", rising=True),
        "d": Numbers("rows", "n", above=0.0),
    },
    Surface: {
        "u": Numbers("u", least=-_FARTHEST_PROBIT, most=_FARTHEST_PROBIT, rising=True),
        "t": Numbers("t", rising=True),
        "h": Numbers("u", "t", least=-_LARGEST_SHIFT, most=_LARGEST_SHIFT),
        "slopes": Several(Number(least=1.0 / _FARTHEST, most=_FARTHEST), 2),
        "start": Instance(ProbitMap),
        "axis": Instance(Axis),
    },
    Axis: {"centre": Number(), "width": above_zero},
    RowLines: {
        "shift": Numbers("rows", least=-_FARTHEST, most=_FARTHEST),
        "factor": Numbers("rows", least=1.0 / _FARTHEST, most=_FARTHEST),
    },
    # distributions
    Normal: {"loc": Numbers("rows"), "scale": Numbers("rows", above=0.0)},
    Clipped: {
        "base": Instance(Distribution),
        "low": number_or_infinite,
        "high": number_or_infinite,
    },
    Rounded: {"base": Instance(Distribution), "step": Number(above=0.0)},
    Histogram: {
        "masses": Numbers("rows", "n-1", least=0.0, most=1.0),
        "edges": Either(
            Numbers("rows", "n", rising=True, infinite=True),
            Numbers(1, "n", rising=True, infinite=True),
        ),
        "_below": Numbers("rows", "n-1", least=0.0),
        "_above": Numbers("rows", "n-1", least=0.0),
    },
    Mixture: {
        "components": Several(Instance(Distribution), "parts"),
        "weights": Either(
            Numbers(1, "parts", least=0.0, most=1.0), Numbers("rows", "parts", least=0.0, most=1.0)
        ),
        **_WORK,
    },
    Quantiles: {
        "levels": Numbers("n", above=0.0, most=1.0, rising=True),
        "values": Numbers("rows", "n", rising=True),
        "_spline": Instance(RationalQuadraticSpline),
    },
    Samples: {"draws": Numbers("rows", "n"), "bandwidth": Numbers("rows", above=0.0), **_WORK},
    ScipyDistribution: {"parameters": Several(Numbers("rows", infinite=True), least=2)},
    Segmented: {
        "base": Instance(Distribution),
        "thresholds": Numbers("n", rising=True),
        "uniform": Instance(bool),
        **_WORK,
    },
    Stacked: {
        "parts": Several(Instance(Distribution)),
        "_part": Numbers("rows", kind="i", least=0),
        "_row": Numbers("rows", kind="i", least=0),
        **_WORK,
    },
    Transformed: {
        "base": Instance(Distribution),
        "mapping": Either(_A_MAP, Instance(RowLines)),
        **_WORK,
    },
    # processes
    HilbertBasis: {
        "sizes": Several(Count(1, 1000), 2),
        "boundary": Either(Number(above=0.0), Several(Number(above=0.0), 2)),
        "halfwidth": Several(Number(above=0.0), 2),
    },
    ProcessPrior: {
        "basis": Instance(HilbertBasis),
        "extra_variances": Several(Number(above=0.0), least=0),
    },
    LaplacePosterior: {
        "coefficients": Numbers("n"),
        "log_evidence": Number(),
        "theta": Numbers(3),
        "gradient": Numbers(3),
        "information": Numbers(3, 3),
        "active": Numbers("active", kind="i", least=0),
        "scale": Numbers("active", least=0.0),
        "cholesky": Numbers("active", "active"),
        "sensitivity": Numbers("active", 3),
        "n_newton": Count(),
        "n_evaluations": Count(),
        "converged": Instance(bool, np.bool_),
    },
    FittedProcess: {"prior": Instance(ProcessPrior), "posterior": Instance(LaplacePosterior)},
    EqualGrid: {"count": Count(1, _MANY), "margin": Number(least=0.0)},
    QuantileGrid: {"count": Count(1, _MANY)},
    # covariates
    Column: {
        "name": Instance(str),
        "kind": Instance(str),
        "values": Instance(np.ndarray),
        "levels": Instance(tuple),
    },
    Covariates: {"columns": Several(Instance(Column))},
    SmoothTerm: {
        "name": Instance(str),
        "quantiles": Numbers("n"),
        "ranks": Numbers("n", least=0.0, most=1.0),
    },
    LevelTerm: {"name": Instance(str), "n_levels": Count(most=_MANY)},
    Additive: {
        "terms": Several(Instance(SmoothTerm, LevelTerm), "terms"),
        "coefficients": Several(Instance(np.ndarray), "terms"),
        "constant": Number(least=-_LARGEST_SHIFT, most=_LARGEST_SHIFT),
        "centres": Several(Instance(np.ndarray), "terms"),
        "covariances": Several(Instance(np.ndarray), "terms"),
    },
    Fitted: {
        "regressor": Instance(BaseEstimator, StoredModel),
        "log": Instance(bool),
        "smallest": Number(least=0.0),
    },
    Averaged: {"parts": Several(Instance(Additive, Fitted))},
    Blend: {
        "parts": Several(Instance(Averaged), "learners"),
        "shares": Numbers("learners", least=0.0, most=_LARGEST_SHARE),
    },
    Correction: {
        "shift": Instance(Blend),
        "log_factor": Instance(Blend),
        "constant": Number(least=-_LARGEST_LOG, most=_LARGEST_LOG),
        "origin": Number(least=-_LARGEST_SHIFT, most=_LARGEST_SHIFT),
        "unit": Number(least=1.0 / _LARGEST_SHIFT, most=_LARGEST_SHIFT),
    },
    # calibrators
    BetaCalibrator: {"coefficients_": Numbers("columns", 3)},
    LogisticCalibrator: {"coefficients_": Numbers("columns", 2)},
    ColumnMaps: {"maps": Several(Instance(BaseEstimator)), "n_trials": Number(above=0.0)},
    DecodedMaps: {
        "maps": _COLUMN_MAPS,
        "matrix": Numbers("unions", "segments", least=0.0, most=1.0),
        "n_trials": Number(above=0.0),
    },
    LeastSquaresDecoder: {"weighted": Instance(bool)},
    Reweighting: {"maps": _SOME_MAPS},
    MapAxes: {"low": Number(), "high": Number(), "axis": Instance(Axis)},
    Support: {
        "low": number_or_infinite,
        "high": number_or_infinite,
        "step": Number(least=0.0),
        "smooth": Instance(bool),
    },
    Outcomes: {
        "lower": Numbers("rows", infinite=True),
        "upper": Numbers("rows", infinite=True),
    },
    Calibrator: {
        "n_rows_seen_": Count(),
        "support_": Instance(Support),
        "columns_": Instance(Covariates),
    },
    ScaleCalibrator: {"map_": Instance(ScaleMap)},
    PITCalibrator: {"map_": Instance(ProbitMap)},
    SinhArcsinhCalibrator: {"map_": Instance(SinhArcsinhMap)},
    ProcessCalibrator: {
        "axes_": Instance(MapAxes),
        "start_": Instance(ProbitMap),
        "process_": Instance(FittedProcess),
        "map_": _A_MAP,
        "thresholds_": Numbers("n", rising=True),
        "prediction_thresholds_": Either(nothing, Numbers("m", rising=True)),
    },
    PaperGPCalibrator: {
        "axes_": Instance(MapAxes),
        "map_": _A_MAP,
        "thresholds_": Numbers("n", rising=True),
        "prediction_thresholds_": Numbers("m", rising=True),
    },
    OneVsRestCalibrator: {"thresholds_": Numbers("n", rising=True), "maps_": _SOME_MAPS},
    BandedMap: {"coefficients": Numbers("segments", 4, least=-_FARTHEST, most=_FARTHEST)},
    DirichletCalibrator: {
        "thresholds_": Numbers("n", rising=True),
        "map_": Instance(BandedMap),
        "deviations_": Numbers(3, above=0.0),
    },
    IndexCoordinates: {
        "thresholds": Numbers("n", rising=True),
        "index": Instance(str),
        "axis": Instance(Axis),
        "width": Number(least=0.0),
    },
    IndexTable: {
        "coordinates": Instance(IndexCoordinates),
        "places": Numbers("groups", rising=True),
        "masses": Numbers("groups", "segments", least=0.0),
        "share": Number(above=0.0, most=1.0),
    },
    IsotonicCalibrator: {
        "thresholds_": Numbers("n", rising=True),
        "table_": Instance(IndexTable),
        "bandwidth_": Number(above=0.0),
    },
    StackCalibrator: {
        "parts_": Several(Instance(Calibrator)),
        "weights_": Numbers("parts", above=0.0),
    },
    LearnerScore: {"name": Instance(str), "log_score": Number(), "chosen": Instance(bool)},
    ConditionalCalibrator: {
        "scores_": Several(Instance(LearnerScore)),
        "learner_": Instance(str),
        "correction_": Either(nothing, Instance(Correction)),
        "calibrator_": Instance(Calibrator),
    },
    AutoCalibrator: {
        "calibrator_": Instance(Calibrator),
        "chosen_": Instance(str),
        "scores_": Instance(list),
        "gain_": Number(),
    },
    ConformalLevels: {
        "low_": Numbers("rows", infinite=True),
        "high_": Numbers("rows", infinite=True),
        "weights_": Numbers("rows", above=0.0),
        "groups_": Either(nothing, Numbers("rows", "columns")),
        "names_": Several(Instance(str), "columns", least=0),
    },
    # streams
    Track: {
        "half_life": above_zero,
        "observed": Instance(Observed),
        "fitted": Either(nothing, Instance(Calibrator)),
        "new": Number(least=0.0),
    },
    AdaptiveLevels: {"places": Numbers(len(LEVELS))},
    OnlineCalibrator: {
        "tracks_": Several(Instance(Track), "tracks"),
        "log_weights_": Numbers("tracks"),
        "levels_": Instance(AdaptiveLevels),
        "waiting_": Several(Instance(HeldOut), least=0),
        "n_rows_seen_": Count(),
        "n_rows_learnt_": Count(),
    },
    Money: {
        "n_rows": Count(),
        "log_money": Numbers(len(BETS), infinite=True),
        "log_best": Numbers(len(BETS), infinite=True),
        "begins": Numbers(len(BETS), kind="i", least=0),
    },
    CalibrationMonitor: {
        "bets_": Instance(Money),
        "counts_": Numbers(CELLS, kind="i", least=0),
        "n_rows_seen_": Count(),
        "stride_": Count(1),
    },
    # models
    CalibratedModel: {"calibrator": Instance(Calibrator)},
    CalibratedRegressorCV: {
        "support_": Instance(Support),
        "members_": Several(Instance(CalibratedModel)),
        "selection_": Instance(Calibrator),
        "guarantee_": Instance(Guarantee),
        "n_features_in_": Count(),
    },
    Guarantee: {
        "kind": Instance(str),
        "levels": Instance(ConformalLevels),
        "by": Either(nothing, _A_COLUMN, Several(_A_COLUMN)),
        "difference": Either(nothing, Instance(Difference)),
    },
    Difference: {"shifts": Numbers("rows"), "ratios": Numbers("rows", least=0.0)},
    NormalResidualRegressor: {"scale_": Number(above=0.0)},
    MultiQuantileRegressor: {"estimators_": Several(Instance(BaseEstimator))},
    CovariateColumns: {"columns": Instance(dict), "texts": Several(Instance(str), least=0)},
    TableCalibrator: {
        "columns": Instance(PredictionColumns),
        "target": Instance(str, int, OutcomeColumns),
        "covariates": Either(nothing, Instance(CovariateColumns)),
        "calibrator_": Instance(Calibrator),
    },
    TableRegressor: {
        "target": Instance(str, int, OutcomeColumns),
        "numbers": Several(Instance(str), least=0),
        "texts": Several(Instance(str), least=0),
        "model_": Instance(CalibratedRegressorCV),
    },
}


# --------------------------------------------------------------------- laws between several parts


def _pieces_meet(piecewise: PiecewiseMap) -> bool:
    """Return whether each piece ends where the next begins, up to the last digits."""
    edges, heights, left, right = (getattr(piecewise, f.name) for f in fields(piecewise))
    widths, slopes = np.diff(edges), 0.5 * (left + right)
    size = np.abs(heights) + np.abs(heights[0])
    size = size[1:] + size[:-1] + slopes * (np.abs(edges[1:]) + np.abs(edges[:-1]))
    meet = np.abs(np.diff(heights) - slopes * widths) <= 8 * np.finfo(float).eps * size
    bends = np.isfinite((right - left) / widths)
    steep = min(left[0], right[-1]) >= 1.0 / _FARTHEST
    return bool(steep and (meet & bends & ((left > 0) == (right > 0))).all())


def _columns_exist(model: BaggingRegressor) -> bool:
    chosen = getattr(model, "estimators_features_", [])
    return all(columns.max() < model.n_features_in_ for columns in chosen)


def _bins_fit(model: KBinsDiscretizer) -> bool:
    """Return whether bins lie between their edges, and the encoder of their numbers knows them."""
    if not hasattr(model, "bin_edges_"):
        return True
    edges = all(
        Numbers("n", rising=True, infinite=True)(own, {"n": int(count) + 1})
        for own, count in zip(model.bin_edges_, model.n_bins_, strict=True)
    )
    if model.encode == "ordinal":
        return edges
    known = model._encoder.categories_
    return edges and all(map(np.array_equal, known, map(np.arange, model.n_bins_)))


def _is_a_grid(surface: Surface) -> bool:
    return all(map(_equally_spaced, (surface.u, surface.t)))


def _equally_spaced(axis: np.ndarray) -> bool:
    step = (axis[-1] - axis[0]) / (len(axis) - 1)
    possible = len(axis) > 3 and np.isfinite(step) and np.isfinite(1.0 / step)
    rounding = 8 * np.finfo(float).eps * np.abs(axis).max()
    return bool(possible and np.allclose(np.diff(axis), step, atol=rounding))


def _ends_are_apart(dist: Bounded) -> bool:
    # files from before there were ends have none
    return _is_number(dist.low) and _is_number(dist.high) and bool(dist.low < dist.high)


def _splines_fit(dist: Quantiles) -> bool:
    """Return whether the curves are those through the quantiles."""
    own, again = vars(dist._spline), vars(dist._curves())
    return all(_next_to_equal(own[name], part) for name, part in again.items())


def _next_to_equal(given: np.ndarray, computed: np.ndarray) -> bool:
    close = 1e-12 * np.abs(computed).max()
    return given.shape == computed.shape and np.allclose(given, computed, rtol=1e-6, atol=close)


def _equal_lengths(dists: Sequence[Distribution]) -> bool:
    return len({len(dist) for dist in dists}) == 1


def _mixture_fits(dist: Mixture) -> bool:
    rows = len(dist.weights)
    sums = bool((np.abs(dist.weights.sum(axis=1) - 1.0) < 1e-6).all())
    return sums and _equal_lengths(dist.components) and rows in (1, len(dist.components[0]))


def _histogram_fits(dist: Histogram) -> bool:
    again = Histogram(dist.edges, dist.masses)
    return all(_next_to_equal(vars(dist)[k], vars(again)[k]) for k in ("_below", "_above"))


def _family_allows(dist: ScipyDistribution) -> bool:
    if len(dist.parameters) != dist.family.numargs + 2:
        return False
    dist._check()
    return True


def _stack_fits(dist: Stacked) -> bool:
    lengths = np.array([len(part) for part in dist.parts])
    return bool((dist._part < len(lengths)).all() and (dist._row < lengths[dist._part]).all())


def _posterior_fits(posterior: LaplacePosterior) -> bool:
    diagonal = np.diagonal(posterior.cholesky)
    return bool((posterior.active < len(posterior.coefficients)).all() and (diagonal > 0).all())


def _process_fits(process: FittedProcess) -> bool:
    prior = process.prior
    functions = prior.basis.n_functions + len(prior.extra_variances)
    return functions == len(process.posterior.coefficients)


def _is_fitted_or_new(binary: BinaryMap) -> bool:
    """Return whether a map has what it learnt, or nothing that was learnt."""
    learnt = [name for name in vars(binary) if name.endswith("_")]
    return not learnt or "coefficients_" in learnt


def _columns_of(maps: Any) -> int:
    if isinstance(maps, DecodedMaps):
        return maps.matrix.shape[1]
    return len(maps.maps) if isinstance(maps, ColumnMaps) else len(maps.coefficients_)


def _unions_have_maps(maps: DecodedMaps) -> bool:
    code = bool(np.isin(maps.matrix, (0.0, 1.0)).all()) and tells_apart(maps.matrix)
    return code and _columns_of(maps.maps) == len(maps.matrix) and hasattr(maps.decoder, "masses")


def _segments_have_maps(calibrator: OneVsRestCalibrator) -> bool:
    if not hasattr(calibrator, "maps_"):
        return True
    return _columns_of(calibrator.maps_) == len(calibrator.thresholds_) + 1


def _segments_have_coefficients(calibrator: DirichletCalibrator) -> bool:
    if not hasattr(calibrator, "map_"):
        return True
    return len(calibrator.map_.coefficients) == len(calibrator.thresholds_) + 1


def _table_fits(table: IndexTable) -> bool:
    known = table.coordinates.index in ("median", "mean")
    sums = table.masses.sum(axis=1)
    n_segments = table.coordinates.n_segments
    return known and table.masses.shape[1] == n_segments and bool(np.allclose(sums, 1.0))


def _table_is_of_thresholds(calibrator: IsotonicCalibrator) -> bool:
    if not hasattr(calibrator, "table_"):
        return True
    return np.array_equal(calibrator.thresholds_, calibrator.table_.coordinates.thresholds)


def _parts_have_weights(stack: StackCalibrator) -> bool:
    if not hasattr(stack, "parts_"):
        return True
    same = len(stack.parts_) == len(stack.weights_)
    return same and bool(np.isclose(stack.weights_.sum(), 1.0))


def _segments_are_reweighted(dist: Segmented) -> bool:
    if isinstance(dist.reweight, IndexTable):
        return np.array_equal(dist.reweight.coordinates.thresholds, dist.thresholds)
    if isinstance(dist.reweight, BandedMap):
        return len(dist.reweight.coefficients) == len(dist.thresholds) + 1
    if not isinstance(dist.reweight, Reweighting):
        return callable(dist.reweight)
    return _columns_of(dist.reweight.maps) == len(dist.thresholds) + 1


def _column_fits(column: Column) -> bool:
    """Return whether values are numbers that may be missing, or places in levels."""
    values, levels = column.values, column.levels
    if values.ndim != 1 or len(set(levels)) != len(levels):
        return False
    if column.kind == "number":
        return values.dtype.kind == "f" and not levels and not np.isinf(values).any()
    known = values.dtype.kind == "i" and ((values >= -1) & (values < len(levels))).all()
    return column.kind == "category" and bool(known)


def _columns_are_of_one_table(covariates: Covariates) -> bool:
    names = covariates.names
    return len(set(names)) == len(names) and len({len(one) for one in covariates.columns}) == 1


def _ranks_rise(term: SmoothTerm) -> bool:
    return all(bool((np.diff(part) >= 0).all()) for part in (term.quantiles, term.ranks))


def _functions_have_coefficients(sums: Additive) -> bool:
    vector = Numbers("functions", least=-_LARGEST_SHIFT, most=_LARGEST_SHIFT)
    checks = (vector, vector, Numbers("functions", "functions"))
    parts = zip(sums.coefficients, sums.centres, sums.covariances, strict=True)
    return all(
        check(part, {"functions": len(term.precisions)})
        for term, own in zip(sums.terms, parts, strict=True)
        for check, part in zip(checks, own, strict=True)
    )


def _factors_are_bounded(correction: Correction) -> bool:
    """Return whether the log of a spread is a number wherever it is asked for."""
    blend = correction.log_factor
    sizes = [max(map(_largest_log, part.parts)) for part in blend.parts]
    return bool(blend.shares @ sizes <= _LARGEST_LOG)


def _largest_log(regression: Regression) -> float:
    if isinstance(regression, Additive):
        sizes = (np.abs(own).sum() for own in regression.coefficients)
        return float(abs(regression.constant) + sum(sizes))
    # the logs of other answers are of moderate size if these are numbers above 0
    positive = isinstance(regression, Fitted) and regression.log and regression.smallest > 0
    return 0.0 if positive else np.inf


def _correction_is_of_columns(calibrator: ConditionalCalibrator) -> bool:
    """Return whether a correction asks for columns that the calibrator reads or makes."""
    correction = getattr(calibrator, "correction_", None)
    if correction is None:
        return True
    columns = calibrator._columns(Normal([0.0], [1.0]), calibrator.columns_)
    blends = (correction.shift, correction.log_factor)
    parts = [part for blend in blends for learner in blend.parts for part in learner.parts]
    return columns is not None and all(_is_of_columns(part, columns) for part in parts)


def _is_of_columns(part: Regression, columns: Covariates) -> bool:
    if isinstance(part, Additive):
        own = {column.name: column for column in columns.columns}
        return all(term.name in own and _is_of_column(term, own[term.name]) for term in part.terms)
    n_columns = len(columns.columns)
    regressor = part.regressor if isinstance(part, Fitted) else None
    return getattr(regressor, "n_features_in_", n_columns) == n_columns


def _is_of_column(term: SmoothTerm | LevelTerm, column: Column) -> bool:
    if isinstance(term, SmoothTerm):
        return column.kind == "number"
    return column.kind == "category" and term.n_levels == len(column.levels)


def _lines_have_rows(dist: Transformed) -> bool:
    return not isinstance(dist.mapping, RowLines) or len(dist.mapping.shift) == len(dist.base)


def _ends_are_thresholds(model: IsotonicRegression) -> bool:
    if not hasattr(model, "X_thresholds_"):
        return True
    known = model.X_thresholds_
    return bool(known[0] <= model.X_min_ <= model.X_max_ <= known[-1])


_LAWS: dict[type, Callable[[Any], bool]] = {
    BaggingRegressor: _columns_exist,
    KBinsDiscretizer: _bins_fit,
    PiecewiseMap: _pieces_meet,
    Surface: _is_a_grid,
    Bounded: _ends_are_apart,
    Quantiles: _splines_fit,
    Mixture: _mixture_fits,
    Histogram: _histogram_fits,
    ScipyDistribution: _family_allows,
    Stacked: _stack_fits,
    MapAxes: lambda axes: bool(axes.low < axes.high),
    Outcomes: lambda outcomes: bool((outcomes.lower <= outcomes.upper).all()),
    Support: lambda support: bool(support.low < support.high),
    LaplacePosterior: _posterior_fits,
    FittedProcess: _process_fits,
    BinaryMap: _is_fitted_or_new,
    DecodedMaps: _unions_have_maps,
    OneVsRestCalibrator: _segments_have_maps,
    DirichletCalibrator: _segments_have_coefficients,
    IndexTable: _table_fits,
    IsotonicCalibrator: _table_is_of_thresholds,
    StackCalibrator: _parts_have_weights,
    CovariateColumns: lambda known: set(known.texts) <= set(known.columns),
    Segmented: _segments_are_reweighted,
    Transformed: _lines_have_rows,
    Column: _column_fits,
    Covariates: _columns_are_of_one_table,
    SmoothTerm: _ranks_rise,
    Additive: _functions_have_coefficients,
    Correction: _factors_are_bounded,
    ConditionalCalibrator: _correction_is_of_columns,
    IsotonicRegression: _ends_are_thresholds,
}
