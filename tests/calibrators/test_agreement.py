"""A fit tells when its result disagrees with the rows it was learnt from."""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import normal_rows
from scipy import stats
from sklearn.linear_model import BayesianRidge, LinearRegression

import regcal
from regcal import CalibratedRegressorCV, Calibrator, DisagreementWarning, Normal, Outcomes
from regcal.calibrators import Support, Targets
from regcal.calibrators.agreement import Allowed, Look, Tails
from regcal.calibrators.thresholds import points_over


class Moved(Calibrator):
    """Moves predictions by a number of their standard deviations, and stretches them."""

    def __init__(self, shift=0.0, factor=1.0, *, support=None, step=None):
        self.shift = shift
        self.factor = factor
        self.support = support
        self.step = step

    def _solve(self, observed):
        pass

    def _transform(self, dist, covariates):
        return Normal(dist.loc + self.shift * dist.scale, dist.scale * self.factor)


def said(fit):
    """Return what is told of disagreement."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", DisagreementWarning)
        fit()
    return [str(one.message) for one in told if one.category is DisagreementWarning]


@pytest.mark.parametrize(("shift", "factor"), [(0.0, 1.0), (0.1, 1.0), (0.0, 1.2), (0.0, 0.8)])
def test_small_errors_are_noise(rng, shift, factor):
    """What a hundred rows cannot tell from chance is not told."""
    assert not said(lambda: Moved(shift, factor).fit(*normal_rows(rng, 2000)))


def test_a_wrong_mean_is_told_with_its_numbers(rng):
    """Predictions that are moved by 3 have a mean that is 3 too large."""
    dist, y = normal_rows(rng, 2000)
    (message,) = said(lambda: Moved(3.0).fit(dist, y))
    predicted = float(message.split("their mean is ")[1].split(",")[0])

    assert_allclose(predicted - y.mean(), 3.0, atol=0.05)
    assert f"that of the outcomes {y.mean():.4g}" in message


def test_many_rows_tell_of_smaller_errors(rng):
    """A hundred of them are looked at, but the noise is that of all."""
    dist, y = constant_rows(rng, 4000)
    (message,) = said(lambda: Moved(0.3).fit(dist, y))

    assert "their mean" in message
    assert not said(lambda: Moved(0.3).fit(dist[:200], y[:200]))


@pytest.mark.parametrize("factor", [4.0, 0.1])
def test_wrong_tails_are_told(rng, factor):
    """A spread that is far from right shows in the tails, not in the mean."""
    (message,) = said(lambda: Moved(0.0, factor).fit(*constant_rows(rng, 8000)))

    assert "P(Y <" in message
    assert "P(Y >" in message
    assert "their mean" not in message


def test_probability_between_clusters_is_told(rng):
    """A mean that is right does not hide that no outcome is where predictions are."""
    dist, noise = constant_rows(rng, 1000)
    y = np.where(np.arange(1000) % 2 == 0, -1.0, 1.0) + 0.01 * noise

    (message,) = said(lambda: Moved(0.0, 0.1).fit(dist, y))

    assert "their mean" not in message
    assert "the share of such outcomes 0.25" in message


@pytest.mark.parametrize(("origin", "unit"), [(0.0, 1.0), (1e6, 1.0), (0.0, 1e-9)])
def test_thresholds_are_told_in_as_many_digits_as_are_true(rng, origin, unit):
    """Outcomes are in tight clusters: the share beyond a rounded number would be another."""
    y = origin + unit * (np.repeat([0.0, 10.0, 50.0, 51.0], 250) + 1e-3 * rng.normal(size=1000))
    found = []
    for shift in (-1.0, 1.0):
        dist = Normal(np.full(1000, y.mean() - 0.3 * shift * y.std()), y.std())
        (message,) = said(lambda dist=dist, shift=shift: Moved(shift, 0.5).fit(dist, y))
        told = re.findall(r"P\(Y (<=?|>) (\S+)\) is (\S+) on average, .*? (\S+?)[;.] ", message)
        moved = Normal(dist.loc[0] + shift * y.std(), 0.5 * y.std())
        found += [(*one, moved) for one in told]

    assert {side for side, *_ in found} >= {"<=", ">"}
    sides = {"<": np.less, "<=": np.less_equal, ">": np.greater}
    for side, words, predicted, share, moved in found:
        place = float(words)
        assert_allclose(np.mean(sides[side](y, place)), float(share), atol=5e-3)
        below = moved.cdf(place)
        assert_allclose(1.0 - below if side == ">" else below, float(predicted), atol=5e-3)


def test_thresholds_are_told_in_no_more_digits_than_that(rng):
    """Four are enough for outcomes that are spread out; a tie is at most what it is."""
    tails = Tails.of(Targets.of(rng.normal(size=200)), Support())
    assert max(len(one.split()[1].strip("-")) for one in tails.words) <= 6

    tails = Tails.of(Targets.of(np.repeat([0.0, 1.0, 7.0], [60, 30, 10])), Support())
    assert tails.words == ["< 0", "<= 0", "> 1", "> 7", "> 7"]
    assert_allclose(tails.shares, [0.0, 0.6, 0.1, 0.0, 0.0])


def test_means_are_told_in_digits_that_tell_them_apart(rng):
    """A million and a million and three are not both 1e+06."""
    dist, y = normal_rows(rng, 500)
    (message,) = said(lambda: Moved(3.0).fit(Normal(dist.loc + 1e6, dist.scale), y + 1e6))
    predicted, seen = re.search(r"mean is (\S+), that of the outcomes (\S+)[;.]", message).groups()

    assert_allclose(float(seen), 1e6 + y.mean(), atol=0.06)
    assert_allclose(float(predicted) - float(seen), 3.0, atol=0.3)


def constant_rows(rng, n):
    return Normal(np.zeros(n), 1.0), rng.normal(size=n)


def test_what_was_as_wrong_before_is_not_told(rng):
    """The identity, and a factor for a shift, leave errors of the model: they make none."""
    dist, y = normal_rows(rng, 500)

    for name in ("identity", "scale"):
        assert not said(lambda name=name: regcal.get_calibrator(name).fit(dist, y + 1.0))


def test_a_method_that_cannot_be_right_is_told_of(rng):
    """Where outcomes pile up at 0, a factor alone moves the mean by stretching what is above."""
    y = np.where(rng.random(800) < 0.85, 0.0, rng.exponential(30.0, 800))
    dist = Normal(np.full(800, 4.5), 3.0)

    assert said(lambda: regcal.get_calibrator("scale").fit(dist, y))
    assert not said(lambda: regcal.get_calibrator("gp-density").fit(dist, y))


@pytest.mark.parametrize(
    "fit",
    [
        lambda one, dist, y: one.fit(dist, y),
        lambda one, dist, y: one.partial_fit(dist, y),
        lambda one, dist, y: one.fit_batches([(dist[:90], y[:90]), (dist[90:], y[90:])]),
        lambda one, dist, y: one.solve(one.new_observed().add(dist, y)),
    ],
    ids=["fit", "partial_fit", "fit_batches", "solve"],
)
def test_every_way_to_fit_tells(rng, fit):
    """All of them end with the same look, and say the same."""
    dist, y = normal_rows(rng, 300)

    assert said(lambda: fit(Moved(3.0), dist, y)) == said(lambda: Moved(3.0).fit(dist, y))


@pytest.mark.parametrize("ensemble", [False, True])
def test_a_regressor_tells(rng, ensemble):
    """What is learnt from folds is looked at as well."""
    X = rng.normal(size=(300, 1))
    model = regcal.NormalResidualRegressor(LinearRegression())
    y = X[:, 0] + rng.normal(size=300)

    with pytest.warns(DisagreementWarning, match="their mean is"):
        CalibratedRegressorCV(model, Moved(3.0), ensemble=ensemble).fit(X, y)


def test_rows_count_by_their_weight(rng):
    """Predictions are judged by the rows that count."""
    dist, y = normal_rows(rng, 400)
    first = np.arange(400) < 100
    y[first] += 3.0

    assert said(lambda: Moved(3.0).fit(dist, y))
    assert not said(lambda: Moved(3.0).fit(dist, y, np.where(first, 1.0, 1e-6)))


def test_censored_rows_are_not_judged(rng):
    """Nobody knows the mean of what was not seen."""
    dist, y = normal_rows(rng, 300)
    seen = Outcomes.right_censored(y, rng.random(300) < 0.5)

    assert not said(lambda: Moved(3.0).fit(dist, seen))


def test_averages_are_those_of_the_distributions(rng):
    """Mean and tails agree with closed forms, also for skewed targets."""
    sigma, y = 1.2, np.exp(1.2 * rng.normal(size=100))
    dist = regcal.ScipyDistribution(stats.lognorm(s=sigma, scale=np.ones(100)))
    targets = Targets.of(y)
    tails = Tails.of(targets, Support())
    found = Look(100.0, 0.0, points_over(targets, Support()), tails).at(dist, y)

    assert_allclose(found.mean, np.exp(0.5 * sigma**2) - y.mean(), atol=0.03)
    assert_allclose(tails.shares, [0.0, 0.05, 0.25, 0.25, 0.05, 0.0], atol=1e-12)
    lognormal = stats.lognorm(s=sigma)
    expected = [*lognormal.cdf(tails.places[:3]), *lognormal.sf(tails.places[3:])]
    assert_allclose(found.tails, expected, rtol=1e-9)


@pytest.mark.parametrize("noise", [stats.norm(), stats.expon(), stats.t(3)])
def test_right_predictions_are_hardly_ever_suspected(rng, noise):
    """Of 150 small worlds whose predictions are right, at most one looks wrong."""
    alarms = 0
    for _ in range(150):
        n = int(rng.integers(5, 300))
        y = noise.rvs(size=n, random_state=rng)
        dist = regcal.ScipyDistribution(noise)
        targets = Targets.of(y)
        tails = Tails.of(targets, Support())
        points = points_over(targets, Support())
        found = Look(n, 0.0, points, tails).at(dist, y)
        alarms += Allowed(y.std(), tails.shares, n).exceeded(found).any()

    assert alarms <= 1


# ------------------------------------------------------------------------------------ few values


def counts(rng, rate, n_rows=400):
    """Return counts with predictions that are right but for their steps."""
    y = rng.poisson(rate, n_rows).astype(float)
    return regcal.Normal(np.full(n_rows, float(rate)), np.sqrt(rate)), y


@pytest.mark.parametrize("fit", ["fit", "partial_fit", "fit_batches"])
def test_counts_without_a_step_are_told_of(rng, fit):
    """P(Y <= k) of the density is another number; the warning names the step, which helps."""
    dist, y = counts(rng, 4.0)
    rows = [[(dist, y)]] if fit == "fit_batches" else [dist, y]
    with pytest.warns(regcal.RoundedOutcomesWarning, match=r"multiples of 1, .*Pass step=1"):
        smooth = getattr(regcal.get_calibrator("pit"), fit)(*rows)
    stepped = getattr(regcal.get_calibrator("pit", step=1), fit)(*rows)  # in silence
    k, share = 4.0, np.mean(y <= 4.0)

    assert abs(stepped.transform(dist).cdf(k).mean() - share) < 0.02
    assert abs(smooth.transform(dist).cdf(k).mean() - share) > 0.05


def test_models_of_counts_are_told_of_once(rng):
    """Folds and members add nothing."""
    X = rng.normal(size=(300, 1))
    y = rng.poisson(np.exp(1 + 0.3 * X[:, 0]))
    model = regcal.CalibratedRegressorCV(BayesianRidge(), "pit")
    with pytest.warns(regcal.RoundedOutcomesWarning) as caught:
        model.fit(X, y)

    assert len(caught) == 1
    model.set_params(step=1).fit(X, y)  # in silence


def test_many_values_and_masses_at_ends_are_not_told_of(rng):
    """Ages, marks and tenths are as good as continuous; a mass at an end is one already."""
    dist, y = counts(rng, 50.0)
    regcal.get_calibrator("scale").fit(dist, y)
    latent = regcal.Normal(rng.normal(size=400), 1.0)
    rain = np.round(np.maximum(latent.sample(1, random_state=0)[:, 0], 0.0), 1)
    fitted = regcal.get_calibrator("scale").fit(latent, rain)

    assert fitted.support_.low == 0 and np.mean(rain == 0) > 0.3
    assert fitted.support_.smooth
