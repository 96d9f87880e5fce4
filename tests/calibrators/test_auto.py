"""The method that chooses: what it chooses, what it says and what it costs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from regcal import (
    AutoCalibrator,
    FewRowsWarning,
    Histogram,
    IdentityCalibrator,
    ImpossibleOutcomesWarning,
    Normal,
    OneVsRestCalibrator,
    Outcomes,
    PITCalibrator,
    ScaleCalibrator,
    SinhArcsinhCalibrator,
    calibrator_names,
    get_calibrator,
    log_score,
)
from regcal.calibrators.auto import default_candidates

CHEAP = [("none", IdentityCalibrator()), ("scale", ScaleCalibrator()), ("pit", PITCalibrator())]


def standard(n_rows, spread=1.0):
    return Normal(np.zeros(n_rows), np.full(n_rows, spread))


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda rng: rng.normal(size=400), "none"),
        (lambda rng: rng.normal(scale=2.0, size=400), "scale"),
        (lambda rng: rng.exponential(size=400) - 1.0, "pit"),
    ],
    ids=["calibrated", "wrong spread", "wrong shape"],
)
def test_the_simplest_sufficient_method_is_chosen(rng, draw, expected):
    """Nothing where nothing is wrong, a factor where the spread is, a map where the shape is."""
    cal = AutoCalibrator(CHEAP).fit(standard(400), draw(rng))

    assert cal.chosen_ == expected


def test_chosen_calibrator_is_fitted_on_all_rows(rng):
    """What auto returns is the chosen method with all the data."""
    dist, y = standard(300), rng.normal(scale=3.0, size=300)

    cal = AutoCalibrator(CHEAP).fit(dist, y)

    assert_allclose(cal.calibrator_.factor_, ScaleCalibrator().fit(dist, y).factor_)
    assert_allclose(cal.transform(dist).std(), 3.0, rtol=0.15)


def test_selecting_does_not_fit(rng):
    """Select returns a fresh calibrator and keeps the table."""
    cal = AutoCalibrator(CHEAP)

    chosen = cal.select(standard(300), rng.normal(scale=3.0, size=300))

    assert isinstance(chosen, ScaleCalibrator)
    assert not hasattr(chosen, "factor_")
    assert [row.name for row in cal.scores_] == ["none", "scale", "pit"]


def test_a_half_with_equal_targets_does_not_end_the_comparison(rng):
    """Most claims are 0: the candidate scores as the identity where it could not learn."""
    y = np.zeros(40)
    y[7] = 3.1
    candidates = [("scale", ScaleCalibrator()), ("e-beta", OneVsRestCalibrator(thresholds=4))]

    cal = AutoCalibrator(candidates).fit(Normal(rng.normal(size=40), 1.0), y)

    assert all(np.isfinite(score.log_score) for score in cal.scores_)


def test_rows_are_not_scored_by_what_was_fitted_on_them(rng):
    """A method that remembers its rows does not win by that."""

    class Memory(ScaleCalibrator):
        def _solve(self, observed):
            self.seen_ = set(observed.rows.y.tolist())

        def _transform(self, dist, covariates):
            return Remembering(dist.loc, dist.scale, self.seen_)

    class Remembering(Normal):
        def __init__(self, loc, scale, seen):
            super().__init__(loc, scale)
            self.seen = seen

        def logpdf(self, points):
            known = np.array([value in self.seen for value in np.ravel(points)])
            return super().logpdf(points) + np.where(known, 5.0, -0.5)

    cal = AutoCalibrator([("none", IdentityCalibrator()), ("memory", Memory())])
    cal.fit(standard(100), rng.normal(size=100))

    first, second = np.log(0.99 * np.exp([0.0, -0.5]) + 0.01 * np.exp([0.0, -0.5]).mean())
    assert_allclose([row.behind for row in cal.scores_], [0.0, first - second])
    assert_allclose(np.diff([row.log_score for row in cal.scores_]), -0.5)


def test_impossible_outcomes_count_against_a_candidate(rng):
    """Infinite losses neither crash nor win."""
    narrow = Histogram([-1.0, 1.0], np.ones((60, 1)))
    candidates = [("narrow", IdentityCalibrator()), ("pit", PITCalibrator())]
    y = np.append(rng.uniform(-0.9, 0.9, 59), 1.5)

    with pytest.warns(ImpossibleOutcomesWarning):
        cal = AutoCalibrator(candidates).fit(narrow, y)

    assert cal.scores_[0].log_score == -np.inf
    assert all(np.isfinite(row.behind) for row in cal.scores_)


@pytest.mark.parametrize("objective", ["balanced", "log_score", "crps"])
def test_objectives_find_what_is_wrong(rng, objective):
    """A spread three times too small is found by either score."""
    cal = AutoCalibrator(CHEAP, objective=objective)
    cal.fit(standard(300), rng.normal(scale=3.0, size=300))

    assert_allclose(cal.transform(standard(2)).std(), 3.0, rtol=0.15)


def test_what_auto_says_of_itself_does_not_advise_auto(rng):
    """Candidates of one's own that do not look at covariates are told from those by default."""
    with pytest.raises(ValueError, match='"auto" with the candidates that it has by default'):
        AutoCalibrator(CHEAP).fit(standard(40), rng.normal(size=40), covariates=rng.normal(size=40))


