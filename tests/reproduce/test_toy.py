"""The toy figures show what the paper describes."""

import csv
import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from regcal import Mixture, Normal
from regcal.datasets import ToyMixture
from regcal.reproduce import reproduce_toy, toy
from regcal.reproduce.toy import PAPER, ToyStudy, Training, both_branches


@pytest.fixture(scope="module")
def training() -> Training:
    return Training("BRR", ToyMixture().sample(1800, random_state=0))


def test_the_truth_has_both_branches_and_a_normal_has_not():
    """The measure tells two peaks from one."""
    x = np.array([0.8, 0.9, 1.0])
    flat, narrow = np.full(3, -0.5), np.full(3, 0.1)
    truth = Mixture([Normal(x, narrow), Normal(flat, narrow)])

    assert both_branches(truth, x, ToyMixture()).all()
    assert not both_branches(Normal(0.5 * (x - 0.5), narrow * 5), x, ToyMixture()).any()
    assert not both_branches(Normal(x, narrow), x, ToyMixture()).any()


@pytest.mark.parametrize("method", PAPER)
def test_every_method_finds_both_branches(training, method):
    """Towards large inputs the calibrated density has two peaks, the base model's one."""
    x = np.linspace(0.85, 1.0, 7)
    dists = training.predictions(x[:, np.newaxis], {method: PAPER[method]})
    found = {name: both_branches(dist, x, ToyMixture()).mean() for name, dist in dists.items()}

    assert found["base model"] == 0
    assert found[method] > 0.7


@pytest.mark.parametrize("method", ["e-logistic", "e-beta"])
def test_empirical_methods_show_horizontal_bands(training, method):
    """Inside a segment the density is the same everywhere."""
    calibrator = training.calibrator(PAPER[method])
    low, high = calibrator.thresholds_[6:8]
    inside = np.linspace(low + 1e-9, high - 1e-9, 5)[np.newaxis, :]
    density = calibrator.transform(training.held_out[:20]).pdf(inside)

    assert_allclose(density, density[:, :1] * np.ones((1, 5)), rtol=1e-12)


@pytest.fixture(scope="module")
def small() -> ToyStudy:
    """Return a study of few rows, folds and thresholds, for what does not depend on their number.

    Fits are kept, since figures and table ask for the same ones.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy, "_N_JUDGED", 40)
        patch.setattr(toy, "N_FOLDS", 2)
        patch.setattr(toy, "THRESHOLDS", 8)
        patch.setattr(toy, "MAP_THRESHOLDS", 8)
        patch.setattr(toy, "PREDICTION_THRESHOLDS", 32)
        patch.setattr(Training, "calibrator", functools.cache(Training.calibrator))
        yield ToyStudy(150)


def test_reliability_lines_come_closer_to_the_diagonal(small):
    """After GPC the lines are nearer than before, in cross-validation."""
    gaps = {method: small._reliability_gap("BRR", method) for method in ("base model", "GPC")}

    assert gaps["GPC"] < gaps["base model"]


def test_figures_have_the_papers_panels(small):
    """Six figures, titled by base model and method."""
    panels = {
        name: [ax for ax in figure.axes if ax.get_title() or ax.get_title(loc="left")]
        for name, figure in small.figures().items()
    }

    assert {name: len(axes) for name, axes in panels.items()} == {
        "toy_example": 3,
        "toy_densities": 8,
        "toy_densities_regcal": 8,
        "toy_reliability": 8,
        "toy_calibration_maps": 2,
        "toy_row": 1,
    }
    assert panels["toy_reliability"][5].get_title() == "GPR, e-logistic"


def test_pictures_and_table_are_written(small, tmp_path, monkeypatch):
    """The table has a line per base model and method, none better than the truth."""
    monkeypatch.setattr(toy, "ToyStudy", lambda n_rows, random_state: small)
    monkeypatch.setattr(small, "figures", lambda: {"toy_row": small.draw_row()})
    files = reproduce_toy(tmp_path / "new")
    with files[-1].open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    assert [path.name for path in files] == ["toy_row.png", "toy.csv"]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert len(rows) == 3 * 7
    assert all(float(row["log_score"]) < float(row["best"]) for row in rows)
    assert [row["reliability_gap"] == "" for row in rows if row["method"] == "GPC"] == [
        True,
        False,
        False,
    ]
