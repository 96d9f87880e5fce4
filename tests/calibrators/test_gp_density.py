"""Points of the density map may be merged."""

import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import mean_log_score, normal_rows
from sklearn.linear_model import BayesianRidge

from regcal import DensityCalibrator, Normal, log_score
from regcal.calibrators import gp_density
from regcal.calibrators.gp_density import PathPoints
from regcal.datasets import ToyMixture
from regcal.gp import RBF, BasisWarning, FittedProcess, HilbertBasis, laplace_posterior
from regcal.gp.laplace import ProcessPrior


def test_merging_keeps_weights_and_means(rng):
    """Merged points have the same total weight and means, and stay near their own points."""
    points = PathPoints(
        rng.normal(0, 0.3, 5000),
        rng.uniform(-1, 1, 5000),
        np.exp(rng.normal(0, 0.1, 5000)),
        rng.uniform(0.1, 2.0, 5000),
    )

    merged = points.merged(128)

    assert len(merged.u) < 4500
    assert_allclose(merged.weights.sum(), points.weights.sum())
    for name in ("u", "s", "spread"):
        wanted = np.average(getattr(points, name), weights=points.weights)
        found = np.average(getattr(merged, name), weights=merged.weights)
        assert_allclose(found, wanted, atol=1e-12, err_msg=name)
    # each merged point is the mean of points of one cell: all within a cell's width
    place = np.stack([np.tanh(merged.u / 2), merged.s, np.log(merged.spread) / 8])
    original = np.stack([np.tanh(points.u / 2), points.s, np.log(points.spread) / 8])
    width = np.array([2 / 128, 2 / 128, 1 / 64])
    for row in rng.integers(0, len(merged.u), 50):
        near = np.abs(original - place[:, row : row + 1]) <= width[:, np.newaxis]
        assert near.all(axis=0).any()


def test_merged_points_give_the_same_fit(rng, monkeypatch):
    """A density map fitted on merged cells scores as the one fitted on all points."""
    dist, y = normal_rows(rng, 400, scale=1.7)
    new, new_y = normal_rows(rng, 400, scale=1.7)
    exact = DensityCalibrator().fit(dist, y).transform(new)

    monkeypatch.setattr(gp_density, "_MAX_POINTS", 50)
    merged = DensityCalibrator().fit(dist, y).transform(new)

    assert_allclose(mean_log_score(merged, new_y), mean_log_score(exact, new_y), atol=0.01)
    assert_allclose(merged.std(), exact.std(), rtol=0.02)


@pytest.fixture(scope="module")
def line_through_toy():
    """Return a straight line through the toy mixture, as a function of rows."""
    data = ToyMixture().sample(1000, random_state=0)
    model = BayesianRidge().fit(data.X, data.y)
    return lambda X: Normal(*model.predict(X, return_std=True))


def test_cells_do_not_show_in_a_steep_map(line_through_toy, monkeypatch):
    """Probabilities of a map learnt in cells are those of all points and the same kernel."""
    monkeypatch.setattr(gp_density, "_MAX_POINTS", 500)
    data = ToyMixture().sample(2500, random_state=1)
    dist = line_through_toy(data.X)
    grid = np.quantile(data.y, np.linspace(0.01, 0.99, 40))[np.newaxis, :]
    merged = PathPoints.merged

    def all_in_the_end(points, n_levels):
        return points if n_levels == gp_density._FINAL_LEVELS else merged(points, n_levels)

    in_cells = DensityCalibrator().fit(dist, data.y).transform(dist[:50]).cdf(grid)
    monkeypatch.setattr(PathPoints, "merged", all_in_the_end)
    from_all = DensityCalibrator().fit(dist, data.y).transform(dist[:50]).cdf(grid)

    assert_allclose(in_cells, from_all, rtol=0, atol=0.004)


