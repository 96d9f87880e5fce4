"""What to expect of few calibration rows, and a warning that says so."""

import warnings

import numpy as np

from regcal._validation import Array

# Fewer calibration rows are called few. docs/small_sets.md: with 30, every method loses against the
# model as it was on some defect, by 0.04 to 0.36 nats.
FEW_ROWS = 30

# A sum of weights has last digits.
_ONE_ROW = 1.0 + 1e-6

# Weights of this mean that are no whole numbers are told of. 40 (100) normal rows of weight 1, 2, 5
# and 10, scored on new ones: gpc -1.78, -2.07, -2.98 and -4.45 (-1.74, -1.95, -2.77, -3.68) nats,
# gp-density -1.73, -1.79, -2.07 and -3.59; scale, and all from 1 000 rows, hardly care.
_HEAVY = 2.0


class FewRowsWarning(UserWarning):
    """A model was calibrated with so few rows that little can be expected of it.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.linear_model import BayesianRidge
    >>> import regcal
    >>> model = regcal.CalibratedRegressorCV(BayesianRidge(), "scale", cv=2)
    >>> with warnings.catch_warnings():  # not to be told
    ...     warnings.simplefilter("ignore", regcal.FewRowsWarning)
    ...     model = model.fit([[0.0], [1.0], [2.0], [3.0], [4.0]], [0.1, 0.9, 2.2, 2.8, 4.1])
    """


def coverage_error(n_rows: int) -> float:
    """Return two standard errors of the share of so many rows that lie in 90 % intervals.

    Examples
    --------
    >>> round(coverage_error(25), 3)
    0.12
    """
    return float(2.0 * np.sqrt(0.9 * 0.1 / max(n_rows, 1)))


def warn_of_few_rows(n_rows: int, stacklevel: int) -> None:
    """Say what to expect where calibration rows are few.

    Parameters
    ----------
    n_rows : int
    stacklevel : int
        As for `warnings.warn`.
    """
    if n_rows < FEW_ROWS:
        msg = (
            f"Calibration learnt from {n_rows} rows. Of fewer than {FEW_ROWS} expect little: what "
            f"90 % intervals hold is known to ± {100 * coverage_error(n_rows):.0f} percentage "
            "points only, and a method may follow noise. Use more rows; of the methods, "
            '"gp-density" loses least. To be told nothing, ignore regcal.FewRowsWarning.'
        )
        warnings.warn(msg, FewRowsWarning, stacklevel=stacklevel + 1)


def warn_of_odd_weights(n_rows: int, weights: Array, stacklevel: int) -> None:
    """Tell when weights look as if only their proportions mattered, since they count rows.

    Several rows that weigh no more than one were normalised to a sum of 1, and weights far above 1
    that are no whole numbers are those of a survey.

    Parameters
    ----------
    n_rows : int
    weights : ndarray
        Of any parts of the rows.
    stacklevel : int
        As for `warnings.warn`.
    """
    total = weights.sum()
    if n_rows > 1 and total <= _ONE_ROW:
        outcome = "these count as one at most, and most methods learn hardly anything from them"
    elif total >= _HEAVY * n_rows and (weights % 1.0 != 0).any():
        outcome = "these count as that many, and methods follow their noise as if they were"
    else:
        return
    msg = (
        f"The weights of {n_rows} rows sum to {total:.3g}. A weight of 2 counts as two rows, so "
        f"{outcome}. If only their proportions matter, divide them by their mean."
    )
    warnings.warn(msg, FewRowsWarning, stacklevel=stacklevel + 1)
