"""Several predictions of the same rows side by side, with uncertainty."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from regcal._validation import Array, check_targets, check_weights
from regcal.distributions import Distribution, as_distribution
from regcal.metrics._inputs import check_level, standard_error, weighted_mean
from regcal.metrics.calibration import checked_levels, covered, debiased_root
from regcal.metrics.scores import interval_score
from regcal.metrics.thresholds import (
    DEFAULT_THRESHOLDS,
    Forecasts,
    ProbabilityBins,
    forecasts_at,
)

if TYPE_CHECKING:
    import pandas as pd

_N_BINS = 8
_N_JACKKNIFE_GROUPS = 20


@dataclass(frozen=True)
class ComparedMetric:
    """One metric of all models.

    Attributes
    ----------
    name : str
    better : str
        ``"larger"``, ``"smaller"``, or the nominal value to come close to, such as ``"90 %"``.
    values, standard_errors : ndarray of shape (n_models,)
    differences, difference_errors : ndarray of shape (n_models,)
        Each model less the first on the same rows, with the standard error of that paired
        difference. 0 for the first model.

    Examples
    --------
    >>> from regcal import Normal, compare
    >>> wide, narrow = Normal([0.0, 0.0], [2.0, 2.0]), Normal([0.0, 0.0], [1.0, 1.0])
    >>> metric = compare([0.5, -0.5], {"wide": wide, "narrow": narrow})["log score"]
    >>> metric.better, metric.differences.round(2)
    ('larger', array([0. , 0.6]))
    """

    name: str
    better: str
    values: Array
    standard_errors: Array
    differences: Array
    difference_errors: Array


@dataclass(frozen=True, repr=False)
class Comparison:
    """A table of metrics: rows are metrics, columns are models.

    Attributes
    ----------
    models : tuple of str
    metrics : tuple of ComparedMetric
    n_rows : int

    Examples
    --------
    >>> from regcal import Normal, compare
    >>> table = compare([0.5, -0.5], {"model": Normal([0.0, 0.0], [1.0, 1.0])})
    >>> table.models, table.n_rows, table["CRPS"].values.round(3)
    (('model',), 2, array([0.331]))
    """

    models: tuple[str, ...]
    metrics: tuple[ComparedMetric, ...]
    n_rows: int

    def __getitem__(self, name: str) -> ComparedMetric:
        for metric in self.metrics:
            if metric.name == name:
                return metric
        msg = f"There is no metric {name!r}. Known: {', '.join(m.name for m in self.metrics)}."
        raise KeyError(msg)

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas frame with one row per metric.

        Columns are the models, their standard errors, and differences from the first model with
        standard errors.
        """
        import pandas as pd

        rows = [dict(_columns(self.models, metric)) for metric in self.metrics]
        index = pd.Index([metric.name for metric in self.metrics], name="metric")
        return pd.DataFrame(rows, index=index)

    def __repr__(self) -> str:
        cells = [_header(self.models)]
        cells += [table_cells(metric) for metric in self.metrics]
        widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0])]
                + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            ).rstrip()
            for row in cells
        ]
        return "\n".join([*lines, f"{self.n_rows} rows; ± is one standard error."])


def _columns(models: tuple[str, ...], metric: ComparedMetric) -> Iterator[tuple[str, Any]]:
    yield "better", metric.better
    for k, model in enumerate(models):
        yield model, metric.values[k]
        yield f"{model} (se)", metric.standard_errors[k]
    for k, model in enumerate(models[1:], start=1):
        yield f"{model} - {models[0]}", metric.differences[k]
        yield f"{model} - {models[0]} (se)", metric.difference_errors[k]


def _header(models: tuple[str, ...]) -> list[str]:
    return ["", *models, *(f"{model} - {models[0]}" for model in models[1:]), "better"]


def table_cells(metric: ComparedMetric) -> list[str]:
    """Return name, values, differences and direction of one metric as text."""
    values = zip(metric.values, metric.standard_errors, strict=True)
    gaps = zip(metric.differences[1:], metric.difference_errors[1:], strict=True)
    return [
        metric.name,
        *(with_error(*pair) for pair in values),
        *(with_error(*pair, sign="+") for pair in gaps),
        metric.better,
    ]


def with_error(value: float, error: float, sign: str = "") -> str:
    """Return a number and its standard error, rounded to what the error supports.

    Examples
    --------
    >>> from regcal.metrics.compare import with_error
    >>> with_error(1.23456, 0.0123)
    '1.235 ± 0.012'
    """
    if not (np.isfinite(value) and np.isfinite(error) and error > 1e-9 * abs(value)):
        return f"{value:{sign}.4g}"
    digits = int(np.clip(1 - np.floor(np.log10(error)), 0, 12))
    return f"{value:{sign}.{digits}f} ± {error:.{digits}f}"


