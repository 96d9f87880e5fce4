"""Moments and scores along the base's own quantiles, against closed forms."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from scipy.special import ndtr

import regcal
from regcal.distributions import Transformed
from regcal.distributions._quadrature import ALONG_PROBITS, in_parts, panels_between, refined
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
    widths = np.diff(edges)
    smooth = np.exp(points)
    step = np.where(points > 0.6, 1.0, 0.0)

    error = abs((smooth * lengths).sum() - np.expm1(1.0))
    assert_allclose(ALONG_PROBITS.error(smooth, widths, 0.0), error, rtol=0.5)
    assert ALONG_PROBITS.error(step, widths, 0.0) > 1e-3


def test_rows_in_doubt_are_asked_again_with_narrower_panels():
    """A steep row gets as many panels as it needs, and the others do not."""
    steepness = np.array([0.05, 4.0])
    asked = []

    def answer(rows, parts):
        steep = steepness if rows is None else steepness[rows]
        asked.append((len(steep), parts))
        points, lengths = ALONG_PROBITS.between(in_parts(np.array([[-1.0, 0.1, 1.0]]), parts))
        values = ndtr(steep[:, np.newaxis] * points)
        sums = (values * lengths).sum(axis=1)
        widths = np.repeat(np.diff([[-1.0, 0.1, 1.0]]) / parts, parts, axis=1)
        return sums, ALONG_PROBITS.error(values, widths, 0.0)

    sums = refined(answer)

    assert asked[0] == (2, 1)
    assert asked[-1][0] == 1
    assert_allclose(sums, 1.0, rtol=1e-6)


def test_panels_keep_their_ends_and_take_what_is_between():
    """What lies outside is moved to an end; one column and several give the same."""
    edges = np.array([[0.0, 1.0, 2.0]])
    cuts = np.array([[0.5, 5.0], [1.5, -1.0]])

    together = panels_between(edges, [cuts])
    one_by_one = panels_between(edges, [cuts[:, :1], cuts[:, 1:]])
    assert_allclose(together, [[0.0, 0.5, 1.0, 2.0, 2.0], [0.0, 0.0, 1.0, 1.5, 2.0]])
    assert_allclose(one_by_one, together)