def test_more_rows_do_not_fold_the_map(line_through_toy):
    """What many rows would gain by a map that folds back does not overrun the barrier."""
    toy = ToyMixture()
    data, new = toy.sample(15_000, random_state=3), toy.sample(5000, random_state=2)
    before, truth = line_through_toy(new.X), toy.logpdf(new.X, new.y[:, np.newaxis]).mean()
    dist = line_through_toy(data.X)

    after = DensityCalibrator().fit(dist, data.y).transform(before)

    gain = mean_log_score(after, new.y) - mean_log_score(before, new.y)
    assert gain > 0.98 * (truth - mean_log_score(before, new.y))


@pytest.mark.parametrize("weight", [1.0, 30.0, 1000.0])
def test_rows_that_weigh_more_ask_for_no_more_functions(weight, rng):
    """There are about as many as distinct rows: what these do not tell apart, nobody knows."""
    x = rng.normal(size=300)
    y = x + rng.choice([-1.0, 0.0, 1.0], 300) + 0.05 * rng.normal(size=300)

    few = DensityCalibrator().fit(Normal(x[:60], 1.0), y[:60], np.full(60, weight))
    more = DensityCalibrator().fit(Normal(x, 1.0), y, np.full(300, weight))

    assert few.process_.basis.sizes == (10, 10)
    assert np.prod(more.process_.basis.sizes) <= 300


def test_rows_that_weigh_much_are_not_followed_one_by_one(rng):
    """New rows score better than by the map of as many functions as weights allow."""
    x, new_x = rng.normal(size=200), rng.normal(size=2000)

    def outcomes(x):
        return x + rng.choice([-1.0, 0.0, 1.0], len(x)) + 0.2 * rng.normal(size=len(x))

    calibrator = DensityCalibrator().fit(Normal(x, 1.0), outcomes(x), np.full(200, 20.0))

    calibrated = calibrator.transform(Normal(new_x, 1.0))
    assert log_score(outcomes(new_x), calibrated).mean() > -2.0


def steep_process(likelihood_for, n_rows, prior, kernel, earlier=None, *, theta):
    """Return a process with hyper-parameters that steep clusters ask for, without the search."""
    process = ProcessPrior(HilbertBasis(sizes=(8, 16)), RBF(), prior.variances)
    return FittedProcess(process, laplace_posterior(likelihood_for(process.basis), process, theta))


def three_clusters(rng, n):
    """Return rows of a model whose predictions differ, and outcomes that do not care."""
    dist = Normal(0.3 * rng.normal(size=n), np.full(n, 0.8))
    return dist, rng.integers(-1, 2, size=n) + 0.01 * rng.normal(size=n)


def largest_fold(calibrator, dist):
    """Return by how much the map itself, not what is made of it, falls along paths of rows."""
    t = np.linspace(-1.9, 1.9, 400)[np.newaxis, :]
    below = calibrator.calibration_map(np.broadcast_to(t, (len(dist), 400)), dist.cdf(t))
    return (np.maximum.accumulate(below, axis=1) - below).max(axis=1)


def test_maps_of_steep_clusters_do_not_fold_on_the_outermost_paths(rng, monkeypatch):
    """Beyond the last of the rows where eta is asked to increase at first, it increases too."""
    how = partial(steep_process, theta=(2.4, -1.5, -2.0))
    monkeypatch.setattr(gp_density, "fit_map_process", how)
    dist, y = three_clusters(rng, 4000)

    calibrator = DensityCalibrator().fit(dist, y)

    outer = dist[np.argsort(dist.mean())[[0, 5, 20, -21, -6, -1]]]
    assert largest_fold(calibrator, outer).max() < 0.1


@pytest.mark.parametrize(("length", "told"), [(-2.65, True), (-2.0, False)])
def test_clusters_too_steep_for_any_map_are_told(rng, monkeypatch, length, told):
    """Where corrections end as large and as short as they may be, more is asked for."""
    how = partial(steep_process, theta=(2.49, -1.5, length))
    monkeypatch.setattr(gp_density, "fit_map_process", how)
    dist, y = three_clusters(rng, 500)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        DensityCalibrator().fit(dist, y)

    assert [one.category for one in said] == [BasisWarning] * told
    assert all(one.filename == __file__ for one in said)
