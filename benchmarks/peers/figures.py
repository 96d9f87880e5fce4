"""The figures of RESULTS.md: cost against rows, and quality."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from peers.catalogue import METHODS
from peers.tables import BASE, OUR_NAMES, Results

STYLES = {
    "regcal": ("tab:blue", "-"),
    "netcal": ("tab:orange", "--"),
    "crepes": ("tab:green", "--"),
}
STYLES |= {"uncertainty-toolbox": ("tab:red", "--"), "calpit": ("tab:purple", "--")}
STYLES |= {"scikit-learn": ("tab:brown", ":"), "gpytorch": ("tab:gray", ":")}
STYLES |= {"EasyUQ (a plain version)": ("tab:olive", "--"), "mapie": ("tab:pink", "--")}
MARKERS = "osv^D<>Ph*X8"


def style(name: str) -> dict:
    """Return a colour and line per package, and a marker per method within it."""
    package = METHODS[name].package
    within = [other for other, entry in METHODS.items() if entry.package == package]
    color, line = STYLES[package]
    return {"color": color, "linestyle": line, "marker": MARKERS[within.index(name)]}


def cost_figure(results: Results) -> Figure:
    """Draw fit + output against the number of rows, one panel per output."""
    outputs = {"density": "one log density", "quantiles": "9 quantiles", "cdf": "9 probabilities"}
    figure, axes = plt.subplots(1, 3, figsize=(13, 5.6), sharey=True, layout="constrained")
    drawn = {}
    for ax, (output, title) in zip(axes, outputs.items(), strict=True):
        for name in METHODS:
            sizes = sorted(n for m, n, what in results.seconds if m == name and what == output)
            totals = [max(results.total(name, n, output), 1e-5) for n in sizes]
            if sizes and name != BASE:
                (drawn[name],) = ax.plot(sizes, totals, markersize=4, linewidth=1, **style(name))
        ax.set(xscale="log", yscale="log", xlabel="rows", title=f"fit + {title} per row")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("CPU seconds")
    handles = [drawn[name] for name in METHODS if name in drawn]
    names = [full_name(name) for name in METHODS if name in drawn]
    figure.legend(handles, names, loc="outside lower center", ncols=4, fontsize=8)
    return figure


def full_name(name: str) -> str:
    return f"regcal {name}" if name in OUR_NAMES else name


def quality_figure(results: Results) -> Figure:
    """Draw the gain over the base model, averaged over the cells, with two standard errors."""
    scores = {"log_score": "gain in log score, nats (more is better)"}
    scores["crps"] = "change in CRPS, % of the base's (less is better)"
    names = [name for name in results.scored if name != BASE]
    figure, axes = plt.subplots(
        1, 2, figsize=(12, 0.6 + 0.28 * len(names)), sharey=True, layout="constrained"
    )
    for ax, (score, label) in zip(axes, scores.items(), strict=True):
        factor = 100.0 if score == "crps" else 1.0
        for place, name in enumerate(names):
            gap = results.difference(name, BASE, score)
            if gap is not None:
                point = {"color": style(name)["color"], "marker": "o", "capsize": 2}
                ax.errorbar(
                    factor * gap.mean, place, xerr=2 * factor * gap.error, markersize=4, **point
                )
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set_xscale("symlog", linthresh=10.0 if score == "crps" else 1.0)
        ax.set_xlabel(label)
        ax.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(names)), [full_name(name) for name in names], fontsize=8)
    axes[0].invert_yaxis()
    return figure


def save_figures(results: Results, directory: Path) -> list[str]:
    """Write the figures that the rows allow; return their file names."""
    directory.mkdir(parents=True, exist_ok=True)
    wanted = {"cost.png": (cost_figure, results.seconds)}
    wanted["quality.png"] = (quality_figure, results.cells)
    saved = []
    with mpl.rc_context({"font.size": 9}):
        for name, (draw, rows) in wanted.items():
            if rows:
                figure = draw(results)
                figure.savefig(directory / name, dpi=90, metadata={"Software": None})
                plt.close(figure)
                saved.append(name)
    return saved
