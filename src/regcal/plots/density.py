"""Predicted densities over one feature, as a heat map."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from regcal._validation import Array, check_column, check_targets
from regcal.distributions import as_distribution
from regcal.plots._base import BLUE, VERMILLION, Display, colour_bar, legend_above, predicted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_COLUMNS = 300
_N_LINES = 300


class DensityDisplay(Display):
    """The predicted density of the target over a feature, with the mean and the data on top.

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
        name: str | None = None,
        feature_name: str = "Feature x",
        target_name: str = "Target y",
    ) -> None:
        self.feature = feature
        self.targets = targets
        self.density = density
        self.mean = mean
        self.data = data
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
        ax: "Axes | None" = None,
    ) -> Self:
        """Evaluate densities over the range of the targets and draw them.

        Parameters
        ----------
        y : array-like of shape (n_rows,) or None
            Outcomes, drawn as points; None for none.
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
            data = (column, check_targets(y, len(dist)))
        if data is not None:
            data = np.stack([check_column(part, "data") for part in data], axis=1)
        values, rows = np.unique(column, return_index=True)
        chosen = np.unique(np.linspace(0, len(values) - 1, _MAX_COLUMNS).astype(int))
        shown = dist[rows[chosen]]
        targets = _target_range(shown.ppf(np.array([[0.01, 0.99]])), data)
        density = shown.pdf(targets[np.newaxis, :]).T
        return cls(
            values[chosen],
            targets,
            density,
            shown.mean(),
            data,
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
        feature: int = 0,
        n_columns: int = 200,
        **options: Any,
    ) -> Self:
        """Draw what a fitted estimator predicts along one feature, the others at their medians.

        Parameters
        ----------
        estimator : object with ``predict_dist(X)``
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,) or None
            Outcomes, drawn as points.
        feature : int, default=0
            Number of the column.
        n_columns : int, default=200
            Number of values of the feature at which densities are evaluated.
        **options
            As in `from_predictions`.

        Returns
        -------
        DensityDisplay
        """
        table = np.asarray(X, dtype=float)
        values = table[:, feature]
        grid = np.tile(np.median(table, axis=0), (n_columns, 1))
        grid[:, feature] = np.linspace(values.min(), values.max(), n_columns)
        if hasattr(X, "columns"):
            options.setdefault("feature_name", str(X.columns[feature]))
            rows = type(X)(grid, columns=X.columns)
        else:
            rows = grid
        options.setdefault("name", type(estimator).__name__)
        data = None if y is None else (values, y)
        dist = predicted(estimator, rows)
        return cls.from_predictions(None, dist, x=grid[:, feature], data=data, **options)

    def plot(self, ax: "Axes | None" = None) -> Self:
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
        if self.data is not None:
            ax.scatter(
                self.data[:, 0],
                self.data[:, 1],
                s=9,
                color=BLUE,
                alpha=min(0.7, 150 / len(self.data) + 0.2),
                linewidths=0,
                label="data",
            )
        ax.plot(self.feature, self.mean, color=VERMILLION, linewidth=1.8, label="predicted mean")
        ax.set(xlabel=self.feature_name, ylabel=self.target_name)
        ax.set_ylim(self.targets[0], self.targets[-1])
        legend_above(ax, self.name)
        self.colorbar_ = colour_bar(ax, image, "Predicted density", extend="max")
        return self


def _target_range(quantiles: Array, data: Array | None) -> Array:
    """Return targets that hold the data and nearly all mass of nearly all rows."""
    # A few rows with long tails must not squeeze all others.
    ends = [np.quantile(quantiles[:, 0], 0.2), np.quantile(quantiles[:, 1], 0.8)]
    if data is not None:
        ends += [data[:, 1].min(), data[:, 1].max()]
    margin = 0.03 * (max(ends) - min(ends))
    return np.linspace(min(ends) - margin, max(ends) + margin, _N_LINES)
