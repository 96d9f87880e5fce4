"""Loaders return the published values, and the toy knows its own distribution."""

import hashlib
import re
import sys
from importlib.resources import files
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import kstest, norm

from regcal import datasets
from regcal.datasets import Dataset, ToyMixture, _boston

DATA = files("regcal.datasets") / "data"

# Loader, shape of X, first feature row, first target: read off the published files.
PUBLISHED = [
    ("airfoil", (1503, 5), [800, 0, 0.3048, 71.3, 0.00266337], 126.201),
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


@pytest.fixture(params=[row[0] for row in PUBLISHED] + ["toy_mixture"])
def dataset(request) -> Dataset:
    if request.param == "toy_mixture":
        return datasets.make_toy_mixture(50, random_state=0)
    return load(request.param)


# Laws over every data set


def test_parts_of_a_dataset_fit_together(dataset):
    """Shapes, names and units describe the same columns."""
    columns = {*dataset.feature_names, dataset.target_name}

    assert dataset.X.shape == (len(dataset), len(dataset.feature_names))
    assert dataset.y.shape == (len(dataset),)
    assert len(columns) == dataset.X.shape[1] + 1
    assert set(dataset.units) <= columns
    assert dataset.description
    assert dataset.citation


def test_values_are_finite_floats(dataset):
    """Nothing is missing, and both arrays hold doubles."""
    assert dataset.X.dtype == dataset.y.dtype == np.float64
    assert np.isfinite(dataset.X).all()
    assert np.isfinite(dataset.y).all()


def test_frame_holds_features_then_target(dataset):
    """The pandas view has the same values, the target last."""
    frame = dataset.as_frame()

    assert list(frame) == [*dataset.feature_names, dataset.target_name]
    assert_array_equal(frame.to_numpy(), np.column_stack([dataset.X, dataset.y]))


def test_changing_a_frame_leaves_the_dataset_alone():
    """A frame is a copy."""
    data = datasets.make_toy_mixture(5, random_state=0)
    before = data.X.copy()

    frame = data.as_frame()
    frame.iloc[:, :] = 99.0

    assert_array_equal(data.X, before)


def test_frame_without_pandas_says_what_to_install(monkeypatch):
    """A missing optional package is named together with the remedy."""
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(ImportError, match="pip install"):
        datasets.make_toy_mixture(5, random_state=0).as_frame()


# Real data


@pytest.mark.parametrize(("name", "shape", "first_x", "first_y"), PUBLISHED)
def test_first_row_is_the_published_one(name, shape, first_x, first_y):
    """Every loader keeps the original order and values."""
    data = load(name)

    assert data.X.shape == shape
    assert_array_equal(data.X[0], first_x)
    assert data.y[0] == first_y


def test_shipped_files_have_their_checksums():
    """The files are those that the data README describes, byte for byte."""
    rows = re.findall(r"^\| `(\w+\.csv)` .* `(\w{64})` \|$", (DATA / "README.md").read_text(), re.M)
    shipped = {path.name: path for path in DATA.iterdir() if path.name.endswith(".csv")}

    assert dict(rows).keys() == shipped.keys()
    for name, checksum in rows:
        assert hashlib.sha256(shipped[name].read_bytes()).hexdigest() == checksum, name


def test_forest_fires_count_months_and_days_from_one():
    """The counts are those of the names in the file, in calendar order."""
    data = datasets.load_forest_fires()
    month, day = data.X[:, 2], data.X[:, 3]

    assert np.bincount(month.astype(int)).tolist() == [
        *(0, 2, 20, 54, 9, 2, 17),
        *(32, 184, 172, 15, 1, 9),
    ]
    assert np.bincount(day.astype(int)).tolist() == [0, 74, 64, 54, 61, 85, 84, 95]


def test_known_repetitions_are_kept():
    """No row of the originals was dropped as a duplicate."""
    for name, repeated in [("concrete", 25), ("forest_fires", 4)]:
        data = load(name)
        rows = np.column_stack([data.X, data.y])

        assert len(rows) - len(np.unique(rows, axis=0)) == repeated


# Boston, which is not shipped


@pytest.fixture
def values(rng):
    """Return made-up values of the right shape."""
    return rng.normal(size=(506, 13)), rng.normal(size=506)


@pytest.fixture
def no_sources(monkeypatch):
    """Make mlxtend missing and OpenML unreachable."""

    def unreachable(**kwargs):
        raise OSError("no network")

    monkeypatch.setitem(sys.modules, "mlxtend", None)
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", unreachable)


@pytest.fixture
def fake_mlxtend(monkeypatch, no_sources, values):
    module = ModuleType("mlxtend.data")
    module.boston_housing_data = lambda: values
    monkeypatch.setitem(sys.modules, "mlxtend", ModuleType("mlxtend"))
    monkeypatch.setitem(sys.modules, "mlxtend.data", module)


@pytest.fixture
def accept(monkeypatch, values):
    """Let the made-up values pass for the original ones."""
    monkeypatch.setattr(_boston, "_SHA256", _boston._checksum(*values))


def test_boston_comes_from_mlxtend(fake_mlxtend, accept, values):
    """An installed mlxtend is the first source."""
    with pytest.warns(UserWarning, match="ethical"):
        data = datasets.load_boston()

    assert_array_equal(data.X, values[0])
    assert_array_equal(data.y, values[1])
    assert data.feature_names[-2:] == ("B", "LSTAT")
    assert set(data.units) <= {*data.feature_names, data.target_name}


def test_boston_comes_from_openml_without_mlxtend(monkeypatch, no_sources, values):
    """OpenML is the second source; its categories become the numbers they name."""
    X, y = values
    X[:, 8] = np.where(X[:, 8] > 0, 24, 4)
    frame = pd.DataFrame(X)
    frame[8] = frame[8].astype(int).astype(str).astype("category")
    bunch = SimpleNamespace(data=frame, target=pd.Series(y))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **kwargs: bunch)
    monkeypatch.setattr(_boston, "_SHA256", _boston._checksum(X, y))

    with pytest.warns(UserWarning, match="ethical"):
        data = datasets.load_boston()

    assert_array_equal(data.X, X)


