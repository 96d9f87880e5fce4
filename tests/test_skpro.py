"""The bridge to skpro conforms to its own tests, and its distributions come in without loss."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

import regcal

skpro = pytest.importorskip("skpro", reason="pip install skpro")

import skpro.distributions as families  # noqa: E402
from skpro.metrics import CRPS, LogLoss  # noqa: E402
from skpro.model_selection import GridSearchCV  # noqa: E402
from skpro.regression.compose import Pipeline  # noqa: E402
from skpro.regression.residual import ResidualDouble  # noqa: E402
from skpro.survival.compose import FitUncensored  # noqa: E402
from skpro.utils import check_estimator  # noqa: E402

from regcal.skpro import CalibratedRegressor, PredictiveDistribution  # noqa: E402

INDEX, COLUMNS = pd.Index(["a", "b", "c"]), pd.Index(["y"])
MEANS, SPREADS = np.array([[0.0], [1.0], [-20.0]]), np.array([[1.0], [0.5], [3.0]])
LEVELS = np.array([[1e-6, 0.02, 0.31, 0.5, 0.83, 0.999]])


@pytest.fixture
def seeded():
    """Seed NumPy's global generator, from which skpro's tests draw, and put it back after."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    yield
    np.random.set_state(state)  # noqa: NPY002


@pytest.fixture
def data(rng):
    X = pd.DataFrame(rng.normal(size=(90, 2)), columns=["p", "q"], index=np.arange(90) + 7)
    return X, pd.DataFrame({"y": X["p"] + rng.normal(size=90)})


# ----------------------------------------------------------------------------------- going to skpro


