"""A weight of 2 is two rows, for every calibrator and from two rows on."""

import cases
import numpy as np
import pytest
from numpy.testing import assert_allclose

import regcal

# The paper's method draws pairs of rows, and so draws others from rows that are repeated.
NAMES = [name for name in regcal.calibrator_names() if name != "gpc-paper"] + cases.WITHOUT_A_NAME


@pytest.mark.parametrize("n_rows", [2, 3, 8, 20])
@pytest.mark.parametrize("name", NAMES)
def test_a_weight_of_two_is_two_rows(name, n_rows, rng):
    """Repeated rows teach what their weight does."""
    dist = regcal.Normal(2 * rng.normal(size=n_rows), rng.uniform(0.5, 2.0, n_rows))
    y = dist.loc + 1.5 * dist.scale * rng.normal(size=n_rows)
    times = rng.integers(1, 4, n_rows)
    rows = np.repeat(np.arange(n_rows), times)
    calibrator = cases.CALIBRATORS[name]()

    weighted = calibrator.fit(dist, y, times).transform(dist)
    grid = np.linspace(-5.0, 5.0, 21)[np.newaxis]
    found = weighted.cdf(grid)
    repeated = calibrator.fit(dist[rows], y[rows]).transform(dist)

    assert_allclose(repeated.cdf(grid), found, atol=1e-6)


@pytest.mark.filterwarnings("ignore:The weights of:regcal.FewRowsWarning")
@pytest.mark.parametrize("name", NAMES)
def test_the_unit_of_tiny_weights_does_not_matter(name, rng):
    """Far less than a row is nothing, down to the smallest number there is."""
    dist = regcal.Normal(rng.normal(size=8), rng.uniform(0.5, 2.0, 8))
    y = dist.loc + 1.5 * dist.scale * rng.normal(size=8)
    calibrator = cases.CALIBRATORS[name]()
    weights = np.arange(1.0, 9.0)

    found = [
        calibrator.fit(dist, y, unit * weights).transform(dist).cdf(np.linspace(-4, 4, 9)[None])
        for unit in (1e-30, 1e-200, 5e-324)
    ]

    assert_allclose(found[1:], [found[0]] * 2, atol=1e-6)


@pytest.mark.filterwarnings("ignore:The weights of:regcal.FewRowsWarning")
@pytest.mark.parametrize("name", ["gpc", "gp-density"])
def test_processes_that_learnt_nothing_average_over_their_prior(name):
    """With a constant, a slope and a process of variance 1, u becomes u / sqrt(1 + v(u))."""
    base = regcal.Normal(np.zeros(3), np.ones(3))
    u = np.linspace(-0.5, 1.4, 9)[np.newaxis, :]

    dist = regcal.get_calibrator(name).fit(base, [0.1, -1.0, 2.0], [1e-12] * 3).transform(base)

    wanted = u / np.sqrt(1.0 + (1.0 + u**2 + 1.0))
    assert_allclose(dist.probit(u), np.repeat(wanted, 3, axis=0), atol=0.012)
