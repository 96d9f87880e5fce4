"""Laws of distributions with point masses: seen through ends, in steps, mixed and stacked.

Draws, quantiles and bins of users keep the masses at the ends that they pile up at.
"""

import itertools
import pickle

import cases
import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal

import regcal
from regcal.distributions import Distribution
from regcal.distributions.masses import point_masses
from regcal.distributions.stacked import joined

LATENT = ["normal", "gamma", "t", "quantiles", "samples", "histogram", "mixture"]
LEVELS = np.linspace(0.003, 0.997, 72)[np.newaxis, :]
METHODS = ["cdf", "sf", "logcdf", "logsf", "pdf", "logpdf", "mass"]


def latent(name: str) -> Distribution:
    return cases.BY_NAME[name].make(seed=1)


def ends_of(dist: Distribution) -> tuple[float, float]:
    """Return ends that cut off a good part of most rows."""
    return float(np.median(dist.ppf(0.3))), float(np.median(dist.ppf(0.9)))


def near_of(dist: Distribution) -> float:
    low, high = ends_of(dist)
    return 0.2 * (high - low)


def step_of(dist: Distribution) -> float:
    return float(np.median(dist.ppf(0.9) - dist.ppf(0.1))) / 5.0


SEEN = {
    "low": lambda dist: regcal.Clipped(dist, low=ends_of(dist)[0]),
    "high": lambda dist: regcal.Clipped(dist, high=ends_of(dist)[1]),
    "both": lambda dist: regcal.Clipped(dist, *ends_of(dist)),
    "near both": lambda dist: regcal.Clipped(dist, *ends_of(dist), near=near_of(dist)),
    "steps": lambda dist: regcal.Rounded(dist, step_of(dist)),
    "steps from an end": lambda dist: regcal.Rounded(
        regcal.Clipped(dist, low=2 * step_of(dist)), step_of(dist)
    ),
    "mixed": lambda dist: regcal.Mixture(
        [regcal.Clipped(dist, *ends_of(dist)), regcal.Clipped(dist[::-1], *ends_of(dist))]
    ),
    "near mixed": lambda dist: regcal.Mixture(
        [regcal.Clipped(one, ends_of(dist)[0], near=near_of(dist)) for one in (dist, dist[::-1])]
    ),
    "stacked": lambda dist: regcal.concatenate(
        [regcal.Clipped(dist[:2], ends_of(dist)[0]), regcal.Rounded(dist[2:], step_of(dist))]
    ),
}
# What is between two ends or in steps meets every kind of base, the rest some of them each.
OF_LATENT = {
    "low": ["normal", "t", "histogram"],
    "high": ["gamma", "quantiles", "mixture"],
    "both": LATENT,
    "near both": ["normal", "quantiles", "samples", "histogram"],
    "steps": LATENT,
    "steps from an end": ["normal", "samples", "histogram"],
    "mixed": ["gamma", "quantiles", "samples"],
    "near mixed": ["normal", "quantiles", "samples"],
    "stacked": ["t", "histogram", "mixture"],
}
CASES = [(kind, name) for kind, names in OF_LATENT.items() for name in names] + [
    ("users", name) for name in cases.WITH_MASSES
]


def label(case):
    return f"{case[0]} of {case[1]}"


@pytest.fixture(params=CASES, ids=label)
def dist(request) -> Distribution:
    kind, name = request.param
    return cases.WITH_MASSES[name](cases.STANDARD) if kind == "users" else SEEN[kind](latent(name))


def places(dist: Distribution) -> np.ndarray:
    """Return quantiles, and points just below them."""
    quantiles = dist.ppf(LEVELS)
    gap = 1e-6 * (quantiles[:, -1:] - quantiles[:, :1])
    return np.sort(np.concatenate([quantiles, quantiles - gap], axis=1), axis=1)