def test_covariates_are_columns_of_x(data):
    """The bridge gives the calibrator the columns that it asks for, by name or by number."""
    X, y = data
    y = y + 3.0 * (X[["q"]].to_numpy() > 0)
    cal = regcal.ConditionalCalibrator("additive", regcal.PITCalibrator())
    ours = regcal.CalibratedRegressorCV(BayesianRidge(), cal, covariates=["q"]).fit(X, y["y"])

    for chosen in (["q"], [1]):
        bridge = CalibratedRegressor(BayesianRidge(), cal, covariates=chosen).fit(X, y)
        assert bridge.model_.members_[0].calibrator.columns_.names == ("q",)
        quantiles = bridge.predict_proba(X).quantile([0.9])
        assert_allclose(quantiles.to_numpy(), ours.predict_quantiles(X, [0.9]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("bridge", "at_least"), [(PredictiveDistribution, 150), (CalibratedRegressor, 50)]
)
def test_skpro_finds_nothing_wrong(bridge, at_least, seeded):
    """All of skpro's own conformance tests pass."""
    results = check_estimator(bridge, verbose=False)

    assert len(results) >= at_least
    assert {name: result for name, result in results.items() if result != "PASSED"} == {}


@pytest.fixture
def pair():
    """Return normal distributions in skpro's words, by skpro and by us."""
    theirs = families.Normal(MEANS, SPREADS, index=INDEX, columns=COLUMNS)
    ours = regcal.Normal(MEANS.ravel(), SPREADS.ravel())
    return theirs, PredictiveDistribution(ours, index=INDEX, columns=COLUMNS)


@pytest.mark.parametrize("method", ["pdf", "log_pdf", "cdf", "surv", "haz", "energy"])
def test_functions_of_points_are_those_of_skpro(pair, method):
    """Frames are equal, labels included."""
    theirs, ours = pair
    points = pd.DataFrame([[0.3], [2.0], [-25.0]], index=INDEX, columns=COLUMNS)

    expected = getattr(theirs, method)(points)
    pd.testing.assert_frame_equal(getattr(ours, method)(points), expected, rtol=1e-7)


@pytest.mark.parametrize("method", ["mean", "var", "energy"])
def test_summaries_are_those_of_skpro(pair, method):
    """Frames are equal, labels included."""
    theirs, ours = pair

    pd.testing.assert_frame_equal(getattr(ours, method)(), getattr(theirs, method)(), rtol=1e-7)


def test_quantiles_norms_and_far_tails(pair):
    """What skpro approximates or loses is exact."""
    theirs, ours = pair

    pd.testing.assert_frame_equal(ours.quantile([0.1, 0.9]), theirs.quantile([0.1, 0.9]))
    assert_allclose(ours.pdfnorm(), 1 / (2 * np.sqrt(np.pi) * SPREADS))
    assert_allclose(ours.surv(MEANS + 20 * SPREADS), scipy.stats.norm.sf(20.0), rtol=1e-10)
    far = scipy.stats.norm.pdf(30.0) / scipy.stats.norm.sf(30.0) / SPREADS
    assert_allclose(ours.haz(MEANS + 30 * SPREADS), far)


def test_metrics_of_skpro_agree_with_ours(rng):
    """Skpro's CRPS and log loss of a calibrated distribution are our scores."""
    dist = regcal.Normal(rng.normal(size=40), 2.0)
    y = rng.normal(size=40)
    calibrated = regcal.PITCalibrator().fit(dist, y).transform(dist)
    prediction, frame = PredictiveDistribution(calibrated), pd.DataFrame(y)

    assert_allclose(CRPS()(frame, prediction), regcal.crps(y, calibrated).mean(), rtol=1e-6)
    assert_allclose(LogLoss()(frame, prediction), -calibrated.logpdf(y).mean(), rtol=1e-6)


def test_rows_are_taken_by_label_place_and_mask(pair):
    """The parts keep their labels; a single place is a scalar distribution."""
    _, ours = pair

    assert list(ours.loc[["c", "a"]].index) == ["c", "a"]
    assert_allclose(ours.loc[["c", "a"]].mean(), [[-20.0], [0.0]])
    assert_allclose(ours.iloc[[1, 2]].dist.mean(), [1.0, -20.0])
    assert ours.iat[2, 0].shape == ()
    assert_allclose(ours.at["c", "y"].mean(), -20.0)
    assert np.isscalar(ours.iloc[0, 0].cdf(0.3))
    with pytest.raises(ValueError, match="need a row and a column"):
        ours._iat(rowidx=0)


def test_draws_follow_the_distribution_and_the_seed(pair, seeded):
    """Draws are labelled by their number and row, and a seed of NumPy holds as for skpro."""
    _, ours = pair
    draws = ours.sample(2000)

    assert draws.index[:4].tolist() == [(0, "a"), (0, "b"), (0, "c"), (1, "a")]
    assert_allclose(draws.groupby(level=1).mean(), MEANS, atol=0.3)
    np.random.seed(0)  # noqa: NPY002
    assert_allclose(ours.sample(2000), draws)


@pytest.mark.parametrize(
    "labels", [{"index": ["a", "b"]}, {"columns": ["y", "z"]}, {"index": range(4)}]
)
def test_labels_must_fit(labels):
    """The message counts."""
    with pytest.raises(ValueError, match="for 3 distributions"):
        PredictiveDistribution(regcal.Normal([0.0, 1.0, 2.0], 1.0), **labels)


def test_the_way_back_is_free(pair):
    """A distribution that went to skpro comes back as it was."""
    _, ours = pair

    assert regcal.as_distribution(ours) is ours.dist


def test_regressor_is_our_regressor(data):
    """Predictions are those of CalibratedRegressorCV, with labels."""
    X, y = data
    model = CalibratedRegressor(BayesianRidge(), "pit", cv=4, ensemble=False, point="median")
    same = regcal.CalibratedRegressorCV(
        BayesianRidge(), "pit", cv=4, ensemble=False, point="median"
    ).fit(X, y["y"])

    model.fit(X, y)

    assert_allclose(model.predict(X)["y"], same.predict(X))
    assert_allclose(model.predict_proba(X).mean()["y"], same.predict_dist(X).mean())
    assert_allclose(
        model.predict_quantiles(X, [0.05, 0.95]), same.predict_quantiles(X, [0.05, 0.95])
    )
    assert_allclose(model.model_.predict_above(X, 1.0), same.predict_above(X, 1.0))


@pytest.fixture
def survival(data):
    """Return times, of which a third are censored, with skpro's C."""
    X, y = data
    times = np.maximum(y + 1.0, 0.0)
    return X, times, pd.DataFrame({"y": (np.arange(90) % 3 == 0).astype(int)}, index=y.index)


def test_censored_outcomes_are_passed_through(survival):
    """C is 0 for outcomes that were seen and 1 for right-censored ones."""
    X, y, C = survival
    options = {"calibrator": "pit", "support": (0, None), "ensemble": False}
    seen = regcal.Outcomes.right_censored(y["y"], observed=C["y"] == 0)
    same = regcal.CalibratedRegressorCV(BayesianRidge(), **options).fit(X, seen)

    model = CalibratedRegressor(BayesianRidge(), **options).fit(X, y, C)

    prediction, dist = model.predict_proba(X), same.predict_dist(X)
    assert_allclose(prediction.surv(pd.DataFrame(1.0, X.index, ["y"]))["y"], dist.sf(1.0))
    as_if_seen = CalibratedRegressor(BayesianRidge(), **options).fit(X, y).predict_proba(X)
    assert not np.allclose(as_if_seen.mean(), prediction.mean())
    with pytest.raises(ValueError, match=r"C must be 0.*got 2"):
        CalibratedRegressor(BayesianRidge()).fit(X, y, C + 1)


def test_models_of_survival_times_are_given_the_censoring(survival):
    """The model inside learns what it learns without us."""
    X, y, C = survival
    inner = FitUncensored(ResidualDouble(LinearRegression()))

    model = CalibratedRegressor(inner, "identity", ensemble=False, support=None).fit(X, y, C)

    assert_allclose(model.predict_proba(X).mean(), inner.fit(X, y, C).predict_proba(X).mean())


def test_point_masses_are_known_to_skpro():
    """A clipped distribution is mixed; its masses, CRPS and log loss are ours."""
    dist = regcal.Clipped(regcal.Normal(MEANS.ravel(), SPREADS.ravel()), low=0.0)
    prediction = PredictiveDistribution(dist, index=INDEX, columns=COLUMNS)
    y = np.array([0.0, 1.3, 0.0])
    frame = pd.DataFrame(y, INDEX, COLUMNS)

    assert prediction.get_tag("distr:measuretype") == "mixed"
    assert_allclose(
        prediction.pmf(frame)["y"], scipy.stats.norm.cdf(-MEANS / SPREADS).ravel() * (y == 0)
    )
    assert_allclose(np.exp(prediction.log_pmf(frame)), prediction.pmf(frame))
    assert_allclose(CRPS()(frame, prediction), regcal.crps(y, dist).mean(), rtol=1e-6)
    assert_allclose(LogLoss()(frame, prediction), -regcal.log_score(y, dist).mean(), rtol=1e-6)
    assert not PredictiveDistribution(dist.base).pmf(0.0).to_numpy().any()


def test_regressor_of_two_targets_is_refused(data):
    """One regressor has one target."""
    X, y = data

    with pytest.raises(Exception, match=r"(?i)column|multi|output|univariate"):
        CalibratedRegressor(BayesianRidge(), "scale").fit(X, y.assign(z=0.0))


@pytest.mark.filterwarnings("ignore")
def test_skpro_composes_it(data):
    """A search over a pipeline of skpro tunes the calibrator."""
    X, y = data
    pipeline = Pipeline(
        [("scale", StandardScaler()), ("model", CalibratedRegressor(BayesianRidge()))]
    )
    search = GridSearchCV(
        pipeline,
        KFold(2),
        {"model__calibrator": ["identity", "scale"]},
        scoring=CRPS(),
        backend="None",
    )

    assert search.fit(X, y).best_params_["model__calibrator"] in ("identity", "scale")
    assert search.predict_proba(X).shape == (90, 1)


# -------------------------------------------------------------------------------- coming from skpro

ONE = np.ones((3, 1))
CONTINUOUS = {
    "ChiSquared": {"dof": 3 * ONE + SPREADS},
    "Laplace": {"mu": MEANS, "scale": SPREADS},
    "LogNormal": {"mu": SPREADS, "sigma": 0.5 * ONE},
    "Logistic": {"mu": MEANS, "scale": SPREADS},
    "Normal": {"mu": MEANS, "sigma": SPREADS},
    "Pareto": {"scale": SPREADS, "alpha": 4 * ONE},
    "Rayleigh": {"scale": SPREADS},
    "TDistribution": {"mu": MEANS, "sigma": SPREADS, "df": 4 * ONE},
    "Uniform": {"lower": MEANS, "upper": MEANS + SPREADS},
    "Weibull": {"scale": SPREADS, "k": 1.5 * ONE},
    "Gamma": {"alpha": 2 * ONE, "beta": SPREADS},
    "Beta": {"alpha": 2 * ONE, "beta": SPREADS + 1},
    "TruncatedNormal": {"mu": MEANS, "sigma": SPREADS, "l_trunc": MEANS, "r_trunc": MEANS + 9},
    "QPD_Johnson": {"alpha": 0.2, "qv_low": MEANS, "qv_median": MEANS + 1, "qv_high": MEANS + 3},
    "QPD_S": {
        "alpha": 0.2,
        "qv_low": SPREADS,
        "qv_median": SPREADS + 1,
        "qv_high": SPREADS + 5,
        "lower": 0.0,
    },
}


def build(name, rows=slice(None)):
    """Return a one-column distribution of skpro."""
    parameters = {
        key: value[rows] if isinstance(value, np.ndarray) else value
        for key, value in CONTINUOUS[name].items()
    }
    return getattr(families, name)(**parameters, index=INDEX[rows], columns=COLUMNS)


def build_mixture():
    return families.Mixture([("one", build("Normal")), ("two", build("Laplace"))], [0.25, 0.75])


def build_histogram():
    bins = [[[0.0, 1.0, 2.0]], [[0.0, 0.5, 2.0, 3.0]], [[1.0, 4.0]]]
    masses = [[[0.25, 0.75]], [[0.45, 0.3, 0.25]], [[1.0]]]
    return families.Histogram(bins, masses, index=INDEX, columns=COLUMNS)


BUILDERS = {name: (lambda name=name: build(name)) for name in CONTINUOUS} | {
    "Mixture": build_mixture,
    "Histogram": build_histogram,
    "NormalMixture": lambda: families.NormalMixture(
        pi=np.tile([0.3, 0.7], (3, 1)),
        mu=np.add(MEANS, [0.0, 4.0]),
        sigma=SPREADS * [1.0, 2.0],
        index=INDEX,
        columns=COLUMNS,
    ),
    "IID": lambda: families.IID(families.Normal(1.0, 2.0), index=INDEX, columns=COLUMNS),
    "MeanScale": lambda: families.MeanScale(
        families.TDistribution(0 * ONE, ONE, df=5 * ONE),
        MEANS,
        SPREADS,
        index=INDEX,
        columns=COLUMNS,
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BUILDERS)
def test_families_come_in_as_they_are(name):
    """Probabilities, densities and quantiles are those of skpro, also far out."""
    theirs = BUILDERS[name]()
    dist = regcal.as_distribution(theirs)
    quantiles = dist.ppf(LEVELS)

    for k, level in enumerate(LEVELS[0]):
        points = quantiles[:, [k]]
        assert_allclose(theirs.cdf(points), np.full((3, 1), level), rtol=1e-7)
        assert_allclose(np.ravel(theirs.pdf(points)), dist.pdf(points)[:, 0], rtol=1e-6)


@pytest.mark.parametrize("name", ["Normal", "Laplace", "Logistic", "TDistribution", "Gamma"])
def test_tails_of_known_families_are_exact(name):
    """Outcomes 100 standard deviations out keep their log probability."""
    frozen = {
        "Normal": scipy.stats.norm(MEANS.ravel(), SPREADS.ravel()),
        "Laplace": scipy.stats.laplace(MEANS.ravel(), SPREADS.ravel()),
        "Logistic": scipy.stats.logistic(MEANS.ravel(), SPREADS.ravel()),
        "TDistribution": scipy.stats.t(4, MEANS.ravel(), SPREADS.ravel()),
        "Gamma": scipy.stats.gamma(2, scale=1 / SPREADS.ravel()),
    }[name]

    dist = regcal.as_distribution(build(name))

    assert_allclose(dist.logsf(200.0), frozen.logsf(200.0), rtol=1e-9)
    assert_allclose(dist.logpdf(200.0), frozen.logpdf(200.0), rtol=1e-9)


def test_rows_of_evaluated_families_can_be_taken():
    """Slicing commutes with evaluation."""
    dist = regcal.as_distribution(build("QPD_Johnson"))

    assert_allclose(dist[[2, 0]].ppf(LEVELS), dist.ppf(LEVELS)[[2, 0]])
    assert repr(dist) == "SkproDistribution(rows=3)"


def test_scalars_are_one_row():
    """A distribution without index is a batch of one."""
    for one in (
        families.Normal(1.0, 2.0),
        families.Gamma(2.0, 3.0),
        families.QPD_Johnson(0.2, 1, 2, 4),
    ):
        dist = regcal.as_distribution(one)
        assert len(dist) == 1
        assert_allclose(one.cdf(float(dist.ppf(0.3)[0])), 0.3)


def draws(weights=None):
    index = pd.MultiIndex.from_product([range(4), INDEX])
    spl = pd.DataFrame({"y": np.arange(12.0)}, index=index)
    weights = None if weights is None else pd.Series(np.repeat(weights, 3), index=index)
    return families.Empirical(spl, weights=weights, index=INDEX, columns=COLUMNS)


def test_draws_of_skpro_are_smoothed():
    """An empirical distribution becomes samples with its mean; weights count."""
    plain, weighted = draws(), draws([1.0, 1.0, 1.0, 5.0])

    assert_allclose(regcal.as_distribution(plain).mean(), plain.mean()["y"])
    assert_allclose(regcal.as_distribution(weighted).mean(), weighted.mean()["y"], rtol=1e-9)
    assert isinstance(regcal.as_distribution(weighted), regcal.Samples)


def test_quantiles_of_skpro_are_kept():
    """A distribution given by quantiles passes through them."""
    index = pd.MultiIndex.from_product([[0.9, 0.1, 0.5], INDEX])
    values = pd.DataFrame({"y": [8.0, 9.0, 9.5, 0.0, 1.0, 2.0, 4.0, 3.0, 5.0]}, index=index)

    dist = regcal.as_distribution(families.QPD_Empirical(values, index=INDEX, columns=COLUMNS))

    assert_allclose(
        dist.ppf([[0.1, 0.5, 0.9]]), [[0.0, 4.0, 8.0], [1.0, 3.0, 9.0], [2.0, 5.0, 9.5]]
    )


@pytest.mark.parametrize(
    "one",
    [
        families.Poisson(mu=[[1.0]], index=[0], columns=["y"]),
        families.Delta(c=1.0),
        families.ZeroInflated(0.3, families.Normal(0.0, 1.0)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_mass_on_single_points_is_refused(one):
    """The message names the family and the way out."""
    with pytest.raises(TypeError, match=rf"{type(one).__name__} puts mass.*matrix of draws"):
        regcal.as_distribution(one)


def test_several_columns_are_refused_with_the_way_out():
    """The message tells how to take a column, and that works."""
    two = families.Normal(np.zeros((3, 2)), 1.0)

    with pytest.raises(ValueError, match=r"2 columns.*iloc\[:, \[0\]\]"):
        regcal.as_distribution(two)
    assert len(regcal.as_distribution(two.iloc[:, [0]])) == 3
