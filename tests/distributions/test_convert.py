"""What models return becomes a distribution: one test per accepted kind.

Objects of optional packages are imitated with the attributes that the real ones have.
"""

from collections import UserDict

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

import regcal
from regcal.distributions import Distribution

LOC, SCALE = np.array([0.0, 1.0, -2.0]), np.array([1.0, 0.5, 2.0])
GRID = np.array([[-3.0, -0.5, 0.2, 1.5, 4.0]])


def assert_same(dist, frozen):
    """Check a distribution against scipy's, whose parameters are columns."""
    assert isinstance(dist, Distribution)
    assert_allclose(dist.cdf(GRID), frozen.cdf(GRID), rtol=1e-9, atol=1e-12)
    assert_allclose(dist.logpdf(GRID), frozen.logpdf(GRID), rtol=1e-6, atol=1e-9)


NORMAL = scipy.stats.norm(LOC[:, None], SCALE[:, None])
SHAPES = np.array([2.0, 3.0, 4.0])
GAMMA = scipy.stats.gamma(SHAPES[:, None], loc=LOC[:, None], scale=SCALE[:, None])


def test_a_distribution_is_returned_as_it_is():
    """Nothing is copied."""
    dist = regcal.Normal(LOC, SCALE)

    assert regcal.as_distribution(dist) is dist


@pytest.mark.parametrize("column", [False, True])
def test_mean_and_std(column):
    """A pair of columns, flat or not, is a normal distribution."""
    pair = (LOC[:, None], SCALE[:, None]) if column else (LOC, SCALE)

    assert_same(regcal.as_distribution(pair), NORMAL)


def test_edges_and_masses():
    """A pair with a matrix of masses is a histogram."""
    dist = regcal.as_distribution(([0.0, 1.0, 3.0], [[0.5, 0.5], [0.25, 0.75]]))

    assert_allclose(dist.cdf([[0.5, 2.0]]), [[0.25, 0.75], [0.125, 0.625]])


def test_matrix_of_quantiles():
    """A matrix with levels is read column by column."""
    levels = np.array([0.05, 0.5, 0.8])

    assert_same(regcal.as_distribution(NORMAL.ppf(levels), levels=levels), NORMAL)


@pytest.mark.parametrize("names", ["numbers", "strings", "pairs"])
def test_frame_with_level_columns(names):
    """Levels may be numbers, strings, or the last part of a multi-index as skpro has it."""
    pandas = pytest.importorskip("pandas")
    levels = [0.05, 0.5, 0.8]
    columns = {"numbers": levels, "strings": [str(level) for level in levels]}
    columns["pairs"] = pandas.MultiIndex.from_tuples([("y", level) for level in levels])
    frame = pandas.DataFrame(NORMAL.ppf(levels), columns=columns[names])

    assert_same(regcal.as_distribution(frame), NORMAL)