def test_cdf_never_decreases_and_adds_up(dist):
    """P(Y <= t) grows with t, and P(Y > t) is what is left."""
    grid = places(dist)

    assert (np.diff(dist.cdf(grid)) >= -1e-13).all()
    assert_allclose(dist.cdf(grid) + dist.sf(grid), 1.0, atol=1e-13)
    seen = dist.cdf(grid) > 0
    assert_allclose(dist.logcdf(grid)[seen], np.log(dist.cdf(grid)[seen]), rtol=1e-8, atol=1e-12)
    ends = np.array([[-np.inf, np.inf]])
    assert_allclose(dist.cdf(ends), np.tile([0.0, 1.0], (len(dist), 1)), atol=1e-13)


def test_a_mass_is_the_jump_of_the_cdf(dist):
    """P(Y = t) is what the CDF gains there, and the density gives it."""
    grid = dist.ppf(LEVELS[:, ::6])
    gap = 1e-6 * (grid.max() - grid.min())
    mass = dist.mass(grid)

    assert_allclose(dist.cdf(grid) - dist.cdf(grid - gap), mass, atol=1e-3)
    assert (mass > 0).any()
    assert_allclose(dist.pdf(grid)[mass > 1e-9], mass[mass > 1e-9])


def test_intervals_have_the_mass_between_their_ends(dist):
    """Also where an end is a mass, and wholly beyond the ends, where nothing is."""
    ends = np.array(dist._ends() or (dist.median()[0],))
    width = float(np.median(dist.ppf(0.9) - dist.ppf(0.1)))
    around = np.unique(np.concatenate([ends + k * width for k in (-9, -8, -0.3, 0, 0.4, 8, 9)]))
    for low, high in itertools.pairwise(around):
        wanted = dist.cdf(high) - dist.cdf(low) + dist.mass(low)

        assert_allclose(np.exp(dist.logprob(low, high)), wanted, rtol=1e-6, atol=1e-12)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
WITH_DENSITY = [case for case in CASES if case[0] not in ("steps", "steps from an end", "stacked")]


@pytest.mark.parametrize("dist", WITH_DENSITY, ids=label, indirect=True)
def test_density_and_masses_add_up_to_one(dist):
    """What lies between the masses, and the masses, are all of the probability."""
    ends = np.array([dist._ends()])
    edges = dist.from_probit(np.linspace(-9.0, 9.0, 73)[np.newaxis, :])
    kinks = np.zeros((1, 0)) if dist._kinks() is None else dist._kinks()
    inner = np.clip(
        np.concatenate([kinks, np.tile(ends, (len(kinks), 1))], axis=1), edges[:, :1], edges[:, -1:]
    )
    edges = np.sort(np.concatenate([edges, inner, dist._panel_edges()], axis=1), axis=1)
    half = 0.5 * np.diff(edges)[:, :, np.newaxis]
    points = edges[:, :-1, np.newaxis] + half * (1 + NODES)
    density = dist.pdf(points.reshape(len(dist), -1)).reshape(points.shape)
    inside = (half * np.where(half > 0, density, 0.0) * WEIGHTS).sum(axis=(1, 2))

    assert_allclose(inside + dist.mass(ends).sum(axis=1), 1.0, atol=1e-6)


def test_quantiles_are_the_first_to_reach_a_level(dist):
    """At the quantile the CDF has the level; just before it, it has not."""
    quantiles = dist.ppf(LEVELS)
    gap = 1e-6 * np.maximum(np.ptp(quantiles, axis=1, keepdims=True), 1e-3 * np.ptp(quantiles))

    assert (np.diff(quantiles) >= -gap).all()
    assert (dist.cdf(quantiles + 1e-3 * gap) >= LEVELS - 1e-7).all()
    assert (dist.cdf(quantiles - gap) <= LEVELS + 1e-7).all()


