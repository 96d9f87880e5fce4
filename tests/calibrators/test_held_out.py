"""Held-out rows, and a bounded sample of them: unbiased, whatever the order and last digits."""

from functools import reduce

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import regcal
from regcal import Normal, Outcomes
from regcal.calibrators import held_out
from regcal.calibrators.held_out import HeldOut, Sample, deal
from regcal.calibrators.support import Support

FEW = 150


@pytest.fixture(autouse=True)
def few_kept(monkeypatch):
    """Let samples hold few rows."""
    monkeypatch.setattr(held_out, "MAX_ROWS", FEW)


def rows_of(n, seed=0, weights=None):
    rng = np.random.default_rng(seed)
    loc = 2 * rng.normal(size=n)
    y = loc + 1.4 * rng.normal(size=n)
    weights = np.ones(n) if weights is None else weights
    return HeldOut(regcal.Normal(loc, np.ones(n)), Outcomes.exact(y), weights)


def sampled(rows, size, order=None):
    kept = Sample()
    order = np.arange(len(rows)) if order is None else order
    for start in range(0, len(rows), size):
        kept = kept.add(rows.take(order[start : start + size]))
    return kept.all()


def test_few_rows_are_kept_as_they_are():
    """Up to the limit nothing is changed, not even the order."""
    rows = rows_of(FEW)

    kept = sampled(rows, 40)

    assert_array_equal(kept.y, rows.y)
    assert_array_equal(kept.dist.loc, rows.dist.loc)
    assert_array_equal(kept.weights, rows.weights)


def test_other_weights_change_nothing_but_weights(rng):
    """What rows know when they get other weights is what rows with these weights find out."""
    lower = rng.normal(size=60).round(1)
    seen = Outcomes.right_censored(lower, rng.random(60) < 0.7)
    dist = regcal.Clipped(regcal.Normal(np.zeros(60), 1.0), low=-0.5)
    before, weights = HeldOut(dist, seen, np.ones(60)), rng.exponential(size=60)
    for name in ("y", "exact", "z", "distinct", "n_possible", "intervals"):
        getattr(before, name)

    after, anew = before.reweighted(weights), HeldOut(dist, seen, weights)

    for name in ("y", "exact", "z", "log_spread", "distinct", "n_possible"):
        assert_array_equal(getattr(after, name), getattr(anew, name))
    assert_array_equal(after.intervals[0].weights, anew.intervals[0].weights)
    assert_array_equal(after.merged().weights, anew.merged().weights)


def test_a_sample_stands_for_all_rows(rng):
    """Weighted means of kept rows are those of all, and heavy rows keep their own weight.

    The bounds are five standard errors of a sample of so many rows.
    """
    weights = rng.exponential(size=30_000)
    weights[7] = 5000.0
    rows = rows_of(30_000, weights=weights)

    kept = sampled(rows, 700)

    assert len(kept) <= FEW
    light = kept.y != rows.y[7]
    assert kept.weights[~light] == [5000.0]
    others = np.arange(30_000) != 7
    assert_allclose(kept.weights[light].sum(), weights[others].sum(), rtol=5 / np.sqrt(FEW))
    expected = np.average(rows.y[others], weights=weights[others])
    error = rows.y.std() / np.sqrt(FEW)
    found = np.average(kept.y[light], weights=kept.weights[light])
    assert_allclose(found, expected, atol=5 * error)


def test_order_does_not_matter(rng):
    """The same rows stay, whatever the order and the batches they come in."""
    rows = rows_of(2000)

    one, other = sampled(rows, 2000), sampled(rows, 90, rng.permutation(2000))

    assert_array_equal(np.sort(one.y), np.sort(other.y))
    assert_allclose(np.sort(one.weights), np.sort(other.weights))


def test_last_digits_do_not_matter(rng):
    """A change in the last digit of every number changes next to no row of the sample."""
    rows = rows_of(5000)
    digits = 1 + rng.integers(-1, 2, (3, 5000)) * 2.0**-52
    dist = regcal.Normal(rows.dist.loc * digits[0], rows.dist.scale * digits[1])
    noisy = HeldOut(dist, Outcomes.exact(rows.y * digits[2]), rows.weights)

    one, other = sampled(rows, 500), sampled(noisy, 500)

    gap = np.abs(one.y[:, np.newaxis] - other.y).min(axis=1)
    assert (gap > 1e-9).sum() <= 1


def test_equal_rows_are_one_row():
    """A row that occurs three times is a row of weight three."""
    rows = rows_of(600)
    repeated = rows.take(np.repeat(np.arange(600), 3))
    heavy = rows.reweighted(np.full(600, 3.0))

    one, other = sampled(repeated, 1800), sampled(heavy, 600)

    assert_array_equal(one.y, other.y)
    assert_allclose(one.weights, other.weights)


