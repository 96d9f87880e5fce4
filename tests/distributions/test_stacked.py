"""Batches put below each other, and joined in one."""

import cases
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rows import bases

import regcal
from regcal import Normal, concatenate
from regcal.distributions import Stacked
from regcal.distributions.stacked import joined

JOINABLE = ["normal", "gamma", "quantiles", "samples", "histogram", "gapped histogram", "mixture"]


@pytest.mark.parametrize("case", [cases.BY_NAME[name] for name in JOINABLE], ids=JOINABLE)
def test_joined_batches_are_of_their_own_class(case):
    """Batches of one class become one, with all rows in order."""
    parts = [case.make(seed) for seed in (0, 0, 1)]
    parts[1] = parts[1][[2, 0]]
    if case.name in ("quantiles", "samples"):
        parts[2] = case.make(0)[1:]

    whole = joined(parts)

    if whole is None:  # bins of another number or place
        whole = joined(parts[:2])
        parts = parts[:2]
    assert type(whole) is type(parts[0])
    stacked = Stacked(parts)
    t = np.linspace(-1.0, 3.0, 5)[np.newaxis, :]
    assert_array_equal(whole.cdf(t), stacked.cdf(t))
    assert_array_equal(whole.ppf(0.3), stacked.ppf(0.3))


def test_different_classes_are_not_joined():
    """Classes, levels and families must agree."""
    normal, one = regcal.Normal([0.0], [1.0]), regcal.Quantiles([0.2, 0.8], [[0.0, 1.0]])

    assert joined([normal, one]) is None
    assert joined([one, regcal.Quantiles([0.1, 0.8], [[0.0, 1.0]])]) is None
    assert joined([regcal.Samples([[0.0, 1.0]]), regcal.Samples([[0.0, 1.0, 2.0]])]) is None


def test_concatenated_rows_answer_as_before(rng):
    """Each row gives what its own batch gives, in every method."""
    parts = list(bases(rng, 5).values())
    dist = concatenate(parts)
    points = np.array([[0.3, 1.1]])

    for method in ("cdf", "sf", "logcdf", "logsf", "pdf", "logpdf", "probit", "logslope"):
        expected = np.concatenate([getattr(part, method)(points) for part in parts])
        assert_allclose(getattr(dist, method)(points), expected, err_msg=method)
    assert_allclose(dist.mean(), np.concatenate([part.mean() for part in parts]))
    assert_allclose(dist.ppf(0.2), np.concatenate([part.ppf(0.2) for part in parts]))
    y = np.linspace(0.5, 2, len(dist))
    expected = np.concatenate([p.crps(v) for p, v in zip(parts, np.split(y, 4), strict=True)])
    assert_allclose(dist.crps(y), expected)


def test_concatenated_rows_can_be_reordered(rng):
    """Rows of different batches can be mixed by indexing."""
    dist = concatenate([Normal([0.0, 1.0], 1.0), Normal([10.0, 11.0, 12.0], 2.0)])

    assert_allclose(dist[[4, 0, 2]].mean(), [12.0, 0.0, 10.0])
    assert_allclose(dist[[4, 0, 2]][1:].cdf([1.0, 10.0]), [Normal(0.0, 1.0).cdf(1.0)[0], 0.5])


def test_nothing_to_concatenate_is_an_error():
    """An empty list has no rows to speak of."""
    with pytest.raises(ValueError, match="nothing to concatenate"):
        concatenate([])
