"""Laws of every calibrator's fit: how many rows there are, and their last digits, do not show."""

import functools

import cases
import numpy as np
import pytest
from numpy.testing import assert_allclose

import regcal
from regcal.calibrators import cells, held_out

N_ROWS = 300
NAMES = ["scale", "pit", "e-logistic", "e-beta", "e-isotonic", "gpc", "gp-density"]
NAMES += ["e-beta of thresholds"]

# Some learn from kept rows instead of points that merge, so that a row less shows.
ALL_NAMES = [*NAMES, "dirichlet", "conditional", "auto"]
MANY_REGIMES = [*cases.FEW_BASES, *cases.ODD_BASES, "gamma", "samples", "mixture"]


def narrow_rows(factor):
    """Return normal rows whose spread is off by a factor."""
    rng = np.random.default_rng(5)
    loc, scale = 2 * rng.normal(size=N_ROWS), np.exp(0.3 * rng.normal(size=N_ROWS))
    noise = 1.4 * rng.normal(size=N_ROWS) + 0.4 * rng.exponential(size=N_ROWS)
    return regcal.Normal(loc, factor * scale), loc + scale * noise + 0.5 * np.sin(loc)


def rain(n_rows):
    """Return ensembles half of whose members are 0, and outcomes 45 % of which are."""
    rng = np.random.default_rng(3)
    centre = 1.2 * rng.normal(size=n_rows)
    draws, y = centre[:, np.newaxis] + 0.7 * rng.normal(size=(n_rows, 11)), rng.normal(size=n_rows)
    return np.maximum(draws, 0.0) ** 1.5, np.maximum(centre + y + 0.15, 0.0) ** 1.5


@functools.cache
def rows_of(regime):
    """Return predictions and outcomes of a regime."""
    if regime in cases.BY_NAME:
        dist = cases.BY_NAME[regime].make(0, n_rows=N_ROWS)
        return dist, cases.outcomes(dist)
    if regime == "rain":
        draws, y = rain(N_ROWS)
        return regcal.Samples(draws), y
    if regime == "rounded":
        dist, y = narrow_rows(1.0)
        return dist, np.round(y)
    if regime == "far tails":
        loc, _ = normal_rows(N_ROWS)
        noise = np.random.default_rng(2).standard_t(0.8, size=N_ROWS)
        return regcal.Normal(loc, 1.0), loc + 1.4 * noise + 0.5 * np.sin(loc)
    return narrow_rows({"as it is": 1.0, "far too narrow": 1e-5, "too wide": 1e2}[regime])


def probabilities(name, dist, y, weights=None):
    fitted = cases.CALIBRATORS[name]().fit(dist, y, weights)
    return fitted.transform(dist[:20]).cdf(np.quantile(y, np.linspace(0.01, 0.99, 25))[np.newaxis])


REGIMES = ["as it is", "far too narrow", "too wide", "far tails", "rounded", "rain"]
REGIMES += MANY_REGIMES


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::regcal.RoundedOutcomesWarning")
@pytest.mark.filterwarnings("ignore::regcal.DisagreementWarning")  # one factor and far tails
def test_the_row_limit_does_not_show(name, regime, monkeypatch):
    """Where rows are too many to be kept and their points are merged, results stay the same."""
    dist, y = rows_of(regime)
    kept = probabilities(name, dist, y)

    monkeypatch.setattr(held_out, "MAX_ROWS", N_ROWS - 1)
    monkeypatch.setattr(cells, "_MAX_POINTS", 100)

    assert_allclose(probabilities(name, dist, y), kept, atol=0.005)


def normal_rows(n_rows):
    """Return parameters of normal rows with the wrong shape, and outcomes with far ones."""
    rng = np.random.default_rng(4)
    loc = 2 * rng.normal(size=n_rows)
    return loc, loc + 1.4 * rng.standard_t(4, size=n_rows) + 0.5 * np.sin(loc)


WORLDS = {
    "rain": (rain, regcal.Samples),
    "normal": (normal_rows, lambda loc: regcal.Normal(loc, 1.0)),
}
MANY, KEPT, POINTS = 600, 150, 500


