"""Calibration over the whole batch: PIT histogram and coverage curve."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from regcal.metrics.calibration import CoverageCurve, PitHistogram, coverage_curve, pit_histogram
from regcal.plots._base import BAND, BLUE, Display, note_below, unit_square

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PitHistogramDisplay(Display):
    """Histogram of PIT values: flat when the model is calibrated.

    A hump says that predictions are too wide, a bowl that they are too narrow, a slope that they
    are biased.

    Parameters
    ----------
    histogram : PitHistogram
    name : str, optional
        Title of the panel.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.plots import PitHistogramDisplay
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> display = PitHistogramDisplay.from_predictions(y, Normal(np.zeros(200), np.ones(200)))
    >>> len(display.histogram.density)
    10
    """

    def __init__(self, histogram: PitHistogram, name: str | None = None) -> None:
        self.histogram = histogram
        self.name = name

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        dist: Any,
        *,
        bins: int = 10,
        sample_weight: Any = None,
        confidence: float = 0.95,
        name: str | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Compute the histogram and draw it.

        Parameters
        ----------
        y : array-like of shape (n_rows,), or Outcomes
        dist : Distribution or anything `as_distribution` takes
        bins : int, default=10
        sample_weight : array-like of shape (n_rows,), optional
        confidence : float, default=0.95
            Probability that all bars of a calibrated model end inside the band.
        name : str, optional
        ax : matplotlib Axes, optional

        Returns
        -------
        PitHistogramDisplay
        """
        return cls(pit_histogram(y, dist, bins, sample_weight, confidence), name).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw on `ax`, or on a new figure, and return this display."""
        ax = self._start(ax, (4.8, 3.6))
        bars = self.histogram
        percent = f"{100 * bars.confidence:g} % band if calibrated"
        widths = np.diff(bars.edges)
        ax.bar(bars.edges[:-1], bars.density, widths, align="edge", color=BLUE, edgecolor="white")
        # Behind the bars, which keep one colour; over them the band is its two edges.
        ax.axhspan(
            bars.lower, bars.upper, color=BAND, alpha=0.55, linewidth=0, label=percent, zorder=0
        )
        for edge in (bars.lower, bars.upper):
            ax.axhline(edge, color="black", linewidth=0.8, linestyle="--")
        top = 1.25 * max(bars.upper, float(bars.density.max()))
        ax.set(xlim=(0, 1), ylim=(0, top), xlabel="PIT value F(y)", ylabel="Density")
        ax.set_title(self.name or "")
        ax.legend(loc="upper center", frameon=False, fontsize="small")
        note_below(ax, bars.note)
        return self


class CoverageDisplay(Display):
    """Observed against nominal coverage of central intervals.

    Above the diagonal intervals are too wide, below it too narrow.

    Parameters
    ----------
    curve : CoverageCurve
    name : str, optional
        Label of the line.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.plots import CoverageDisplay
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> display = CoverageDisplay.from_predictions(y, Normal(np.zeros(200), np.ones(200)))
    >>> display.ax_.get_xlabel()
    'Nominal coverage'
    """

    def __init__(self, curve: CoverageCurve, name: str | None = None) -> None:
        self.curve = curve
        self.name = name

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        dist: Any,
        *,
        levels: Any = None,
        sample_weight: Any = None,
        confidence: float = 0.95,
        name: str | None = None,
        ax: "Axes | None" = None,
        color: str = BLUE,
    ) -> Self:
        """Compute the curve and draw it.

        Parameters
        ----------
        y : array-like of shape (n_rows,), or Outcomes
        dist : Distribution or anything `as_distribution` takes
        levels : array-like of shape (n_levels,), optional
            Nominal coverages; 0.05, 0.10, ..., 0.95 by default.
        sample_weight : array-like of shape (n_rows,), optional
        confidence : float, default=0.95
            Probability that the whole curve of a calibrated model lies inside the band.
        name : str, optional
            Label of the line.
        ax : matplotlib Axes, optional
            Pass the ``ax_`` of another display to draw two models in one panel.
        color : str, optional

        Returns
        -------
        CoverageDisplay
        """
        return cls(coverage_curve(y, dist, levels, sample_weight, confidence), name).plot(
            ax, color=color
        )

    def plot(self, ax: "Axes | None" = None, *, color: str = BLUE) -> Self:
        """Draw on `ax`, or on a new figure, and return this display."""
        first = ax is None or not ax.lines
        ax = self._start(ax, (4.6, 4.4))
        if first:
            self._draw_background(ax)
        curve = self.curve
        ax.plot(
            curve.nominal, curve.observed, color=color, marker="o", markersize=3.5, label=self.name
        )
        ax.legend(loc="upper left", frameon=False, fontsize="small")
        return self

    def _draw_background(self, ax: "Axes") -> None:
        curve = self.curve
        unit_square(ax)
        ax.fill_between(
            curve.nominal,
            curve.lower,
            curve.upper,
            color=BAND,
            alpha=0.55,
            linewidth=0,
            label=f"{100 * curve.confidence:g} % band",
        )
        ax.set(xlabel="Nominal coverage", ylabel="Observed coverage")
        note_below(ax, curve.note)
