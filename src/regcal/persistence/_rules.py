"""What the attributes of each class must be, one by one."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import BayesianRidge
from sklearn.linear_model._base import LinearModel
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

from regcal.binary import BetaCalibrator, LogisticCalibrator
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
from regcal.calibrators.order_statistics import Side
from regcal.calibrators.pit import PITCalibrator
from regcal.calibrators.scale import ScaleCalibrator
from regcal.calibrators.sinh_arcsinh import SinhArcsinhCalibrator
from regcal.calibrators.stack import StackCalibrator
from regcal.calibrators.support import Support
from regcal.codes import LeastSquaresDecoder
from regcal.corrections.additive import Additive, LevelTerm, SmoothTerm
from regcal.corrections.cross_fit import Averaged, Blend, Correction
from regcal.corrections.regressors import Fitted
from regcal.covariates import Column, Covariates
from regcal.distributions import (
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
from regcal.distributions.reading import Reading
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
from regcal.persistence._checks import (
    FARTHEST,
    FARTHEST_PROBIT,
    LARGEST_LOG,
    LARGEST_SHARE,
    LARGEST_SHIFT,
    MANY,
    Check,
    Count,
    Either,
    Instance,
    Names,
    Number,
    Numbers,
    Several,
    Size,
    above_zero,
    nothing,
    number_or_infinite,
)
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

_A_MAP = Instance(ProbitMap, Surface)
_COLUMN_MAPS = Instance(BetaCalibrator, LogisticCalibrator, ColumnMaps)
_SOME_MAPS = Either(_COLUMN_MAPS, Instance(DecodedMaps))
_WORK = {"_work_per_point": Count(most=10**12)}

_A_COLUMN = Instance(str, int, np.integer)

# Models of other libraries are checked as they stand in the file.
_A_MODEL = Instance(BaseEstimator, StoredModel)

_COLUMNS = Either(nothing, Numbers("features", missing=True))

RULES: dict[type, dict[str, Check]] = {
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
        "estimators_": Several(_A_MODEL),
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
    ScaleMap: {"factor": Number(least=1.0 / FARTHEST, most=FARTHEST)},
    SinhArcsinhMap: {
        "shift": Number(least=-FARTHEST, most=FARTHEST),
        "factor": Number(least=1.0 / FARTHEST, most=FARTHEST),
        "skew": Number(least=-4.0, most=4.0),
        "tail": Number(least=0.2, most=5.0),
    },
    PiecewiseMap: {
        "edges": Numbers("n", least=-FARTHEST, most=FARTHEST, rising=True),
        "heights": Numbers("n", least=-FARTHEST, most=FARTHEST),
        "left": Numbers("n-1", least=0.0, most=FARTHEST),
        "right": Numbers("n-1", least=0.0, most=FARTHEST),
    },
    RationalQuadraticSpline: {
        "x": Numbers("rows", "n", rising=True),
        "z": Numbers("rows", "n", rising=True),
        "d": Numbers("rows", "n", above=0.0),
    },
    Surface: {
        "u": Numbers("u", least=-FARTHEST_PROBIT, most=FARTHEST_PROBIT, rising=True),
        "t": Numbers("t", rising=True),
        "h": Numbers("u", "t", least=-LARGEST_SHIFT, most=LARGEST_SHIFT),
        "slopes": Several(Number(least=1.0 / FARTHEST, most=FARTHEST), 2),
        "start": Instance(ProbitMap),
        "axis": Instance(Axis),
        "ends": Several(number_or_infinite, 2),
    },
    Axis: {"centre": Number(), "width": above_zero},
    RowLines: {
        "shift": Numbers("rows", least=-FARTHEST, most=FARTHEST),
        "factor": Numbers("rows", least=1.0 / FARTHEST, most=FARTHEST),
    },
    # distributions
    Normal: {"loc": Numbers("rows"), "scale": Numbers("rows", above=0.0)},
    Clipped: {
        "base": Instance(Distribution),
        "low": number_or_infinite,
        "high": number_or_infinite,
        "near": Number(least=0.0),
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
        "values": Numbers("rows", "n"),
        "reading": Instance(Reading),
        "_spline": Instance(RationalQuadraticSpline),
        "_told": Instance(bool),
    },
    Samples: {
        "draws": Numbers("rows", "n"),
        "bandwidth": Numbers("rows", least=0.0),  # 0 of rows that lie on the ends
        "reading": Instance(Reading),
        "_told": Several(Instance(bool), 2),
        **_WORK,
    },
    Reading: {
        "kind": Instance(str),
        "low": number_or_infinite,
        "high": number_or_infinite,
        "least": number_or_infinite,
        "most": number_or_infinite,
        "spread": Number(least=0.0),
        "n_rows": Count(),
    },
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
    EqualGrid: {"count": Count(1, MANY), "margin": Number(least=0.0)},
    QuantileGrid: {"count": Count(1, MANY)},
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
    LevelTerm: {"name": Instance(str), "n_levels": Count(most=MANY)},
    Additive: {
        "terms": Several(Instance(SmoothTerm, LevelTerm), "terms"),
        "coefficients": Several(Instance(np.ndarray), "terms"),
        "constant": Number(least=-LARGEST_SHIFT, most=LARGEST_SHIFT),
        "centres": Several(Instance(np.ndarray), "terms"),
        "covariances": Several(Instance(np.ndarray), "terms"),
    },
    Fitted: {
        "regressor": _A_MODEL,
        "log": Instance(bool),
        "smallest": Number(least=0.0),
    },
    Averaged: {"parts": Several(Instance(Additive, Fitted))},
    Blend: {
        "parts": Several(Instance(Averaged), "learners"),
        "shares": Numbers("learners", least=0.0, most=LARGEST_SHARE),
    },
    Correction: {
        "shift": Instance(Blend),
        "log_factor": Instance(Blend),
        "constant": Number(least=-LARGEST_LOG, most=LARGEST_LOG),
        "origin": Number(least=-LARGEST_SHIFT, most=LARGEST_SHIFT),
        "unit": Number(least=1.0 / LARGEST_SHIFT, most=LARGEST_SHIFT),
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
    MapAxes: {
        "low": Number(),
        "high": Number(),
        "axis": Instance(Axis),
        "ends": Several(number_or_infinite, 2),
    },
    Support: {
        "low": number_or_infinite,
        "high": number_or_infinite,
        "step": Number(least=0.0),
        "smooth": Instance(bool),
        "bare_low": Instance(bool),
        "bare_high": Instance(bool),
    },
    Outcomes: {
        "lower": Numbers("rows", infinite=True),
        "upper": Numbers("rows", infinite=True),
    },
    Calibrator: {
        "n_rows_seen_": Count(),
        "support_": Instance(Support),
        "columns_": Instance(Covariates),
        "readings_": Several(Instance(Reading), least=0),
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
    BandedMap: {"coefficients": Numbers("segments", 4, least=-FARTHEST, most=FARTHEST)},
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
        "start": Instance(ProbitMap),
    },
    IsotonicCalibrator: {
        "thresholds_": Numbers("n", rising=True),
        "table_": Instance(IndexTable),
        "bandwidth_": Number(above=0.0),
        "marginal_bandwidth_": Number(above=0.0),
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
        "origin_": Number(),
    },
    AutoCalibrator: {
        "calibrator_": Instance(Calibrator),
        "chosen_": Instance(str),
        "scores_": Instance(list),
        "gain_": Number(),
    },
    ConformalLevels: {
        "lower_": Instance(Side),
        "upper_": Instance(Side),
        "weights_": Numbers("rows", above=0.0),
        "weighted_": Instance(bool),
        "unit_": Number(above=0.0),
        "n_rows_": Count(1),
        "groups_": Either(nothing, Numbers("rows", "columns")),
        "names_": Several(Instance(str), "columns", least=0),
    },
    Side: {
        "held": Numbers("rows", infinite=True),
        "drawn": Numbers("rows", infinite=True),
        "rests": Numbers("rows", infinite=True),
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
        "log_": Instance(dict),
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
    MultiQuantileRegressor: {"estimators_": Several(_A_MODEL)},
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
