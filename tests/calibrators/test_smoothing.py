"""Kernels of segments: what they move, and what all rows together keep."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from regcal.calibrators.smoothing import (
    BANDWIDTHS,
    Bandwidths,
    Smoothing,
    as_often_as_seen,
    balanced,
)

COUNTS = np.array([4.0, 40.0, 30.0, 20.0, 9.0, 0.0, 3.0, 0.0, 2.0, 2.0])


def alike(bandwidth):
    return Bandwidths(bandwidth, bandwidth)


def test_smoothing_moves_masses_and_loses_none():
    """Rows of the kernel are distributions; the open segments keep to themselves."""
    kernel = Smoothing(np.linspace(0.0, 1.0, 11)).kernel(0.1)

    assert_allclose(kernel.sum(axis=1), 1.0)
    assert_allclose(kernel[[0, -1]][:, [0, -1]], np.eye(2))
    assert (kernel[1:-1, [0, -1]] == 0).all()
    assert kernel[5, 5] > kernel[5, 4] > kernel[5, 3] > 0


@pytest.mark.parametrize("bandwidth", [0.01, 0.1, 0.4])
@pytest.mark.parametrize("ends", [(0.0, np.inf), (-np.inf, 1.0), (0.0, 1.0)])
def test_an_even_density_stays_even_up_to_an_end(bandwidth, ends):
    """What would be spread beyond an end of the support comes back."""
    kernel = Smoothing(np.linspace(0.0, 1.0, 41), ends=ends).kernel(bandwidth)
    centres = np.linspace(0.0, 1.0, 81)[1::2]

    density = kernel[1:-1, 1:-1].sum(axis=0)

    # the edges that are no end are far from these
    others = np.array([0.0, 1.0])[np.isinf(ends)]
    inner = (np.abs(np.subtract.outer(centres, others)) > 5 * bandwidth).all(axis=1)
    assert inner.any() == (np.isfinite(ends).all() or bandwidth < 0.4)
    assert_allclose(density[inner], 1.0, atol=1e-3)


@pytest.mark.parametrize("ends", [(-np.inf, np.inf), (0.0, np.inf), (0.0, 1.0)])
def test_a_kernel_keeps_distributions_in_their_order(ends):
    """Larger places go to larger places, at ends of the support as well."""
    order = np.cumsum(Smoothing(np.linspace(0.0, 1.0, 41), ends=ends).kernel(0.2), axis=1)

    assert (np.diff(order, axis=0) <= 1e-12).all()


@pytest.mark.parametrize("bandwidth", [0.01, 0.1, 0.4])
def test_one_bandwidth_for_both_is_the_kernel_itself(bandwidth):
    """Then all rows together have what the kernel makes of them, and nothing is balanced."""
    smoothing = Smoothing(np.arange(9.0))

    assert_allclose(
        smoothing.kernel_for(COUNTS, alike(bandwidth)), smoothing.kernel(bandwidth), atol=1e-12
    )


@pytest.mark.parametrize("bandwidth", [0.01, 0.1, 0.4])
@pytest.mark.parametrize("rounded", [False, True])
def test_all_rows_together_have_what_the_narrower_kernel_gives_them(bandwidth, rounded):
    """Values that were seen often as they were; larger ones still go to larger ones."""
    smoothing = Smoothing(np.arange(9.0), rounded)
    plain = smoothing.kernel(bandwidth)
    kernel = smoothing.kernel_for(COUNTS, Bandwidths(bandwidth, 0.01))
    wanted = COUNTS if rounded else COUNTS @ smoothing.kernel(0.01)
    order = np.cumsum(kernel, axis=1)

    assert_allclose(kernel.sum(axis=1), 1.0, atol=1e-6)
    assert_allclose(COUNTS @ kernel, wanted, rtol=5e-3, atol=1e-6)
    assert (np.diff(order[COUNTS > 0], axis=0) <= 1e-9).all()
    if bandwidth > 0.01:
        assert np.abs(COUNTS @ plain - wanted).max() > 1.0  # the kernel by itself does not


def test_of_values_seen_once_their_share_is_spread():
    """As much as they are of all rows was not seen at all (Good, 1953)."""
    smoothing = Smoothing(np.arange(9.0), rounded=True)
    counts = np.where(np.arange(10) == 6, 1.0, COUNTS)
    plain, share = smoothing.kernel(0.1), 1.0 / counts.sum()

    wanted = (1 - share) * counts + share * counts @ plain

    assert_allclose(as_often_as_seen(plain, counts), wanted)
    assert_allclose(counts @ smoothing.kernel_for(counts, alike(0.1)), wanted, rtol=5e-3)


def test_without_outcomes_a_kernel_stays():
    """There is nothing to keep."""
    kernel = Smoothing(np.arange(9.0)).kernel(0.1)

    assert_allclose(balanced(kernel, np.zeros(10), np.zeros(10)), kernel)


def test_the_search_finds_the_best_bandwidths_of_each_kind():
    """Of a score that is a sum of both, the best of all pairs."""
    best = Bandwidths(float(BANDWIDTHS[9]), float(BANDWIDTHS[4]))

    def log_score(widths):
        return -(np.log(widths.row / best.row) ** 2) - np.log(widths.all_rows / best.all_rows) ** 2

    assert Smoothing(np.arange(9.0)).best(log_score, BANDWIDTHS) == best
