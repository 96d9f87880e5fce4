"""Rows, models and checks that several test files share."""

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from numpy.testing import assert_array_equal
from scipy.interpolate import RectBivariateSpline
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.estimator_checks import estimator_checks_generator

import regcal
from regcal import (
    AutoCalibrator,
    Mixture,
    Normal,
    PaperGPCalibrator,
    Quantiles,
    Samples,
    ScipyDistribution,
    concatenate,
    datasets,
    get_calibrator,
)
from regcal.datasets import Dataset, ToyMixture
from regcal.gp import HilbertBasis
from regcal.maps import PiecewiseMap, ScaleMap, SinhArcsinhMap, Surface

BASIS = HilbertBasis(sizes=(5, 4), boundary=(1.3, 1.6), halfwidth=(1.0, 2.0))


def tensor_rows(basis, x0, x1, orders=(0, 0)):
    """Write out the features that `TensorDesign` avoids."""
    functions = (basis.axis, basis.axis_derivative)
    first, second = functions[orders[0]](0, x0), functions[orders[1]](1, x1)
    return np.einsum("na,nb->nab", first, second).reshape(len(x0), -1)


def central(function, x, step=1e-5):
    """Differentiate a function of a vector along every coordinate; the last axis is that of x."""
    shifts = step * np.eye(len(x))
    return np.stack([(function(x + s) - function(x - s)) / (2 * step) for s in shifts], axis=-1)


def noisy_labels(rng, n):
    x = rng.uniform(-1, 1, (n, 2))
    return x, (rng.logistic(size=n) < 4 * np.sin(3 * x[:, 0]) + 2 * x[:, 1]).astype(float)


def small_paper(**changes):
    """Return the paper's calibrator in a size that takes a fraction of a second."""
    settings = {"thresholds": 12, "n_pairs": 150, "prediction_thresholds": 24, "random_state": 0}
    return PaperGPCalibrator(**(settings | changes))


def normal_rows(rng, n, scale=1.0):
    """Return predictions N(loc, scale^2) and outcomes that follow N(loc, 1)."""
    loc = rng.uniform(-2.0, 2.0, n)
    return Normal(loc, np.full(n, scale)), loc + rng.normal(size=n)


def known_rows(rng, n=120):
    """Return predictions that know nothing of covariates on which outcomes depend, and these."""
    age, region = rng.uniform(0.0, 10.0, n), rng.choice(["north", "south", "west"], n)
    known = {"age": age, "region": region, "damp": rng.random(n) < 0.4, "floors": np.arange(n) % 3}
    y = rng.normal(np.where(age < 4.0, 2.0, 0.0), np.where(region == "north", 2.0, 0.7))
    return Normal(np.zeros(n), 1.0), y, known


def mean_log_score(dist, y):
    return dist.logpdf(y).mean()


def map_value(warp, u, t):
    """Return the spline of scipy through a map's values, constant beyond the box."""
    spline = RectBivariateSpline(warp.u, warp.t, warp.h, s=0)
    return spline.ev(np.clip(u, warp.u[0], warp.u[-1]), np.clip(t, warp.t[0], warp.t[-1]))


def flat_map(h_of_u, slope=1.0):
    """Return a map that depends on u alone."""
    u, t = np.linspace(-6, 6, 25), np.linspace(-4, 4, 17)
    return Surface(u, t, np.repeat(h_of_u(u)[:, np.newaxis], 17, axis=1), (slope, slope))


NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)


def integral_of_density(dist):
    """Integrate each row's density between fine quantiles and the points where it jumps."""
    edges = dist.from_probit(np.linspace(-8.0, 8.0, 257)[np.newaxis, :])
    middle = np.linspace(edges[:, 64], edges[:, 192], 129, axis=1)  # finer where there is little
    edges = np.concatenate([edges, middle], axis=1)
    kinks = dist._kinks()
    if kinks is not None:
        kinks = np.broadcast_to(kinks, (len(dist), kinks.shape[1]))
        low, high = edges.min(axis=1, keepdims=True), edges.max(axis=1, keepdims=True)
        edges = np.concatenate([edges, np.clip(kinks, low, high)], axis=1)
    edges = np.sort(edges, axis=1)
    half = 0.5 * np.diff(edges)[:, :, np.newaxis]
    points = edges[:, :-1, np.newaxis] + half * (1 + NODES)
    values = dist.pdf(points.reshape(len(dist), -1)).reshape(points.shape)
    return (half * values * NODE_WEIGHTS).sum(axis=(1, 2))


PROBIT_MAPS = {
    "scale": ScaleMap(2.5),
    "smooth": PiecewiseMap.with_slopes(np.array([-1.0, 0.2, 2.0]), np.array([0.8, 3.0, 0.6]), -2.0),
    "skewed": SinhArcsinhMap(shift=0.3, factor=1.4, skew=0.5, tail=0.8),
    "light tails": SinhArcsinhMap(shift=-0.2, factor=0.7, skew=-0.3, tail=1.3),
    "straight pieces": PiecewiseMap.through(np.array([-1.0, 0.0, 0.1]), np.array([-2.0, 0.5, 1.0])),
}