def test_unknown_objectives_are_refused():
    """The message names those that are known."""
    with pytest.raises(ValueError, match="balanced, log_score, crps"):
        AutoCalibrator(objective="rmse").fit(standard(20), np.linspace(-1, 1, 20))


def test_few_rows_leave_things_as_they_are(rng):
    """With fewer than ten rows the first candidate is taken, and the repr says why."""
    cal = AutoCalibrator().fit(standard(9), rng.normal(scale=5.0, size=9))

    assert cal.chosen_ == "identity"
    assert "without a comparison, which takes two candidates and 10 rows" in repr(cal)


def test_choice_is_explained(rng):
    """The representation of a fitted object says what was chosen and why."""
    cal = AutoCalibrator(CHEAP)
    assert repr(cal).startswith("AutoCalibrator(")
    assert "chose" not in repr(cal)

    cal.fit(standard(400), rng.normal(scale=2.0, size=400))

    assert "chose scale" in repr(cal)
    assert f"{cal.scores_[1].log_score:.3f}" in repr(cal)


def test_default_candidates_go_from_simple_to_complex():
    """All known methods of the list take part, the identity first."""
    names = [name for name, _ in default_candidates()]

    assert names[:3] == ["identity", "scale", "pit"]
    assert {"e-beta", "gpc", "gp-density", "isotonic"} & set(calibrator_names()) == {
        name.split()[0] for name in names[3:]
    }


@pytest.mark.parametrize(("n_rows", "weight"), [(60, 1.0), (120, 1.0), (60, 2.0)])
def test_few_rows_have_candidates_of_few_numbers(rng, n_rows, weight):
    """Below 100 rows, counted by weights, a shift and a factor and four numbers take part."""
    cal = AutoCalibrator()
    dist, y = standard(n_rows), 1.0 + 0.5 * rng.normal(size=n_rows)

    chosen = cal.select(dist, y, sample_weight=np.full(n_rows, weight))

    names = [score.name for score in cal.scores_]
    few = n_rows * weight < 100
    assert (names[2:4] == ["location-scale", "sinh-arcsinh"]) == few
    assert isinstance(chosen, SinhArcsinhCalibrator) == few
    assert_allclose(cal.fit(dist, y).transform(dist[:1]).median(), 1.0, atol=0.2)


def test_choice_is_deterministic_and_ignores_the_order_of_rows(rng):
    """The same rows in another order give the same table."""
    dist, y = Normal(rng.normal(size=200), rng.uniform(0.5, 2, 200)), rng.normal(size=200)
    order = rng.permutation(200)

    first = AutoCalibrator(CHEAP).fit(dist, y).scores_
    second = AutoCalibrator(CHEAP).fit(dist[order], y[order]).scores_

    assert_allclose([s.log_score for s in first], [s.log_score for s in second])