@pytest.mark.parametrize("n_rows", [FEW, 10 * FEW])
def test_a_sample_may_be_drawn_when_it_is_asked_for(n_rows, monkeypatch):
    """It is the one of rows that came one block after another, and until then all are at hand."""
    monkeypatch.setattr(held_out, "_BLOCK", 2 * FEW)
    rows = rows_of(n_rows)
    later, drawn = Sample((rows,)), reduce(Sample.add, rows.blocks(), Sample())

    assert later.at_hand is rows
    assert len(later.all()) == FEW
    assert_array_equal(later.all().y, drawn.all().y)
    assert_array_equal(later.all().weights, drawn.all().weights)
    assert later.faded(0.5).complete == drawn.faded(0.5).complete
    if n_rows > FEW:
        assert len(drawn.at_hand) == FEW


def test_merged_samples_are_the_sample_of_all():
    """Samples of two sets of rows merge to that of both."""
    rows = rows_of(3000)
    parts = [
        Sample().add(rows.take(np.arange(1000))),
        Sample().add(rows.take(np.arange(1000, 3000))),
    ]

    merged = parts[0].merge(parts[1]).all()

    assert_array_equal(np.sort(merged.y), np.sort(sampled(rows, 3000).y))


def test_a_sample_holds_nothing_but_its_rows():
    """Rows of a user's functions are tabulated, so that whole batches need not be kept."""
    rows = rows_of(1500)

    def custom(part):
        def cdf(points, places):
            return part.dist[places].cdf(points)

        return HeldOut(regcal.CustomDistribution(cdf, len(part)), part.seen, part.weights)

    kept = Sample()
    for start in (0, 500, 1000):
        kept = kept.add(custom(rows.take(np.arange(start, start + 500))))
    kept = kept.all()

    assert isinstance(kept.dist, regcal.Quantiles)
    row = int(np.flatnonzero(rows.y == kept.y[0])[0])
    t = np.array([[-1.0, 0.5]])
    assert_allclose(kept.dist[:1].cdf(t), rows.dist[[row]].cdf(t), atol=1e-4)


def test_last_digits_of_a_search_are_no_crossing_quantiles():
    """Quantiles at a mass may fall by rounding; a table of them is sorted without a warning."""

    class Searched(regcal.CustomDistribution):
        def _from_probit(self, probits):
            values = np.where(probits < 0, -1e-17 * (probits > -1), probits)
            return np.broadcast_to(values, (len(self), probits.shape[1]))

    rows = rows_of(400)
    searched = Searched(lambda points, places: rows.dist[places].cdf(points), len(rows))

    kept = Sample().add(rows.predicted(searched)).all()  # a warning is an error here

    assert isinstance(kept.dist, regcal.Quantiles)


def test_a_mass_is_dealt_row_by_row(rng):
    """Equal rows that are many have their share of every fold; others are in one, all of them."""
    y = np.concatenate([np.zeros(700), np.repeat(rng.normal(size=100), 3)])
    rows = HeldOut.checked(Normal(np.ones(1000), 1.0), y)
    dealt, folds = deal(rows, 3, 0)
    zeros = dealt.y == 0
    shares = np.bincount(folds[zeros], dealt.weights[zeros]) / 700

    assert dealt.weights.sum() == 1000
    assert zeros.sum() == 3
    # within five standard errors of a third
    assert np.abs(shares - 1 / 3).max() < 5 * np.sqrt(2 / 9 / 700)
    assert all(len(set(folds[dealt.y == value])) == 1 for value in set(y) - {0.0})


def test_a_mass_is_dealt_as_its_weight_is(rng):
    """A row of weight 700 is in every fold with the weight that 700 equal rows have there."""
    values = rng.normal(size=300)
    many = HeldOut.checked(Normal(np.ones(1000), 1.0), np.concatenate([np.zeros(700), values]))
    weights = np.concatenate([[700.0], np.ones(300)])
    one = HeldOut.checked(Normal(np.ones(301), 1.0), np.concatenate([[0.0], values]), weights)

    (a, in_a), (b, in_b) = deal(many, 3, 0), deal(one, 3, 0)
    assert_array_equal(a.y, b.y)
    assert_array_equal(a.weights, b.weights)
    assert_array_equal(in_a, in_b)


def few_predictions(rng, n=600):
    """Return counts under three predictions; most are rarer than a mass."""
    return Normal(rng.choice([2.0, 3.0, 4.0], n), 1.0), rng.poisson(3.0, n).astype(float)