@pytest.mark.parametrize(
    "columns",
    [
        ["q05", "q50", "q975"],
        ["q5", "q50", "q97.5"],
        ["p05", "p50", "p975"],
        ["quantile_0.05", "quantile_0.5", "quantile_0.975"],
        ["5%", "50 %", "97.5%"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frame_with_columns_named_after_quantiles(columns, library):
    """Names as people write them are levels."""
    frame = pytest.importorskip(library).DataFrame(
        dict(zip(columns, NORMAL.ppf([0.05, 0.5, 0.975]).T, strict=True))
    )

    assert_same(regcal.as_distribution(frame), NORMAL)


@pytest.mark.parametrize("columns", [("mean", "std"), ("Mu", "Sigma"), ("loc", "scale")])
def test_frame_with_mean_and_std(columns):
    """Parameters of a normal distribution are known by name, in any order."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(dict(zip(columns, (LOC, SCALE), strict=True)))

    assert_same(regcal.as_distribution(frame), NORMAL)
    assert_same(regcal.as_distribution(frame[list(columns[::-1])]), NORMAL)


@pytest.mark.parametrize("columns", [["lower", "upper"], ["mean", "q05"], ["queue05", "queue10"]])
def test_frame_with_other_columns(columns):
    """What no rule knows is refused with the columns' names."""
    pandas = pytest.importorskip("pandas")

    with pytest.raises(TypeError, match=f"{columns[0]}.*neither levels"):
        regcal.as_distribution(pandas.DataFrame(np.ones((3, 2)), columns=columns))


def test_frame_with_many_columns():
    """A thousand names make no message of a thousand names."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.ones((2, 1000)), columns=[f"row {k}" for k in range(1000)])

    with pytest.raises(TypeError, match=r"'row 5', \.\.\. 1000 in all"):
        regcal.as_distribution(frame)


@pytest.mark.parametrize("names", ["numbers", "texts"])
def test_survival_curves_are_no_draws(names):
    """In a frame of lifelines a column is a prediction: taken for draws, rows would be times."""
    pandas = pytest.importorskip("pandas")
    times, rates = np.array([0.5, 1.0, 3.0]), np.array([0.2, 0.5, 1.0, 2.0])
    alive = np.exp(-times[:, np.newaxis] * rates)
    columns = range(4) if names == "numbers" else list("abcd")
    curves = pandas.DataFrame(alive, index=times, columns=columns)

    with pytest.raises(TypeError, match=r"from 0\.5 to 3, in each of its columns: survival curves"):
        regcal.as_distribution(curves)

    dist = regcal.Histogram(np.r_[0, times, np.inf], -np.diff(alive.T, prepend=1, append=0))
    assert_allclose(dist.sf(times[np.newaxis, :]), alive.T)


def test_frames_that_fall_along_plain_rows_are_draws():
    """Shares that fall from row to row, or that do not change, are predictions as others are."""
    pandas = pytest.importorskip("pandas")
    falling = pandas.DataFrame([[0.9, 0.8], [0.5, 0.4], [0.3, 0.1]])
    steady = pandas.DataFrame([[0.9, 0.8], [0.9, 0.8]], index=[3, 7])

    assert len(regcal.as_distribution(falling)) == 3
    assert len(regcal.as_distribution(steady)) == 2


def test_matrices_of_survival_curves_are_no_draws():
    """As scikit-survival returns them: each row falls from 1 towards 0."""
    times = np.linspace(0.5, 4.0, 8)
    alive = np.exp(-np.array([[0.2], [1.0]]) * times)

    with pytest.raises(TypeError, match=r"2 rows holds 8 probabilities that fall.*Histogram"):
        regcal.as_distribution(alive)

    assert len(regcal.as_distribution(np.sort(alive))) == 2
    assert len(regcal.as_distribution(alive[:, :7])) == 2  # so few may fall by chance


class StepFunction:
    """As much of scikit-survival's as is used."""

    domain = (0, None)


def test_functions_of_time_are_survival_curves():
    """The message says what becomes of them."""
    with pytest.raises(TypeError, match=r"2 functions of time: survival curves.*Histogram"):
        regcal.as_distribution([StepFunction(), StepFunction()])


class Labelled:
    """As much of xarray's DataArray as is used."""

    def __init__(self, values, dims, **coords):
        self.values, self.dims, self.coords = values, dims, coords

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)


class Variables(UserDict):
    """As much of xarray's Dataset as is used."""

    @property
    def data_vars(self):
        return self


class Groups:
    """As much of ArviZ's InferenceData as is used."""

    def __init__(self, **groups):
        vars(self).update(groups)


def test_draws_of_chains(rng):
    """Arrays of (chain, draw, row) and named dimensions in any order hold the same draws."""
    chains = rng.normal(np.array([0.0, 10.0, 20.0]), size=(4, 25, 3))
    wanted = regcal.Samples(chains.reshape(100, 3).T).cdf(GRID)
    named = Labelled(chains, ("chain", "draw", "obs_id"))
    turned = Labelled(np.moveaxis(chains, 2, 0), ("obs_id", "chain", "draw"))
    inference = Groups(posterior=None, posterior_predictive=Variables(y=named))

    for prediction in (chains, named, turned, Variables(y=turned), inference):
        assert_allclose(regcal.as_distribution(prediction).cdf(GRID), wanted)


def test_predictions_come_before_those_of_training_rows(rng):
    """ArviZ keeps what is said of new rows in a group of its own."""
    old, new = (Labelled(rng.normal(size=(50, n)), ("sample", "row")) for n in (3, 2))
    groups = Groups(posterior_predictive=Variables(y=old), predictions=Variables(y=new))

    assert len(regcal.as_distribution(groups)) == 2


def test_quantiles_with_a_named_dimension():
    """What xarray's `quantile` returns has the levels as a coordinate."""
    levels = [0.05, 0.5, 0.8]
    array = Labelled(NORMAL.ppf(levels).T, ("quantile", "row"), quantile=levels)

    assert_same(regcal.as_distribution(array), NORMAL)


@pytest.mark.parametrize(
    ("prediction", "message"),
    [
        (Variables(y=None, z=None), "2 variables, .*'y', 'z'"),
        (Labelled(np.ones((2, 3)), ("time", "place")), "'time', 'place'.*Select or stack"),
        (Labelled(np.ones((2, 3, 4)), ("draw", "time", "place")), "Select or stack"),
    ],
)
def test_named_dimensions_that_say_nothing(prediction, message):
    """The message names what there is."""
    with pytest.raises(TypeError, match=message):
        regcal.as_distribution(prediction)


def test_draws(rng):
    """A matrix without levels, or a frame without names, holds draws."""
    pandas = pytest.importorskip("pandas")
    draws = rng.normal(size=(3, 50))

    for prediction in (draws, draws.tolist(), pandas.DataFrame(draws)):
        assert_allclose(regcal.as_distribution(prediction).mean(), draws.mean(axis=1))


def test_frozen_scipy_distributions():
    """A frozen family keeps its parameters; the normal one becomes a Normal."""
    gamma = scipy.stats.gamma([2.0, 3.0, 4.0], loc=LOC, scale=SCALE)
    rows = scipy.stats.gamma(
        np.array([[2.0], [3.0], [4.0]]), loc=LOC[:, None], scale=SCALE[:, None]
    )

    assert_same(regcal.as_distribution(gamma), rows)
    assert type(regcal.as_distribution(scipy.stats.norm(LOC, SCALE))) is regcal.Normal
    assert len(regcal.as_distribution(scipy.stats.t(5))) == 1


def test_list_of_frozen_distributions():
    """A list of one family becomes a batch of it, one of several keeps each; normals are normal."""
    gammas = [
        scipy.stats.gamma(a, loc=m, scale=s) for a, m, s in zip(SHAPES, LOC, SCALE, strict=True)
    ]
    mixed = [scipy.stats.norm(0.0, 1.0), scipy.stats.t(3, 1.0, 0.5)]

    assert_same(regcal.as_distribution(gammas), GAMMA)
    assert type(regcal.as_distribution(gammas)) is regcal.ScipyDistribution
    normals = [scipy.stats.norm(m, s) for m, s in zip(LOC, SCALE, strict=True)]
    assert type(regcal.as_distribution(normals)) is regcal.Normal
    for k, one in enumerate(mixed):
        assert_allclose(regcal.as_distribution(mixed)[k].cdf(GRID)[0], one.cdf(GRID[0]))
    objects = np.array(gammas, dtype=object)
    assert_same(regcal.as_distribution(objects), GAMMA)
    assert_same(regcal.as_distribution(pytest.importorskip("pandas").Series(objects)), GAMMA)


def test_counts_of_scipy_are_refused_with_a_way_out(rng):
    """The way that the message names leads to a distribution of as many rows."""
    frozen = scipy.stats.poisson([1.0, 20.0])

    with pytest.raises(TypeError, match=r"rv_discrete_frozen.*rvs\(\(1000, n_rows\)\)\.T"):
        regcal.as_distribution(frozen)
    draws = regcal.Samples(frozen.rvs((1000, 2), random_state=rng).T)
    assert_allclose(draws.mean(), [1.0, 20.0], rtol=0.1)


def test_list_of_histograms_of_scipy(rng):
    """They need no freezing."""
    parts = [scipy.stats.rv_histogram(np.histogram(rng.normal(size=50))) for _ in range(3)]

    wanted = [part.cdf(GRID[0]) for part in parts]
    assert_allclose(regcal.as_distribution(parts).cdf(GRID), wanted)


@pytest.mark.skipif(not hasattr(scipy.stats, "Normal"), reason="scipy's new distributions are new")
def test_new_distributions_of_scipy():
    """Rows of scipy's new objects, shifted and scaled ones included, are told apart."""
    Gamma = scipy.stats.make_distribution(scipy.stats.gamma)
    normal = regcal.as_distribution(scipy.stats.Normal(mu=LOC, sigma=SCALE))
    gamma = regcal.as_distribution(SCALE * Gamma(a=SHAPES) + LOC)
    reverse = regcal.as_distribution(-1.0 * Gamma(a=SHAPES))

    assert type(normal) is regcal.Normal
    assert_same(normal, NORMAL)
    assert_same(gamma, GAMMA)
    assert_allclose(gamma[[2, 0]].ppf(0.3), GAMMA.ppf(0.3)[[2, 0], 0])
    assert_allclose(reverse.cdf(-2.0), scipy.stats.gamma(SHAPES).sf(2.0))
    uniform = regcal.as_distribution(scipy.stats.Uniform(a=LOC, b=LOC + SCALE))
    assert_allclose(uniform.cdf(GRID), scipy.stats.uniform(LOC[:, None], SCALE[:, None]).cdf(GRID))
    assert len(regcal.as_distribution([Gamma(a=2.0), Gamma(a=3.0)])) == 2
    with pytest.raises(TypeError, match="cannot be told apart"):
        regcal.as_distribution(scipy.stats.exp(scipy.stats.Normal(mu=LOC, sigma=SCALE)))


class NgboostLike:
    """NGBoost's predictions hold a frozen scipy distribution, and pass its attributes on."""

    def __init__(self, dist):
        self.dist = dist

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dist, name)


def test_ngboost():
    """NGBoost's normal and log-normal predictions are unwrapped."""
    log_normal = scipy.stats.lognorm(s=SCALE, scale=np.exp(LOC))
    rows = scipy.stats.lognorm(s=SCALE[:, None], scale=np.exp(LOC[:, None]))

    assert_same(regcal.as_distribution(NgboostLike(scipy.stats.norm(loc=LOC, scale=SCALE))), NORMAL)
    assert_same(regcal.as_distribution(NgboostLike(log_normal)), rows)


class Tensor:
    """As much of torch's tensor as is used."""

    def __init__(self, values):
        self.values = np.asarray(values, dtype=np.float32)

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values


def torch_like(name, **attributes):
    """Return an object that looks like torch's distribution of that name."""

    class Base:
        batch_shape = ()

        def log_prob(self, value):
            pytest.fail("the conversion reads parameters; it evaluates nothing of torch")

    kind = type(name, (Base,), {})
    one = kind()
    one.arg_constraints = dict.fromkeys(attributes)
    for key, value in attributes.items():
        setattr(one, key, Tensor(value) if isinstance(value, np.ndarray) else value)
    return one


COLUMN, WIDTH = LOC[:, None], SCALE[:, None]


TORCH = {
    "Normal": ({"loc": LOC, "scale": SCALE}, NORMAL),
    "Laplace": ({"loc": LOC, "scale": SCALE}, scipy.stats.laplace(COLUMN, WIDTH)),
    "Cauchy": ({"loc": LOC, "scale": SCALE}, scipy.stats.cauchy(COLUMN, WIDTH)),
    "Gumbel": ({"loc": LOC, "scale": SCALE}, scipy.stats.gumbel_r(COLUMN, WIDTH)),
    "LogNormal": ({"loc": LOC, "scale": SCALE}, scipy.stats.lognorm(WIDTH, scale=np.exp(COLUMN))),
    "StudentT": (
        {"df": np.full(3, 4.0), "loc": LOC, "scale": SCALE},
        scipy.stats.t(4.0, COLUMN, WIDTH),
    ),
    "Gamma": (
        {"concentration": np.full(3, 2.0), "rate": SCALE},
        scipy.stats.gamma(2.0, scale=1 / WIDTH),
    ),
    "Exponential": ({"rate": SCALE}, scipy.stats.expon(scale=1 / WIDTH)),
    "Weibull": (
        {"scale": SCALE, "concentration": np.full(3, 1.5)},
        scipy.stats.weibull_min(1.5, scale=WIDTH),
    ),
    "Beta": (
        {"concentration1": np.full(3, 2.0), "concentration0": SCALE + 1},
        scipy.stats.beta(2.0, WIDTH + 1),
    ),
    "Uniform": ({"low": LOC, "high": LOC + SCALE}, scipy.stats.uniform(COLUMN, WIDTH)),
    "HalfNormal": ({"scale": SCALE}, scipy.stats.halfnorm(scale=WIDTH)),
}


@pytest.mark.parametrize("name", TORCH)
def test_torch_families(name):
    """Each known family has scipy's parameters, also when it is wrapped as independent."""
    attributes, frozen = TORCH[name]
    prediction = torch_like(name, **attributes)

    assert_same(regcal.as_distribution(prediction), frozen)
    assert_same(regcal.as_distribution(torch_like("Independent", base_dist=prediction)), frozen)


def test_torch_mixture():
    """A mixture density network's output becomes a mixture with weights per row."""
    weights = np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])
    means = np.stack([LOC, LOC + 3], axis=1)
    parts = torch_like("Normal", loc=means, scale=np.ones((3, 2)))
    mixture = torch_like(
        "MixtureSameFamily",
        mixture_distribution=torch_like("Categorical", probs=weights),
        component_distribution=parts,
    )
    wanted = sum(
        weights[:, k : k + 1] * scipy.stats.norm.cdf(GRID, means[:, k : k + 1]) for k in range(2)
    )

    for prediction in (mixture, torch_like("Independent", base_dist=mixture)):
        assert_allclose(regcal.as_distribution(prediction).cdf(GRID), wanted, atol=1e-12)


