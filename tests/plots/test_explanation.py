"""The display of an explanation draws effects and segments."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import regcal
from regcal.plots import ExplanationDisplay


@pytest.fixture(scope="module")
def explanation():
    """Return what was learnt from a number and a category."""
    rng = np.random.default_rng(0)
    x, kind = rng.uniform(size=300), rng.choice(["a", "b"], 300)
    dist, y = regcal.Normal(np.zeros(300), 1.0), rng.normal(np.where(kind == "a", 2.0 * x, -1.0))
    covariates = {"x": x, "kind": kind}
    calibrator = regcal.ConditionalCalibrator("additive", with_prediction=False)
    calibrator.fit(dist, y, covariates=covariates)
    return regcal.explain(calibrator, dist, y, covariates, unit="m")


def test_lines_and_points_are_those_of_the_explanation(explanation):
    """The effect of a number as a line, segments as points, location above spread."""
    display = ExplanationDisplay.from_explanation(explanation, covariates=["x"])
    (effect,) = [one for one in explanation.covariates if one.name == "x"]
    segments = [one for one in explanation.segments if one.covariate == "x"]
    for ax, curve, name in zip(
        display.axes_[:, 0], (effect.shift, effect.factor), ("shift", "factor"), strict=True
    ):
        lines = {line.get_label(): line for line in ax.lines}
        (points,) = [one for one in ax.containers if one.get_label().startswith("rows")]

        assert_allclose(lines["this covariate by itself"].get_data(), (effect.values, curve[1]))
        assert_allclose(
            points.lines[0].get_data(),
            ([one.centre for one in segments], [getattr(one, name) for one in segments]),
        )
    assert display.axes_[0, 0].get_ylabel() == "Outcome − predicted median (m)"
    assert display.axes_[0, 0].get_title() == f"{effect.importance:.2f} nats a row"


def test_categories_have_their_names(explanation):
    """A point per level, and the covariates in their order."""
    display = ExplanationDisplay.from_explanation(explanation, covariates=2)
    names = [ax.get_xlabel() for ax in display.axes_[1]]
    place = names.index("kind")

    assert names == [one.name for one in explanation.covariates]
    labels = [label.get_text() for label in display.axes_[1, place].get_xticklabels()]
    assert labels == ["a", "b"]


def test_missing_values_and_many_levels_are_told(rng):
    """In words, since they have no place on the axis; names of many levels are upright."""
    x = {"x": np.where(np.arange(200) % 4, rng.uniform(size=200), np.nan), "k": np.arange(200) % 9}
    x["k"] = x["k"].astype(str)
    dist, y = regcal.Normal(np.zeros(200), 1.0), rng.normal(3.0 * np.isnan(x["x"]))
    calibrator = regcal.ConditionalCalibrator("additive").fit(dist, y, covariates=x)
    explanation = regcal.explain(calibrator, dist, covariates=x)
    display = ExplanationDisplay.from_explanation(explanation, covariates=["x", "k"])
    (missing,) = [one for one in explanation.segments if one.segment == "x is missing"]

    assert f"missing: {missing.shift:.2g}" in display.axes_[0, 0].get_title(loc="right")
    assert f"missing: {missing.factor:.2g}" in display.axes_[1, 0].get_title(loc="right")
    assert display.axes_[0, 1].get_title(loc="right") == ""
    assert {one.get_rotation() for one in display.axes_[1, 1].get_xticklabels()} == {90.0}


def test_what_is_not_there_is_refused(explanation):
    """The message names what there is."""
    nothing = regcal.Explanation((), (), "none", 0.0, 10, 0, "")

    with pytest.raises(ValueError, match="no covariate 'z'"):
        ExplanationDisplay.from_explanation(explanation, covariates=["z"])
    with pytest.raises(ValueError, match="no effects to draw"):
        ExplanationDisplay.from_explanation(nothing)