def test_boston_warns_once_at_every_call(fake_mlxtend, accept):
    """The warning is not lost after the first call."""
    for _ in range(2):
        with pytest.warns(UserWarning) as caught:
            datasets.load_boston()

        assert len(caught) == 1
        assert caught[0].filename == __file__


def test_boston_without_a_source_says_how_to_get_it(no_sources):
    """The error names both sources and what to install."""
    with (
        pytest.warns(UserWarning, match="ethical"),
        pytest.raises(OSError, match=r"no network.*pip install mlxtend"),
    ):
        datasets.load_boston()


def test_boston_refuses_other_values(fake_mlxtend):
    """Values that are not the original ones are not returned."""
    with (
        pytest.warns(UserWarning, match="ethical"),
        pytest.raises(ValueError, match="checksum"),
    ):
        datasets.load_boston()


def test_checksum_sees_a_single_changed_value(values):
    """One cell is enough to change the checksum; the memory layout is not."""
    X, y = values
    before = _boston._checksum(X, y)

    assert _boston._checksum(np.asfortranarray(X), y) == before

    X[445, 0] += 1e-4

    assert _boston._checksum(X, y) != before


# The toy

INPUTS = np.array([-1.0, -0.5, -0.2, 0.3, 1.0])


@pytest.mark.parametrize("x", INPUTS)
@pytest.mark.parametrize("t", [-0.8, -0.5, 0.0, 0.25, 1.3])
def test_toy_density_integrates_to_its_cdf(x, t):
    """The area under the density up to t is the CDF at t."""
    toy = ToyMixture()
    centres = sorted({x, toy.flat} - {t})
    points = [centre for centre in centres if -3.0 < centre < t]

    area, _ = quad(lambda s: float(toy.pdf(x, s)), -3.0, t, points=points or None, epsabs=1e-11)

    assert_allclose(area, toy.cdf(x, t), atol=1e-9)


@given(x=st.floats(-1, 1), t=st.floats(-2, 2))
def test_toy_density_is_the_slope_of_the_cdf(x, t):
    """A central difference of the CDF gives the density."""
    toy, step = ToyMixture(noise=0.3, flat=0.2), 1e-5

    slope = (toy.cdf(x, t + step) - toy.cdf(x, t - step)) / (2 * step)

    assert_allclose(slope, toy.pdf(x, t), rtol=1e-5, atol=1e-8)


