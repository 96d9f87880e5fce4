"""Draw the picture of the README and of the site's first page: truth, model, calibrated.

python docs/picture.py
"""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import BayesianRidge

import regcal
from regcal.datasets import ToyMixture

PICTURE = Path(__file__).parent / "_static" / "before_after.png"
INK = "#2f2f38"
N_COLUMNS, N_LINES, N_POINTS = 260, 260, 160


def densities() -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, regcal.datasets.Dataset]:
    """Return the density on a grid of x and y: the truth, the model's, the calibrated."""
    toy = ToyMixture()
    train, past = toy.sample(600, random_state=0), toy.sample(600, random_state=1)
    model = BayesianRidge().fit(train.X, train.y)
    calibrator = regcal.get_calibrator("gpc")
    calibrator.fit(regcal.predict_dist(model, past.X), past.y)
    x, y = np.linspace(-1, 1, N_COLUMNS), np.linspace(-1.35, 1.35, N_LINES)
    said = regcal.predict_dist(model, x[:, np.newaxis])
    grid = y[np.newaxis, :]
    panels = {
        "What is true": toy.pdf(x[:, np.newaxis], grid),
        "What a linear model says": said.pdf(grid),
        "The same model, calibrated": calibrator.transform(said).pdf(grid),
    }
    return panels, x, y, past


def draw() -> plt.Figure:
    """Draw the three panels."""
    panels, x, y, past = densities()
    with mpl.rc_context({"font.size": 12, "axes.edgecolor": INK, "text.color": INK}):
        figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharey=True, layout="constrained")
        for ax, (title, density) in zip(axes, panels.items(), strict=True):
            ax.pcolormesh(x, y, np.sqrt(density.T), cmap="Blues", vmax=1.5, rasterized=True)
            ax.plot(past.X[:N_POINTS, 0], past.y[:N_POINTS], ".", color="#b3541e", markersize=3.5)
            ax.set_title(title, loc="left", color=INK)
            ax.set(xlabel="x", xticks=(-1, 0, 1), yticks=(-1, 0, 1), ylim=(y[0], y[-1]))
        axes[0].set_ylabel("y")
    return figure


if __name__ == "__main__":
    draw().savefig(PICTURE, dpi=100, pil_kwargs={"optimize": True})
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1024:.0f} kB")
