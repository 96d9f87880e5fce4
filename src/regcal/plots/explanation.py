"""What covariates do to location and spread, with bands."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from regcal._validation import Array
from regcal.explanation import CovariateEffect, Explanation, explain
from regcal.plots._base import BLUE, GREY, VERMILLION, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Covariates that are drawn unless others are named.
_N_DRAWN = 3

# Names of more levels than so many are written upright and small.
_N_LEVELS = 5


class ExplanationDisplay(Display):
    """Where a model was wrong: a column of panels per covariate, location above spread.

    Points with bars are the mean error of the rows of each segment, as they are. The line with its
    band is what the covariate does by itself, if others stayed as they are. The dotted line is a
    model that is right.

    Parameters
    ----------
    explanation : Explanation

    Attributes
    ----------
    axes_ : ndarray of Axes, of shape (2, n_covariates)

    Examples
    --------
    >>> import numpy as np
    >>> import regcal
    >>> from regcal.plots import ExplanationDisplay
    >>> dist, kind = regcal.Normal(np.zeros(60), 1.0), ["a", "b"] * 30
    >>> y = np.linspace(-1.5, 1.5, 60) + [0.0, 2.0] * 30
    >>> known = {"kind": kind}
    >>> calibrator = regcal.ConditionalCalibrator("additive").fit(dist, y, covariates=known)
    >>> explanation = regcal.explain(calibrator, dist, covariates=known)
    >>> display = ExplanationDisplay.from_explanation(explanation, covariates=["kind"])
    >>> display.axes_[0, 0].get_ylabel()
    'Outcome − predicted median'
    """

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, covariates: int | Sequence[str] = _N_DRAWN
    ) -> Self:
        """Draw what `regcal.explain` found.

        Parameters
        ----------
        explanation : Explanation
        covariates : int or sequence of str, default=3
            How many covariates are drawn, those with the largest errors first, or which.

        Returns
        -------
        ExplanationDisplay
        """
        return cls(explanation).plot(covariates=covariates)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, **options: Any) -> Self:
        """Explain a fitted model or calibrator, and draw that.

        Parameters
        ----------
        estimator, X, y
            As in `regcal.explain`.
        **options
            As in `regcal.explain`.

        Returns
        -------
        ExplanationDisplay
        """
        return cls.from_explanation(explain(estimator, X, y, **options))

    def plot(self, *, covariates: int | Sequence[str] = _N_DRAWN) -> Self:
        """Draw on a new figure, and return this display."""
        import matplotlib.pyplot as plt

        shown = self._chosen(covariates)
        size = (1.2 + 2.9 * len(shown), 6.0)
        self.figure_, self.axes_ = plt.subplots(
            2, len(shown), figsize=size, layout="constrained", squeeze=False, sharey="row"
        )
        self.ax_ = self.axes_[0, 0]
        for (above, below), effect in zip(self.axes_.T, shown, strict=True):
            shifts, factors = (self.explanation.bars(effect, n) for n in ("shift", "factor"))
            _draw(above, effect, effect.shift, shifts, 0.0)
            _draw(below, effect, effect.factor, factors, 1.0)
            self._tell_missing(above, below, effect)
            below.set(xlabel=effect.name, yscale="log")
            above.set_title(_titled(effect), fontsize="medium")
        self._label()
        return self

    def _tell_missing(self, above: "Axes", below: "Axes", effect: CovariateEffect) -> None:
        """Write what happens where the covariate is missing, which has no place on its axis."""
        for one in self.explanation.segments:
            if one.segment == f"{effect.name} is missing":
                for ax, size in ((above, one.location), (below, one.spread)):
                    text = f"missing: {size.value:.2g} ({size.lower:.2g} to {size.upper:.2g})"
                    ax.set_title(text, loc="right", y=0.9, fontsize="small", color=VERMILLION)

    def _label(self) -> None:
        unit = f" ({self.explanation.unit})" if self.explanation.unit else ""
        self.axes_[0, 0].set_ylabel(f"Outcome − predicted median{unit}")
        self.axes_[1, 0].set_ylabel("Factor on the spread")
        _plain_ticks(self.axes_[1, 0])
        figure: Any = self.figure_
        handles, labels = self.axes_[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=2, frameon=False)

    def _chosen(self, covariates: int | Sequence[str]) -> list[CovariateEffect]:
        known = {one.name: one for one in self.explanation.covariates}
        if not known:
            msg = "The explanation has no effects to draw: nothing was learnt from covariates."
            raise ValueError(msg)
        if isinstance(covariates, int):
            return list(known.values())[:covariates]
        absent = [name for name in covariates if name not in known]
        if absent:
            msg = f"There is no covariate {absent[0]!r}. There are {', '.join(known)}."
            raise ValueError(msg)
        return [known[name] for name in covariates]


def _draw(ax: "Axes", effect: CovariateEffect, curve: Array, bars: Array, right: float) -> None:
    lower, middle, upper = curve
    ax.axhline(right, color=GREY, linewidth=1, linestyle=":")
    alone = "this covariate by itself"
    if effect.kind == "number":
        order = np.argsort(effect.values)
        x = effect.values[order]
        ax.fill_between(x, lower[order], upper[order], color=BLUE, alpha=0.2, linewidth=0)
        ax.plot(x, middle[order], color=BLUE, label=alone)
    else:
        ends = [middle - lower, upper - middle]
        place = effect.values + 0.12
        ax.errorbar(place, middle, ends, color=BLUE, fmt="s", markersize=4, label=alone)
        crowded = len(effect.labels) > _N_LEVELS
        style: dict[str, Any] = {"rotation": 90, "fontsize": "x-small"} if crowded else {}
        ax.set_xticks(effect.values, [*effect.labels], **style)
    if len(bars):
        x, low, mean, high = bars.T
        if effect.kind != "number":
            x = x - 0.12
        ends = [mean - low, high - mean]
        label = "rows of a segment, as they are"
        ax.errorbar(x, mean, ends, color=VERMILLION, fmt="o", markersize=4, label=label)


def _titled(effect: CovariateEffect) -> str:
    if np.isnan(effect.importance):
        return ""
    return f"{round(effect.importance, 2) + 0.0:.2f} nats a row"


def _plain_ticks(ax: "Axes") -> None:
    """Write factors as 0.5, 1, 2 rather than as powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