def test_moments_and_scores_follow_from_quantiles(dist):
    """Mean, variance and CRPS are those of many equally probable quantiles."""
    levels = (np.arange(500) + 0.5) / 500
    values = dist.ppf(levels[np.newaxis, :])
    spread = np.ptp(values)
    y = dist.ppf(0.6)

    assert_allclose(dist.mean() / spread, values.mean(axis=1) / spread, atol=5e-3)
    assert_allclose(dist.var() / spread**2, values.var(axis=1) / spread**2, atol=0.02)
    # CRPS = E |X - y| - E |X - X'| / 2, the latter from sorted values
    weights = 2 * levels - 1
    wanted = np.abs(values - y[:, np.newaxis]).mean(axis=1) - (weights * values).mean(axis=1)
    assert_allclose(regcal.crps(y, dist) / spread, wanted / spread, atol=5e-3)


def panels(dist: Distribution, y: np.ndarray, row: int) -> tuple[np.ndarray, np.ndarray]:
    """Return middles and widths of many panels of a row, none across a mass or the outcome."""
    ends = dist[row].ppf([[1e-12, 1 - 1e-12]])[0]
    low, high = min(ends[0], y[row]), max(ends[1], y[row])
    centre, reach = dist[row].median()[0], high - low
    # close where the mass is, and out to the end of long tails
    steps = np.sinh(np.linspace(-20.0, 20.0, 60_001)) / np.sinh(20.0) * reach
    masses = [point_masses(dist[row])[0][:, 0]]
    for part in (dist, *getattr(dist, "parts", [])):
        if isinstance(part, regcal.Rounded):
            masses.append(part.step * (np.round(centre / part.step) + np.arange(-20_000, 20_000)))
    edges = np.unique(np.concatenate([centre + steps, *masses, [low, high, y[row]]]))
    edges = edges[(edges >= low) & (edges <= high)]
    return 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)


def test_moments_and_scores_are_exact(dist):
    """Mean, variance and CRPS against integrals of the CDF over many thousand panels."""
    dist = dist[dist.std() > 0]  # of a row that is one point there is nothing to integrate
    y = dist.ppf(np.resize([0.6, 0.03, 0.97], len(dist)))
    cut, spread = float(np.median(y)), dist.std()
    found = np.stack([dist.mean(), dist.var(), regcal.crps(y, dist)], axis=1)
    parts = [
        regcal.metrics.threshold_weighted_crps(y, dist, **region)
        for region in ({"upper": cut}, {"lower": cut})
    ]

    for row in np.flatnonzero(spread > 0)[:3]:
        t, width = panels(dist, y, row)
        cdf = dist[row].cdf(t[np.newaxis, :])[0]
        start = t[0] - 0.5 * width[0]
        mean = start + (width * (1 - cdf)).sum()
        var = (2 * (t - start) * (1 - cdf) * width).sum() - (mean - start) ** 2
        score = (width * (cdf - (t >= y[row])) ** 2).sum()
        assert_allclose(found[row, [0, 2]], [mean, score], atol=2e-6 * spread[row])
        assert_allclose(found[row, 1], var, rtol=2e-5)
    assert_allclose(sum(parts), found[:, 2], atol=2e-6 * spread.max())


def test_scores_of_quantiles_and_thresholds_take_masses(dist):
    """Pinball losses average to half the CRPS, and Brier scores are its integrand."""
    dist = dist[dist.std() > 0]
    levels = (np.arange(800) + 0.5) / 800
    y = dist.ppf(0.6)
    spread = dist.std()

    losses = regcal.metrics.pinball_loss(y, dist, levels).mean(axis=1)
    assert_allclose(losses, 0.5 * regcal.crps(y, dist), atol=2e-3 * spread.max())
    # the interval score is the pinball losses of both ends over half the error rate
    ends = regcal.metrics.pinball_loss(y, dist, [0.1, 0.9]).sum(axis=1)
    assert_allclose(regcal.metrics.interval_score(y, dist, 0.8), ends / 0.1)
    happened = regcal.metrics.brier_score(y, dist, float(y[0]))[0]
    assert_allclose(happened, dist.sf(y[0])[0] ** 2)


