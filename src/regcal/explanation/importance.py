"""What covariates are worth: the loss of log score if they told nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from regcal._validation import Array
from regcal.calibrators import Support
from regcal.covariates import Covariates
from regcal.distributions import Mixture
from regcal.explanation.effects import Part
from regcal.metrics import log_score
from regcal.metrics._inputs import standard_error, weighted_mean
from regcal.outcomes import Outcomes

# Each covariate is dealt to other rows so often.
_N_DEALS = 3


def importances(
    parts: Sequence[Part],
    support: Support,
    outcomes: Outcomes,
    weights: Array,
    rng: np.random.Generator,
) -> dict[str, tuple[float, float]]:
    """Return what the log score loses without each covariate, and the standard error of that.

    The model's predictions stay as they are: only the calibrator gets the values of other rows
    (permutation importance; Breiman, 2001).
    """
    scores = _scores(parts, support, outcomes, {})
    found = {}
    for name in parts[0].columns.names:
        deals = [rng.permutation(len(outcomes)) for _ in range(_N_DEALS)]
        others = [_scores(parts, support, outcomes, {name: rows}) for rows in deals]
        with np.errstate(invalid="ignore"):
            losses = scores - np.mean(others, axis=0)
        known = np.isfinite(losses)
        found[name] = (
            weighted_mean(losses[known], weights[known]) if known.any() else np.nan,
            standard_error(losses[known], weights[known]) if known.any() else np.nan,
        )
    return found


def _scores(
    parts: Sequence[Part], support: Support, outcomes: Outcomes, dealt: dict[str, Any]
) -> Array:
    latent = [part.predicted(_dealt(part.columns, dealt)) for part in parts]
    return log_score(outcomes, support.through(latent[0] if len(latent) == 1 else Mixture(latent)))


def _dealt(columns: Covariates, dealt: dict[str, Any]) -> Covariates:
    """Return columns of which some have their values in another order."""
    return Covariates(
        tuple(
            replace(one, values=one.values[dealt[one.name]]) if one.name in dealt else one
            for one in columns.columns
        )
    )
