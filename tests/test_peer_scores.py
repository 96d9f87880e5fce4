"""The benchmark scores every package alike, so its scores must be right themselves."""

from pathlib import Path

import numpy as np
import pytest
import scoringrules
from numpy.testing import assert_allclose

from regcal import Normal

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.exists(), reason="no benchmarks in this copy")


@pytest.fixture
def scoring(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from peers import scoring

    return scoring


@pytest.fixture
def method(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from peers import method

    return method


@pytest.fixture
def normals(rng, method):
    loc, scale = rng.normal(size=40), rng.uniform(0.5, 2.0, size=40)
    y = loc + scale * rng.normal(size=40)
    y[0] = loc[0] + 60 * scale[0]  # beyond the grid
    return method.Rows(np.empty((40, 0)), loc, scale), y


def test_crps_from_a_cdf_is_the_normals(scoring, normals):
    """On a fine grid the integral is the closed form, also for an outcome far outside."""
    rows, y = normals
    points = rows.loc[:, np.newaxis] + rows.scale[:, np.newaxis] * np.linspace(-8, 8, 1601)
    found = scoring.crps_from_cdf(points, rows.base.cdf(points), y)

    assert_allclose(found, scoringrules.crps_normal(y, rows.loc, rows.scale), rtol=1e-4)


def test_empirical_crps_matches_scoringrules(scoring, rng):
    """The exact CRPS of draws that all rows share agrees with an independent one."""
    draws, y = np.sort(rng.normal(size=30)), 2 * rng.normal(size=25)
    expected = scoringrules.crps_ensemble(y, np.tile(draws, (25, 1)))

    assert_allclose(scoring.empirical_crps(draws, y), expected)


def test_quantiles_from_a_cdf_invert_it(scoring, normals):
    """Levels are found back, and a CDF that falls is followed by its running maximum."""
    rows, _ = normals
    levels = np.array([0.05, 0.5, 0.9])
    points = rows.loc[:, np.newaxis] + rows.scale[:, np.newaxis] * np.linspace(-8, 8, 1601)
    found = scoring.quantiles_from_cdf(points, rows.base.cdf(points), levels)
    falling = scoring.quantiles_from_cdf(
        np.array([[0.0, 1.0, 2.0, 3.0]]), np.array([[0.0, 0.6, 0.2, 1.0]]), np.array([0.3, 0.8])
    )

    assert_allclose(found, rows.base.ppf(levels[np.newaxis, :]), atol=1e-3)
    assert_allclose(falling, [[0.5, 2.5]])


class Forecasts:
    """Normal forecasts that answer in one way only, with some densities missing."""

    def __init__(self, *outputs):
        self.outputs = outputs

    def log_density(self, rows, y):
        return np.where(y < rows.loc, -np.inf, rows.base.logpdf(y))

    def quantiles(self, rows, levels):
        return rows.base.ppf(levels[np.newaxis, :])

    def cdf(self, rows, points):
        return rows.base.cdf(points)


@pytest.mark.parametrize("output", ["quantiles", "cdf"])
def test_both_kinds_of_output_score_alike(scoring, normals, output):
    """Quantiles and a CDF of the same distributions give the scores of those distributions."""
    rows, y = normals
    found = scoring.score(Forecasts(output), rows, y, spread=1.0)
    low, high = Normal(rows.loc, rows.scale).interval(scoring.COVERAGE)

    assert_allclose(found["crps"], scoringrules.crps_normal(y, rows.loc, rows.scale), rtol=5e-3)
    assert_allclose(found["covered"], (y >= low) & (y <= high))
    assert found["crossing"].sum() == 0


def test_missing_densities_are_counted_and_floored(scoring, normals):
    """A density that is not positive is counted and costs 20 nats per spread of the outcomes."""
    rows, y = normals
    found = scoring.score(Forecasts("density", "quantiles"), rows, y, spread=np.e)
    missing = y < rows.loc

    assert_allclose(found["no_density"], missing)
    assert_allclose(found["log_score"][missing], -21.0)
    assert_allclose(found["log_score"][~missing], rows.base.logpdf(y)[~missing])


class Spike(Forecasts):
    """Half the mass within a ten-thousandth of the spread around zero."""

    def log_density(self, rows, y):
        spike = Normal(np.zeros(len(rows)), 1e-4 * rows.scale)
        return np.logaddexp(spike.logpdf(y), rows.base.logpdf(y)) - np.log(2)


class Whole(Forecasts):
    """All of the normal."""

    def log_density(self, rows, y):
        return rows.base.logpdf(y)


@pytest.mark.parametrize(("forecasts", "share"), [(Forecasts, 1.0), (Whole, 0.0), (Spike, 0.0)])
def test_unit_mass_is_checked(scoring, normals, forecasts, share):
    """Half a distribution is found out; a whole one is not, even where outcomes pile up."""
    rows, y = normals
    y = np.where(np.arange(40) < 20, 0.0, y)

    assert scoring.unnormalised_rows(forecasts("density", "quantiles"), rows, y) == share
