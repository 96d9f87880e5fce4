"""Predicted densities over one feature, as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from regcal._validation import Array, check_column, check_targets
from regcal.adapters import predict_dist
from regcal.distributions import as_distribution
from regcal.distributions.masses import point_masses
from regcal.metrics._inputs import checked_outcomes
from regcal.outcomes import Outcomes
from regcal.plots._base import BLUE, VERMILLION, Display, colour_bar, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_COLUMNS = 300
_N_LINES = 300


class DensityDisplay(Display):
    """The predicted density of the target over a feature, with the mean and the data on top.

    Point masses are drawn as dots, the larger the more probable; outcomes between two
    values as lines, and those at least or at most a value as triangles that point there.

    Parameters
    ----------
    feature : ndarray of shape (n_columns,)
        Increasing values of the feature.
    targets : ndarray of shape (n_lines,)
    density : ndarray of shape (n_lines, n_columns)
    mean : ndarray of shape (n_columns,)
        Predicted means.
    data : ndarray of shape (n_rows, 2), optional
        Feature and outcome of observed rows.
    intervals : ndarray of shape (n_rows, 3), optional
        Feature and both ends of rows of which an interval was observed.
    masses : ndarray of shape (n_masses, 3), optional
        Feature, place and size of point masses.
    name : str, optional
        Title of the panel.
    feature_name, target_name : str, optional
        Labels of the axes.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.plots import DensityDisplay
    >>> x = np.linspace(-1, 1, 50)
    >>> display = DensityDisplay.from_predictions(x, Normal(x, np.full(50, 0.3)), x=x)
    >>> display.density.shape
    (300, 50)
    """

    def __init__(
        self,
        feature: Array,
        targets: Array,
        density: Array,
        mean: Array,
        data: Array | None = None,
        *,
        intervals: Array | None = None,
        masses: Array | None = None,
        name: str | None = None,
        feature_name: str = "Feature x",
        target_name: str = "Target y",
    ) -> None:
        self.feature = feature
        self.targets = targets
        self.density = density
        self.mean = mean
        self.data = data
        self.intervals = np.empty((0, 3)) if intervals is None else intervals
        self.masses = np.empty((0, 3)) if masses is None else masses
        self.name = name
        self.feature_name = feature_name
        self.target_name = target_name

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        dist: Any,
        *,
        x: Any,
        data: Any = None,
        name: str | None = None,
        feature_name: str = "Feature x",
        target_name: str = "Target y",
        ax: Axes | None = None,
    ) -> Self:
        """Evaluate densities over the range of the targets and draw them.

        Parameters
        ----------
        y : array-like of shape (n_rows,), Outcomes or None
            Outcomes, drawn as points, lines or triangles; None for none.
        dist : Distribution or anything `as_distribution` takes
        x : array-like of shape (n_rows,)
            The feature, one value per distribution.
        data : pair of array-like, optional
            Feature and outcomes of rows to draw instead of `x` and `y`.
        name, feature_name, target_name : str, optional
        ax : matplotlib Axes, optional

        Returns
        -------
        DensityDisplay
        """
        dist = as_distribution(dist)
        column = check_column(x, "x")
        check_targets(column, len(dist))
        if data is None and y is not None:
            data = (column, checked_outcomes(y, dist)[0])
        points, intervals = _split_data(data)
        values, rows = np.unique(column, return_index=True)
        chosen = np.unique(np.linspace(0, len(values) - 1, _MAX_COLUMNS).astype(int))
        shown = dist[rows[chosen]]
        targets = _target_range(shown.ppf(np.array([[0.01, 0.99]])), points, intervals)
        grid = targets[np.newaxis, :]
        density = np.where(shown.mass(grid) > 0, 0.0, shown.pdf(grid)).T
        masses = zip(values[chosen], point_masses(shown), strict=True)
        return cls(
            values[chosen],
            targets,
            density,
            shown.mean(),
            points,
            intervals=intervals,
            masses=np.concatenate([np.insert(m, 0, x, axis=1) for x, m in masses]),
            name=name,
            feature_name=feature_name,
            target_name=target_name,
        ).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        feature: int | str = 0,
        n_columns: int = 200,
        **options: Any,
    ) -> Self:
        """Draw what a fitted estimator predicts along one feature, all others being typical.

        Numbers stay at their medians; text, categories and truth values at what is most frequent.

        Parameters
        ----------
        estimator : fitted model
            Anything that `regcal.predict_dist` takes.
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), Outcomes or None
            Outcomes, drawn as points, lines or triangles.
        feature : int or str, default=0
            Number of the column, or its name in a frame; it has to hold numbers.
        n_columns : int, default=200
            Number of values of the feature at which densities are evaluated.
        **options
            As in `from_predictions`.

        Returns
        -------
        DensityDisplay
        """
        columns = _columns(X)
        name = list(columns)[feature] if isinstance(feature, int) else feature
        values = _numbers(columns, name)
        grid = np.linspace(np.nanmin(values), np.nanmax(values), n_columns)
        if hasattr(X, "columns"):
            options.setdefault("feature_name", str(name))
        options.setdefault("name", type(estimator).__name__)
        data = None if y is None else (values, y)
        dist = predict_dist(estimator, _typical_rows(X, columns, name, grid))
        return cls.from_predictions(None, dist, x=grid, data=data, **options)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on a new figure, and return this display."""
        ax = self._start(ax, (5.6, 4.2))
        # A few very narrow rows must not turn all others white.
        brightest = float(np.quantile(self.density.max(axis=0), 0.9))
        image = ax.pcolormesh(
            self.feature,
            self.targets,
            self.density,
            cmap="Greys",
            vmin=0,
            vmax=brightest,
            shading="nearest",
            rasterized=True,
        )
        if self.data is not None and len(self.data):
            ax.scatter(
                self.data[:, 0],
                self.data[:, 1],
                s=9,
                color=BLUE,
                alpha=min(0.7, 150 / len(self.data) + 0.2),
                linewidths=0,
                label="data",
            )
        self._draw_intervals(ax)
        if len(self.masses):
            feature, place, size = self.masses.T
            ax.scatter(feature, place, 30 * size, color="black", linewidths=0, label="point masses")
        ax.plot(self.feature, self.mean, color=VERMILLION, linewidth=1.8, label="predicted mean")
        ax.set(xlabel=self.feature_name, ylabel=self.target_name)
        ax.set_ylim(self.targets[0], self.targets[-1])
        legend_above(ax, self.name)
        self.colorbar_ = colour_bar(ax, image, "Predicted density", extend="max")
        return self

    def _draw_intervals(self, ax: Axes) -> None:
        feature, low, high = self.intervals.T
        inner = np.isfinite(low) & np.isfinite(high)
        ax.vlines(feature[inner], low[inner], high[inner], color=BLUE, alpha=0.4, linewidth=1)
        for rows, known, marker, label in (
            (np.isinf(high), low, "^", "at least"),
            (np.isinf(low), high, "v", "at most"),
        ):
            if rows.any():
                ax.scatter(
                    feature[rows],
                    known[rows],
                    12,
                    marker=marker,
                    color=BLUE,
                    alpha=0.5,
                    linewidths=0,
                    label=label,
                )


