"""Moments and scores along the base's own quantiles, against closed forms."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

import regcal
from regcal.distributions import Transformed
from regcal.distributions._quadrature import (
    ALONG_PROBITS,
    Effort,
    OtherPanelsError,
    Score,
    cut_panels,
    panels_between,
    refined,
    without_repeats,
)
from regcal.maps import ScaleMap


@pytest.mark.parametrize("factor", [0.4, 1.0, 1.7])
def test_scaled_lognormals_have_the_moments_of_lognormals(rng, factor):
    """Probits divided by a factor make a lognormal's shape that many times larger."""
    shape, scale = rng.uniform(0.2, 0.6, 5), rng.uniform(0.5, 4.0, 5)
    dist = Transformed(
        regcal.ScipyDistribution(scipy.stats.lognorm(shape, scale=scale)), ScaleMap(factor)
    )
    wanted = scipy.stats.lognorm(factor * shape, scale=scale)

    assert_allclose(dist.mean(), wanted.mean(), rtol=1e-6)
    assert_allclose(dist.var(), wanted.var(), rtol=1e-6)


def test_a_bend_that_nobody_told_of_is_found():
    """The density of a triangle bends at its mode, which lies inside a panel."""
    family = scipy.stats.triang(np.array([0.13, 0.5, 0.77]), loc=2.0, scale=3.0)
    dist = Transformed(regcal.ScipyDistribution(family), ScaleMap(1.0))

    assert_allclose(dist.mean(), family.mean(), rtol=1e-6)
    assert_allclose(dist.var(), family.var(), rtol=2e-6)


def test_scores_of_outcomes_beyond_all_quantiles():
    """An outcome outside of the support scores its distance to it besides."""
    dist = regcal.ScipyDistribution(scipy.stats.uniform(np.zeros(3), 1.0))

    assert_allclose(
        regcal.crps([-50.0, 0.25, 7.0], dist), [50 + 1 / 3, 0.1458333, 6 + 1 / 3], rtol=1e-6
    )


def test_the_error_estimate_tells_smooth_values_from_steps():
    """An exponential's estimate is its error; a step's is as large as the panel."""
    edges = np.array([[0.0, 0.5, 1.0]])
    points, lengths = ALONG_PROBITS.between(edges)
    widths, even = np.diff(edges), np.zeros((1, 2))
    smooth = np.exp(points)
    step = np.where(points > 0.6, 1.0, 0.0)

    error = abs((smooth * lengths).sum() - np.expm1(1.0))
    assert_allclose(ALONG_PROBITS.errors(smooth, widths, even).sum(), error, rtol=0.5)
    assert ALONG_PROBITS.errors(step, widths, even).sum() > 1e-3


