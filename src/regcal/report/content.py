"""Everything that the report shows, computed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from regcal._random import child_generator
from regcal._validation import Array
from regcal.audit import Audit
from regcal.distributions import Distribution
from regcal.distributions.masses import point_masses, points_beside
from regcal.explanation import Explanation
from regcal.metrics._inputs import standard_error, weighted_mean
from regcal.metrics.calibration import (
    CoverageCurve,
    PitHistogram,
    coverage_curve,
    pit_histogram,
)
from regcal.metrics.censoring import Ends
from regcal.metrics.compare import Comparison, compare, table_cells
from regcal.metrics.joint import JointCalibrationTest, joint_calibration_test
from regcal.metrics.thresholds import (
    ProbabilityBins,
    ReliabilityCurve,
    ThresholdErrors,
    errors_by_threshold,
    forecasts_at,
    reliability_curve,
    thresholds_for,
)
from regcal.outcomes import Outcomes

# Beyond these numbers of rows a random part is used: probabilities are cheap, integrals are not.
_MAX_TEST_ROWS = 20_000
_MAX_SCORE_ROWS = 2_000
_MAX_EXPLORER_ROWS = 150
_EXPLORER_POINTS = 121

# Bins of P(Y <= t), as in `reliability_curve`.
_BINS = 8

# Lines that the figure of reliability starts with.
_FIRST_LINES = 5


@dataclass(frozen=True)
class ModelContent:
    """What is shown of one model."""

    name: str
    pit: PitHistogram
    coverage: CoverageCurve
    reliability: ReliabilityCurve
    errors: ThresholdErrors
    test: JointCalibrationTest

    @property
    def p_values(self) -> list[float]:
        """Return a p-value for each threshold, adjusted for all that the verdict looks at."""
        on_average, in_bins = self.test.all_of("threshold"), self.test.all_of("reliability")
        pairs = zip(on_average, in_bins, strict=True)
        return [min(one.p_value, other.p_value) for one, other in pairs]


@dataclass(frozen=True)
class PromisedIntervals:
    """What became of intervals with a guarantee: how many outcomes they hold, and how wide."""

    promised: float
    observed: float
    error: float
    width: float
    plain_width: float


@dataclass(frozen=True)
class ExplorerRow:
    """One row of the explorer: probabilities and densities on its own grid of the target.

    Points are shares of the way from low to high. Masses are their places, such shares too, and
    sizes, of each model. An outcome is both ends of what was seen of it.
    """

    name: str
    outcome: tuple[float, float]
    low: float
    high: float
    points: Array
    cdf: list[Array]
    density: list[Array]
    masses: list[Array]


@dataclass(frozen=True)
class Content:
    """What the report shows: models in order, the last one is judged."""

    n_rows: int
    n_test_rows: int
    comparison: Comparison
    models: list[ModelContent]
    explorer: list[ExplorerRow]
    audit: Audit | None = None
    explanation: Explanation | None = None
    promises: list[PromisedIntervals] = field(default_factory=list)

    def score_table(self) -> list[list[str]]:
        """Return the cells of the score table, metric by metric."""
        return [table_cells(metric) for metric in self.comparison.metrics]

    def chart_data(self) -> dict[str, Any]:
        """Return what the figures in the page draw, as lists and numbers."""
        return {
            "models": [_model_data(model) for model in self.models],
            "first_lines": _first_lines(self.models[-1]),
            "explorer": [vars(row) for row in self.explorer],
            "effects": [] if self.explanation is None else _effects_data(self.explanation),
        }


def _effects_data(explanation: Explanation) -> list[dict[str, Any]]:
    """Return each covariate's curves, and its segments with centre, lower end, mean, upper end."""
    return [
        {
            **{name: getattr(one, name) for name in ("name", "labels", "values")},
            **{
                name: {"curve": getattr(one, name), "segments": explanation.bars(one, name)}
                for name in ("shift", "factor")
            },
        }
        for one in explanation.covariates
    ]


def _model_data(model: ModelContent) -> dict[str, Any]:
    curve = model.reliability
    return {
        "name": model.name,
        "pit": vars(model.pit),
        "coverage": vars(model.coverage),
        "reliability": {
            key: getattr(curve, key) for key in ("predicted", "observed", "lower", "upper", "share")
        },
        **vars(model.errors),
        "p_values": model.p_values,
    }


def _first_lines(model: ModelContent) -> list[int]:
    """Return a few thresholds that lie inside the data, evenly over those that do."""
    frequencies = np.array([one.observed for one in model.test.all_of("threshold")])
    inside = np.flatnonzero((frequencies > 0.02) & (frequencies < 0.98))
    candidates = inside if len(inside) else np.arange(len(frequencies))
    count = min(_FIRST_LINES, len(candidates))
    places = np.linspace(0, len(candidates) - 1, 2 * count + 1)[1::2]
    return [int(k) for k in np.unique(candidates[np.rint(places).astype(int)])]


