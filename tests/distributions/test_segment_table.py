"""Tables of segments, against masses added up by hand."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

import regcal
from regcal.distributions._segment_table import SegmentMasses, SegmentTable
from regcal.distributions._segments import BaseMasses

THRESHOLDS = np.array([-1.0, 0.5, 2.0])
NEW = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.0, 0.5]])
BASE = regcal.Normal([0.0, 1.0], [1.0, 2.0])

EDGES = np.array([[-np.inf, -1.0, 0.5, 2.0, np.inf], [0.0, 0.0, 1.0, 1.0, 5.0]])

# One point for each row, and the segments that hold them, one after the other and row by row.
POINTS = np.array([[0.2], [3.0]])
PLACES = np.array([[1], [4 + 3]])


@pytest.fixture
def masses():
    """Two rows of four segments with new masses."""
    return SegmentMasses(BaseMasses.of(BASE, THRESHOLDS), NEW)


@pytest.fixture
def table(masses):
    """Their table, with places of their own."""
    return SegmentTable(masses, EDGES)


def below_points():
    """Return the new mass below each point, by shares of scipy's CDF."""
    first, second = scipy.stats.norm(0.0, 1.0).cdf, scipy.stats.norm(1.0, 2.0).sf
    share = (first(0.2) - first(-1.0)) / (first(0.5) - first(-1.0))
    return np.array([[0.1 + 0.2 * share], [1.0 - 0.5 * second(3.0) / second(2.0)]])


def test_masses_beside_points_are_shares_of_their_segments(table):
    """What is below a point is all segments before, and the base's share of its own."""
    below, above = table.beside(PLACES, BASE._signed_tail(POINTS))

    assert_allclose(below, below_points())
    assert_allclose(above, 1.0 - below_points())


def test_shares_and_the_masses_beside_them_are_the_same_in_two_steps(table):
    """Those who change shares in between lose nothing."""
    here = BASE._signed_tail(POINTS)
    shares = table.shares(PLACES, here)

    assert_allclose(shares.sum(axis=0), 1.0)
    assert_allclose(table.beside_shares(PLACES, shares), table.beside(PLACES, here))


def test_new_tails_stay_on_the_side_of_the_base(table):
    """A lower tail is the mass below a point, an upper one that above it, with its sign."""
    here = BASE._signed_tail(np.array([[-0.3], [3.0]]))
    first = scipy.stats.norm(0.0, 1.0).cdf
    share = (first(-0.3) - first(-1.0)) / (first(0.5) - first(-1.0))
    wanted = [[0.1 + 0.2 * share], [below_points()[1, 0] - 1.0]]

    assert_allclose(table.new_tails(PLACES, here), wanted)


def test_sums_count_a_segment_itself(masses):
    """They go up to a segment's end, and down to its start; both ways the whole is 1."""
    below, above = masses.sums

    assert_allclose(below[0], [0.1, 0.3, 0.6, 1.0])
    assert_allclose(above[1], [1.0, 0.6, 0.5, 0.5])
    assert_allclose(masses.whole, np.ones((2, 2, 1)))


def test_new_masses_stand_with_those_on_either_side(table):
    """What quantiles and integrals start from."""
    assert_allclose(table.take_new(PLACES)[:, :, 0], [[0.2, 0.5], [0.1, 0.5], [0.7, 0.0]])
    assert_allclose(table.take(PLACES)[4:7], table.take_new(PLACES))


def test_places_of_segments(table):
    """Starts, widths and ends, and how far points are between them; none without a width."""
    numbers, points = np.array([[2], [4 + 3], [4 + 2]]), np.array([[0.875], [3.0], [1.0]])

    assert_allclose(table.take_spans(numbers)[:, :, 0], [[0.5, 1, 1], [1.5, 4, 0], [2, 5, 1]])
    assert_allclose(table.ends(numbers), table.take_spans(numbers)[::2])
    assert_allclose(table.take(numbers)[7:], table.take_spans(numbers))
    shares = table.even_shares(numbers, points)
    assert_allclose(shares[:, :, 0], [[0.25, 0.5, 0.0], [0.75, 0.5, 1.0]])
