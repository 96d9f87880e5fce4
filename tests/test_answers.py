"""Numbers against independent answers: closed forms, other packages and brute force."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import scoringrules
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_ndtr
from sklearn.linear_model import LogisticRegression

import regcal
from regcal.binary import BinaryMap
from regcal.calibrators import cells
from regcal.distributions import Segmented

GRID = np.linspace(-4.0, 6.0, 41)[np.newaxis, :]

# ---------------------------------------------------------------------------------- distributions


def test_quantiles_of_a_normal_give_back_that_normal():
    """On the probit scale a normal is a straight line, tails included."""
    levels = np.array([0.02, 0.3, 0.5, 0.9])
    loc, scale = np.array([[0.0], [3.0]]), np.array([[1.0], [0.5]])
    exact = regcal.Normal(loc[:, 0], scale[:, 0])
    dist = regcal.Quantiles(levels, scipy.stats.norm.ppf(levels, loc, scale))

    assert_allclose(dist.logpdf(GRID * 10), exact.logpdf(GRID * 10), rtol=1e-10)
    assert_allclose(dist.logsf(40.0), exact.logsf(40.0), rtol=1e-10)
    assert_allclose(dist.mean(), loc[:, 0], atol=1e-9)
    assert_allclose(dist.var(), scale[:, 0] ** 2, rtol=1e-8)


def test_histogram_by_hand():
    """Uniform bins have the moments of uniform bins."""
    edges, masses = np.array([0.0, 1.0, 3.0, 4.0]), np.array([[0.2, 0.5, 0.3]])
    dist = regcal.Histogram(edges, masses)
    middle, width = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
    mean = masses[0] @ middle

    assert_allclose(dist.cdf([[-1, 0.5, 1, 2, 3.5, 9]]), [[0, 0.1, 0.2, 0.45, 0.85, 1]])
    assert_allclose(dist.pdf([[-1, 0.5, 2, 3.5, 9]]), [[0, 0.2, 0.25, 0.3, 0]])
    assert_allclose(dist.ppf([[0, 0.1, 0.45, 0.85, 1]]), [[0, 0.5, 2, 3.5, 4]])
    assert_allclose(dist.mean(), mean)
    assert_allclose(dist.var(), masses[0] @ ((middle - mean) ** 2 + width**2 / 12))


def test_open_bins_decay_exponentially():
    """An open bin decays at the width of its neighbour."""
    dist = regcal.Histogram([-np.inf, 0.0, 2.0, np.inf], [[0.3, 0.5, 0.2]])

    assert_allclose(dist.sf([[3.0, 80.0]]), [[0.2 * np.exp(-0.5), 0.2 * np.exp(-39.0)]])
    assert_allclose(dist.cdf([[-4.0, -80.0]]), [[0.3 * np.exp(-2.0), 0.3 * np.exp(-40.0)]])
    assert_allclose(dist.logpdf(-2000.0), np.log(0.3 / 2) - 1000.0)
    assert_allclose(dist.ppf([[0.3 * np.exp(-2.0), 1 - 0.2 * np.exp(-0.5)]]), [[-4.0, 3.0]])


def test_open_bins_have_quantiles_where_probabilities_are_zero():
    """Forty standard deviations out, the exponential tail is followed by its logarithm."""
    dist = regcal.Histogram([-np.inf, 0.0, 2.0, np.inf], [[0.3, 0.5, 0.2]])
    z = np.array([[-45.0, 45.0]])

    assert_allclose(
        dist.from_probit(z),
        [[2 * (log_ndtr(-45.0) - np.log(0.3)), 2 - 2 * (log_ndtr(-45.0) - np.log(0.2))]],
    )
    assert_allclose(dist.probit(dist.from_probit(z)), z)


def test_empty_open_bins_have_no_quantiles():
    """A bin without mass is never entered, not even at the levels 0 and 1."""
    dist = regcal.Histogram([-np.inf, 0.0, 1.0, 3.0, np.inf], [[0.0, 0.3, 0.7, 0.0]])

    assert_allclose(dist.ppf([[0.0, 0.3, 1.0]]), [[0.0, 1.0, 3.0]])
    assert_array_equal(dist.pdf([[-1.0, 4.0]]), 0.0)


def test_mixture_of_normals_by_hand():
    """Densities and probabilities are weighted sums."""
    weights = np.array([0.3, 0.7])
    dist = regcal.Mixture([regcal.Normal([0.0], 1.0), regcal.Normal([4.0], 0.5)], weights)
    parts = [scipy.stats.norm(0.0, 1.0), scipy.stats.norm(4.0, 0.5)]

    for method in ("cdf", "sf", "pdf"):
        wanted = sum(w * getattr(p, method)(GRID) for w, p in zip(weights, parts, strict=True))
        assert_allclose(getattr(dist, method)(GRID), wanted, rtol=1e-12)
    assert_allclose(dist.logsf(60.0), np.log(0.3) + parts[0].logsf(60.0), rtol=1e-12)


def test_quantiles_of_equal_components_are_theirs():
    """A mixture of one thing is that thing, and takes no long search."""
    part = regcal.Normal([5.0, -3e7], [1.0, 2.0])

    assert_allclose(regcal.Mixture([part, part]).ppf(0.01), part.ppf(0.01))


def test_samples_are_a_kernel_density(rng):
    """The density is scipy's kernel estimate with the same bandwidth."""
    draws = rng.normal(size=(1, 40))
    kernel = scipy.stats.gaussian_kde(draws[0], bw_method=0.3)
    dist = regcal.Samples(draws, bandwidth=float(np.sqrt(kernel.covariance[0, 0])))

    assert_allclose(dist.pdf(GRID)[0], kernel(GRID[0]), rtol=1e-10)
    assert_allclose(dist.prob(-1.0, 0.5), kernel.integrate_box_1d(-1.0, 0.5))