def test_tensors():
    """Tensors are arrays, as parts of a pair too."""
    assert_same(regcal.as_distribution((Tensor(LOC), Tensor(SCALE))), NORMAL)
    quantiles = Tensor(NORMAL.ppf([0.05, 0.5, 0.8]))
    assert_allclose(regcal.as_distribution(quantiles, levels=[0.05, 0.5, 0.8]).median(), LOC)


def test_bars_of_tabpfn():
    """Masses are those of the bars; of an outermost one with a tail, half is beyond its border."""
    borders, logits = np.array([-1.0, 0.0, 2.0]), np.log([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]])
    plain, full = (
        type(name, (), {"borders": Tensor(borders)})()
        for name in ("BarDistribution", "FullSupportBarDistribution")
    )
    below = np.array([0.25, 0.5, 0.75])

    inside = regcal.as_distribution({"criterion": plain, "logits": Tensor(logits), "mean": LOC})
    tailed = regcal.as_distribution({"criterion": full, "logits": Tensor(logits), "mean": LOC})

    for dist, beyond in ((inside, 0.0), (tailed, 0.5)):
        assert_allclose(dist.cdf(-1.0), beyond * below, atol=1e-12)
        assert_allclose(dist.cdf(0.0), below, rtol=1e-6)
        assert_allclose(dist.sf(2.0), beyond * (1 - below), rtol=1e-6)