def test_weights_count_as_repetitions(rng):
    """A weight of 2 is a row that occurs twice, in the table as well."""
    dist, y = Normal(rng.normal(size=80), rng.uniform(0.5, 2, 80)), rng.normal(size=80)
    weights = rng.integers(0, 4, size=80)
    rows = np.repeat(np.arange(80), weights)

    candidates = [*CHEAP, ("e-beta", OneVsRestCalibrator())]

    weighted = AutoCalibrator(candidates).fit(dist, y, sample_weight=weights)
    repeated = AutoCalibrator(candidates).fit(dist[rows], y[rows])

    for one, other in zip(weighted.scores_, repeated.scores_, strict=True):
        assert_allclose(one.log_score, other.log_score, rtol=1e-5)
        assert_allclose(one.standard_error, other.standard_error, rtol=1e-4, atol=1e-7)


def test_never_much_worse_than_doing_nothing(rng):
    """Over many calibrated data sets, new rows lose next to nothing."""
    losses = []
    for _ in range(20):
        cal = AutoCalibrator(CHEAP).fit(standard(60), rng.normal(size=60))
        y = rng.normal(size=500)
        losses.append(log_score(y, standard(500)) - log_score(y, cal.transform(standard(500))))

    assert np.mean(losses) < 0.015


def test_cost_is_at_most_four_times_the_candidates(rng):
    """Counted in rows fitted, which does not depend on the machine."""
    fitted_rows = []

    class Counting(ScaleCalibrator):
        def _solve(self, observed):
            fitted_rows.append(observed.n_rows)
            super()._solve(observed)

    candidates = [("none", IdentityCalibrator()), ("a", Counting()), ("b", Counting())]
    AutoCalibrator(candidates).fit(standard(200), rng.normal(scale=2, size=200))

    assert sum(fitted_rows) <= 3 * 2 * 200
    assert len(fitted_rows) <= 4 * 2


def test_empty_candidates_are_refused():
    """There is nothing to choose from."""
    with pytest.raises(ValueError, match="there must be one"):
        AutoCalibrator([]).fit(standard(20), np.linspace(-1, 1, 20))


@pytest.mark.parametrize("n", [60, 800])
def test_a_mass_under_equal_predictions_is_no_row_to_leave_out(n, rng):
    """Of a model that says the same of all rows, zeros are equal rows; folds have them all."""
    y = np.where(rng.random(n) < 0.85, 0.0, rng.exponential(30.0, n))
    dist = Normal(np.full(n, 4.5), 3.0)
    new = AutoCalibrator().fit(dist, y).transform(dist[:1])

    assert_allclose(new.cdf(0.0), np.mean(y == 0), atol=0.05)
    assert_allclose(new.mean(), y.mean(), atol=0.15 * y.std())


def test_without_a_clear_gain_the_first_candidate_is_told_with_the_best(rng):
    """Nothing is learnt from rows that nobody could tell from the model's own."""
    cal = AutoCalibrator().fit(standard(150), rng.normal(size=150))

    assert cal.chosen_ == "identity"
    assert "nothing is clearly better" in cal.explanation()


def test_where_censoring_leaves_no_threshold_log_scores_alone_compare(rng):
    """Thresholds below all that was seen, where tails are as thin as one likes, do not count."""
    y, times = 5.0 + 2.0 * rng.normal(size=300), rng.uniform(-8.0, 18.0, 300)
    seen = Outcomes.right_censored(np.minimum(y, times), y <= times)
    dist = Normal(rng.normal(5.0, 0.1, 300), 1.0)
    candidates = [(name, get_calibrator(name)) for name in ("identity", "scale")]
    by_crps, balanced = (
        AutoCalibrator(candidates, objective=one).fit(dist, seen) for one in ("crps", "balanced")
    )

    assert by_crps.chosen_ == "identity"
    assert "the CRPS tells no candidate from another" in by_crps.explanation()
    assert balanced.chosen_ == "scale"


def test_by_crps_gains_are_told_in_shares_of_it(rng):
    """No nats where the log score does not count."""
    y = rng.choice([-1.0, 1.0], 400) + 0.3 * rng.normal(size=400)

    assert "nats" not in AutoCalibrator(objective="crps").fit(standard(400), y).explanation()


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        (["pit", "scale"], "pairs of a name and a calibrator, got 'pit'"),
        ([("x", "pit")], "calibrator 'x' is 'pit', which is none"),
        ({"p": PITCalibrator()}, "pairs of a name and a calibrator, got 'p'"),
        ([("a", PITCalibrator()), ("a", ScaleCalibrator())], "different names"),
    ],
)
def test_other_candidates_are_refused(candidates, message):
    """With the value and what would be right."""
    with pytest.raises((TypeError, ValueError), match=message):
        AutoCalibrator(candidates).fit(standard(30), np.arange(30.0))


