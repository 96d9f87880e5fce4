"""Outcomes that are far beyond all others decide nothing, however far out they are."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge

import regcal
from regcal.calibrators import Targets
from regcal.ends import credible_ends

NAMES = [name for name in regcal.calibrator_names() if name not in ("identity", "gpc-paper")]
ENORMOUS = [1e7, 1e12, 1e300]


def rows(n_rows, seed=0):
    """Return predictions that are too narrow, and outcomes."""
    rng = np.random.default_rng(seed)
    loc = rng.normal(size=n_rows)
    return regcal.Normal(loc, np.ones(n_rows)), loc + 1.4 * rng.normal(size=n_rows)


def with_errors(y, errors):
    """Return outcomes of which some are others."""
    changed = y.copy()
    changed[np.linspace(3, len(y) - 4, len(errors)).astype(int)] = errors
    return changed


def predicted(calibrator, dist, y):
    """Return probabilities, and means, of a calibrator that was learnt from rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", regcal.GrossErrorsWarning)
        learnt = calibrator.fit(dist, y)
    new = learnt.transform(regcal.Normal([-1.0, 0.0, 1.0], np.ones(3)))
    return new.cdf(np.linspace(-3.0, 3.0, 25)[np.newaxis]), new.mean()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("errors", [[1.0], [-1.0], [1.0, 2.0, -1.0]], ids=str)
def test_their_size_does_not_matter_and_little_changes(name, errors):
    """A thousand times larger or not, predictions are equal, and near those without errors."""
    dist, y = rows(300)
    make = regcal.get_calibrator
    first, *others = (
        predicted(make(name), dist, with_errors(y, size * np.array(errors) / 2))
        for size in ENORMOUS
    )
    clean = predicted(make(name), dist, y)

    for other in others:
        assert_allclose(other[0], first[0], atol=1e-9)
        assert_allclose(other[1], first[1], atol=1e-9)
    assert np.abs(first[0] - clean[0]).mean() < 0.05
    assert_allclose(first[1], clean[1], atol=0.5)


@pytest.mark.parametrize("name", ["scale", "pit", "isotonic", "gpc", "gp-density", "e-beta"])
def test_among_so_many_rows_that_outcomes_are_merged(name):
    """Cells are as wide as all others ask for."""
    dist, y = rows(20_000)
    errors = [1e9, *(-1e300 / np.arange(1, 7))]
    found = predicted(regcal.get_calibrator(name), dist, with_errors(y, errors))
    clean = predicted(regcal.get_calibrator(name), dist, y)

    # thresholds of segments lie over a range that is twice as wide
    assert np.abs(found[0] - clean[0]).max() < (0.08 if name == "e-beta" else 0.02)
    assert_allclose(found[1], clean[1], atol=0.05)


@pytest.mark.parametrize("name", ["pit", "e-beta", "gpc"])
@pytest.mark.parametrize("n_rows", [600, 18_000])
def test_batches_are_as_good_as_all_rows_together(name, n_rows):
    """Also where the error comes in the first batch, or in the last."""
    dist, y = rows(n_rows)
    changed = y.copy()
    changed[[0, -1]] = 1e20, -1e30
    whole = predicted(regcal.get_calibrator(name), dist, changed)
    calibrator = regcal.get_calibrator(name)
    observed = calibrator.new_observed()
    for part in np.array_split(np.arange(n_rows), 6):
        observed.add(dist[part], changed[part])
    with pytest.warns(regcal.GrossErrorsWarning, match="gross errors"):
        learnt = calibrator.solve(observed)
    new = learnt.transform(regcal.Normal([-1.0, 0.0, 1.0], np.ones(3)))

    assert_allclose(new.cdf(np.linspace(-3.0, 3.0, 25)[np.newaxis]), whole[0], atol=0.02)


