"""Several predictions of the same rows side by side, with uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from regcal._validation import Array, check_weights
from regcal.distributions import Distribution
from regcal.metrics._inputs import (
    check_level,
    checked_outcomes,
    seen_in_words,
    standard_error,
    weighted_mean,
)
from regcal.metrics.calibration import (
    PitIntervals,
    checked_levels,
    covered,
    debiased_root,
    pit_intervals,
    quantile_gaps,
)
from regcal.metrics.scores import crps, interval_score, log_score
from regcal.metrics.thresholds import (
    DEFAULT_THRESHOLDS,
    Forecasts,
    ProbabilityBins,
    calibration_error,
    forecasts_at,
)
from regcal.outcomes import Outcomes

if TYPE_CHECKING:
    import pandas as pd

_N_BINS = 8

# P(Y < y) of an outcome at the low end of its distribution, but for rounding.
_NOTHING = 1e-12

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
    notes : tuple of str
        What was done with censored outcomes and with those on point masses.

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
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> ComparedMetric:
        for metric in self.metrics:
            if metric.name == name:
                return metric
        msg = f"There is no metric {name!r}. Known: {', '.join(m.name for m in self.metrics)}."
        raise KeyError(msg)

    def to_frame(self) -> pd.DataFrame:
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
        return "\n".join([*lines, f"{self.n_rows} rows; ± is one standard error.", *self.notes])


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
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets. With censored ones every metric is as its own function has it, the
        interval score is left out, and the table says so below.
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
    >>> from regcal import Outcomes
    >>> seen = Outcomes.right_censored(np.minimum(y, 1.0), observed=y <= 1.0)
    >>> compare(seen, {"before": wide, "after": right}).notes[0]
    '... of 400 outcomes are right-censored: their log score is that of the interval, ...'
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
    seen = [checked_outcomes(y, dist) for dist in dists.values()]
    outcomes, batches = seen[0][0], [dist for _, dist in seen]
    weights = check_weights(sample_weight, len(outcomes))
    check_level(coverage, "coverage")
    values = [pit_intervals(outcomes, batch) for batch in batches]
    log_scores, measure = _log_scores(outcomes, batches, values)
    columns = [
        dict(_row_metrics(outcomes, *model, coverage))
        for model in zip(batches, values, log_scores, strict=True)
    ]
    metrics = [
        _compared_rows(name, better, [column[name, better] for column in columns], weights)
        for name, better in columns[0]
    ]
    metrics.append(_compared_quantile_errors(values, weights))
    forecasts = [forecasts_at(outcomes, batch, thresholds, weights, _N_BINS) for batch in batches]
    metrics.append(_compared_threshold_errors(forecasts))
    notes = (*_notes(outcomes, values, forecasts), *measure)
    return Comparison(tuple(str(name) for name in dists), tuple(metrics), len(outcomes), notes)


def _log_scores(
    outcomes: Outcomes, batches: list[Distribution], values: list[PitIntervals]
) -> tuple[list[Array], list[str]]:
    """Return log scores of all models with respect to the same measure, and what that took.

    A mass is not to be compared with a density. Where an outcome is on the mass at an end of one
    model, the others' scores are those of what is seen there: P(Y <= end), or P(Y >= end).
    """
    scores = [log_score(outcomes, batch) for batch in batches]
    heavy = [outcomes.exact_rows & one.spread for one in values]
    odd = np.any(heavy, axis=0) & ~np.all(heavy, axis=0)
    pairs = list(zip(heavy, values, strict=True))
    at_low = odd & np.any([rows & (one.below <= _NOTHING) for rows, one in pairs], axis=0)
    at_high = odd & np.any([rows & (one.upto >= 1 - _NOTHING) for rows, one in pairs], axis=0)
    for score, batch, rows in zip(scores, batches, heavy, strict=True):
        for end, tail in ((at_low & ~rows, batch.logcdf), (at_high & ~rows, batch.logsf)):
            if end.any():
                score[end] = tail(outcomes.lower)[end]
    ends = at_low | at_high
    return scores, _measure_in_words(int(ends.sum()), int((odd & ~ends).sum()))


def _measure_in_words(n_ends: int, n_inner: int) -> list[str]:
    notes = []
    if n_ends:
        notes.append(
            f"{n_ends:,} outcomes are at an end that has a point mass in some models only: the log "
            "scores of the others are those of P(Y <= end), or P(Y >= end)."
        )
    if n_inner:
        notes.append(
            f"{n_inner:,} outcomes are on point masses of some models only: their log scores do "
            "not compare with densities of the others. Put all into regcal.Rounded of one step."
        )
    return notes


def _row_metrics(
    outcomes: Outcomes,
    dist: Distribution,
    values: PitIntervals,
    log_scores: Array,
    coverage: float,
) -> Iterator[tuple[tuple[str, str], Array]]:
    """Yield the metrics that are means over rows, by name and direction."""
    percent = f"{100 * coverage:g} %"
    low, high = dist.interval(coverage)
    yield ("log score", "larger"), log_scores
    yield ("CRPS", "smaller"), crps(outcomes, dist)
    if outcomes.exact_rows.all():
        yield (f"interval score {percent}", "smaller"), interval_score(outcomes, dist, coverage)
    yield ("coverage 50 %", "50 %"), covered(values, 0.5)
    yield (f"coverage {percent}", percent), covered(values, coverage)
    yield (f"width {percent}", "smaller"), high - low
    yield ("sharpness", "smaller"), dist.std()


def _notes(
    outcomes: Outcomes, values: list[PitIntervals], forecasts: list[Forecasts]
) -> tuple[str, ...]:
    """Return what was done with censored outcomes and point masses, in sentences."""
    notes = []
    if not outcomes.exact_rows.all():
        notes.append(
            f"{seen_in_words(outcomes)}: their log score is that of the interval, the one to "
            "compare models by; their CRPS stops where y <= t is not known; there is no interval "
            f"score; thresholds by {forecasts[0].method}."
        )
    # models differ in their point masses only
    spread = max((one.note for one in values), key=len)
    if spread:
        notes.append(f"{spread}, also for coverage.")
    return tuple(notes)


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


def _compared_quantile_errors(values: list[PitIntervals], weights: Array) -> ComparedMetric:
    levels = checked_levels(None)
    errors, left_out = [], []
    for one in values:
        gaps, noise = quantile_gaps(one, levels, weights)
        errors.append(debiased_root(np.mean(gaps**2), np.mean(noise)))
        below = np.stack([one.between(0.0, level) for level in levels], axis=1)
        left_out.append(_left_out(partial(_raw_quantile_error, below, levels, weights), weights))
    return _compared_errors("quantile calibration error", errors, left_out)


def _raw_quantile_error(below: Array, levels: Array, weights: Array, rows: np.ndarray) -> float:
    shares = np.average(below[rows], axis=0, weights=weights[rows])
    return float(np.sqrt(np.mean((shares - levels) ** 2)))


def _compared_threshold_errors(forecasts: list[Forecasts]) -> ComparedMetric:
    errors = [calibration_error(one, _N_BINS) for one in forecasts]
    left_out = [_left_out(partial(_raw_threshold_error, one), one.weights) for one in forecasts]
    return _compared_errors("threshold calibration error", errors, left_out)


def _raw_threshold_error(forecasts: Forecasts, rows: np.ndarray) -> float:
    kept = replace(
        forecasts,
        predicted=forecasts.predicted[rows],
        happened=forecasts.happened[rows],
        weights=forecasts.weights[rows],
    )
    table = ProbabilityBins(kept, _N_BINS)
    return float(np.sqrt(table.over_thresholds(table.squared_gaps(kept.happened))))


def _compared_errors(name: str, errors: list[float], left_out: list[Array]) -> ComparedMetric:
    values, roots = np.array(errors), np.stack(left_out)
    return ComparedMetric(
        name,
        "smaller",
        values=values,
        standard_errors=_jackknife_error(roots),
        differences=values - values[0],
        difference_errors=_jackknife_error(roots - roots[0]),
    )


def _left_out(raw_error: Callable[[np.ndarray], float], weights: Array) -> Array:
    """Return raw errors without one group of rows at a time; noise is left in, as it is smooth."""
    used = np.flatnonzero(weights)
    n_groups = min(_N_JACKKNIFE_GROUPS, len(used))
    group = np.arange(len(used)) % n_groups
    roots = np.full(n_groups, np.nan)
    for g in range(n_groups if n_groups > 1 else 0):
        roots[g] = raw_error(used[group != g])
    return roots


def _jackknife_error(left_out: Array) -> Array:
    n_groups = left_out.shape[1]
    return np.sqrt((n_groups - 1) * left_out.var(axis=1))