def bases(rng, n_rows):
    gamma = scipy.stats.gamma(a=rng.uniform(1.5, 4, n_rows), scale=2.0)
    return {
        "normal": Normal(rng.normal(size=n_rows), rng.uniform(0.5, 2, n_rows)),
        "gamma": ScipyDistribution(gamma),
        "samples": Samples(rng.normal(size=(n_rows, 9))),
        "stacked": concatenate(
            [
                Normal(rng.normal(size=n_rows - 3), 1.0),
                Quantiles([0.1, 0.5, 0.9], np.sort(rng.normal(size=(3, 3)), axis=1)),
            ]
        ),
    }


GRID = np.linspace(-4.0, 6.0, 41)[np.newaxis, :]


def minimum(features, labels, prior_mean, ridge, bounds=None):
    """Minimise the penalised logistic loss with scipy."""

    def loss(beta):
        eta = features @ beta
        penalty = 0.5 * ridge * ((beta - prior_mean) ** 2).sum()
        return (np.logaddexp(0, eta) - labels * eta).sum() + penalty

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2000}
    return scipy.optimize.minimize(
        loss, prior_mean, bounds=bounds, method="L-BFGS-B", options=options
    ).x


def checked_by_scikit_learn(estimators):
    """Run a test for every check of every estimator.

    As `parametrize_with_checks`, whose texts of estimators take seconds to write.
    """
    checks = [
        pytest.param(estimator, check, id=f"{name}-{check.func.__name__}")
        for name, given in estimators.items()
        for estimator, check in estimator_checks_generator(given)
    ]
    return pytest.mark.parametrize(("estimator", "check"), checks)


class Line:
    """An estimator whose predictions follow its first feature."""

    def predict_dist(self, X):
        x = np.asarray(X)[:, 0]
        return Normal(x, np.full(len(x), 1.0))


class Halved:
    """A fitted calibrator that halves every probability."""

    thresholds_ = np.linspace(-2.0, 2.0, 5)

    def calibration_map(self, t, q):
        return q / 2 + 0 * t


def toy(n, seed=0):
    """Return toy targets, the true distribution and the best normal."""
    data = ToyMixture().sample(n, random_state=seed)
    x, ones = data.X[:, 0], np.ones(n)
    truth = Mixture([Normal(x, 0.1 * ones), Normal(-0.5 * ones, 0.1 * ones)])
    return data.y, truth, Normal(0.5 * x - 0.25, truth.std())


POINTS = np.array([[-2.0, -0.1, 0.4, 1.7]])
LEVELS = np.array([[0.03, 0.5, 0.9]])


def assert_same(one, other):
    """Two batches of distributions are equal to the last bit."""
    assert_array_equal(one.cdf(POINTS), other.cdf(POINTS))
    assert_array_equal(one.logpdf(POINTS), other.logpdf(POINTS))
    assert_array_equal(one.ppf(LEVELS), other.ppf(LEVELS))


def there_and_back(model, path, **options):
    regcal.save(model, path)
    return regcal.load(path, **options)


# auto without the Gaussian processes, which take their time
QUICK_AUTO = AutoCalibrator([(name, get_calibrator(name)) for name in ("identity", "scale", "pit")])


class Recorder(RegressorMixin, BaseEstimator):
    """Keeps what it was fitted on."""

    def fit(self, X, y, sample_weight=None):
        self.rows_, self.weights_ = np.asarray(X)[:, 0], sample_weight
        return self

    def predict(self, X, return_std=False):
        return np.zeros(len(X)), np.ones(len(X))


# Loader, shape of X, first feature row, first target: read off the published files.
PUBLISHED = [
    ("airfoil", (1503, 5), [800, 0, 0.3048, 71.3, 0.00266337], 126.201),
    (
        "bike_sharing",
        (731, 11),
        [1, 0, 1, 0, 6, 0, 2, 0.344167, 0.363625, 0.805833, 0.160446],
        985.0,
    ),
    ("concrete", (1030, 8), [540, 0, 0, 162, 2.5, 1040, 676, 28], 79.98611076),
    (
        "forest_fires",
        (517, 12),
        [7, 5, 3, 5, 86.2, 26.2, 94.3, 5.1, 8.2, 51, 6.7, 0],
        0.0,
    ),
    (
        "diabetes",
        (442, 10),
        [
            0.038075906433423026,
            0.05068011873981862,
            0.061696206518683294,
            0.0218723855140367,
            -0.04422349842444599,
            -0.03482076283769895,
            -0.04340084565202491,
            -0.002592261998183278,
            0.019907486170462722,
            -0.01764612515980379,
        ],
        151.0,
    ),
]


def load(name: str) -> Dataset:
    return getattr(datasets, f"load_{name}")()
