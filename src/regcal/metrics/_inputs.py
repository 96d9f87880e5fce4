"""Checked inputs and weighted averages that all metrics share."""

from typing import Any

import numpy as np

from regcal._validation import Array
from regcal.distributions import Distribution, as_distribution
from regcal.outcomes import Outcomes, check_outcomes


def checked_outcomes(y: Any, dist: Any) -> tuple[Outcomes, Distribution]:
    """Return what was seen of outcomes, and distributions that belong to them."""
    dist = as_distribution(dist)
    return check_outcomes(y, len(dist)), dist


def exact_numbers(outcomes: Outcomes, score: str) -> Array:
    """Return outcomes that were seen as numbers, for scores that intervals do not have."""
    if not outcomes.exact_rows.all():
        row = int(np.flatnonzero(~outcomes.exact_rows)[0])
        msg = (
            f"{score} needs outcomes that are numbers; {seen_in_words(outcomes)}, the first in row "
            f"{row}: [{outcomes.lower[row]:g}, {outcomes.upper[row]:g}]. Use log_score, which "
            "compares models on such rows, crps, or threshold_calibration_error."
        )
        raise ValueError(msg)
    return outcomes.lower


def seen_in_words(outcomes: Outcomes) -> str:
    """Return how many outcomes are censored and how; nothing if all are numbers.

    Examples
    --------
    >>> from regcal import Outcomes
    >>> from regcal.metrics._inputs import seen_in_words
    >>> seen_in_words(Outcomes([1.0, 2.0, 3.0], [1.0, float("inf"), 4.0]))
    '1 of 3 outcomes are right-censored, 1 interval-censored'
    """
    right, left = np.isinf(outcomes.upper), np.isinf(outcomes.lower)
    kinds = {
        "right-censored": right,
        "left-censored": left,
        "interval-censored": ~(right | left | outcomes.exact_rows),
    }
    counts = {kind: int(rows.sum()) for kind, rows in kinds.items() if rows.any()}
    words = [f"{count:,} {kind}" for kind, count in counts.items()]
    if words:
        words[0] = words[0].replace(" ", f" of {len(outcomes):,} outcomes are ", 1)
    return ", ".join(words)


def effective_rows(weights: Array) -> float:
    """Return how many equally weighted rows are as noisy as the weighted ones (Kish)."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def weighted_mean(values: Array, weights: Array) -> float:
    """Return the mean; an infinite value counts only where its weight is positive."""
    used = weights > 0
    with np.errstate(invalid="ignore"):
        return float(np.average(values[used], weights=weights[used]))


def standard_error(values: Array, weights: Array) -> float:
    """Return the standard error of a weighted mean; nan when one row carries all weight."""
    n_rows = effective_rows(weights)
    if n_rows <= 1.0 + 1e-9:
        return float("nan")
    used = weights > 0
    with np.errstate(invalid="ignore"):
        residuals = values[used] - weighted_mean(values, weights)
        variance = (weights[used] ** 2 * residuals**2).sum() / weights.sum() ** 2
        return float(np.sqrt(variance * n_rows / (n_rows - 1.0)))


def check_level(level: float, name: str) -> float:
    """Return a probability strictly between 0 and 1."""
    if not 0 < level < 1:
        msg = f"{name} must be between 0 and 1, got {level}. Write 90 % as 0.9."
        raise ValueError(msg)
    return float(level)


def check_count(count: int, name: str) -> int:
    """Return a whole number that is at least one."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        msg = f"{name} must be a whole number of at least 1, got {count!r}."
        raise ValueError(msg)
    return int(count)