def test_default_bandwidth_is_silverman(rng):
    """0.9 min(std, IQR / 1.34) n^(-1/5)."""
    draws = rng.normal(size=40)
    spread = min(draws.std(ddof=1), np.subtract(*np.quantile(draws, [0.75, 0.25])) / 1.34)

    assert_allclose(regcal.Samples([draws]).bandwidth, 0.9 * spread * 40**-0.2)


def test_skewed_normal_is_scipys():
    """A family whose quantiles scipy finds slowly is right where it matters."""
    frozen = scipy.stats.skewnorm([[3.0], [-2.0]], loc=[[1.0], [0.0]], scale=2.0)
    dist = regcal.ScipyDistribution(scipy.stats.skewnorm([3.0, -2.0], loc=[1.0, 0.0], scale=2.0))

    assert_allclose(dist.logpdf(GRID), frozen.logpdf(GRID))
    assert_allclose(dist.cdf(GRID), frozen.cdf(GRID))
    assert_allclose(dist.cdf(dist.ppf([[0.1, 0.9]])), [[0.1, 0.9]] * 2, rtol=1e-8)
    assert np.isfinite(dist[0].logsf(100.0)).all()


@pytest.mark.parametrize(
    ("frozen", "point", "log_tail"),
    [
        # log of the regularised incomplete gamma function: x^a / Gamma(a + 1) near 0
        (scipy.stats.gamma([50.0]), 1e-6, 50 * np.log(1e-6) - scipy.special.gammaln(51.0)),
        (scipy.stats.gamma([0.5]), 1e-300, None),
        (scipy.stats.lognorm([0.1]), 0.01, None),
    ],
)
def test_lower_tails_at_the_end_of_a_support(frozen, point, log_tail):
    """Next to an end of the support the log probability is right although it underflows."""
    wanted = frozen.logcdf(point) if log_tail is None else log_tail

    assert_allclose(regcal.ScipyDistribution(frozen).logcdf(point), wanted, rtol=1e-6)


def test_upper_tail_of_gamma_beyond_underflow():
    """For a whole shape a the tail is exp(-x) times a polynomial."""
    x = 900.0
    wanted = -x + np.log(1 + x + x**2 / 2)

    assert_allclose(regcal.ScipyDistribution(scipy.stats.gamma([3.0])).logsf(x), wanted, rtol=1e-9)


def test_upper_tail_of_functions_comes_from_the_density():
    """Without sf, P(Y > t) is still right where 1 - cdf has no digits."""
    normal = scipy.stats.norm()
    dist = regcal.CustomDistribution(
        lambda t, rows: normal.cdf(t), 1, pdf=lambda t, rows: normal.pdf(t)
    )
    points = np.array([[4.0, 4.8, 6.0, 9.0, 20.0, 37.0]])

    assert_allclose(dist.logsf(points), normal.logsf(points), rtol=1e-7)


# ------------------------------------------------------------------------------------------- scores


