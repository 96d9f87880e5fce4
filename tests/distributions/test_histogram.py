"""Histograms by hand, open bins included."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_ndtr

import regcal


def test_histogram_by_hand():
    """Uniform bins have the moments of uniform bins."""
    edges, masses = np.array([0.0, 1.0, 3.0, 4.0]), np.array([[0.2, 0.5, 0.3]])
    dist = regcal.Histogram(edges, masses)
    middle, width = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
    mean = masses[0] @ middle

    assert_allclose(dist.cdf([[-1, 0.5, 1, 2, 3.5, 9]]), [[0, 0.1, 0.2, 0.45, 0.85, 1]])
    assert_allclose(dist.pdf([[-1, 0.5, 2, 3.5, 9]]), [[0, 0.2, 0.25, 0.3, 0]])
    assert_allclose(dist.ppf([[0, 0.1, 0.45, 0.85, 1]]), [[0, 0.5, 2, 3.5, 4]])
    assert_allclose(dist.mean(), mean)
    assert_allclose(dist.var(), masses[0] @ ((middle - mean) ** 2 + width**2 / 12))


def test_open_bins_decay_exponentially():
    """An open bin goes on as what lies beyond has fallen over the closed ones: 0.8 to 0.3 here."""
    dist = regcal.Histogram([-np.inf, 0.0, 2.0, np.inf], [[0.3, 0.5, 0.2]])
    below, above = np.log(0.8 / 0.3) / 2, np.log(0.7 / 0.2) / 2

    assert_allclose(dist.sf([[3.0, 80.0]]), [0.2 * np.exp([-above, -78 * above])])
    assert_allclose(dist.cdf([[-4.0, -80.0]]), [0.3 * np.exp([-4 * below, -80 * below])])
    assert_allclose(dist.logpdf(-2000.0), np.log(0.3 * below) - 2000.0 * below)
    levels = [[0.3 * np.exp(-4 * below), 1 - 0.2 * np.exp(-above)]]
    assert_allclose(dist.ppf(levels), [[-4.0, 3.0]])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_open_bins_go_on_with_a_constant_hazard(sign):
    """Bins of an exponential distribution are that distribution beyond them, whatever they are."""
    rates, t = np.array([0.1, 0.5, 4.0]), np.array([[3.0, 3.5, 20.0]])
    wanted = np.exp(-rates[:, np.newaxis] * t)
    for times in ([3.0], [1.0, 3.0], np.linspace(0.01, 3.0, 300), [0.1, 2.99, 3.0]):
        alive = np.exp(-rates[:, np.newaxis] * np.concatenate([[0.0], times, [np.inf]]))
        masses, edges = -np.diff(alive), np.concatenate([[0.0], times, [np.inf]])
        if sign > 0:
            assert_allclose(regcal.Histogram(edges, masses).sf(t), wanted, rtol=1e-9)
        else:
            mirrored = regcal.Histogram(-edges[::-1], masses[:, ::-1])
            assert_allclose(mirrored.cdf(-t), wanted, rtol=1e-9)


def test_open_bins_do_not_depend_on_the_width_of_others(rng):
    """To cut bins in halves changes nothing, at either end."""
    edges, masses = np.cumsum(rng.uniform(0.5, 2.0, 6)), rng.dirichlet(np.ones(7), 4)
    halves = np.sort(np.concatenate([edges, 0.5 * (edges[1:] + edges[:-1])]))
    inner = np.repeat(masses[:, 1:-1], 2, axis=1) / 2
    whole = regcal.Histogram(np.r_[-np.inf, edges, np.inf], masses)
    cut = regcal.Histogram(
        np.r_[-np.inf, halves, np.inf], np.column_stack([masses[:, 0], inner, masses[:, -1]])
    )
    points = np.linspace(edges[0] - 9.0, edges[-1] + 9.0, 41)[np.newaxis]

    assert_allclose(cut.logcdf(points), whole.logcdf(points))
    assert_allclose(cut.logsf(points), whole.logsf(points))
    assert_allclose(cut.logpdf(points), whole.logpdf(points))


def test_open_bins_that_hold_everything_still_end():
    """Where closed bins tell nothing, the decay is slow, and has moments."""
    dist = regcal.Histogram([0.0, 2.0, np.inf], [[0.0, 1.0], [1e-9, 1.0 - 1e-9]])

    assert_allclose(dist.mean(), 2.0 + 2000.0, rtol=1e-6)


def test_open_bins_have_quantiles_where_probabilities_are_zero():
    """Forty standard deviations out, the exponential tail is followed by its logarithm."""
    dist = regcal.Histogram([-np.inf, 0.0, 2.0, np.inf], [[0.3, 0.5, 0.2]])
    z, far = np.array([[-45.0, 45.0]]), log_ndtr(-45.0)
    below, above = 2 / np.log(0.8 / 0.3), 2 / np.log(0.7 / 0.2)

    assert_allclose(
        dist.from_probit(z),
        [[below * (far - np.log(0.3)), 2 - above * (far - np.log(0.2))]],
    )
    assert_allclose(dist.probit(dist.from_probit(z)), z)


def test_empty_open_bins_have_no_quantiles():
    """A bin without mass is never entered, not even at the levels 0 and 1."""
    dist = regcal.Histogram([-np.inf, 0.0, 1.0, 3.0, np.inf], [[0.0, 0.3, 0.7, 0.0]])

    assert_allclose(dist.ppf([[0.0, 0.3, 1.0]]), [[0.0, 1.0, 3.0]])
    assert_array_equal(dist.pdf([[-1.0, 4.0]]), 0.0)


def test_bins_without_width_are_point_masses():
    """Moments, quantiles and the score of a histogram with points at both ends, by hand."""
    dist = regcal.Histogram([0.0, 0.0, 1.0, 2.0, 2.0], [[0.4, 0.2, 0.3, 0.1], [0.0, 0.5, 0.5, 0.0]])

    assert_allclose(dist.mass([[0.0, 1.0, 2.0]]), [[0.4, 0.0, 0.1], [0.0, 0.0, 0.0]])
    assert_allclose(dist.cdf([[-0.1, 0.0, 0.5, 1.999, 2.0]])[0], [0.0, 0.4, 0.5, 0.8997, 1.0])
    assert_array_equal(dist.ppf([[0.0, 0.2, 0.4, 0.95, 1.0]])[0], [0.0, 0.0, 0.0, 2.0, 2.0])
    assert_allclose(dist.ppf([[0.0, 0.5, 1.0]])[1], [0.0, 1.0, 2.0], atol=1e-9)
    mean = 0.2 * 0.5 + 0.3 * 1.5 + 0.1 * 2.0
    square = 0.2 / 3 + 0.3 * 7 / 3 + 0.1 * 4.0
    assert_allclose([dist.mean()[0], dist.var()[0]], [mean, square - mean**2])
    # integrals of F^2 below 1, and of (1 - F)^2 above it
    score = (0.6**3 - 0.4**3) / 0.6 + (0.4**3 - 0.1**3) / 0.9
    assert_allclose(dist.crps([1.0, 1.0])[0], score)


def test_point_masses_are_the_same_in_all_rows():
    """Rows of other edges may have them; other places and single rows are refused."""
    masses = np.full((2, 3), 1 / 3)
    dist = regcal.Histogram([[0.0, 0.0, 1.0, 2.0], [0.0, 0.0, 5.0, 9.0]], masses)

    assert_allclose(dist.mass(0.0), 1 / 3)
    assert_allclose(dist.cdf([0.5, 2.5]), 0.5)
    for edges in ([[0.0, 0.0, 1.0, 2.0], [1.0, 1.0, 5.0, 9.0]], [[0, 0, 1, 2], [0, 1, 5, 9]]):
        with pytest.raises(ValueError, match="same place in all rows"):
            regcal.Histogram(edges, masses)
    with pytest.raises(ValueError, match="strictly increasing"):
        regcal.Histogram([0.0, 1.0, 1.0, 2.0], masses)