class SteepRows:
    """Integrals of a normal CDF over three panels, of which only that in the middle is steep.

    They are 8.7 of steep rows, and 9 of level ones.

    Those that are not careful do not know of rows of which they are told so. Some rows alone may
    have other panels.
    """

    def __init__(self, steepness, *, unknown=(), quick=False, alone=None):
        self.steepness, self.unknown, self.quick = np.array(steepness), list(unknown), quick
        self.together = (-9.0, -1.0, 1.0, 9.0)
        self.alone = self.together if alone is None else alone
        self.asked = []

    def sums_of(self, rows):
        numbers = np.arange(len(self.steepness)) if rows is None else rows
        own = np.array([self.together if rows is None else self.alone])

        def sums(effort):
            self.asked.append((numbers.tolist(), effort))
            edges = effort.edges(own)
            points, lengths = ALONG_PROBITS.between(edges)
            values = ndtr(self.steepness[numbers][:, np.newaxis] * (points - 0.3))
            quick = self.quick and not effort.careful
            values[np.isin(numbers, self.unknown) & quick] = np.nan
            lengths = np.broadcast_to(lengths, values.shape)
            even = np.zeros((1, values.shape[1] // 3))
            errors = ALONG_PROBITS.errors(values, ALONG_PROBITS.widths(lengths), even)
            sums = ALONG_PROBITS.sums(values * lengths)
            return Score(np.zeros(len(values)), sums[np.newaxis], errors[np.newaxis], quick)

        return sums


def test_panels_in_doubt_are_cut_and_no_others():
    """Far from its middle a steep CDF is 0 or 1, and those panels are asked for once."""
    rows = SteepRows([8.0, 8.0])

    assert_allclose(refined(rows.sums_of), [[8.7, 8.7]], rtol=1e-6)
    assert [len(effort.numbers(3)) for _, effort in rows.asked] == [3, 2, 4, 8, 16]
    assert all((effort.panels == [1]).all() for _, effort in rows.asked[1:])


def test_few_rows_in_doubt_are_asked_again_by_themselves():
    """Rows that are level need no second look, nor panels that are not in doubt."""
    rows = SteepRows([0.0, 0.0, 8.0, 0.0])

    assert_allclose(refined(rows.sums_of), [[9.0, 9.0, 8.7, 9.0]], rtol=1e-6)
    assert rows.asked[0][0] == [0, 1, 2, 3]
    assert all(numbers == [2] for numbers, _ in rows.asked[1:])
    assert all((effort.panels == [1]).all() for _, effort in rows.asked[1:])


def test_what_quick_nodes_do_not_know_is_left_to_careful_ones():
    """A row that is not a number is asked for with a careful effort, and only that row."""
    rows = SteepRows([0.0, 0.0, 0.0], unknown=[1], quick=True)

    assert_allclose(refined(rows.sums_of), 9.0 * np.ones((1, 3)), rtol=1e-6)
    assert [(numbers, effort.careful) for numbers, effort in rows.asked] == [
        ([0, 1, 2], False),
        ([1], True),
    ]


def test_parts_of_panels_are_where_the_panels_were():
    """Parts begin and end with their panel, and are equally wide."""
    edges = np.array([[0.0, 1.0, 4.0, 6.0]])

    some = Effort(np.array([0, 2]), 2, total=3)
    assert_allclose(some.edges(edges), [[[0.0, 0.5, 1.0], [4.0, 5.0, 6.0]]])
    assert_allclose(Effort().edges(edges), edges[:, np.newaxis])


def test_numbers_of_other_panels_are_refused():
    """Also of panels in two parts, of which either may have become more or fewer."""
    some, edges = Effort(np.array([0, 2]), 2, total=4), np.arange(5.0)[np.newaxis, :]

    with pytest.raises(OtherPanelsError):
        some.edges(edges[:, :-1])
    with pytest.raises(OtherPanelsError):
        some.split(3)[1].edges(edges[:, :3])
    assert some.split(3)[1].edges(edges[:, :2]).shape == (1, 0, 3)


def test_rows_that_are_laid_out_otherwise_begin_anew():
    """By themselves they have a panel more, and numbers of panels would be those of others."""
    rows = SteepRows([0.0, 0.0, 8.0, 0.0], alone=(-9.0, -3.0, -1.0, 1.0, 9.0))

    assert_allclose(refined(rows.sums_of), [[9.0, 9.0, 8.7, 9.0]], rtol=1e-6)
    assert [effort.panels is None for _, effort in rows.asked[:3]] == [True, False, True]
    assert all((effort.panels == [2]).all() for _, effort in rows.asked[3:])


def test_unknown_rows_beside_rows_that_begin_anew_are_not_forgotten():
    """A row that quick nodes do not know has its careful ones whatever becomes of the others."""
    alone = (-9.0, -3.0, -1.0, 1.0, 9.0)
    rows = SteepRows([0.0, 0.0, 8.0, 0.0], unknown=[1], quick=True, alone=alone)

    assert_allclose(refined(rows.sums_of), [[9.0, 9.0, 8.7, 9.0]], rtol=1e-6)
    assert ([1], True) in [(numbers, effort.careful) for numbers, effort in rows.asked]


@pytest.mark.parametrize("shared", [True, False])
def test_a_cut_makes_two_halves_of_its_panel(shared):
    """Also where rows have panels of their own; what is outside is moved to an end."""
    edges = np.array([[0.0, 1.0, 3.0]])
    cuts = np.array([[0.25], [2.0], [9.0], [-9.0]])

    held, halves = cut_panels(edges if shared else np.repeat(edges, 4, axis=0), cuts)
    assert_allclose(held, [[0], [1], [1], [0]])
    assert_allclose(halves, [[0.0, 0.25, 1.0], [1.0, 2.0, 3.0], [1.0, 3.0, 3.0], [0.0, 0.0, 1.0]])


def test_panels_keep_their_ends_and_take_what_is_between():
    """What lies outside is moved to an end; one column and several give the same."""
    edges = np.array([[0.0, 1.0, 2.0]])
    cuts = np.array([[0.5, 5.0], [1.5, -1.0]])

    together = panels_between(edges, [cuts])
    one_by_one = panels_between(edges, [cuts[:, :1], cuts[:, 1:]])
    assert_allclose(together, [[0.0, 0.5, 1.0, 2.0, 2.0], [0.0, 0.0, 1.0, 1.5, 2.0]])
    assert_allclose(one_by_one, together)


def test_places_that_all_rows_have_twice_are_left_out():
    """What differs in any row stays."""
    places = np.array([[3.0, 1.0, 3.0, 1.0, 2.0], [3.5, 1.0, 3.5, 1.5, 2.5]])

    kept = without_repeats(places)

    assert_array_equal(np.sort(kept), [[1.0, 1.0, 2.0, 3.0], [1.0, 1.5, 2.5, 3.5]])