def test_crps_against_scoringrules(rng):
    """Closed forms of another package, for outcomes inside and outside of the bulk."""
    loc, y = rng.normal(size=30), np.linspace(-12, 15, 30)
    scale = rng.uniform(0.5, 2.0, 30)
    t = scipy.stats.t(6.0, loc, scale)
    pairs = [
        (regcal.Normal(loc, scale), scoringrules.crps_normal(y, loc, scale)),
        (t, scoringrules.crps_t(y, 6.0, loc, scale)),
        (scipy.stats.logistic(loc, scale), scoringrules.crps_logistic(y, loc, scale)),
        (scipy.stats.laplace(loc, scale), scoringrules.crps_laplace(y, loc, scale)),
        (scipy.stats.gamma(scale + 1), scoringrules.crps_gamma(y, scale + 1, 1.0)),
        (scipy.stats.expon(scale=scale), scoringrules.crps_exponential(y, 1 / scale)),
        (scipy.stats.uniform(loc, scale), scoringrules.crps_uniform(y, loc, loc + scale)),
    ]
    for dist, wanted in pairs:
        assert_allclose(regcal.crps(y, dist), wanted, rtol=1e-6, atol=1e-9, err_msg=str(dist))


def test_crps_of_a_mixture_against_scoringrules(rng):
    """Narrow and wide components, near and far."""
    loc, scale = np.array([0.0, 3.0, 30.0]), np.array([1.0, 0.01, 2.0])
    weights, y = np.array([0.2, 0.5, 0.3]), np.linspace(-5, 40, 10)
    parts = [regcal.Normal(np.full(10, m), s) for m, s in zip(loc, scale, strict=True)]
    wanted = [scoringrules.crps_mixnorm(one, loc, scale, weights) for one in y]

    assert_allclose(regcal.crps(y, regcal.Mixture(parts, weights)), wanted, rtol=1e-6)


def test_crps_of_samples_against_scoringrules(rng):
    """Draws with a kernel are a mixture of normals; with a tiny one, the ensemble itself."""
    draws, y = rng.normal(size=(8, 25)), rng.normal(size=8)
    dist = regcal.Samples(draws)
    spreads = np.repeat(dist.bandwidth[:, np.newaxis], 25, axis=1)

    assert_allclose(regcal.crps(y, dist), scoringrules.crps_mixnorm(y, draws, spreads), rtol=1e-7)
    wanted = scoringrules.crps_ensemble(y, draws)
    assert_allclose(regcal.crps(y, regcal.Samples(draws, bandwidth=1e-6)), wanted, rtol=1e-4)


def test_scores_are_methods_of_the_distribution():
    """The log score is the log density, PIT the probability below the outcome."""
    y, normal = np.array([0.3, -2.0]), scipy.stats.norm([0.0, 1.0], [1.0, 2.0])
    dist = regcal.Normal([0.0, 1.0], [1.0, 2.0])

    assert_allclose(regcal.log_score(y, dist), normal.logpdf(y))
    assert_allclose(regcal.pit(y, dist), normal.cdf(y))


# -------------------------------------------------------------------------------------- binary maps


@pytest.fixture
def labelled(rng):
    """Return probabilities and labels that no threshold separates."""
    p = rng.uniform(0.01, 0.99, 300)
    return p, (rng.uniform(size=300) < expit(0.5 + 1.5 * np.log(p) - 0.7 * np.log1p(-p))).astype(
        int
    )


def unpenalised(features, labels, **fit):
    """Return scikit-learn's maximum likelihood coefficients, the offset last."""
    model = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000).fit(features, labels, **fit)
    return np.append(model.coef_[0], model.intercept_)


def test_logistic_map_against_scikit_learn(labelled):
    """Without a ridge it is plain logistic regression on p."""
    p, labels = labelled
    cal = regcal.LogisticCalibrator(ridge=0.0).fit(p, labels)

    assert_allclose(cal.coefficients_[0], unpenalised(p[:, np.newaxis], labels), atol=1e-6)


def test_beta_map_against_scikit_learn_and_betacal(labelled):
    """Without a ridge it is logistic regression on log p and -log(1 - p), as in betacal."""
    p, labels = labelled
    cal = regcal.BetaCalibrator(ridge=0.0).fit(p, labels)
    features = np.column_stack([np.log(p), -np.log1p(-p)])
    with warnings.catch_warnings():  # betacal changes the filters when imported
        warnings.simplefilter("ignore")
        from betacal import BetaCalibration

        theirs = BetaCalibration("abm").fit(p[:, np.newaxis], labels).predict(p)

    assert_allclose(cal.coefficients_[0], unpenalised(features, labels), atol=1e-6)
    assert_allclose(cal.predict(p), theirs, atol=1e-3)  # betacal stops its optimiser early


