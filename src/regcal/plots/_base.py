"""What all displays share: axes, colours, and the way from an estimator to its predictions."""

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from regcal.adapters import predict_dist

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"
PURPLE, SKY, ORANGE = "#CC79A7", "#56B4E9", "#E69F00"
CYCLE = (VERMILLION, BLUE, GREEN, PURPLE, ORANGE, SKY)
GREY, BAND = "#555555", "#BBBBBB"


class Display:
    """Draws what a metric computed; `plot` returns the display itself.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Set by `plot`.
    figure_ : matplotlib Figure
    """

    ax_: "Axes"
    figure_: "Figure | SubFigure"
    from_predictions: ClassVar[Callable[..., Any]]

    def _start(self, ax: "Axes | None", size: tuple[float, float]) -> "Axes":
        """Take the given axes, or make a figure of this size."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """Draw the predictions that a fitted estimator makes for rows it has not seen.

        Parameters
        ----------
        estimator : fitted model
            Anything that `regcal.predict_dist` takes.
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), or Outcomes
        **options
            As in `from_predictions`. The estimator's class is the default `name`.

        Returns
        -------
        display
        """
        options.setdefault("name", type(estimator).__name__)
        return cls.from_predictions(y, predict_dist(estimator, X), **options)


def legend_above(ax: "Axes", title: str | None, columns: int = 2) -> None:
    """Put the legend between the axes and their title, where it hides nothing."""
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        frameon=False,
        fontsize="small",
        borderaxespad=0.1,
        handletextpad=0.4,
        columnspacing=1.0,
    )
    ax.set_title(title or "", loc="left", pad=20)


def colour_bar(ax: "Axes", mappable: Any, label: str, **options: Any) -> Any:
    """Add a colour bar as high as the axes, whatever their shape."""
    figure: Any = ax.figure
    return figure.colorbar(mappable, cax=ax.inset_axes((1.04, 0, 0.045, 1)), label=label, **options)


def note_below(ax: "Axes", note: str) -> None:
    """Write what was done with censored outcomes and point masses under the axes."""
    if note:
        ax.annotate(
            textwrap.fill(note, 46),
            (0, 0),
            (0, -34),
            xycoords="axes fraction",
            textcoords="offset points",
            verticalalignment="top",
            fontsize="x-small",
            color=GREY,
        )


def unit_square(ax: "Axes") -> None:
    """Show probabilities from 0 to 1 on both axes, with the diagonal of perfect calibration."""
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":", zorder=1)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
