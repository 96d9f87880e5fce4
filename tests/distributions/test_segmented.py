"""Distributions with new masses: the shape inside of segments, and both tails."""

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from numpy.testing import assert_allclose
from rows import GRID
from scipy.special import ndtri_exp

import regcal
from regcal.distributions import Segmented


def reweighted(base, log_base):
    """Return masses of a known calibration: the inner segments change places."""
    log_new = np.array(log_base)
    log_new[:, 1:-1] = log_base[:, -2:0:-1]
    return log_new


def test_uniform_shape_is_piecewise_constant():
    """Between thresholds the density is the mass divided by the width."""
    thresholds = np.array([-1.0, 0.0, 0.5, 2.0])
    dist = Segmented(regcal.Normal([0.3], [1.0]), thresholds, reweighted, uniform=True)
    masses, widths = np.exp(dist.log_masses()[0]), np.diff(thresholds)

    for k, (low, width) in enumerate(zip(thresholds, widths, strict=False)):
        inside = low + width * np.array([[1e-9, 0.3, 0.9]])
        assert_allclose(dist.pdf(inside), masses[k + 1] / width)
    assert_allclose(dist.cdf([[0.25]]), masses[:2].sum() + masses[2] / 2)


def test_base_shape_follows_the_base():
    """Inside a segment the density is the base's, times new mass over old, tails included."""
    thresholds = np.array([-1.0, 0.0, 0.5, 2.0])
    base = scipy.stats.norm(0.3, 1.0)
    dist = Segmented(regcal.Normal([0.3], [1.0]), thresholds, reweighted)
    old = np.diff(base.cdf(np.concatenate([[-np.inf], thresholds, [np.inf]])))
    new = reweighted(base, np.log(old)[np.newaxis, :])[0]
    for k, point in enumerate([-30.0, -0.5, 0.2, 1.0, 35.0]):
        wanted = base.logpdf(point) + new[k] - np.log(old[k])
        assert_allclose(dist.logpdf(point), wanted, rtol=1e-9)


def test_identity_masses_change_nothing():
    """Segments that keep their masses are the base, at every point."""
    base = regcal.Normal([0.0, 50.0], [1.0, 0.1])
    dist = Segmented(base, np.array([-1.0, 0.0, 3.0]), lambda base, masses: masses)

    for method in ("cdf", "logcdf", "logsf", "logpdf"):
        wanted = getattr(base, method)(GRID)
        assert_allclose(getattr(dist, method)(GRID), wanted, rtol=1e-9, atol=1e-15)
    assert_allclose(dist.ppf([[0.01, 0.5, 0.99]]), base.ppf([[0.01, 0.5, 0.99]]), atol=1e-9)


def test_thresholds_far_outside_of_the_base():
    """Segments in which the base has e-2000 of its mass and less are handled in log space."""
    base = regcal.Normal([0.0, 1000.0], [1.0, 1.0])
    cal = regcal.get_calibrator("e-beta", thresholds=[-90.0, -70.0, 70.0, 90.0, 2000.0])
    dist = cal.fit(base, [0.5, 75.0]).transform(base)
    points = np.array([[-100.0, -80.0, 0.0, 80.0, 500.0, 2500.0]])

    assert np.isfinite(dist.logpdf(points)).all()
    assert_allclose(np.exp(dist.log_masses()).sum(axis=1), 1.0)


def test_segments_without_base_mass_are_uniform():
    """A gap inside of the support can get mass, spread evenly; what lies beyond it gets none."""
    gapped = regcal.Histogram([0.0, 1.0, 3.0, 4.0], [[0.5, 0.0, 0.5]])
    inside = Segmented(gapped, np.array([1.0, 3.0]), lambda base, masses: np.zeros_like(masses))
    beyond = Segmented(
        regcal.Histogram([0.0, 1.0], [[1.0]]),
        np.array([0.5, 1.0, 2.0, 4.0]),
        lambda base, masses: np.zeros_like(masses),
    )

    assert_allclose(inside.pdf([[0.5, 2.0, 3.5, 5.0]]), [[1 / 3, 1 / 6, 1 / 3, 0.0]])
    assert_allclose(beyond.pdf([[0.25, 0.75, 1.5, 3.0, 5.0]]), [[1.0, 1.0, 0.0, 0.0, 0.0]])


@pytest.mark.parametrize("uniform", [False, True])
def test_both_tails_are_equally_exact(uniform):
    """A symmetric calibration has symmetric quantiles, where masses are tiny too."""
    thresholds = np.linspace(-6.0, 6.0, 9)
    base = regcal.Normal([0.0], [1.0])
    dist = Segmented(base, thresholds, lambda base, masses: 2.0 * masses, uniform=uniform)
    probits = np.array([[0.2, 1.1, 2.5, 4.0, 5.3, 6.4, 6.62, 6.66, 6.7, 7.7, 11.0]])

    assert_allclose(dist.from_probit(probits), -dist.from_probit(-probits), rtol=1e-9)
    assert_allclose(dist.probit(dist.from_probit(probits)), probits, rtol=1e-9)


@pytest.mark.parametrize("uniform", [True, False])
def test_masses_and_their_logarithms_agree(rng, uniform):
    """Probits and quantiles are those that logarithms give, which need no masses to be large."""
    base = regcal.Normal(rng.normal(size=4), [0.02, 0.5, 1.0, 4.0])
    thresholds = np.array([-1.5, -1.0, 0.0, 0.2, 3.0])
    shift = rng.normal(size=6)
    shift[2] = -np.inf  # a segment that gets nothing
    dist = Segmented(base, thresholds, lambda base, logs: logs + shift, uniform=uniform)
    points = np.concatenate([np.linspace(-9.0, 9.0, 30), thresholds])[np.newaxis, :]
    logcdf, logsf = dist.logcdf(points), dist.logsf(points)
    by_logs = np.where(logcdf < logsf, ndtri_exp(logcdf), -ndtri_exp(logsf))
    levels = np.array([[1e-12, 0.05, 0.4, 0.8, 0.99]])

    assert_allclose(dist.probit(points), by_logs, rtol=1e-9, atol=1e-12)
    assert_allclose(np.exp(dist.logcdf(dist.ppf(levels))), np.repeat(levels, 4, axis=0), rtol=1e-9)


@pytest.mark.parametrize("uniform", [False, True])
def test_moments_are_those_of_segments(uniform):
    """Mean and variance agree with integrals of the density, segment by segment."""
    base = regcal.Normal([0.3, -6.0, 4.0], [1.0, 0.5, 3.0])
    thresholds = np.array([-1.0, 0.0, 0.001, 0.5, 2.0])
    dist = Segmented(base, thresholds, lambda _, logs: 0.7 * logs, uniform=uniform)
    inner = np.broadcast_to(thresholds, (3, 5))
    quantiles = dist.from_probit(np.linspace(-9.0, 9.0, 181)[np.newaxis, :])
    edges = np.sort(np.concatenate([quantiles, inner], axis=1), axis=1)
    nodes, weights = np.polynomial.legendre.leggauss(10)
    half, middle = (
        0.5 * np.diff(edges)[:, :, None],
        0.5 * (edges[:, 1:] + edges[:, :-1])[:, :, None],
    )
    points, lengths = (middle + half * nodes).reshape(3, -1), (half * weights).reshape(3, -1)
    masses = lengths * dist.pdf(points)
    mean = (masses * points).sum(axis=1)

    assert_allclose(dist.mean(), mean, rtol=1e-9)
    assert_allclose(dist.var(), (masses * (points - mean[:, None]) ** 2).sum(axis=1), rtol=1e-9)