@pytest.mark.parametrize("falling", ["both", "a", "b"])
def test_constrained_beta_map_against_brute_force(rng, falling):
    """Slopes that would be negative are those of a bounded optimiser."""
    p = rng.uniform(0.01, 0.99, 200)
    slopes = {"both": (-1.0, -1.0), "a": (-1.0, 2.0), "b": (2.0, -1.0)}[falling]
    truth = expit(slopes[0] * np.log(p) - slopes[1] * np.log1p(-p))
    labels = (rng.uniform(size=200) < truth).astype(float)
    features = np.column_stack([np.log(p), -np.log1p(-p), np.ones(200)])
    cal = regcal.BetaCalibrator(ridge=0.5).fit(p, labels)
    bounds = [(0, None), (0, None), (None, None)]
    best = minimum(features, labels, np.array([1.0, 1.0, 0.0]), 0.5, bounds)

    assert_allclose(cal.coefficients_[0], best, atol=1e-4)
    assert (cal.coefficients_[0][:2] >= 0).all()
    assert (np.diff(cal.predict(np.linspace(0, 1, 50))) >= 0).all()


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


def test_one_class_gives_finite_maps():
    """Labels of one kind push a map towards its limit and no further than numbers go."""
    for binary in (regcal.BetaCalibrator, regcal.LogisticCalibrator):
        for ridge in (0.0, 0.1):
            cal = binary(ridge=ridge).fit([0.2, 0.5, 0.9], [0, 0, 0])
            predicted = cal.predict([0.0, 0.3, 1.0])
            assert ((predicted >= 0) & (predicted <= 1)).all()
            assert cal.predict([0.3])[0] < 0.4


# -------------------------------------------------------------------------------------- one-vs-rest


def brute_force_masses(loc, scale, y, thresholds, new_loc, new_scale, ridge):
    """Return calibrated masses as Section 4 of the paper has them, segment by segment."""
    ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
    result = []
    for low, high in itertools.pairwise(ends):
        p = scipy.stats.norm.cdf(high, loc, scale) - scipy.stats.norm.cdf(low, loc, scale)
        features = np.column_stack([np.log(p), -np.log1p(-p), np.ones(len(p))])
        labels = ((y > low) & (y <= high)).astype(float)
        bounds = [(0, None), (0, None), (None, None)]
        a, b, m = minimum(features, labels, np.array([1.0, 1.0, 0.0]), ridge, bounds)
        p = np.diff(scipy.stats.norm.cdf([low, high], new_loc, new_scale))[0]
        result.append(expit(a * np.log(p) - b * np.log1p(-p) + m))
    return np.array(result) / np.sum(result)


def test_masses_of_e_beta_against_brute_force(rng):
    """All segments at once give what one optimiser per segment gives."""
    loc, scale = rng.normal(size=150), rng.uniform(0.8, 1.5, 150)
    y = loc + scale * rng.normal(0.3, 0.6, 150)
    thresholds = np.array([-2.0, -0.5, 0.3, 1.0, 2.5])
    cal = regcal.OneVsRestCalibrator(regcal.BetaCalibrator(ridge=0.7), thresholds=thresholds)
    dist = cal.fit(regcal.Normal(loc, scale), y).transform(regcal.Normal([0.2], [1.1]))
    wanted = brute_force_masses(loc, scale, y, thresholds, 0.2, 1.1, 0.7)

    ends = np.concatenate([[-np.inf], thresholds, [np.inf]])[np.newaxis, :]
    assert_allclose(np.exp(dist.log_masses()[0]), wanted, atol=1e-5)
    assert_allclose(dist.prob(ends[:, :-1], ends[:, 1:])[0], wanted, atol=1e-5)


def reweighted(log_base):
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
    new = reweighted(np.log(old)[np.newaxis, :])[0]
    for k, point in enumerate([-30.0, -0.5, 0.2, 1.0, 35.0]):
        wanted = base.logpdf(point) + new[k] - np.log(old[k])
        assert_allclose(dist.logpdf(point), wanted, rtol=1e-9)


