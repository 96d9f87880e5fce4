"""The study's figure in the paper's layout: base models by data sets."""

from typing import TYPE_CHECKING, Any

import numpy as np

from regcal.plots._base import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION
from regcal.reproduce.cells import BASES
from regcal.reproduce.means import Scores, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The paper's methods dashed, ours solid; the same colour for the same idea.
_STYLES: dict[str, dict[str, Any]] = {
    "e-logistic-uniform": {"color": ORANGE, "linestyle": "--", "marker": "s"},
    "e-beta-uniform": {"color": VERMILLION, "linestyle": "--", "marker": "^"},
    "gpc-zero": {"color": BLUE, "linestyle": "--", "marker": "o"},
    "e-logistic": {"color": ORANGE, "linestyle": "-", "marker": "s"},
    "e-beta": {"color": VERMILLION, "linestyle": "-", "marker": "^"},
    "gpc": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "uncalibrated": {"color": GREY, "linestyle": ":"},
    "gp-density": {"color": GREEN, "linestyle": "-."},
    "auto": {"color": PURPLE, "linestyle": "-."},
    "averaged": {"color": SKY, "linestyle": ":"},
}
LABELS = {
    "e-logistic-uniform": "e-logistic (paper)",
    "e-beta-uniform": "e-beta (paper)",
    "gpc-zero": "GPC (paper)",
    "e-logistic": "e-logistic (regcal)",
    "e-beta": "e-beta (regcal)",
    "gpc": "GPC (regcal)",
    "averaged": "uncalibrated, 3 averaged",
    "e-beta-thresholds": "e-beta, threshold code",
    "e-beta-dense": "e-beta, dense code",
    "dirichlet": "Dirichlet",
    "isotonic": "isotonic (regcal)",
    "gp-density": "gp-density (regcal)",
    "auto": "auto (regcal)",
}


def blank_figure(width: float, height: float) -> "Figure":
    """Return an empty figure that leaves the user's plotting state alone."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        msg = "The figures need matplotlib. Install it with: pip install 'regcal[plots]'."
        raise ImportError(msg) from error
    return Figure(figsize=(width, height), layout="constrained")


def draw_study(scores: Scores) -> "Figure":
    """Draw mean log-likelihood against the number of target values, with standard errors.

    Bands are of the difference to the uncalibrated model: what the methods share is not in them.

    Parameters
    ----------
    scores : Scores

    Returns
    -------
    matplotlib Figure
    """
    figure = blank_figure(4.0 * len(scores.datasets), 3.4 * len(BASES))
    axes = figure.subplots(len(BASES), len(scores.datasets), squeeze=False, sharex=True)
    for line, base in zip(axes, BASES, strict=True):
        for ax, dataset in zip(line, scores.datasets, strict=True):
            _draw_panel(ax, scores, (dataset, base))
    for ax, dataset in zip(axes[0], scores.datasets, strict=True):
        ax.set_title(dataset.replace("_", " "))
    for ax, base in zip(axes[:, 0], BASES, strict=True):
        ax.set_ylabel(f"{base}: log-likelihood")
    for ax in axes[-1]:
        ax.set_xlabel("number of target values")
        ax.set_xticks(scores.thresholds)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5, frameon=False)
    return figure


def _draw_panel(ax: "Axes", scores: Scores, setting: Setting) -> None:
    for method, style in _STYLES.items():
        counts = [k for k in (0, *scores.thresholds) if scores.has(setting, (method, k))]
        if not counts:
            continue
        means = np.array([scores.mean(setting, (method, k)).value for k in counts])
        gains = [scores.gain(setting, (method, k), ("uncalibrated", 0)) for k in counts]
        errors = np.array([gain.error for gain in gains])
        if counts == [0]:  # the same at all numbers of target values
            counts = scores.thresholds
            means, errors = np.repeat(means, len(counts)), np.repeat(errors, len(counts))
        label = LABELS.get(method, method)
        ax.plot(counts, means, label=label, linewidth=1.4, markersize=3.5, **style)
        low, high = means - errors, means + errors
        ax.fill_between(counts, low, high, color=style["color"], alpha=0.10, linewidth=0)
    ax.margins(x=0.03)