@pytest.fixture
def few_kept(monkeypatch):
    """Let rows be sampled and counted, and points merged, from a few hundred rows on."""
    monkeypatch.setattr(held_out, "MAX_ROWS", KEPT)
    monkeypatch.setattr(cells, "_MAX_POINTS", POINTS)


@functools.cache
def told_at_once(name, world):
    """Return rows, new ones, a grid, and what all rows teach at once: every way has to teach it."""
    make_rows, predict = WORLDS[world]
    base, y = make_rows(MANY)
    new, grid = predict(base[:40]), np.quantile(y, np.linspace(0.01, 0.99, 25))[np.newaxis]
    at_once = cases.CALIBRATORS[name]().fit(predict(base), y)
    return base, y, new, grid, at_once.transform(new).cdf(grid)


@pytest.mark.parametrize("way", ["fit_batches", "partial_fit", "merge"])
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", [*ALL_NAMES, "isotonic"])
def test_batches_do_not_show(name, world, way, few_kept):
    """Rows that come in batches, and are more than can be kept, teach what they teach at once."""
    base, y, new, grid, wanted = told_at_once(name, world)
    _, predict = WORLDS[world]
    batches = [(predict(base[part]), y[part]) for part in np.split(np.arange(MANY), 3)]
    in_batches = cases.CALIBRATORS[name]()

    if way == "fit_batches":
        in_batches.fit_batches(iter(batches))
    elif way == "partial_fit":
        for batch in batches:
            in_batches.partial_fit(*batch)
    else:
        parts = [in_batches.new_observed().add(*batch) for batch in batches]
        in_batches.solve(parts[2].merge(parts[0]).merge(parts[1]))

    assert_allclose(in_batches.transform(new).cdf(grid), wanted, atol=0.005)


@pytest.mark.parametrize("regime", ["as it is", "far too narrow", "rounded", "repeated"])
@pytest.mark.parametrize("name", ALL_NAMES)
@pytest.mark.filterwarnings("ignore::regcal.RoundedOutcomesWarning")
def test_last_digits_do_not_show(name, regime):
    """Another processor rounds differently, and rows that are equal stay equal."""
    dist, y = rows_of("as it is" if regime == "repeated" else regime)
    if regime == "repeated":
        places = np.repeat(np.arange(100), 3)
        dist, y = dist[places], y[places]
    rng = np.random.default_rng(1)
    digits = 1 + rng.integers(-1, 2, (3, N_ROWS)) * 2.0**-52
    noisy = regcal.Normal(dist.loc * digits[0], dist.scale * digits[1])

    found, wanted = probabilities(name, noisy, y * digits[2]), probabilities(name, dist, y)

    assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", ALL_NAMES)
def test_order_of_rows_does_not_show(name, world, rng):
    """Rows in any order give the same, also those that say the same of their outcome alone."""
    make_rows, predict = WORLDS[world]
    base, y = make_rows(N_ROWS)
    order = rng.permutation(N_ROWS)

    fits = [
        cases.CALIBRATORS[name]().fit(predict(base[rows]), y[rows])
        for rows in (np.arange(N_ROWS), order)
    ]

    grid = np.quantile(y, np.linspace(0.01, 0.99, 25))[np.newaxis]
    one, other = (fitted.transform(predict(base)[:20]).cdf(grid) for fitted in fits)
    assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["scale", "pit", "e-beta", "gpc", "gp-density", "isotonic", "conditional"]
)
def test_a_far_origin_does_not_matter(name):
    """With a million added to predictions and outcomes, probabilities are the same."""
    rng = np.random.default_rng(3)
    loc = rng.normal(size=200)
    scale = rng.uniform(0.7, 1.4, size=200)
    y = loc + np.exp(0.8 * loc) * rng.normal(size=200)
    points = np.linspace(-3.0, 3.0, 13)[np.newaxis]

    def probabilities(origin):
        dist = regcal.Normal(origin + loc, scale)
        fitted = regcal.get_calibrator(name).fit(dist, origin + y)
        return fitted.transform(dist[:40]).cdf(origin + points)

    assert_allclose(probabilities(1e6), probabilities(0.0), atol=1e-6)