def compute_content(
    outcomes: Outcomes,
    dists: dict[str, Distribution],
    weights: Array,
    *,
    thresholds: Any,
    row_names: list[str] | None,
    audit: Audit | None,
    explanation: Explanation | None,
    intervals: Mapping[float, Array],
    random_state: Any,
) -> Content:
    """Return the report's content; large data are represented by random rows."""
    rng = child_generator(random_state)
    used = np.flatnonzero(weights)
    rows = _some(used, _MAX_TEST_ROWS, rng)
    # All models and tables are judged at the same thresholds.
    grid = thresholds_for(thresholds, outcomes[rows], weights[rows])
    seen = [Ends(outcomes[rows], dist[rows]) for dist in dists.values()]
    told = grid[[all(ends.tell(t) for ends in seen) for t in grid]]
    judged_at = told if len(told) else grid  # which is then refused
    models = [
        _model_content(name, outcomes[rows], dist[rows], weights[rows], judged_at, random_state)
        for name, dist in dists.items()
    ]
    scored = _some(rows, _MAX_SCORE_ROWS, rng)
    parts = {name: dist[scored] for name, dist in dists.items()}
    comparison = compare(outcomes[scored], parts, weights[scored], thresholds=grid)
    explored = _some(rows, _MAX_EXPLORER_ROWS, rng)
    explorer = _explorer_rows(outcomes, list(dists.values()), explored, row_names)
    *_, judged = dists.values()
    promises = [
        _promised(share, ends[rows], outcomes[rows], judged[rows], weights[rows])
        for share, ends in intervals.items()
    ]
    return Content(len(used), len(rows), comparison, models, explorer, audit, explanation, promises)


def _promised(
    share: float, ends: Array, outcomes: Outcomes, dist: Distribution, weights: Array
) -> PromisedIntervals:
    """Return what intervals hold of outcomes that are numbers, and those of the distribution."""
    exact = outcomes.exact_rows
    y, (low, high) = outcomes.lower[exact], ends[exact].T
    held = ((low <= y) & (y <= high)).astype(np.float64)
    plain = np.subtract(*dist[exact].interval(share)[::-1])
    widths = (weighted_mean(one, weights[exact]) for one in (high - low, plain))
    observed, error = weighted_mean(held, weights[exact]), standard_error(held, weights[exact])
    return PromisedIntervals(share, observed, error, *widths)


def _some(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return at most so many rows, in their order."""
    if len(rows) <= count:
        return rows
    return np.sort(rng.choice(rows, size=count, replace=False))


def _model_content(
    name: str, y: Outcomes, dist: Distribution, weights: Array, thresholds: Array, random_state: Any
) -> ModelContent:
    test = joint_calibration_test(y, dist, thresholds, weights, random_state=random_state)
    forecasts = forecasts_at(y, dist, thresholds, weights, _BINS)
    # Bands of figures are those of the verdict: what leaves one is why it says "not calibrated".
    bars, covered = test.all_of("bar"), test.all_of("coverage")
    return ModelContent(
        name=name,
        pit=replace(
            pit_histogram(y, dist, sample_weight=weights),
            lower=len(bars) * min(one.lower for one in bars),
            upper=len(bars) * max(one.upper for one in bars),
        ),
        coverage=replace(
            coverage_curve(y, dist, sample_weight=weights),
            lower=np.array([one.lower for one in covered]),
            upper=np.array([one.upper for one in covered]),
        ),
        reliability=reliability_curve(y, dist, thresholds, _BINS, weights),
        errors=errors_by_threshold(forecasts, ProbabilityBins(forecasts, _BINS)),
        test=test,
    )


def _explorer_rows(
    outcomes: Outcomes, dists: list[Distribution], rows: np.ndarray, row_names: list[str] | None
) -> list[ExplorerRow]:
    parts, seen = [dist[rows] for dist in dists], outcomes[rows]
    masses = [point_masses(part) for part in parts]
    places = [
        np.unique(np.concatenate([m[:, 0] for m in tables])) for tables in zip(*masses, strict=True)
    ]
    low, high = _explorer_ranges(parts, seen)
    grids = points_beside(low, high, _EXPLORER_POINTS, places)
    cdfs = [part.cdf(grids) for part in parts]
    densities = [part.pdf(grids) for part in parts]
    width = high - low
    return [
        ExplorerRow(
            name=str(rows[k]) if row_names is None else row_names[rows[k]],
            outcome=(float(seen.lower[k]), float(seen.upper[k])),
            low=float(low[k]),
            high=float(high[k]),
            points=(grids[k] - low[k]) / width[k],
            cdf=[cdf[k] for cdf in cdfs],
            density=[density[k] for density in densities],
            masses=[(tables[k] - [low[k], 0.0]) / [width[k], 1.0] for tables in masses],
        )
        for k in range(len(rows))
    ]


def _explorer_ranges(parts: list[Distribution], seen: Outcomes) -> tuple[Array, Array]:
    """Return where rows are shown: nearly all mass of all models, and what was seen."""
    quantiles = [part.ppf(np.array([[0.005, 0.995]])) for part in parts]
    known = (
        np.where(np.isfinite(end), end, other)[:, np.newaxis]
        for end, other in ((seen.lower, seen.upper), (seen.upper, seen.lower))
    )
    ends = np.concatenate([*quantiles, *known], axis=1)
    low, high = ends.min(axis=1), ends.max(axis=1)
    margin = np.where(high > low, 0.05 * (high - low), 0.5)
    return low - margin, high + margin
