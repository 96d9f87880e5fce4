"""The map that a Gaussian-process calibrator has learnt, with its training points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from regcal._random import as_generator
from regcal._validation import Array
from regcal.distributions import Distribution
from regcal.metrics._inputs import checked_outcomes
from regcal.metrics.thresholds import thresholds_for
from regcal.outcomes import Outcomes
from regcal.plots._base import BLUE, VERMILLION, Display, colour_bar, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = 121
_DEFAULT_COUNT = 32


class CalibrationMapDisplay(Display):
    """Calibrated P(Y <= t) as a function of the predicted one and of t.

    Contours are vertical and at the predicted probabilities where calibration changes nothing.

    Parameters
    ----------
    predicted : ndarray of shape (n_columns,)
        Probabilities before calibration, the horizontal axis.
    targets : ndarray of shape (n_lines,)
        Thresholds, the vertical axis.
    calibrated : ndarray of shape (n_lines, n_columns)
    points : ndarray of shape (n_points, 2)
        Predicted probability and threshold of training pairs.
    happened : ndarray of shape (n_points,)
        Whether y <= t.
    name : str, optional
        Title of the panel.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.plots import CalibrationMapDisplay
    >>> class Halved:
    ...     thresholds_ = np.linspace(-2, 2, 9)
    ...     def calibration_map(self, t, q):
    ...         return q / 2 + 0 * t
    >>> y = np.random.default_rng(0).normal(size=50)
    >>> dist = Normal(np.zeros(50), np.ones(50))
    >>> display = CalibrationMapDisplay.from_predictions(y, dist, calibrator=Halved())
    >>> display.ax_.get_ylabel()
    'Threshold t'
    """

    def __init__(
        self,
        predicted: Array,
        targets: Array,
        calibrated: Array,
        points: Array,
        happened: np.ndarray,
        name: str | None = None,
    ) -> None:
        self.predicted = predicted
        self.targets = targets
        self.calibrated = calibrated
        self.points = points
        self.happened = happened
        self.name = name

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        dist: Any,
        *,
        calibrator: Any,
        max_points: int = 1500,
        random_state: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Evaluate the calibrator's map and draw it with the calibration rows.

        Parameters
        ----------
        y : array-like of shape (n_rows,), or Outcomes
            Outcomes of the rows that the calibrator was fitted on. Pairs of which it is not known
            whether y <= t are left out.
        dist : Distribution or anything `as_distribution` takes
            Their predictions before calibration.
        calibrator : fitted calibrator
            With ``calibration_map(t, q)``, which returns calibrated probabilities. The map is
            drawn over those of its ``thresholds_`` that lie inside the outcomes.
        max_points : int, default=1500
            So many pairs of row and threshold are drawn, chosen at random.
        random_state : int, RandomState, Generator or None, default=None
        name : str, optional
        ax : matplotlib Axes, optional

        Returns
        -------
        CalibrationMapDisplay
        """
        if not hasattr(calibrator, "calibration_map"):
            msg = (
                f"{type(calibrator).__name__} has no calibration_map(t, q). Pass a fitted "
                "Gaussian-process calibrator."
            )
            raise TypeError(msg)
        outcomes, dist = checked_outcomes(y, dist)
        spec = getattr(calibrator, "thresholds_", _DEFAULT_COUNT)
        thresholds = _inside(thresholds_for(spec, outcomes, np.ones(len(outcomes))), outcomes)
        points, happened = _pairs(outcomes, dist, thresholds, max_points, random_state)
        q = np.linspace(0.0, 1.0, _GRID)
        t = np.linspace(thresholds[0], thresholds[-1], _GRID)
        calibrated = calibrator.calibration_map(t[:, np.newaxis], q[np.newaxis, :])
        return cls(q, t, np.asarray(calibrated), points, happened, name).plot(ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, calibrator: Any = None, **options: Any
    ) -> Self:
        """Draw the map over the predictions of an estimator before calibration.

        Parameters
        ----------
        estimator : fitted model
            The base model, as it predicts before calibration; anything that `regcal.predict_dist`
            takes.
        X, y
            Rows that the calibrator was fitted on.
        calibrator : fitted calibrator
        **options
            As in `from_predictions`.

        Returns
        -------
        CalibrationMapDisplay
        """
        return super().from_estimator(estimator, X, y, calibrator=calibrator, **options)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on a new figure, and return this display."""
        ax = self._start(ax, (5.6, 4.4))
        levels = np.linspace(0.0, 1.0, 11)
        surface = ax.contourf(
            self.predicted, self.targets, self.calibrated, levels, cmap="Greys", alpha=0.45
        )
        lines = ax.contour(
            self.predicted,
            self.targets,
            self.calibrated,
            levels[1:-1:2],
            colors="black",
            linewidths=0.8,
        )
        ax.clabel(lines, fontsize="x-small", fmt="%.1f")
        for event, colour, label in ((True, BLUE, "y ≤ t"), (False, VERMILLION, "y > t")):
            chosen = self.points[self.happened == event]
            ax.scatter(
                chosen[:, 0], chosen[:, 1], s=7, color=colour, alpha=0.6, linewidths=0, label=label
            )
        ax.set(xlabel="Predicted P(Y ≤ t)", ylabel="Threshold t", xlim=(0, 1))
        ax.set_ylim(self.targets[0], self.targets[-1])
        legend_above(ax, self.name)
        self.colorbar_ = colour_bar(ax, surface, "Calibrated P(Y ≤ t)")
        return self


def _inside(thresholds: Array, outcomes: Outcomes) -> Array:
    """Return the thresholds within the range of the outcomes; all, if there are not two."""
    ends = np.concatenate([outcomes.lower, outcomes.upper])
    ends = ends[np.isfinite(ends)]
    inside = thresholds[(thresholds >= ends.min()) & (thresholds <= ends.max())]
    return inside if len(inside) > 1 else thresholds


def _pairs(
    outcomes: Outcomes, dist: Distribution, thresholds: Array, max_points: int, random_state: Any
) -> tuple[Array, np.ndarray]:
    """Return predicted probability, threshold and event of some pairs of row and threshold."""
    n_pairs = len(outcomes) * len(thresholds)
    rng = as_generator(random_state)
    chosen = rng.choice(n_pairs, size=min(max_points, n_pairs), replace=False)
    rows, columns = chosen // len(thresholds), thresholds[chosen % len(thresholds)]
    happened = outcomes.upper[rows] <= columns
    known = happened | (outcomes.lower[rows] > columns)
    points = np.stack([dist[rows].cdf(columns), columns], axis=1)
    return points[known], happened[known]