def test_counts_under_few_predictions_are_dealt_row_by_row(rng):
    """What is seen as an interval, or often, is in other folds too if there are several of it."""
    dist, y = few_predictions(rng)
    dealt, folds = deal(HeldOut.checked(dist, y), 2, 0, Support(step=1.0))
    keys = np.column_stack([dealt.dist.loc, dealt.y])
    pairs, place = np.unique(keys, axis=0, return_inverse=True)
    counts = np.array([((dist.loc == loc) & (y == value)).sum() for loc, value in pairs])
    shares = np.bincount(place.ravel(), dealt.weights * (folds == 0)) / counts

    assert_allclose(np.bincount(place.ravel(), dealt.weights), counts)
    # within five standard errors of a half
    assert (np.abs(shares - 0.5) < 2.5 / np.sqrt(counts)).all()
    assert ((shares > 0) & (shares < 1))[counts > 15].all()


def test_rare_values_are_dealt_row_by_row_if_they_were_rounded():
    """A number that was seen thrice is a row with two copies; a count is three rows."""
    y = np.repeat(np.arange(100.0), 3)
    rows = HeldOut.checked(Normal(np.zeros(300), 20.0), y)
    copies, _ = deal(rows, 2, 0)
    counts, folds = deal(rows, 2, 0, Support(step=1.0))
    in_both = np.bincount(counts.y.astype(int)) == 2

    assert copies is rows
    assert counts.weights.sum() == 300
    assert abs(counts.weights @ folds - 150) < 5 * np.sqrt(75)
    # three rows are not all in one of two folds with a probability of 3 / 4
    assert abs(in_both.mean() - 0.75) < 5 * np.sqrt(3 / 16 / 100)


def test_counts_are_dealt_as_their_weights_are(rng):
    """Counts and predictions that occur often are dealt as one row of their number is."""
    dist, y = few_predictions(rng)
    many = HeldOut.checked(dist, y)
    one = many.merged()
    (a, in_a), (b, in_b) = (deal(rows, 3, 0, Support(step=1.0)) for rows in (many, one))
    totals = [
        {key: dealt.weights[(dealt.distinct == key) & (folds == 1)].sum() for key in range(30)}
        for dealt, folds in ((a, in_a), (b, in_b))
    ]

    assert totals[0] == totals[1]


@pytest.mark.parametrize("weight", [0.3, 1.0, 1000.0])
def test_rows_that_differ_are_not_divided(rng, weight):
    """However much they weigh: neither predictions of their own, nor numbers that were seen once.

    Covariates tell rows apart as predictions do.
    """
    counts, numbers = rng.poisson(3.0, 100).astype(float), rng.normal(size=100)
    weights, alike = np.full(100, weight), Normal(np.zeros(100), 1.0)
    several = [
        (HeldOut.checked(Normal(numbers, 1.0), counts, weights), Support(step=1.0)),
        (HeldOut.checked(alike, numbers, weights), Support()),
        (HeldOut.checked(alike, counts, weights, {"age": numbers}), Support(step=1.0)),
    ]
    for rows, support in several:
        dealt, folds = deal(rows, 3, 0, support)

        assert dealt is rows
        assert len(folds) == 100


@pytest.mark.parametrize("weight", [10.0, 1000.0])
def test_no_weight_makes_several_rows_of_one(rng, weight):
    """Few rows that differ stay whole, though each of them has more than 2 % of all weight."""
    numbers = rng.normal(size=40)
    for y, support in ((numbers, Support()), (np.round(numbers), Support(step=1.0))):
        rows = HeldOut.checked(Normal(numbers, 1.0), y, np.full(40, weight))

        assert deal(rows, 3, 0, support)[0] is rows


def quantiles(values):
    return regcal.Quantiles([0.2, 0.5, 0.9], values)


def quantiles_of_folds(values):
    return regcal.concatenate([quantiles(values[:400]), quantiles(values[400:])])


@pytest.mark.parametrize("kind", [regcal.Samples, quantiles, quantiles_of_folds])
def test_rows_that_agree_at_a_mass_alone_are_not_one_row(kind):
    """What a kept row stands for is equal rows, not those that are as sure of a zero."""
    rng = np.random.default_rng(0)
    values = np.sort(rng.exponential(size=(1000, 3)), axis=1)
    values[:, 0] = 0.0
    rows = HeldOut.checked(kind(values), np.zeros(1000), None)

    kept = sampled(rows, 100)

    assert len(kept) == FEW
    assert_allclose(kept.dist.sf(1.0).mean(), rows.dist.sf(1.0).mean(), atol=0.1)


def test_equal_rows_are_one_row_of_their_weight():
    """However many there are, nothing is lost."""
    rng = np.random.default_rng(0)
    values = rng.exponential(size=(20, 3))[rng.integers(20, size=1000)]
    rows = HeldOut.checked(regcal.Samples(values, support=(0.0, None)), np.zeros(1000), None)

    kept = sampled(rows, 100)

    assert len(kept) == 20
    assert_allclose(kept.weights.sum(), 1000)
