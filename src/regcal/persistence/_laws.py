"""What several attributes of an object must be to each other."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from sklearn.ensemble import BaggingRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.preprocessing import KBinsDiscretizer

from regcal.binary import BinaryMap
from regcal.calibrators.axes import MapAxes
from regcal.calibrators.conditional import ConditionalCalibrator
from regcal.calibrators.conformal import ConformalLevels
from regcal.calibrators.dirichlet import BandedMap, DirichletCalibrator
from regcal.calibrators.isotonic import IndexTable, IsotonicCalibrator
from regcal.calibrators.one_vs_rest import (
    ColumnMaps,
    DecodedMaps,
    OneVsRestCalibrator,
    Reweighting,
)
from regcal.calibrators.stack import StackCalibrator
from regcal.calibrators.support import Support
from regcal.codes import tells_apart
from regcal.corrections.additive import Additive, LevelTerm, SmoothTerm
from regcal.corrections.base import Regression
from regcal.corrections.cross_fit import Correction
from regcal.corrections.regressors import Fitted
from regcal.covariates import Column, Covariates
from regcal.distributions import (
    Bounded,
    Distribution,
    Histogram,
    Mixture,
    Normal,
    Quantiles,
    Samples,
    ScipyDistribution,
    Segmented,
    Transformed,
)
from regcal.distributions.reading import Reading
from regcal.distributions.stacked import Stacked
from regcal.gp.laplace import LaplacePosterior
from regcal.gp.process import FittedProcess
from regcal.maps import (
    PiecewiseMap,
    RowLines,
    Surface,
)
from regcal.maps.scale import IDENTITY
from regcal.online import CalibrationMonitor
from regcal.outcomes import Outcomes
from regcal.persistence._checks import (
    FARTHEST,
    LARGEST_LOG,
    LARGEST_SHIFT,
    Numbers,
    is_number,
)
from regcal.tables import (
    CovariateColumns,
)


def _pieces_meet(piecewise: PiecewiseMap) -> bool:
    """Return whether each piece ends where the next begins, up to the last digits."""
    edges, heights, left, right = (getattr(piecewise, f.name) for f in fields(piecewise))
    widths, slopes = np.diff(edges), 0.5 * (left + right)
    size = np.abs(heights) + np.abs(heights[0])
    size = size[1:] + size[:-1] + slopes * (np.abs(edges[1:]) + np.abs(edges[:-1]))
    meet = np.abs(np.diff(heights) - slopes * widths) <= 8 * np.finfo(float).eps * size
    bends = np.isfinite((right - left) / widths)
    steep = min(left[0], right[-1]) >= 1.0 / FARTHEST
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
    spaced = all(map(_equally_spaced, (surface.u, surface.t)))
    return spaced and surface.ends[0] <= surface.ends[1]  # of two values, both are between them


def _equally_spaced(axis: np.ndarray) -> bool:
    step = (axis[-1] - axis[0]) / (len(axis) - 1)
    possible = len(axis) > 3 and np.isfinite(step) and np.isfinite(1.0 / step)
    rounding = 8 * np.finfo(float).eps * np.abs(axis).max()
    return bool(possible and np.allclose(np.diff(axis), step, atol=rounding))


def _ends_are_apart(dist: Bounded) -> bool:
    # files from before there were ends have none
    numbers = all(map(is_number, (dist.low, dist.high, dist.near)))
    return numbers and bool(dist.low < dist.high and 0 <= dist.near <= 0.5 * (dist.high - dist.low))


def _splines_fit(dist: Quantiles) -> bool:
    """Return whether the curves are those through the quantiles, which increase."""
    if (np.diff(dist.values) < 0).any():
        return False
    own, again = vars(dist._spline), vars(dist._curves())
    return all(_next_to_equal(own[name], part) for name, part in again.items())


def _draws_inside_are_smoothed(dist: Samples) -> bool:
    """Return whether only rows whose draws all lie on the ends have no bandwidth."""
    return not dist._inside(dist.draws[dist.bandwidth == 0]).any()


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
        own = np.array_equal(dist.reweight.coordinates.thresholds, dist.thresholds)
        return own and (dist.reweight.start == IDENTITY or isinstance(dist.base, Transformed))
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
    vector = Numbers("functions", least=-LARGEST_SHIFT, most=LARGEST_SHIFT)
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
    return bool(blend.shares @ sizes <= LARGEST_LOG)


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


def _sides_have_rows(levels: ConformalLevels) -> bool:
    return all(len(side.held) == len(levels.weights_) for side in (levels.lower_, levels.upper_))


def _ends_are_thresholds(model: IsotonicRegression) -> bool:
    if not hasattr(model, "X_thresholds_"):
        return True
    known = model.X_thresholds_
    return bool(known[0] <= model.X_min_ <= model.X_max_ <= known[-1])


def _log_is_whole(monitor: CalibrationMonitor) -> bool:
    log = getattr(monitor, "log_", None)
    if log is None:
        return True
    columns, left_out = log.get("columns"), log.get("left_out")
    texts = [log.get("rows"), *(columns if isinstance(columns, list) else [None])]
    rows = isinstance(left_out, np.ndarray) and left_out.dtype.kind == "i" and left_out.ndim == 1
    return rows and all(isinstance(one, str) for one in texts)


LAWS: dict[type, Callable[[Any], bool]] = {
    BaggingRegressor: _columns_exist,
    KBinsDiscretizer: _bins_fit,
    PiecewiseMap: _pieces_meet,
    Surface: _is_a_grid,
    Bounded: _ends_are_apart,
    Quantiles: _splines_fit,
    Samples: _draws_inside_are_smoothed,
    Mixture: _mixture_fits,
    Histogram: _histogram_fits,
    ScipyDistribution: _family_allows,
    Stacked: _stack_fits,
    MapAxes: lambda axes: bool(axes.low < axes.high and axes.ends[0] <= axes.ends[1]),
    Outcomes: lambda outcomes: bool((outcomes.lower <= outcomes.upper).all()),
    Support: lambda support: bool(support.low < support.high),
    Reading: lambda reading: bool(reading.low < reading.high),
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
    ConformalLevels: _sides_have_rows,
    CalibrationMonitor: _log_is_whole,
}