def test_a_few_steps_of_a_heavy_tail_are_exact():
    """Sums over values near the median and integrals of the tails beyond add up."""
    base = regcal.ScipyDistribution(scipy.stats.t(4.0, loc=[0.2, -0.4], scale=[0.6, 1.0]))
    counts, k = regcal.Rounded(base), np.arange(-200_000, 200_001.0)
    masses = np.diff(base.cdf(np.append(k - 0.5, k[-1] + 0.5)[np.newaxis, :]))
    tail = np.stack([base.cdf(k[np.newaxis, :] + 0.5), base.sf(k[np.newaxis, :] + 0.5)])

    assert_allclose(counts.mean(), masses @ k, atol=1e-7)
    assert_allclose(counts.var(), masses @ k**2 - (masses @ k) ** 2, rtol=1e-5)
    for y in (0.0, 3.0, 2500.0):
        wanted = (np.where(k < y, tail[0], tail[1]) ** 2).sum(axis=1)
        assert_allclose(counts.crps(np.full(2, y)), wanted, rtol=1e-6)


def test_outcomes_that_cannot_be_are_as_far_off_as_they_are(dist):
    """Beyond all mass the CRPS grows by the distance."""
    ends = dist.ppf([[1e-15, 1 - 1e-15]])
    reach = 100 * (ends[:, 1] - ends[:, 0]).max()
    for y, side in ((ends[:, 0] - reach, -1.0), (ends[:, 1] + reach, 1.0)):
        gained = regcal.crps(y + side * reach, dist) - regcal.crps(y, dist)
        assert_allclose(gained, reach, rtol=1e-6)
        assert_allclose(regcal.crps(y, dist), np.abs(y - dist.mean()), rtol=0.01)


def test_nothing_lies_beyond_the_ends(rng):
    """All draws are between the ends, which are drawn as often as their masses say."""
    base = regcal.Normal(rng.normal(size=6), rng.uniform(0.5, 2.0, 6))
    dist = regcal.Clipped(base, -0.5, 1.0)
    draws = dist.sample(4000, random_state=0)

    assert draws.min() == -0.5 and draws.max() == 1.0
    assert_allclose((draws == -0.5).mean(axis=1), base.cdf(-0.5), atol=5 * 0.5 / np.sqrt(4000))
    assert_allclose(dist.mass(1.0), base.sf(1.0))
    assert_array_equal(dist.logpdf([[-0.6, 1.1]]), np.full((6, 2), -np.inf))


@pytest.mark.parametrize("name", cases.WITH_MASSES)
def test_masses_survive_slices_pickles_and_joining(name):
    """What was found for a batch holds for its rows, wherever they go."""
    dist = cases.WITH_MASSES[name](cases.STANDARD)
    ends = np.array([dist._ends()])
    whole = joined([dist[:3], dist[3:]])

    assert len(dist._ends()) > 0
    assert_array_equal(dist[2].mass(ends), dist.mass(ends)[[2]])
    assert_array_equal(pickle.loads(pickle.dumps(dist)).mass(ends), dist.mass(ends))
    if name != "stacked draws":
        assert type(whole) is type(dist)
        assert_array_equal(whole.mass(ends), dist.mass(ends))
        assert_array_equal(whole.ppf(LEVELS), dist.ppf(LEVELS))
    assert_array_equal(regcal.concatenate([dist[:3], dist[3:]]).mass(ends), dist.mass(ends))


@pytest.mark.parametrize("seen", [lambda d: regcal.Clipped(d, 0.0), regcal.Rounded])
def test_seen_batches_are_joined_where_their_bases_are(seen):
    """Ends and steps that are the same make one batch of several."""
    base = latent("normal")
    whole = joined([seen(base[:1]), seen(base[1:])])

    assert type(whole) is type(seen(base))
    assert_array_equal(whole.cdf(LEVELS), seen(base).cdf(LEVELS))
    assert joined([regcal.Clipped(base, 0.0), regcal.Clipped(base, 0.5)]) is None