def test_unknown_torch_family_is_refused():
    """The message lists what is known and a way that always works."""
    with pytest.raises(TypeError, match=r"(?s)VonMises.*Normal.*matrix of draws"):
        regcal.as_distribution(torch_like("VonMises", loc=LOC))


class SkproLike:
    """A one-column skpro distribution around a frozen scipy family."""

    def __init__(self, family, mu, sigma):
        self.family, self.mu, self.sigma = family, mu, sigma
        self.index, self.columns = range(len(mu)), ["y"]

    @property
    def iloc(self):
        parent = self

        class Indexer:
            def __getitem__(self, key):
                rows, _ = key
                mu, sigma = (np.broadcast_to(a, parent.mu.shape)[rows] for a in parent.parameters)
                return type(parent)(parent.family, mu, sigma)

        return Indexer()

    @property
    def parameters(self):
        return self.mu, self.sigma

    def log_pdf(self, x):
        return self._frame(self.family(self.mu, self.sigma).logpdf(x))

    def pdf(self, x):
        return self._frame(self.family(self.mu, self.sigma).pdf(x))

    def cdf(self, x):
        return self._frame(self.family(self.mu, self.sigma).cdf(x))

    def _frame(self, values):
        assert np.isfinite(values).all(), "some families of skpro are NaN at infinity"
        assert values.shape == (len(self.mu), 1)
        return pytest.importorskip("pandas").DataFrame(values)


