"""Blocks of rows in threads: the same numbers, whoever computes them; draws in scipy's shape."""

import threading

import numpy as np
import pytest
import scipy.stats
from cases import DISTRIBUTIONS
from numpy.testing import assert_array_equal
from scipy.special import ndtr

import regcal
from regcal.distributions import base

LEVELS = np.array([[0.01, 0.3, 0.5, 0.9]])


def answers(dist):
    """Return one answer of each kind."""
    y = dist.ppf(0.4)
    points = dist.ppf(LEVELS)
    found = [dist.cdf(points), dist.logpdf(points), dist.sf(y), points]
    return [*found, dist.mean(), dist.crps(y), dist.prob(y - 1.0, y)]


@pytest.mark.parametrize("case", DISTRIBUTIONS, ids=[case.name for case in DISTRIBUTIONS])
def test_threads_do_not_change_the_numbers(case, monkeypatch):
    """All kinds of distributions answer alike, in blocks of a row or two."""
    dist, same = (case.make(seed=2, n_rows=9) for _ in range(2))
    monkeypatch.setattr(base, "BLOCK_ELEMENTS", 16)

    for found, wanted in zip(answers(same.in_threads(3)), answers(dist), strict=True):
        assert_array_equal(found, wanted)


def test_calibrated_draws_answer_alike_in_threads(rng, monkeypatch):
    """Tables that parts of a batch share are filled by several threads."""
    draws = rng.normal(rng.normal(size=(30, 1)), 1.0, (30, 200))
    y = draws[:, 0] + rng.normal(size=30)
    calibrator = regcal.get_calibrator("gp-density").fit(regcal.Samples(draws), y)
    monkeypatch.setattr(base, "BLOCK_ELEMENTS", 2**10)
    alone, many = (calibrator.transform(regcal.Samples(draws)) for _ in range(2))

    for found, wanted in zip(answers(many.in_threads(4)), answers(alone), strict=True):
        assert_array_equal(found, wanted)


def test_blocks_go_to_several_threads_when_asked(monkeypatch):
    """Two threads wait for each other in the CDF, which one alone could never leave."""
    waiting = []

    def cdf(points, rows):
        for together in waiting:
            together.wait()
        return np.broadcast_to(ndtr(points), (len(rows), points.shape[1]))

    def pdf(points, rows):
        return np.ones((len(rows), points.shape[1]))

    dist = regcal.CustomDistribution(cdf, 2, pdf=pdf)
    monkeypatch.setattr(base, "BLOCK_ELEMENTS", 1)
    waiting.append(threading.Barrier(2, timeout=20))

    assert_array_equal(dist.in_threads(2).cdf(0.0), 0.5)


def test_threads_are_asked_of_the_batch_only(rng):
    """The batch itself stays as it was, arrays are shared, and parts work alone."""
    dist = regcal.Normal(rng.normal(size=5), 1.0)
    many = dist.in_threads(2)

    assert many.loc is dist.loc
    assert (dist._n_threads, many._n_threads, many[1:3]._n_threads) == (1, 2, 1)
    with pytest.raises(ValueError, match="n_jobs"):
        dist.in_threads(0)


@pytest.mark.parametrize("size", [None, 3, (3,), (2, 3), (4, 2, 3)])
def test_rvs_has_the_shape_of_scipy(size):
    """Rows come last, as for scipy's frozen distributions, and the draws are those of `sample`."""
    loc = np.array([0.0, 1e3, 1e6])
    dist = regcal.Normal(loc, 1.0)

    draws = dist.rvs(size, random_state=0)

    assert draws.shape == scipy.stats.norm(loc, 1.0).rvs(size, random_state=0).shape
    assert (np.abs(draws - loc) < 10.0).all()
    assert_array_equal(np.sort(draws.ravel()), np.sort(dist.sample(draws.size // 3, 0).ravel()))


@pytest.mark.parametrize("size", [5, (3, 5)])
def test_rvs_of_another_shape(size):
    """Where scipy refuses, the message names the shape to pass."""
    with pytest.raises(ValueError, match="number of rows, which is 3"):
        regcal.Normal(np.zeros(3), 1.0).rvs(size)