def test_without_a_comparison_the_reason_is_told(rng):
    """One candidate, or weights of less than ten rows; before a fit there is none."""
    alone = AutoCalibrator([("pit", PITCalibrator())]).fit(standard(60), rng.normal(size=60))
    with pytest.warns(FewRowsWarning, match="sum to 0.6"):
        light = AutoCalibrator(CHEAP).fit(standard(60), rng.normal(size=60), np.full(60, 0.01))

    assert "without a comparison" in alone.explanation()
    assert light.explanation().endswith("whose weights sum to as much")
    with pytest.raises(NotFittedError):
        AutoCalibrator().explanation()


def test_censored_rows_do_not_speak_for_the_model(rng):
    """Below a limit only outcomes above it are known, and a model that is too high looks right."""
    n = 800
    mean = rng.uniform(2.0, 6.0, n)
    time = rng.weibull(1.3, n) * mean
    limit = np.quantile(time, 0.6)
    dist = Normal(mean, 2.0)
    seen = Outcomes.left_censored(np.maximum(time, limit), time > limit)

    above = AutoCalibrator().fit(dist, seen).transform(dist).sf(limit).mean()

    assert dist.sf(limit).mean() > 0.5
    assert_allclose(above, 0.4, atol=0.05)


@pytest.mark.parametrize(("n_rows", "factor"), [(12, 0.2), (30, 0.5), (60, 0.5)])
def test_few_rows_correct_a_spread_that_is_clearly_wrong(rng, n_rows, factor):
    """They are dozens of nats of evidence, though few of them tell most of it."""
    new, y_new = drawn(rng, 2000, factor)
    before, right = new.logpdf(y_new).mean(), -0.5 * np.log(2.0 * np.pi) - 0.5
    gains = []
    for _ in range(5):
        calibrated = AutoCalibrator().fit(*drawn(rng, n_rows, factor)).transform(new)
        gains.append(calibrated.logpdf(y_new).mean() - before)

    assert np.mean(gains) > 0.5 * (right - before)
    assert np.min(gains) >= 0


def drawn(rng, n_rows, factor):
    """Return predictions whose spread is that factor of what it should be, with outcomes."""
    x = rng.normal(size=n_rows)
    return Normal(x, np.full(n_rows, factor)), x + rng.normal(size=n_rows)


def test_zeros_and_ones_are_as_frequent_as_they_were(rng):
    """One distribution for all rows, which a standard deviation leaves too wide."""
    y = (np.arange(2400) < 696).astype(float)
    dist = Normal(np.full(2400, y.mean()), y.std())

    calibrated = AutoCalibrator(step=1).fit(dist, y).transform(dist[:1])

    assert_allclose(calibrated.mean(), y.mean(), atol=0.05 * y.std())
    assert_allclose(calibrated.mass([0.0]), 0.71, atol=0.01)


@pytest.mark.parametrize("n_rows", [5, 40])
def test_equal_targets_are_refused_with_a_way_out_that_exists(rng, n_rows):
    """Most candidates have no range to learn on; those that are named need none."""
    dist, y = Normal(rng.normal(size=n_rows), 1.0), np.full(n_rows, 3.5)

    with pytest.raises(ValueError, match=r"equal 3\.5.*\"scale\", \"pit\" or \"identity\"") as told:
        AutoCalibrator().fit(dist, y)
    assert "thresholds" not in str(told.value)
    for name in ("scale", "pit", "identity"):
        get_calibrator(name).fit(dist, y)
    candidates = [(name, get_calibrator(name)) for name in ("identity", "scale")]
    assert AutoCalibrator(candidates).fit(dist, y).chosen_ == "identity"


def test_nearly_all_outcomes_are_one_value():
    """Several rows that came out equal are several: three others are enough to compare methods."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.append(np.zeros(497), [1.0, 4.0, 9.0]))
    base = Normal(np.full(500, 0.2), np.ones(500))
    learnt = AutoCalibrator().fit(base, y)

    assert_allclose(learnt.transform(base[:1]).mass(0.0), 497 / 500, atol=0.02)