def test_skpro():
    """The Normal of skpro is recognised by its parameters, unknown families are evaluated."""
    normal = type("Normal", (SkproLike,), {})(scipy.stats.norm, COLUMN, 1.0)
    laplace = type("Unknown", (SkproLike,), {})(scipy.stats.laplace, COLUMN, WIDTH)

    assert_same(regcal.as_distribution(normal), scipy.stats.norm(COLUMN, 1.0))
    dist = regcal.as_distribution(laplace)
    assert_same(dist, scipy.stats.laplace(COLUMN, WIDTH))
    assert_allclose(dist[[2, 0]].cdf(GRID), dist.cdf(GRID)[[2, 0]])
    assert_allclose(dist.logsf(60.0), scipy.stats.laplace(LOC, SCALE).logsf(60.0), rtol=1e-9)


def test_calibrators_and_metrics_take_every_kind():
    """What can be converted can be passed on as it is."""
    y = [0.1, 1.2, -1.0]

    cal = regcal.get_calibrator("e-beta", thresholds=4).fit((LOC, SCALE), y)
    assert isinstance(cal.transform((LOC, SCALE)), Distribution)
    assert_allclose(regcal.log_score(y, (LOC, SCALE)), scipy.stats.norm(LOC, SCALE).logpdf(y))
