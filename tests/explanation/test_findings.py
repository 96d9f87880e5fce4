"""Sentences about segments, and which of them are said."""

import numpy as np
import pytest

from regcal import ExplainedSegment, Explanation


def segment(label="x < 1", shift=(0.0, -1.0, 1.0), factor=(1.0, 0.9, 1.1), spreads=0.0):
    """Return a segment with these effects."""
    covariate = "" if label == "all rows" else "x"
    return ExplainedSegment(covariate, label, 10, *shift, *factor, spreads, 0.5)


@pytest.mark.parametrize(
    ("factor", "shift", "words"),
    [
        ((2.0, 1.5, 2.6), (0.0, -1.0, 1.0), "was 2 times too sure (1.5 to 2.6)"),
        ((0.5, 0.4, 0.8), (0.0, -1.0, 1.0), "could be 2 times surer (1.2 to 2.5)"),
        ((0.5, 0.4, 0.8), (3.0, 2.0, 4.0), "could be 2 times surer, with its medians corrected"),
    ],
)
def test_spreads_in_words(factor, shift, words):
    """Too sure, or too careful; the latter may be what a correction of the median brings."""
    assert words in segment(shift=shift, factor=factor).said_of_spread()


@pytest.mark.parametrize(
    ("shift", "words"),
    [
        ((-9.0, -11.0, -7.0), "predicted 9 MPa too much (7 to 11)"),
        ((0.12, 0.1, 0.14), "predicted 0.12 MPa too little (0.1 to 0.14)"),
    ],
)
def test_shifts_in_words(shift, words):
    """Outcomes below the median: the model predicted too much."""
    assert words in segment(shift=shift).said_of_location("MPa")


def test_only_what_is_outside_its_band_and_unlike_all_rows_is_said():
    """What costs most comes first."""
    everywhere = segment("all rows", shift=(1.0, 0.5, 1.5), spreads=0.5)
    explanation = Explanation(
        (
            everywhere,
            segment("like all", shift=(1.1, 0.4, 1.8), spreads=0.5),
            segment("unsure", shift=(4.0, -0.5, 8.5), spreads=2.0),
            segment("right", shift=(0.0, -0.4, 0.4), spreads=0.0),
            segment("low", shift=(3.0, 2.0, 4.0), factor=(3.0, 2.0, 4.0), spreads=1.5),
        ),
        (),
        "additive",
        0.1,
        50,
        0,
        "",
    )
    said = explanation.sentences()

    assert [one.split(" the model ")[0] for one in said] == ["for low", "for low", "for all rows"]
    assert "3 times too sure" in said[0]


def test_costs_are_divergences_of_normal_distributions(rng):
    """Half the square of a shift, and the divergence of a spread, by simulation."""
    z = rng.normal(size=400_000)
    for shift, factor in ((0.7, 1.0), (0.0, 1.6)):
        drawn = shift + factor * z
        truth = -0.5 * ((drawn - shift) / factor) ** 2 - np.log(factor)
        one = segment(factor=(factor, 0.0, 9.0), spreads=shift)
        expected = np.mean(truth + 0.5 * drawn**2)

        assert one.cost_of_location + one.cost_of_spread() == pytest.approx(expected, abs=0.01)