def test_toy_matches_scipy_normals():
    """The mixture is half of each of two normals."""
    toy = ToyMixture(noise=0.2, flat=0.1)
    x, t = INPUTS[:, np.newaxis], np.linspace(-2, 2, 9)
    parts = norm(x, 0.2), norm(0.1, 0.2)

    assert_allclose(toy.pdf(x, t), sum(part.pdf(t) for part in parts) / 2)
    assert_allclose(toy.cdf(x, t), sum(part.cdf(t) for part in parts) / 2)
    assert_allclose(toy.sf(x, t), sum(part.sf(t) for part in parts) / 2)


def test_toy_tails_follow_the_nearest_normal():
    """Forty deviations out, the nearer component alone counts, by half."""
    toy = ToyMixture()
    x, right, left = 0.9, 0.9 + 4.0, -0.5 - 4.0

    assert_allclose(toy.logpdf(x, right), norm.logpdf(right, 0.9, 0.1) - np.log(2))
    assert_allclose(toy.logpdf(x, left), norm.logpdf(left, -0.5, 0.1) - np.log(2))
    assert_allclose(toy.logsf(x, right), norm.logsf(right, 0.9, 0.1) - np.log(2))
    assert_allclose(toy.logcdf(x, left), norm.logcdf(left, -0.5, 0.1) - np.log(2))


def test_toy_logs_agree_with_plain_values():
    """In the middle, logarithms and plain values say the same."""
    toy, t = ToyMixture(), np.linspace(-1, 1, 21)
    x = INPUTS[:, np.newaxis]

    assert_allclose(np.exp(toy.logcdf(x, t)), toy.cdf(x, t))
    assert_allclose(np.exp(toy.logsf(x, t)), toy.sf(x, t))
    assert_allclose(toy.cdf(x, t) + toy.sf(x, t), 1.0)


def test_toy_reaches_its_limits():
    """At infinity the CDF is 0 or 1 and the density is 0."""
    toy, ends = ToyMixture(), [-np.inf, np.inf]

    assert_array_equal(toy.cdf(0.3, ends), [0, 1])
    assert_array_equal(toy.sf(0.3, ends), [1, 0])
    assert_array_equal(toy.logpdf(0.3, ends), [-np.inf, -np.inf])


def test_toy_sample_follows_its_cdf(rng):
    """Under the truth, the CDF at the outcomes is uniform."""
    toy = ToyMixture()
    data = toy.sample(5000, rng)

    assert kstest(toy.cdf(data.X[:, 0], data.y), "uniform").pvalue > 1e-4
    assert kstest(data.X[:, 0], "uniform", args=(-1, 2)).pvalue > 1e-4


@pytest.mark.parametrize("x_range", [(-1.0, -0.6), (-0.2, 0.2), (0.6, 1.0)])
def test_toy_sample_frequencies_match_the_cdf(rng, x_range):
    """In a band of inputs, the share below t is the mean CDF there."""
    toy = ToyMixture()
    data = toy.sample(40_000, rng)
    band = (data.X[:, 0] >= x_range[0]) & (data.X[:, 0] < x_range[1])
    t = np.linspace(-1, 1, 9)

    share = (data.y[band, np.newaxis] <= t).mean(axis=0)

    noise = 5 * 0.5 / np.sqrt(band.sum())  # five standard errors of a frequency
    assert_allclose(share, toy.cdf(data.X[band], t).mean(axis=0), atol=noise)


def test_toy_sample_repeats_with_its_seed():
    """Equal seeds give equal rows; other seeds, other rows."""
    first, again, other = (datasets.make_toy_mixture(20, seed) for seed in (1, 1, 2))

    assert_array_equal(first.y, again.y)
    assert (first.y != other.y).any()


def test_toy_sample_takes_every_kind_of_random_state():
    """Generators and RandomStates are used and advanced, as in scikit-learn."""
    for make in (np.random.default_rng, np.random.RandomState):
        state = make(3)
        first, second = ToyMixture().sample(20, state), ToyMixture().sample(20, state)

        assert (first.y != second.y).any()
        assert_array_equal(first.y, ToyMixture().sample(20, make(3)).y)


@pytest.mark.parametrize("noise", [0.0, -0.1, np.nan])
def test_toy_refuses_a_noise_that_is_not_positive(noise):
    """The error shows the value and the rule."""
    with pytest.raises(ValueError, match=r"noise=.*positive"):
        ToyMixture(noise=noise)