def test_identity_masses_change_nothing():
    """Segments that keep their masses are the base, at every point."""
    base = regcal.Normal([0.0, 50.0], [1.0, 0.1])
    dist = Segmented(base, np.array([-1.0, 0.0, 3.0]), lambda masses: masses)

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
    """Where the base has nothing, a bounded segment's new mass is spread evenly."""
    base = regcal.Histogram([0.0, 1.0], [[1.0]])
    thresholds = np.array([0.5, 1.0, 2.0, 4.0])
    dist = Segmented(base, thresholds, np.zeros_like)

    assert_allclose(dist.pdf([[0.25, 0.75, 1.5, 3.0, 5.0]]), [[0.5, 0.5, 0.25, 0.125, 0.0]])


@pytest.mark.parametrize("binary", [regcal.BetaCalibrator(), regcal.LogisticCalibrator()])
def test_cells_agree_with_rows(rng, binary, monkeypatch):
    """Merging rows into fine cells, as large data need it, hardly moves the fit."""
    loc = rng.normal(size=16_000)
    dist = regcal.Normal(loc, 1.5)
    y = loc + rng.normal(size=len(loc))
    new = regcal.Normal([-1.0, 0.0, 2.0], [1.5, 1.0, 3.0])
    cal = regcal.OneVsRestCalibrator(binary, thresholds=12)
    by_rows = cal.fit(dist, y).transform(new).log_masses()
    monkeypatch.setattr(cells, "_MAX_POINTS", 999)
    by_cells = cal.fit(dist, y).transform(new).log_masses()

    assert not np.array_equal(by_cells, by_rows)
    assert_allclose(np.exp(by_cells), np.exp(by_rows), atol=1e-3)
    assert_allclose(by_cells, by_rows, atol=0.2)


def test_calibration_mends_a_wrong_spread(rng):
    """Predictions twice too wide become about right."""
    dist = regcal.Normal(np.zeros(2000), 2.0)
    y = rng.normal(size=2000)
    for name in ("e-logistic", "e-beta", "e-isotonic"):
        cal = regcal.get_calibrator(name, thresholds=32).fit(dist, y)
        assert regcal.log_score(y, cal.transform(dist)).mean() > -1.5  # -1.42 is the best there is
        assert regcal.log_score(y, dist).mean() < -1.7


def test_calibrated_moments_survive_an_infinite_density():
    """A gamma density that is infinite at 0 does not spoil the mean of its calibration."""
    base = regcal.ScipyDistribution(scipy.stats.gamma(np.full(50, 0.7), loc=40.0, scale=0.1))
    dist = regcal.get_calibrator("e-beta").fit(base, base.ppf(np.linspace(0.01, 0.8, 50)))
    draws = dist.transform(base[:1]).sample(20_000, random_state=0)

    noise = 4 * draws.std() / np.sqrt(draws.size)
    assert_allclose(dist.transform(base[:1]).mean(), draws.mean(), rtol=0.0, atol=noise)
    assert np.isfinite(dist.transform(base[:1]).var()).all()


def test_binary_maps_are_fitted_at_once():
    """A segment's map does not depend on the other segments."""
    rng = np.random.default_rng(5)
    log_p = np.log(rng.uniform(0.05, 0.95, (3, 80)))
    hits = (rng.uniform(size=(3, 80)) < 0.4).astype(float)
    together = regcal.BetaCalibrator().fit_columns(log_p, hits, np.ones((3, 80)))

    assert isinstance(together, BinaryMap)
    for k in range(3):
        alone = regcal.BetaCalibrator().fit(np.exp(log_p[k]), hits[k])
        assert_allclose(together.coefficients_[k], alone.coefficients_[0], rtol=1e-6)


@pytest.mark.parametrize("uniform", [False, True])
def test_both_tails_are_equally_exact(uniform):
    """A symmetric calibration has symmetric quantiles, where masses are tiny too."""
    thresholds = np.linspace(-6.0, 6.0, 9)
    base = regcal.Normal([0.0], [1.0])
    dist = Segmented(base, thresholds, lambda masses: 2.0 * masses, uniform=uniform)
    probits = np.array([[0.2, 1.1, 2.5, 4.0, 5.3, 6.4, 6.62, 6.66, 6.7, 7.7, 11.0]])

    assert_allclose(dist.from_probit(probits), -dist.from_probit(-probits), rtol=1e-9)
    assert_allclose(dist.probit(dist.from_probit(probits)), probits, rtol=1e-9)