def test_slicing_commutes(dist):
    """A slice of the answers is the answer of the slice."""
    grid = dist.ppf(LEVELS[:, ::9])
    rows = [2, 0]

    for method in METHODS:
        whole = getattr(dist, method)(grid)
        assert_allclose(getattr(dist[rows], method)(grid[rows]), whole[rows], rtol=1e-10)
    assert_allclose(dist[rows].mean(), dist.mean()[rows], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("unit", cases.UNITS[1:], ids=str)
@pytest.mark.parametrize("name", cases.WITH_MASSES)
def test_units_and_offsets_do_not_matter(name, unit):
    """In another unit the masses are the same, at the same places."""
    dist, other = cases.WITH_MASSES[name](cases.STANDARD), cases.WITH_MASSES[name](unit)
    points = dist.ppf(LEVELS[:, ::6])
    spread = np.ptp(points)

    assert_allclose(other._ends(), unit(np.array(dist._ends())))
    assert_allclose(other.mass(np.array([other._ends()])), dist.mass(np.array([dist._ends()])))
    assert_allclose((other.ppf(LEVELS[:, ::6]) - unit.shift) / unit.scale, points, atol=1e-6)
    assert_allclose((other.mean() - unit.shift) / unit.scale, dist.mean(), atol=1e-6 * spread)
    assert_allclose(other.std() / unit.scale, dist.std(), rtol=1e-4)


@pytest.mark.parametrize("name", [name for name in cases.WITH_MASSES if "bins" not in name])
def test_no_outcome_is_impossible(name):
    """At an end without draws the mass is small but not nothing, far away too."""
    dist = cases.WITH_MASSES[name](cases.STANDARD)
    for part in getattr(dist, "parts", getattr(dist, "components", [dist])):
        grid = np.clip(np.linspace(-1.0, 3.0, 9), part.low, part.high)[np.newaxis, :]

        assert np.isfinite(part.logpdf(grid)).all()
        assert np.isfinite(part.logcdf(grid)).all()
        assert (part.mass(np.array([part._ends()])) < 1).all()


def test_bins_are_as_empty_as_they_say():
    """Points and bins have the masses that the user gives, 0 as well."""
    dist = regcal.Histogram([0.0, 0.0, 1.0, 2.0, 2.0], [[0.0, 0.7, 0.0, 0.3], [0.4, 0.0, 0.6, 0.0]])

    assert_allclose(dist.mass([[0.0, 2.0]]), [[0.0, 0.3], [0.4, 0.0]])
    assert_allclose(dist.prob([[0.0, 1.0]], [[1.0, 1.9]]), [[0.7, 0.0], [0.0, 0.54]])
    assert_array_equal(dist.logpdf([[0.5, 1.5]]) == -np.inf, [[False, True], [True, False]])


def test_counts_have_known_probabilities():
    """Rounded to whole numbers, a normal distribution has the masses of its unit intervals."""
    base = regcal.Normal([0.3], [1.2])
    counts = regcal.Rounded(base)
    k = np.arange(-6.0, 8.0)[np.newaxis, :]

    assert_allclose(counts.mass(k), base.prob(k - 0.5, k + 0.5))
    assert_allclose(counts.mass(k).sum(), 1.0, atol=1e-6)
    assert_allclose(counts.mean(), (k * counts.mass(k)).sum(), atol=1e-5)
    assert counts.mass(0.5) == 0.0
    assert regcal.Rounded(base, 0.1).mass(0.3) > 0.03


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda d: regcal.Clipped(d, 1.0, 0.0), "low must be smaller than high"),
        (lambda d: regcal.Clipped(d, [0.0, 1.0]), "low must be one number"),
        (lambda d: regcal.Clipped(d, 0.0, 1.0, near=0.6), "near must be a number from 0 to half"),
        (lambda d: regcal.Clipped(d, 0.0, near=-0.1), "near must be a number from 0 to half"),
        (lambda d: regcal.Rounded(d, 0.0), "step must be one positive number"),
        (lambda d: regcal.Rounded(d, [1.0, 2.0]), "step must be one positive number"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    """Ends in the wrong order or too near each other, and steps of no width, are refused."""
    with pytest.raises(ValueError, match=message):
        make(regcal.Normal([0.0], [1.0]))
