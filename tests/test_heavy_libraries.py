"""What torch, xarray, ArviZ and TabPFN themselves return is understood.

They are heavy, so that these tests are skipped where they are not installed:
``pip install '.[heavy]'``. `distributions/test_convert.py` imitates their objects.
"""

import numpy as np
import pytest
import scipy.special
from numpy.testing import assert_allclose

import regcal

LEVELS = np.array([[0.05, 0.5, 0.95]])
POINTS = np.array([0.4, 0.9, 1.7])


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


FAMILIES = {
    "Normal": ("loc", "scale"),
    "Laplace": ("loc", "scale"),
    "Cauchy": ("loc", "scale"),
    "Gumbel": ("loc", "scale"),
    "StudentT": ("df", "loc", "scale"),
    "LogNormal": ("loc", "scale"),
    "Gamma": ("concentration", "rate"),
    "Exponential": ("rate",),
    "Weibull": ("scale", "concentration"),
    "HalfNormal": ("scale",),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_torch_families(torch, name):
    """Densities agree with torch's own, also for parameters that are being learnt."""
    values = {"loc": [0.1, 0.2, 0.3], "df": [3.0, 4.0, 5.0]}
    parameters = {
        key: torch.tensor(values.get(key, [0.7, 1.1, 1.9]), dtype=torch.float64, requires_grad=True)
        for key in FAMILIES[name]
    }
    family = getattr(torch.distributions, name)(**parameters)
    wanted = family.log_prob(torch.tensor(POINTS)).detach().numpy()

    assert_allclose(regcal.as_distribution(family).logpdf(POINTS), wanted, rtol=1e-6)
    alone = torch.distributions.Independent(family, 1)
    assert_allclose(regcal.as_distribution(alone).logpdf(POINTS), wanted, rtol=1e-6)


def test_torch_mixture_density_network(torch):
    """Weights and parts of a mixture belong to rows."""
    weights = torch.tensor([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]], dtype=torch.float64)
    parts = torch.distributions.Normal(
        torch.tensor([[0.0, 2.0], [1.0, 3.0], [-1.0, 0.0]], dtype=torch.float64),
        torch.ones(3, 2, dtype=torch.float64),
    )
    mixture = torch.distributions.MixtureSameFamily(torch.distributions.Categorical(weights), parts)

    wanted = mixture.log_prob(torch.tensor(POINTS)).numpy()
    assert_allclose(regcal.as_distribution(mixture).logpdf(POINTS), wanted, rtol=1e-9)


def test_tensors_are_arrays(torch):
    """Mean and spread, quantiles and draws may be tensors, also while they are being learnt."""
    mean, std = torch.tensor([0.0, 1.0], requires_grad=True), torch.tensor([1.0, 2.0])
    draws = torch.arange(20.0).reshape(2, 10)

    assert_allclose(regcal.as_distribution((mean, std)).mean(), [0.0, 1.0])
    assert_allclose(regcal.as_distribution(draws).mean(), [4.5, 14.5])
    quantiles = regcal.as_distribution(draws[:, ::4], levels=[0.1, 0.5, 0.9])
    assert_allclose(quantiles.median(), [4.0, 14.0])


@pytest.mark.filterwarnings("ignore")
def test_arviz():
    """Draws of InferenceData are those of its outcome, whatever the order of dimensions."""
    arviz = pytest.importorskip("arviz")
    draws = np.random.default_rng(0).normal(np.arange(5.0), size=(4, 50, 5))
    data = arviz.from_dict(posterior_predictive={"y": draws})
    wanted = regcal.Samples(draws.reshape(-1, 5).T).ppf(LEVELS)

    for prediction in (
        data,
        data.posterior_predictive,
        data.posterior_predictive["y"],
        data.posterior_predictive["y"].transpose(),
        arviz.extract(data, group="posterior_predictive")["y"],
    ):
        assert_allclose(np.sort(regcal.as_distribution(prediction).ppf(LEVELS)), wanted)


def test_quantiles_of_xarray():
    """`DataArray.quantile` tells the levels."""
    xarray = pytest.importorskip("xarray")
    draws = np.random.default_rng(0).normal(np.arange(5.0), size=(200, 5))
    array = xarray.DataArray(draws, dims=("draw", "row")).quantile(LEVELS[0], dim="draw")

    assert_allclose(regcal.as_distribution(array).ppf(LEVELS), array.values.T)


def test_bars_of_tabpfn(torch):
    """Probabilities at the borders are TabPFN's own; of an outermost bar, half is beyond."""
    bars = pytest.importorskip("tabpfn.architectures.shared.bar_distribution")
    borders = torch.tensor([-2.0, -1.0, 0.0, 0.5, 3.0], dtype=torch.float64)
    logits = torch.tensor([[0.0, 1.0, 2.0, 0.5], [1.0, 0.0, 0.0, 1.0]], dtype=torch.float64)
    criterion = bars.FullSupportBarDistribution(borders)
    wanted = criterion.cdf(logits, borders.repeat(2, 1)).numpy()

    dist = regcal.as_distribution({"criterion": criterion, "logits": logits, "mean": None})

    assert_allclose(dist.cdf(borders.numpy()[np.newaxis, :]), wanted, atol=1e-6)
    inside = regcal.as_distribution({"criterion": bars.BarDistribution(borders), "logits": logits})
    assert_allclose(inside.cdf([[-2.0, 3.0]]), [[0.0, 1.0]] * 2)
    assert_allclose(
        inside.mean(), scipy.special.softmax(logits.numpy(), 1) @ [-1.5, -0.5, 0.25, 1.75]
    )
