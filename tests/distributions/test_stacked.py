"""Batches put below each other, and joined in one."""

import cases
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import regcal
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
