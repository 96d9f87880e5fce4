"""Predictions of calibrators for rows that they were not fitted on."""

from collections.abc import Sequence

import numpy as np

from regcal.calibrators.base import Calibrator, IdentityCalibrator, fitted_copy
from regcal.calibrators.held_out import HeldOut, deal
from regcal.calibrators.support import Support
from regcal.distributions import Distribution

# Scores are compared on so many rows.
_MOST_ROWS = 4096

# Predictions for some rows, given by their numbers.
Predictions = Sequence[tuple[np.ndarray, Distribution]]


def dealt(rows: HeldOut, n_folds: int, seed: int, support: Support) -> tuple[HeldOut, np.ndarray]:
    """Return rows dealt into parts, of which the first ones, as many as folds, are judged.

    There are a few parts a fold where rows are many, unless few groups leave some without rows.
    """
    n_parts = n_folds * -(-len(rows) // _MOST_ROWS)
    drawn, parts = deal(rows, n_parts, seed, support)
    if n_parts > n_folds and np.bincount(parts, minlength=n_folds)[:n_folds].min() < 2:
        return deal(rows, n_folds, seed, support)
    return drawn, parts


def parts_to_judge(parts: np.ndarray, n_folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for each fold the rows of others, to learn from, and those of it that are judged."""
    return [
        (np.flatnonzero(parts % n_folds != fold), np.flatnonzero(parts == fold))
        for fold in range(n_folds)
    ]


def cross_fitted(
    candidate: Calibrator,
    rows: HeldOut,
    parts: Sequence[tuple[np.ndarray, np.ndarray]],
    support: Support,
) -> Predictions:
    """Return a candidate's predictions for rows of each part, fitted without the part."""
    predictions = []
    for train, test in parts:
        latent = rows.dist[test]
        if not isinstance(candidate, IdentityCalibrator):
            fitted = fitted_copy(candidate, rows.take(train), support)
            known = None if rows.covariates is None else rows.covariates[test]
            latent = fitted.transform_rows(latent, known)
        predictions.append((test, latent))
    return predictions
