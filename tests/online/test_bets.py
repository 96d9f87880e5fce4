"""Bets against calibration are fair, and their money is a sum over all beginnings."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import trapezoid
from scipy.special import ndtr

from regcal.online.bets import _AT_ONCE, _LOG_SHARES, _TYPICAL_ROWS, BETS, Money, log_factors


@pytest.mark.parametrize("number", range(len(BETS)))
def test_factors_have_mean_one_under_calibration(number):
    """A bet on a uniform rank is fair."""
    z = np.linspace(-8, 8, 20_001)
    paid = np.exp(log_factors(ndtr(z))[:, number] - 0.5 * z * z)

    assert_allclose(trapezoid(paid, z) / np.sqrt(2 * np.pi), 1.0, atol=2e-4)


def test_shares_add_up_to_one():
    """No money comes from nowhere."""
    assert_allclose(np.exp(_LOG_SHARES).sum(), 1.0)


def test_money_is_the_sum_over_all_beginnings(rng):
    """Brute force over beginnings and bets gives the same, in one batch or in several."""
    gains = log_factors(rng.uniform(size=30))
    rows = 1 + np.arange(30)
    begun = (1 - _AT_ONCE) * _TYPICAL_ROWS / ((rows + _TYPICAL_ROWS - 1) * (rows + _TYPICAL_ROWS))
    begun[0] += _AT_ONCE
    made = sum(
        begun[k] * (np.exp(_LOG_SHARES) * np.exp(gains[k:].sum(axis=0))).sum() for k in range(30)
    )
    money, parts = Money.at_start(), Money.at_start()

    after = money.bet(gains, rows)
    pieces = [parts.bet(gains[k : k + 7], rows[k : k + 7]) for k in range(0, 30, 7)]

    assert_allclose(np.exp(after[-1]), made + 1 - begun.sum())
    assert_allclose(np.concatenate(pieces), after)
    assert_allclose(money.log_total, after[-1])
    assert (parts.begins == money.begins).all()


def test_the_beginning_that_has_made_most_is_known(rng):
    """It is the best of all single beginnings."""
    gains = log_factors(rng.uniform(size=40) ** 2)
    rows = 1 + np.arange(40)
    money = Money.at_start()
    money.bet(gains, rows)
    begun = (1 - _AT_ONCE) * _TYPICAL_ROWS / ((rows + _TYPICAL_ROWS - 1) * (rows + _TYPICAL_ROWS))
    begun[0] += _AT_ONCE
    made = np.log(begun)[:, np.newaxis] + np.cumsum(gains[::-1], axis=0)[::-1]

    assert (money.begins == rows[made.argmax(axis=0)]).all()