def compare(
    y: Any,
    dists: Mapping[str, Any],
    sample_weight: Any = None,
    *,
    coverage: float = 0.9,
    thresholds: Any = DEFAULT_THRESHOLDS,
) -> Comparison:
    """Return scores and calibration errors of several predictions for the same rows.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Observed targets.
    dists : mapping from str to Distribution or anything `as_distribution` takes
        Predictions by name; differences are taken from the first.
    sample_weight : array-like of shape (n_rows,), optional
    coverage : float, default=0.9
        Nominal coverage of the intervals that are judged.
    thresholds : int, grid or array-like, default=QuantileGrid(16)
        Where threshold calibration is judged.

    Returns
    -------
    Comparison
        Its `repr` is a readable table, and ``to_frame()`` a pandas frame. Standard errors of
        calibration errors come from leaving out one twentieth of the rows at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.metrics import compare
    >>> y = np.random.default_rng(0).normal(size=400)
    >>> wide, right = Normal(np.zeros(400), np.full(400, 2.0)), Normal(np.zeros(400), np.ones(400))
    >>> table = compare(y, {"before": wide, "after": right})
    >>> table["log score"].differences.round(2)
    array([0.  , 0.32])
    """
    if not isinstance(dists, Mapping):
        msg = (
            f'dists must map names to predictions, such as {{"before": d0, "after": d1}}, got '
            f"{type(dists).__name__}."
        )
        raise TypeError(msg)
    if not dists:
        msg = 'dists is empty. Pass at least one prediction, such as {"model": dist}.'
        raise ValueError(msg)
    batches = [as_distribution(dist) for dist in dists.values()]
    targets = check_targets(y, len(batches[0]))
    for batch in batches[1:]:
        check_targets(targets, len(batch))
    weights = check_weights(sample_weight, len(targets))
    check_level(coverage, "coverage")
    columns = [dict(_row_metrics(targets, batch, coverage)) for batch in batches]
    metrics = [
        _compared_rows(name, better, [column[name, better] for column in columns], weights)
        for name, better in columns[0]
    ]
    pit_values = [batch.cdf(targets) for batch in batches]
    quantile_levels = _pit_forecasts(pit_values, weights)
    metrics.append(_compared_errors("quantile calibration error", quantile_levels, 1))
    at_thresholds = [forecasts_at(targets, batch, thresholds, weights) for batch in batches]
    metrics.append(_compared_errors("threshold calibration error", at_thresholds, _N_BINS))
    return Comparison(tuple(str(name) for name in dists), tuple(metrics), len(targets))


def _row_metrics(
    y: Array, dist: Distribution, coverage: float
) -> Iterator[tuple[tuple[str, str], Array]]:
    """Yield the metrics that are means over rows, by name and direction."""
    percent = f"{100 * coverage:g} %"
    pit_values = dist.cdf(y)
    low, high = dist.interval(coverage)
    yield ("log score", "larger"), dist.logpdf(y)
    yield ("CRPS", "smaller"), dist.crps(y)
    yield (f"interval score {percent}", "smaller"), interval_score(y, dist, coverage)
    yield ("coverage 50 %", "50 %"), covered(pit_values, 0.5).astype(float)
    yield (f"coverage {percent}", percent), covered(pit_values, coverage).astype(float)
    yield (f"width {percent}", "smaller"), high - low
    yield ("sharpness", "smaller"), dist.std()


def _compared_rows(name: str, better: str, columns: list[Array], weights: Array) -> ComparedMetric:
    with np.errstate(invalid="ignore"):
        gaps = [column - columns[0] for column in columns]
    return ComparedMetric(
        name,
        better,
        values=np.array([weighted_mean(column, weights) for column in columns]),
        standard_errors=np.array([standard_error(column, weights) for column in columns]),
        differences=np.array([weighted_mean(gap, weights) for gap in gaps]),
        difference_errors=np.array([standard_error(gap, weights) for gap in gaps]),
    )


def _pit_forecasts(pit_values: list[Array], weights: Array) -> list[Forecasts]:
    """Return quantile calibration as forecasts: the event is that the PIT is below a level."""
    levels = checked_levels(None)
    used = weights > 0
    return [
        Forecasts(
            levels,
            np.broadcast_to(levels, (int(used.sum()), len(levels))),
            values[used, np.newaxis] <= levels,
            weights[used],
        )
        for values in pit_values
    ]


def _compared_errors(name: str, forecasts: list[Forecasts], bins: int) -> ComparedMetric:
    values = np.array([_calibration_error(one, bins) for one in forecasts])
    left_out = np.stack([_jackknife_roots(one, bins) for one in forecasts])
    return ComparedMetric(
        name,
        "smaller",
        values=values,
        standard_errors=_jackknife_error(left_out),
        differences=values - values[0],
        difference_errors=_jackknife_error(left_out - left_out[0]),
    )


def _calibration_error(forecasts: Forecasts, bins: int) -> float:
    table = ProbabilityBins(forecasts, bins)
    return debiased_root(
        table.squared_gaps(forecasts.happened).mean(), table.expected_noise().mean()
    )


def _jackknife_roots(forecasts: Forecasts, bins: int) -> Array:
    """Return raw errors without one group of rows at a time; noise is left in, as it is smooth."""
    n_rows = len(forecasts.weights)
    n_groups = min(_N_JACKKNIFE_GROUPS, n_rows)
    group = np.arange(n_rows) % n_groups
    roots = np.full(n_groups, np.nan)
    for g in range(n_groups if n_groups > 1 else 0):
        kept = Forecasts(
            forecasts.thresholds,
            forecasts.predicted[group != g],
            forecasts.happened[group != g],
            forecasts.weights[group != g],
        )
        roots[g] = np.sqrt(ProbabilityBins(kept, bins).squared_gaps(kept.happened).mean())
    return roots


def _jackknife_error(left_out: Array) -> Array:
    n_groups = left_out.shape[1]
    return np.sqrt((n_groups - 1) * left_out.var(axis=1))