def _columns(X: Any) -> dict[Any, Any]:
    """Return the columns of a table by their names or numbers."""
    if hasattr(X, "columns"):
        return {name: X[name] for name in X.columns}
    return dict(enumerate(np.asarray(X).T))


def _numbers(columns: dict[Any, Any], name: Any) -> Array:
    """Return a column along which one can go."""
    if name not in columns:
        msg = f"There is no feature {name!r}. There are {', '.join(map(str, columns))}."
        raise ValueError(msg)
    try:
        return np.asarray(columns[name], dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"Feature {name!r} holds no numbers. Choose one that does: feature=…"
        raise ValueError(msg) from error


def _typical_rows(X: Any, columns: dict[Any, Any], varied: Any, grid: Array) -> Any:
    """Return a table like X in which one column goes along a grid and the others are typical."""
    rows = {
        name: grid if name == varied else _typical(column, len(grid))
        for name, column in columns.items()
    }
    return type(X)(rows) if hasattr(X, "columns") else np.stack(list(rows.values()), axis=1)


def _typical(column: Any, count: int) -> Any:
    """Return the median of numbers, or else the most frequent value, in a column of its kind."""
    values = np.asarray(column)
    if values.dtype.kind in "iuf":
        return np.full(count, np.nanmedian(values))
    _, first, counts = np.unique(values.astype(str), return_index=True, return_counts=True)
    places = np.full(count, first[counts.argmax()])
    # A frame's column keeps its categories if it is asked for rows.
    chosen = column.iloc[places] if hasattr(column, "iloc") else column[places]
    return chosen.reset_index(drop=True) if hasattr(chosen, "reset_index") else chosen


def _split_data(data: Any) -> tuple[Array | None, Array | None]:
    """Return feature and outcome of what was seen as numbers, and both ends of the rest."""
    if data is None:
        return None, None
    feature, outcomes = check_column(data[0], "data"), Outcomes.of(data[1])
    table = np.stack([feature, outcomes.lower, outcomes.upper], axis=1)
    exact = outcomes.exact_rows
    return table[exact, :2], table[~exact]


def _target_range(quantiles: Array, *data: Array | None) -> Array:
    """Return targets that hold the data and nearly all mass of nearly all rows."""
    # A few rows with long tails must not squeeze all others.
    ends = [np.quantile(quantiles[:, 0], 0.2), np.quantile(quantiles[:, 1], 0.8)]
    for table in data:
        values = np.empty(0) if table is None else table[:, 1:]
        ends += list(values[np.isfinite(values)])
    margin = 0.03 * (max(ends) - min(ends))
    return np.linspace(min(ends) - margin, max(ends) + margin, _N_LINES)
