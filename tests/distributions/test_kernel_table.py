"""Tabulated kernel sums against the sums themselves, formed one by one."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

import regcal
from regcal.distributions import samples
from regcal.distributions.base import BLOCK_ELEMENTS

N_ROWS, N_DRAWS = 12, 300
Z = np.linspace(-12.5, 12.5, 101)[np.newaxis, :]


def mixed(rng):
    """Return draws around several middles, one row each."""
    return rng.normal(rng.normal(size=(N_ROWS, 1)), 1.0, (N_ROWS, N_DRAWS))


DRAWS = {
    "normal": mixed,
    "skewed": lambda rng: rng.gamma(1.0, size=(N_ROWS, N_DRAWS)),
    "heavy tails": lambda rng: rng.standard_cauchy((N_ROWS, N_DRAWS)),
    "a few values": lambda rng: np.round(mixed(rng), 1),
    "rain": lambda rng: np.maximum(mixed(rng), 0.0),
    "capped": lambda rng: np.minimum(mixed(rng), 0.3),
    "two ends": lambda rng: np.clip(mixed(rng), -0.5, 1.0),
    "in another unit": lambda rng: 1e9 * (mixed(rng) + 40.0),
}


# With a bandwidth of their own: what is between clusters has next to no density.
CLUSTERS = {
    "near clusters": lambda rng: regcal.Samples(np.round(mixed(rng)), bandwidth=0.17),
    "far clusters": lambda rng: regcal.Samples(np.round(mixed(rng)), bandwidth=0.06),
    "many boxes": lambda rng: regcal.Samples(rng.uniform(size=(N_ROWS, N_DRAWS)), bandwidth=0.006),
}


@pytest.fixture(params=[*DRAWS, *CLUSTERS])
def smoothed(request, rng):
    """Return smoothed draws: a table, and the sums that it stands for."""
    if request.param in DRAWS:
        return regcal.Samples(DRAWS[request.param](rng)).latent
    return CLUSTERS[request.param](rng).latent


def test_table_is_the_sum(smoothed):
    """Probits and slopes agree in the bulk and in both far tails, whatever the draws are."""
    points = smoothed.curves._from_probit(np.broadcast_to(Z, (N_ROWS, Z.shape[1])))
    between = np.linspace(points[:, 25], points[:, 75], 100, axis=1)  # gaps of the draws as well
    points = np.concatenate([points, between], axis=1)

    found = smoothed.curves._probit_and_logslope(points)
    wanted = smoothed.kernels._probit_and_logslope(points)

    assert_allclose(found[0], wanted[0], rtol=1e-9, atol=1e-11)
    assert_allclose(found[1], wanted[1], rtol=1e-8, atol=1e-7)
    assert_allclose(smoothed.curves._probit(points), found[0], rtol=1e-12, atol=1e-13)


def test_quantiles_have_their_probits(smoothed):
    """The sum at a quantile of the table is the level that was asked for."""
    probits = np.broadcast_to(Z, (N_ROWS, Z.shape[1]))
    points = smoothed.curves._from_probit(probits)
    z, logslope = smoothed.kernels._probit_and_logslope(points)
    rounding = 4 * np.spacing(np.abs(points)) * np.exp(np.minimum(logslope, 600.0))

    assert (np.abs(z - probits) <= 1e-9 + rounding).all()


def test_table_knows_nearly_all_of_what_is_usual(rng):
    """Sums are left for what is rare: they take a hundred times as long."""
    table = regcal.Samples(mixed(rng)).latent.curves.table
    _, known = table.inverse(np.broadcast_to(np.linspace(-3.0, 3.0, 61), (N_ROWS, 61)))

    assert known.mean() > 0.97


def test_points_far_beyond_all_draws_need_the_outermost_ones_only(rng):
    """Beyond the table the log tails are those of all kernels."""
    dist = regcal.Samples(mixed(rng))
    width = dist.bandwidth[:, np.newaxis]
    lowest, highest = (pick(dist.draws, axis=1, keepdims=True) for pick in (np.min, np.max))
    away = np.linspace(14.1, 100.0, 20) * width
    points = np.concatenate([lowest - away, highest + away], axis=1)
    parts = scipy.stats.norm(
        dist.draws[:, np.newaxis, :], dist.bandwidth[:, np.newaxis, np.newaxis]
    )

    for method, wanted in (("logcdf", parts.logcdf), ("logsf", parts.logsf)):
        logs = scipy.special.logsumexp(wanted(points[:, :, np.newaxis]), axis=2) - np.log(N_DRAWS)
        assert_allclose(getattr(dist, method)(points), logs, rtol=1e-10, atol=1e-13)


def test_parts_of_a_batch_share_what_was_tabulated(rng, monkeypatch):
    """No row is tabulated twice, however a batch is cut, and rows are those of the batch."""
    dist = regcal.Samples(mixed(rng))
    tabulated = []
    fill = samples.KernelTable.fill
    monkeypatch.setattr(
        samples.KernelTable,
        "fill",
        lambda table, sums: (tabulated.extend(table.rows), fill(table, sums)),
    )

    dist.cdf(0.0)
    halves = [dist[:7].ppf(0.3), dist[7:].ppf(0.3)]
    whole = dist.ppf(0.3)

    assert_allclose(np.concatenate(halves), whole, rtol=1e-14)
    assert sorted(tabulated) == list(range(N_ROWS))
    assert_allclose(dist[[5, 5, 2]].ppf(0.3), whole[[5, 5, 2]], rtol=1e-14)


def test_temporary_arrays_are_bounded(rng):
    """Many rows with few draws each go through the table in blocks."""
    dist = regcal.Samples(rng.normal(size=(3000, 40)))

    assert max(rows.stop - rows.start for rows in dist._integral_blocks()) < 300
    assert dist._row_work(10**4) * (BLOCK_ELEMENTS // dist._row_work(10**4)) <= BLOCK_ELEMENTS
    assert_allclose(dist.crps(np.zeros(3000))[:3], dist[:3].crps(np.zeros(3)), rtol=1e-10)
