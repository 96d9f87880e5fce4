"""One row before and after calibration: densities, marginal calibration map, CDFs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from regcal._validation import Array
from regcal.adapters import predict_dist
from regcal.distributions import Distribution, as_distribution
from regcal.distributions.masses import point_masses, points_beside
from regcal.metrics._inputs import checked_outcomes
from regcal.plots._base import CYCLE, GREY, unit_square

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLES = ("--", "-", "-.", ":")


class RowDisplay:
    """Densities, calibrated against uncalibrated CDF, and CDFs of one row, side by side.

    Point masses are bars beside the densities, on an axis of their own, and steps of the CDFs.

    Parameters
    ----------
    points : ndarray of shape (n_points,)
        Values of the target.
    densities, cdfs : dict from str to ndarray of shape (n_points,)
        By model; the first is the one before calibration.
    outcome : float or pair of float, optional
        The row's observed target, or both ends of the interval that holds it.
    name : str, optional
        Title of the figure.
    masses : dict from str to ndarray of shape (n_masses, 2), optional
        Place and size of point masses, by model.

    Attributes
    ----------
    axes_ : ndarray of three matplotlib Axes
        Set by `plot`.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.plots import RowDisplay
    >>> before, after = Normal([0.0, 1.0], [1.0, 1.0]), Normal([0.0, 1.0], [0.5, 0.5])
    >>> display = RowDisplay.from_predictions([0.2, 1.1], {"before": before, "after": after})
    >>> [ax.get_ylabel() for ax in display.axes_]
    ['Density', 'P(Y ≤ t), after', 'P(Y ≤ t)']
    """

    axes_: np.ndarray
    figure_: Any

    def __init__(
        self,
        points: Array,
        densities: dict[str, Array],
        cdfs: dict[str, Array],
        outcome: float | tuple[float, float] | None = None,
        name: str | None = None,
        masses: dict[str, Array] | None = None,
    ) -> None:
        self.points = points
        self.densities = densities
        self.cdfs = cdfs
        self.outcome = outcome
        self.name = name
        self.masses = {} if masses is None else masses

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        dists: Mapping[str, Any],
        *,
        row: int = 0,
        n_points: int = 401,
        name: str | None = None,
        ax: Sequence[Axes] | None = None,
    ) -> Self:
        """Evaluate one row of several predictions and draw it.

        Parameters
        ----------
        y : array-like of shape (n_rows,), Outcomes or None
            Outcomes; None to leave the outcome out.
        dists : mapping from str to Distribution or anything `as_distribution` takes
            Predictions by name; the first is the one before calibration.
        row : int, default=0
        n_points : int, default=401
        name : str, optional
        ax : sequence of three matplotlib Axes, optional

        Returns
        -------
        RowDisplay
        """
        if len(dists) < 2:
            msg = f'Got {len(dists)} prediction(s). Pass two or more: {{"before": a, "after": b}}.'
            raise ValueError(msg)
        batches = {str(key): as_distribution(dist) for key, dist in dists.items()}
        outcome: float | tuple[float, float] | None = None
        if y is not None:
            seen = checked_outcomes(y, next(iter(batches.values())))[0][int(row)]
            low, high = float(seen.lower[0]), float(seen.upper[0])
            outcome = low if low == high else (low, high)
        rows = {key: dist[int(row)] for key, dist in batches.items()}
        masses = {key: point_masses(dist)[0] for key, dist in rows.items()}
        points = _shared_range(list(rows.values()), outcome, masses, n_points)
        grid = points[np.newaxis, :]
        densities = {key: dist.pdf(grid)[0] for key, dist in rows.items()}
        cdfs = {key: dist.cdf(grid)[0] for key, dist in rows.items()}
        return cls(points, densities, cdfs, outcome, name, masses).plot(ax)

    @classmethod
    def from_estimator(cls, estimators: Mapping[str, Any], X: Any, y: Any, **options: Any) -> Self:
        """Draw one row of several fitted estimators' predictions.

        Parameters
        ----------
        estimators : mapping from str to fitted model
            Anything that `regcal.predict_dist` takes. The first is the one before calibration.
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), Outcomes or None
        **options
            As in `from_predictions`.

        Returns
        -------
        RowDisplay
        """
        dists = {key: predict_dist(one, X) for key, one in estimators.items()}
        return cls.from_predictions(y, dists, **options)

    def plot(self, ax: Sequence[Axes] | None = None) -> Self:
        """Draw on three axes, or on a new figure, and return this display."""
        own_figure = ax is None
        if ax is None:
            import matplotlib.pyplot as plt
            from matplotlib.layout_engine import ConstrainedLayoutEngine

            layout = ConstrainedLayoutEngine(w_pad=0.1)
            _, ax = plt.subplots(1, 3, figsize=(10.5, 3.6), layout=layout)
        self.axes_ = np.asarray(ax, dtype=object)
        if self.axes_.shape != (3,):
            msg = f"ax must be three axes, got shape {self.axes_.shape}. Use plt.subplots(1, 3)."
            raise ValueError(msg)
        density_ax, map_ax, cdf_ax = self.axes_
        self.figure_ = density_ax.figure
        self._draw_curves(density_ax, self.densities, "Density")
        self._draw_masses(density_ax)
        self._draw_map(map_ax)
        self._draw_curves(cdf_ax, self.cdfs, "P(Y ≤ t)")
        density_ax.set_ylim(bottom=0)
        density_ax.set_title(self.name or "", loc="left")
        self._draw_legend(own_figure)
        return self

    def _draw_curves(self, ax: Axes, curves: dict[str, Array], label: str) -> None:
        for k, (key, values) in enumerate(curves.items()):
            ax.plot(self.points, values, color=CYCLE[k % 6], linestyle=_STYLES[k % 4], label=key)
        if isinstance(self.outcome, tuple):
            low, high = np.clip(self.outcome, self.points[0], self.points[-1])
            ax.axvspan(low, high, color=GREY, alpha=0.15, linewidth=0, label="outcome", zorder=0)
        elif self.outcome is not None:
            ax.axvline(self.outcome, color=GREY, linewidth=1.2, label="outcome", zorder=0)
        ax.set(xlabel="Target t", ylabel=label)
        ax.margins(x=0)

    def _draw_masses(self, density_ax: Axes) -> None:
        if not any(len(table) for table in self.masses.values()):
            return
        ax = density_ax.twinx()
        for k, table in enumerate(self.masses.values()):
            ax.vlines(table[:, 0], 0, table[:, 1], color=CYCLE[k % 6], linestyle=_STYLES[k % 4])
            ax.plot(*table.T, color=CYCLE[k % 6], linestyle="", marker="o", markersize=4)
        ax.set_ylim(0, None)
        ax.set_ylabel("P(Y = t), bars")

    def _draw_map(self, ax: Axes) -> None:
        unit_square(ax)
        ax.set_aspect("auto")  # as large as the panels beside it
        base, *others = self.cdfs
        for k, key in enumerate(others, start=1):
            ax.plot(self.cdfs[base], self.cdfs[key], color=CYCLE[k % 6], linestyle=_STYLES[k % 4])
        after = others[0] if len(others) == 1 else "calibrated"
        ax.set(xlabel=f"P(Y ≤ t), {base}", ylabel=f"P(Y ≤ t), {after}")

    def _draw_legend(self, own_figure: bool) -> None:
        """Put the legend over all panels, or into the last one of somebody else's figure."""
        handles, labels = self.axes_[0].get_legend_handles_labels()
        if own_figure:
            self.figure_.legend(
                handles, labels, loc="outside upper center", ncols=len(labels), frameon=False
            )
        else:
            self.axes_[2].legend(handles, labels, loc="best", fontsize="small")


def _shared_range(
    dists: list[Distribution], outcome: Any, masses: dict[str, Array], n_points: int
) -> Array:
    """Return points that hold nearly all mass of all rows, and the outcome; none at a mass."""
    ends = np.concatenate([dist.ppf(np.array([[0.005, 0.995]]))[0] for dist in dists])
    if outcome is not None:
        ends = np.append(ends, outcome)
    ends = ends[np.isfinite(ends)]
    margin = 0.03 * np.ptp(ends) or 0.5
    places = np.unique(np.concatenate([table[:, 0] for table in masses.values()]))
    low, high = ends.min(keepdims=True) - margin, ends.max(keepdims=True) + margin
    return points_beside(low, high, n_points, [places])[0]
