"""The reliability diagram with one line per threshold."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from regcal._validation import Array
from regcal.grids import QuantileGrid
from regcal.metrics.isotonic import isotonic_reliability_curve
from regcal.metrics.thresholds import ReliabilityCurve, reliability_curve
from regcal.plots._base import BAND, BLUE, Display, colour_bar, note_below, unit_square

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More lines than these hide each other.
_THRESHOLDS = QuantileGrid(5)

# The outermost rows of a line are too few to say anything, and their bands span everything.
_END_SHARE = 0.01


class ReliabilityDisplay(Display):
    """Observed frequency against predicted probability of y <= t, one line per threshold.

    Lines of a calibrated model stay near the diagonal, inside the grey bands. Each line ends where
    less than one percent of the rows are left.

    Parameters
    ----------
    curve : ReliabilityCurve
    name : str, optional
        Title of the panel.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.plots import ReliabilityDisplay
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> display = ReliabilityDisplay.from_predictions(y, Normal(np.zeros(200), np.ones(200)))
    >>> display.ax_.get_xlabel()
    'Predicted P(Y ≤ t)'
    """

    def __init__(self, curve: ReliabilityCurve, name: str | None = None) -> None:
        self.curve = curve
        self.name = name

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        dist: Any,
        *,
        thresholds: Any = _THRESHOLDS,
        bins: int = 8,
        isotonic: bool = False,
        sample_weight: Any = None,
        confidence: float = 0.95,
        random_state: Any = None,
        name: str | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Compute the lines and draw them.

        Parameters
        ----------
        y : array-like of shape (n_rows,), or Outcomes
        dist : Distribution or anything `as_distribution` takes
        thresholds : int, grid or array-like, default=QuantileGrid(5)
        bins : int, default=8
            Bins of the predicted probability, as in the paper; not used when `isotonic`.
        isotonic : bool, default=False
            Estimate frequencies by isotonic regression, with simulated bands. It has to be known
            of all rows whether y <= t.
        sample_weight : array-like of shape (n_rows,), optional
        confidence : float, default=0.95
            Of the bands, see `reliability_curve` and `isotonic_reliability_curve`.
        random_state : int, RandomState, Generator or None, default=None
            For the simulated bands.
        name : str, optional
        ax : matplotlib Axes, optional

        Returns
        -------
        ReliabilityDisplay
        """
        if isotonic:
            curve = isotonic_reliability_curve(
                y, dist, thresholds, sample_weight, confidence, random_state=random_state
            )
        else:
            curve = reliability_curve(y, dist, thresholds, bins, sample_weight, confidence)
        return cls(curve, name).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw on `ax`, or on a new figure, and return this display."""
        from matplotlib import colormaps

        ax = self._start(ax, (5.2, 4.4))
        thresholds = self.curve.thresholds
        unit_square(ax)
        # Leave out the palest end of the map: it would vanish on white.
        colours = colormaps["viridis"](np.linspace(0.0, 0.9, len(thresholds)))
        for k in range(len(thresholds)):
            self._draw_line(ax, k, BLUE if len(thresholds) == 1 else colours[k])
        ax.set(xlabel="Predicted P(Y ≤ t)", ylabel="Frequency of y ≤ t")
        title = self.name or ""
        if len(thresholds) > 1:
            self._draw_colour_bar(ax, colours)
        else:
            title = f"{title}, t = {thresholds[0]:.4g}".removeprefix(", ")
        ax.set_title(title)
        note_below(ax, self.curve.note)
        return self

    def _draw_line(self, ax: "Axes", k: int, colour: Any) -> None:
        curve = self.curve
        used = ~np.isnan(curve.observed[k]) & _inner_points(curve.share[k])
        x = curve.predicted[k, used]
        many = len(curve.thresholds) > 1
        ax.fill_between(
            x,
            curve.lower[k, used],
            curve.upper[k, used],
            color=BAND,
            alpha=0.12 if many else 0.5,
            linewidth=0,
            zorder=0,
        )
        marker = "o" if len(curve.predicted[k]) <= 25 else ""
        label = f"t = {curve.thresholds[k]:.4g}"
        ax.plot(
            x,
            curve.observed[k, used],
            color=colour,
            marker=marker,
            markersize=3,
            linewidth=1.3,
            label=label,
        )

    def _draw_colour_bar(self, ax: "Axes", colours: Any) -> None:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import ListedColormap

        steps = ScalarMappable(cmap=ListedColormap(colours))
        steps.set_clim(-0.5, len(colours) - 0.5)
        bar = colour_bar(ax, steps, "Threshold t")
        shown = np.unique(np.linspace(0, len(colours) - 1, min(len(colours), 6)).astype(int))
        bar.set_ticks(shown.tolist(), labels=[f"{self.curve.thresholds[k]:.3g}" for k in shown])
        bar.ax.minorticks_off()
        bar.ax.tick_params(labelsize="small")
        self.colorbar_ = bar


def _inner_points(share: Array) -> np.ndarray:
    """Return which points have at least `_END_SHARE` of the rows up to them from both ends."""
    below = np.cumsum(share)
    above = np.cumsum(share[::-1])[::-1]
    return np.minimum(below, above) >= _END_SHARE