def test_a_regressor_tells_of_them_once():
    """And is as good as without them, for counts too."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    y = np.round(np.exp(1.0 + 0.3 * X[:, 0] + 0.2 * rng.normal(size=400)))
    held_out = with_errors(y[:200], [1e9])
    model = BayesianRidge().fit(X[200:], y[200:])
    make = regcal.CalibratedRegressorCV

    def of(outcomes):
        return make(FrozenEstimator(model), "pit", step=1).fit(X[:200], outcomes)

    with pytest.warns(regcal.GrossErrorsWarning, match=r"1 of 200 .* 1e\+09 as 1\d\.") as told:
        learnt = of(held_out)
    assert len(told) == 1
    found, clean = (one.predict_dist(X[:5]).cdf(3.0) for one in (learnt, of(y[:200])))
    assert_allclose(found, clean, atol=0.05)


def test_what_may_be_real_is_left_alone():
    """A mass, an end that is given, few rows that are spread widely, and one that is not so far."""
    cluster = with_errors(np.random.default_rng(0).normal(size=300), [1e4] * 8)
    for values in (
        cluster,
        [0.0, 0.0, 0.0, 0.0, 3.0],
        [1.0, 10.0, 100.0, 1e3, 1e4, 1e5],
        [1.0, 2.0],
    ):
        assert credible_ends(*np.unique(values, return_counts=True)) == (-np.inf, np.inf)
    for n_rows in (100, 20_000):
        y = np.append(np.linspace(0.0, 1.0, n_rows), [-999.0, -300.0])
        at_end = Targets.of(y).seen_through((-999.0, None), None)
        assert (at_end.low, at_end.credible) == (-999.0, (-np.inf, np.inf))


@pytest.mark.parametrize("seed", range(20))
def test_ends_are_those_of_a_search_for_gaps(seed):
    """From the outside inwards, the first gap that is no gap of the others; mirrored as well."""
    rng = np.random.default_rng(seed)
    values = np.unique(np.append(rng.normal(size=100), 10.0 ** rng.uniform(0.0, 9.0, size=3)))
    low, high = credible_ends(values, np.ones(len(values)))
    mirrored = credible_ends(-values[::-1], np.ones(len(values)))

    wanted = np.inf
    for k in range(len(values) - 5, len(values)):
        if values[k] - values[k - 1] > 100.0 * np.ptp(values[:k]):
            wanted = values[k - 1] + 0.5 * np.ptp(values[:k])
            break
    assert (low, high) == (-np.inf, wanted)
    assert mirrored == (-high, np.inf)


@pytest.mark.parametrize("name", ["pit", "isotonic", "gpc", "gp-density", "e-beta", "auto"])
def test_ends_are_found_without_them(name):
    """What lies beyond an end by far does not take the point mass from it."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(600) < 0.8, 0.0, rng.exponential(size=600))
    y[5] = -99999.0
    base = regcal.Normal(np.zeros(600), np.ones(600))
    with pytest.warns(regcal.GrossErrorsWarning, match="-99999 as 0"):
        learnt = regcal.get_calibrator(name).fit(base, y)
    seen = learnt.transform(base[:1])

    assert learnt.support_.low == 0.0
    assert_allclose(seen.mass(0.0), np.mean(y == 0.0), atol=0.03)
    assert seen.cdf(-1e-9)[0] == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_what_a_prediction_foresees_is_none(name):
    """Rows of another size, of which the model knows, keep their medians."""
    rng = np.random.default_rng(0)
    giant = rng.permutation(600) < 6
    loc = np.where(giant, 1e6, rng.normal(0.0, 2.0, size=600))
    base = regcal.Normal(loc, np.where(giant, 5e4, 0.5))
    y = loc + 2.0 * base.std() * rng.normal(size=600)
    learnt = regcal.get_calibrator(name).fit(base, y)

    # the outermost segments are wide
    off = 0.5 if name in ("e-logistic", "e-isotonic") else 0.15
    assert_allclose(learnt.transform(regcal.Normal([1e6], [5e4])).median(), 1e6, rtol=off)


@pytest.mark.filterwarnings("ignore::regcal.DisagreementWarning")
@pytest.mark.parametrize("name", NAMES)
def test_many_powers_of_ten(name):
    """Errors of which each hides the next spoil no digits; what they do to means is told."""
    dist, y = rows(300)
    y[:6] = 10.0 ** np.arange(3, 9)
    one = regcal.get_calibrator(name).fit(dist, y).transform(regcal.Normal([0.0], [1.0]))

    assert np.isfinite(one.mean()).all()
    assert_allclose(one.cdf(0.0), 0.5, atol=0.25)
    assert (np.diff(one.cdf(np.linspace(-3.0, 3.0, 25)[np.newaxis])) >= 0.0).all()


def test_censored_outcomes_far_out():
    """What is only known to lie beyond an enormous number lies beyond all others."""
    dist, y = rows(300)
    lower, upper = with_errors(y, [1e15]), with_errors(y, [np.inf])
    learnt = {}
    for size in (1.0, 1e5):
        seen = regcal.Outcomes(np.where(lower > 1e3, size * lower, lower), upper)
        learnt[size] = predicted(regcal.get_calibrator("gpc"), dist, seen)[0]

    assert_allclose(learnt[1.0], learnt[1e5], atol=1e-9)
    assert_allclose(learnt[1.0], predicted(regcal.get_calibrator("gpc"), dist, y)[0], atol=0.1)
