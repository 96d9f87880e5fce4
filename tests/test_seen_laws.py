"""What every calibrator makes of outcomes that pile up, are rounded, or were not seen exactly."""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr
from sklearn.linear_model import BayesianRidge

import regcal
from regcal import Normal, Outcomes
from regcal.calibrators import cells, held_out

SETTINGS = {
    "e-logistic": {"thresholds": 6},
    "e-beta": {"thresholds": 6},
    "e-isotonic": {"thresholds": 4},
    "dirichlet": {"thresholds": 6},
    "gpc": {"thresholds": 8},
    "conditional": {"learner": "additive", "calibrator": regcal.PITCalibrator()},
    "gpc-paper": {"n_pairs": 60, "prediction_thresholds": 16, "random_state": 0},
}
WITHOUT_A_NAME = {
    "e-beta of thresholds": functools.partial(
        regcal.OneVsRestCalibrator, thresholds=6, code=regcal.ThresholdCode()
    ),
}
NAMES = [*regcal.calibrator_names(), *WITHOUT_A_NAME]
TAKES_INTERVALS = [name for name in NAMES if name != "gpc-paper"]
N_ROWS = 100


def calibrator(name, **parameters):
    if name == "auto":
        candidates = [(one, calibrator(one)) for one in ("identity", "scale", "e-beta")]
        return regcal.AutoCalibrator(candidates, **parameters)
    if name in WITHOUT_A_NAME:
        return WITHOUT_A_NAME[name](**parameters)
    return regcal.get_calibrator(name, **SETTINGS.get(name, {}), **parameters)


def latent_rows(n=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    loc = rng.normal(size=n)
    return Normal(loc, np.ones(n)), loc + 1.4 * rng.normal(size=n)


def seen_rows(kind, n=N_ROWS, seed=0):
    """Predictions, what was seen, and parameters that say so."""
    dist, y = latent_rows(n, seed)
    limit = dist.loc + np.random.default_rng(seed + 1).normal(size=n)
    kinds = {
        "zeros": (np.maximum(y, 0.0), {}),
        "capped": (np.clip(y, -0.5, 1.5), {"support": (-0.5, 1.5)}),
        "counts": (np.maximum(np.round(2 * y), 0.0), {"step": 1.0}),
        "right": (Outcomes.right_censored(np.minimum(y, limit), y <= limit), {}),
        "left": (Outcomes.left_censored(np.maximum(y, limit), y >= limit), {}),
        "visits": (Outcomes(np.floor(y), np.floor(y) + 1.0), {}),
    }
    return dist, *kinds[kind]


@functools.cache
def fitted(name, kind):
    """Return a calibrator fitted on rows of a kind, which several laws look at."""
    dist, y, parameters = seen_rows(kind)
    return calibrator(name, **parameters).fit(dist, y)


KINDS = ("zeros", "capped", "counts", "right", "left", "visits")
CASES = [
    (name, kind)
    for name in NAMES
    for kind in KINDS
    if name in TAKES_INTERVALS or kind in ("zeros", "capped", "counts")
]
over_cases = pytest.mark.parametrize(("name", "kind"), CASES)
GRID = np.linspace(-3.0, 4.0, 15)[np.newaxis, :]


def answers(learnt, scale=1.0):
    new = Normal(scale * np.array([-1.0, 0.3, 2.0]), scale * np.array([1.0, 0.7, 1.5]))
    return learnt.transform(new).cdf(scale * GRID)


@over_cases
def test_results_are_distributions(name, kind):
    """Nothing lies beyond the ends, and masses and density make 1."""
    dist, _, _ = seen_rows(kind)
    new, support = fitted(name, kind).transform(dist[:3]), fitted(name, kind).support_

    probabilities = new.cdf(GRID)
    assert (np.diff(probabilities, axis=1) >= 0).all()
    assert_allclose(probabilities + new.sf(GRID), 1.0, atol=1e-12)
    assert (new.cdf(GRID)[:, GRID[0] < support.low] == 0).all()
    assert (new.cdf(GRID)[:, GRID[0] >= support.high] == 1).all()
    for end in (support.low, support.high):
        if np.isfinite(end):
            assert (new.mass(end) > 0).all()
            assert_allclose(new.logpdf(end), np.log(new.mass(end)))


@over_cases
def test_order_and_weights_are_as_ever(name, kind):
    """A weight of 2 is two rows, and the order of rows does not matter."""
    if name == "gpc-paper":
        return  # pairs are drawn
    dist, y, parameters = seen_rows(kind, 60)
    y = Outcomes.of(y)
    expected = answers(calibrator(name, **parameters).fit(dist, y, np.repeat([2.0, 1.0], 30)))
    order = np.random.default_rng(2).permutation(np.r_[np.arange(30), np.arange(60)])

    repeated = calibrator(name, **parameters).fit(dist[order], y[order])

    assert_allclose(answers(repeated), expected, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TAKES_INTERVALS)
def test_units_do_not_matter(name, kind):
    """Grams or kilograms: the same probabilities."""
    dist, y, parameters = seen_rows(kind)
    y = Outcomes.of(y)
    larger = {one: np.multiply(1e3, value) for one, value in parameters.items()}
    larger = {one: tuple(v) if np.ndim(v) else float(v) for one, v in larger.items()}

    scaled = calibrator(name, **larger).fit(
        Normal(1e3 * dist.loc, 1e3 * dist.scale), Outcomes(1e3 * y.lower, 1e3 * y.upper)
    )

    assert_allclose(answers(scaled, 1e3), answers(fitted(name, kind)), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["scale", "pit", "e-beta", "gpc", "gp-density"])
def test_batches_and_merged_points_are_the_whole(name, kind, monkeypatch):
    """Parts give what all rows give, also where points are merged in cells."""
    dist, y, parameters = seen_rows(kind)
    y = Outcomes.of(y)
    expected = answers(fitted(name, kind))

    parts = [(dist[k::3], y[k::3]) for k in range(3)]
    assert_allclose(answers(calibrator(name, **parameters).fit_batches(parts)), expected, atol=1e-9)
    monkeypatch.setattr(held_out, "MAX_ROWS", N_ROWS - 1)
    monkeypatch.setattr(cells, "_MAX_POINTS", N_ROWS // 2)
    assert_allclose(answers(calibrator(name, **parameters).fit(dist, y)), expected, atol=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_exact_outcomes_are_numbers(name):
    """`Outcomes.exact(y)` is y."""
    dist, y = latent_rows(60)
    as_numbers, as_outcomes = (
        answers(calibrator(name).fit(dist, given)) for given in (y, Outcomes.exact(y))
    )
    assert_allclose(as_outcomes, as_numbers, atol=1e-12)


@pytest.mark.parametrize("name", ["pit", "e-logistic", "e-beta", "gpc", "gp-density"])
def test_the_share_of_zeros_is_learnt(name):
    """On rows like those it was learnt from, P(Y = 0) is the share of zeros."""
    dist, y, _ = seen_rows("zeros", 800)
    probability = calibrator(name).fit(dist, y).transform(dist).mass(0.0)
    seen = y == 0

    # what a calibrated forecast of zeros may be off by: four of its own standard errors
    error = np.sqrt((probability * (1 - probability)).sum()) / len(y)
    assert abs(probability.mean() - seen.mean()) < 4 * error


@pytest.mark.parametrize("share", [0.03, 0.1])
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("name", ["pit", "isotonic", "gpc"])
def test_a_code_far_below_all_outcomes_leaves_others_as_they_are(name, side, share):
    """As -999 for what is missing: it keeps its share, and all others theirs."""
    rng = np.random.default_rng(14)
    x = rng.normal(size=2000)
    y = side * (x + rng.gumbel(size=2000) - 0.577)
    n_codes = int(share * 2000)
    y[:n_codes] = -999.0 * side
    dist = Normal(side * x, np.full(2000, 1.5))

    calibrated = regcal.get_calibrator(name).fit(dist, y).transform(dist)

    points = np.quantile(y[n_codes:], [0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98])
    expected = (y[:, np.newaxis] <= points).mean(axis=0)
    assert_allclose(calibrated.cdf(points[np.newaxis, :]).mean(axis=0), expected, atol=0.02)
    assert_allclose(calibrated.mass(-999.0 * side).mean(), share, atol=0.005)


@pytest.mark.parametrize("name", ["pit", "isotonic", "gpc", "gp-density"])
def test_zeros_far_below_all_others_have_their_share(name, rng):
    """Three of ten rows are at zero, and all others about 300."""
    y = np.where(np.arange(600) % 10 < 3, 0.0, 300.0 + 1.5 * rng.normal(size=600))
    dist = Normal(np.full(600, y.mean()), np.full(600, y.std()))

    calibrated = regcal.get_calibrator(name).fit(dist, y).transform(dist[:1])

    points = np.quantile(y, [0.35, 0.5, 0.75, 0.9])
    expected = [[0.35, 0.5, 0.75, 0.9]]
    assert_allclose(calibrated.cdf(points[np.newaxis, :]), expected, atol=0.04)
    assert_allclose(calibrated.mass(0.0), 0.3, atol=0.01)


@pytest.mark.parametrize("name", ["pit", "isotonic", "gpc"])
def test_codes_on_both_sides_have_their_shares(name, rng):
    """One in 25 rows is at -999, and one in ten at 10 000."""
    x = rng.normal(size=500)
    y = x + rng.normal(size=500)
    y[:20], y[20:70] = -999.0, 1e4
    dist = Normal(x, np.full(500, 1.5))

    calibrated = regcal.get_calibrator(name).fit(dist, y).transform(dist)

    masses = [calibrated.mass(-999.0).mean(), calibrated.mass(1e4).mean()]
    assert_allclose(masses, [0.04, 0.1], atol=0.01)
    assert_allclose(calibrated.cdf(np.median(y)).mean(), 0.5, atol=0.04)


@pytest.mark.parametrize("name", ["scale", "pit", "e-beta", "gpc", "gp-density"])
def test_censored_rows_teach_what_happened_after(name):
    """With half of the rows censored, scores are nearer to those of all than to none."""
    dist, y = latent_rows(1500)
    limit = dist.loc + np.random.default_rng(5).normal(size=1500)
    seen = Outcomes.right_censored(np.minimum(y, limit), y <= limit)
    new, new_y = latent_rows(3000, seed=9)

    def gain(outcomes):
        fitted = calibrator(name, support=None).fit(dist, outcomes)
        return (regcal.log_score(new_y, fitted.transform(new)) - new.logpdf(new_y)).mean()

    as_events = Outcomes.exact(np.minimum(y, limit))
    assert gain(seen) > 0.5 * gain(y)
    assert gain(seen) > gain(as_events)


@pytest.mark.parametrize("kind", ["zeros", "right", "left", "visits"])
def test_the_scale_of_intervals_is_the_most_likely_one(kind):
    """Against a search over factors by SciPy."""
    dist, y, _ = seen_rows(kind)
    seen = Outcomes.of(y)
    if kind == "zeros":
        seen = Outcomes(np.where(seen.lower == 0, -np.inf, seen.lower), seen.upper)
    exact = seen.exact_rows
    low, high = seen.lower - dist.loc, seen.upper - dist.loc

    def loss(log_factor):
        a, b = low[~exact] / np.exp(log_factor), high[~exact] / np.exp(log_factor)
        flipped = a > 0
        a, b = np.where(flipped, -b, a), np.where(flipped, -a, b)
        between = log_ndtr(b) + np.log1p(-np.exp(log_ndtr(a) - log_ndtr(b)))
        z = low[exact] / np.exp(log_factor)
        points = -0.5 * z**2 - log_factor
        prior = -0.5 * np.exp(-2 * log_factor) - log_factor
        return -between.sum() - points.sum() - prior

    best = minimize_scalar(loss, bounds=(-2, 2), method="bounded", options={"xatol": 1e-10})
    fitted = regcal.ScaleCalibrator(support=None).fit(dist, seen)
    assert fitted.factor_ == pytest.approx(np.exp(best.x), rel=1e-5)


def test_all_candidates_are_scored_by_the_same_measure():
    """The identity's score in `auto` is that of the clipped base."""
    dist, y, _ = seen_rows("zeros")
    auto = calibrator("auto").fit(dist, y)
    clipped = regcal.Clipped(dist, low=0.0)

    assert auto.scores_[0].log_score == pytest.approx(regcal.log_score(y, clipped).mean())


@pytest.mark.parametrize("beyond", [(-2.0, -2.0), (-3.0, -1.0), (-np.inf, -1.0)])
def test_a_later_outcome_removes_a_found_end(beyond):
    """With a warning, as what was predicted so far was different; whatever was seen of it."""
    dist, y, _ = seen_rows("zeros")
    outcome = Outcomes(*np.transpose([beyond]))
    growing = calibrator("pit").partial_fit(dist, y)
    assert growing.support_.low == 0.0

    with pytest.warns(UserWarning, match="seen beyond 0, which looked like an end"):
        growing.partial_fit(dist[:1], outcome)
    assert growing.support_.low == -np.inf

    lower, upper = (np.append(y, end) for end in beyond)
    rows = np.append(np.arange(len(y)), 0)
    assert calibrator("pit").fit(dist[rows], Outcomes(lower, upper)).support_.low == -np.inf


def test_an_interval_that_reaches_an_end_leaves_it():
    """Its middle lies beyond the end, but what was seen may be the end itself."""
    dist, y, _ = seen_rows("zeros")
    seen = Outcomes(np.append(y[1:], -3.0), np.append(y[1:], 1.0))

    assert calibrator("pit").fit(dist, seen).support_.low == 0.0


@pytest.mark.parametrize(
    ("later", "step", "now"), [([0.3, 1.7], 0.0, "continuous"), ([0.5], 0.5, r"multiples of 0\.5")]
)
def test_a_later_outcome_removes_a_found_step(later, step, now):
    """With a warning, as what was predicted so far was different; a finer step may be left."""
    dist, y, _ = seen_rows("counts")
    growing = calibrator("pit", step="auto").partial_fit(dist, y)
    growing.partial_fit(dist, y)  # which is no reason to warn
    assert growing.support_.step == 1.0

    with pytest.warns(UserWarning, match=f"rounded to multiples of 1, .* are {now} from here on"):
        growing.partial_fit(dist[: len(later)], later)
    assert (growing.support_.step, growing.support_.smooth) == (step, False)


def test_censored_rows_wait_for_an_outcome():
    """Those of a first batch are kept, as its error says, and count with later ones."""
    dist, y, _ = seen_rows("right")
    order = np.argsort(y.exact_rows, kind="stable")
    dist, y, first = dist[order], y[order], slice(0, int((~y.exact_rows).sum()))
    growing = calibrator("pit")
    with pytest.raises(ValueError, match=r"censored: .* are kept: go on with partial_fit"):
        growing.partial_fit(dist[first], y[first])
    growing.partial_fit(dist[first.stop :], y[first.stop :])

    assert growing.n_rows_seen_ == len(y)
    assert_allclose(answers(growing), answers(calibrator("pit").fit(dist, y)), rtol=1e-9)


def test_bad_outcomes_get_clear_errors():
    """Each names the value, the rule and the way out."""
    dist, y = latent_rows(20)
    cal = calibrator("pit")
    with pytest.raises(ValueError, match="lower must not exceed upper"):
        Outcomes([1.0], [0.0])
    with pytest.raises(ValueError, match=r"lies outside the support .* Widen support="):
        calibrator("pit", support=(0.0, None)).fit(dist, y)
    with pytest.raises(ValueError, match="All 20 outcomes are censored"):
        cal.fit(dist, Outcomes.right_censored(y, np.zeros(20, dtype=bool)))
    with pytest.raises(ValueError, match="None of the 2 outcomes is possible"):
        bounded = regcal.Histogram([-1.0, 1.0], [[1.0], [1.0]])
        cal.fit(bounded, Outcomes([-np.inf, 1e3], [-1e3, 2e3]))
    events = np.array([(True, -1.0)], dtype=[("event", bool), ("time", float)])
    with pytest.raises(ValueError, match="time must not be negative, got -1"):
        Outcomes.of(events)
    with pytest.raises(ValueError, match="no multiples of step=1"):
        calibrator("pit", step=1.0).fit(dist, y)
    with pytest.raises(ValueError, match=r"support must be .* got 'positive'"):
        calibrator("pit", support="positive").fit(dist, y)
    with pytest.raises(ValueError, match="paper's classifier knows no labels"):
        calibrator("gpc-paper").fit(dist, Outcomes.right_censored(y, y < 0))


@pytest.mark.parametrize("name", TAKES_INTERVALS)
def test_censored_rows_need_no_step_and_may_reach_beyond_an_end(name):
    """Only exact outcomes are multiples; an interval is impossible if all of it lies beyond."""
    dist, y = latent_rows(60)
    counts = np.clip(np.round(2 * y), 0.0, 4.0)
    lower, upper = counts.copy(), counts.copy()
    lower[:20], upper[:20] = counts[:20] - 0.3, np.inf
    upper[20:30] = 7.0
    asked = calibrator(name, support=(0.0, 4.0), step=1.0)
    mass = asked.fit(dist, Outcomes(lower, upper)).transform(dist).mass(np.arange(5.0)[np.newaxis])

    assert_allclose(mass.sum(axis=1), 1.0)
    upper[30] = lower[30] = 4.3
    with pytest.raises(ValueError, match=r"outcome 4\.3 lies outside the support"):
        asked.fit(dist, Outcomes(lower, upper))
    upper[30] = np.inf
    with pytest.raises(ValueError, match=r"outcome 4\.3 lies outside the support"):
        asked.fit(dist, Outcomes(lower, upper))
    upper[30] = lower[30] = 3.3
    with pytest.raises(ValueError, match=r"no multiples of step=1\.0, the first is 3\.3"):
        asked.fit(dist, Outcomes(lower, upper))


@pytest.mark.parametrize(
    ("options", "value"), [({"support": (0.0, None)}, -1.0), ({"step": 1.0}, 2.5)]
)
def test_refused_rows_are_named_as_they_were_given(options, value):
    """Rows of weight 0 are numbered, though not refused; folds and parts have no say."""
    y, weights = np.arange(60.0), np.ones(60)
    y[[3, 41]], weights[3] = value, 0.0
    dist, X = Normal(y, np.ones(60)), y[:, np.newaxis]
    asked = calibrator("pit", **options)

    for fit in (
        lambda: asked.fit(dist, y, weights),
        lambda: asked.new_observed().add(dist, y, weights),
        lambda: regcal.AutoCalibrator(**options).select(dist, y, weights),
        lambda: regcal.CalibratedRegressorCV(BayesianRidge(), asked).fit(X, y, weights),
        lambda: regcal.CalibratedRegressorCV(
            BayesianRidge(), "pit", guarantee="split", **options
        ).fit(X, y, weights),
        lambda: regcal.online.OnlineCalibrator(asked).update(dist, y, weights),
    ):
        with pytest.raises(ValueError, match=f"{value}.* in row 41"):
            fit()


@pytest.mark.parametrize("bad", [[-1.0, 2.0], [0.0, 2.5]])
def test_refused_rows_leave_nothing_behind(bad):
    """After an error, more rows can be added as if the bad ones had not come."""
    dist, y = latent_rows(40)
    counts = np.maximum(np.round(2 * y), 0.0)
    growing, other = (calibrator("pit", support=(0.0, None), step=1.0) for _ in range(2))
    for one in (growing, other):
        one.partial_fit(dist[:30], counts[:30])
    with pytest.raises(ValueError, match=r"support|multiples"):
        growing.partial_fit(dist[:2], bad)

    later = [one.partial_fit(dist[30:], counts[30:]) for one in (growing, other)]

    assert later[0].n_rows_seen_ == 40
    assert_allclose(answers(later[0]), answers(later[1]), rtol=0)


def rows_of_few_predictions(kind, n_predictions, seed):
    """Predictions, what was seen, the outcomes themselves, and where to look at their shares."""
    rng = np.random.default_rng(seed)
    loc = np.repeat([3.0] if n_predictions == 1 else np.linspace(2, 5, n_predictions), 900)
    loc = loc[::n_predictions]
    y = rng.poisson(loc).astype(float) if kind == "counts" else rng.gamma(2.0, loc / 2)
    if kind == "zeros":
        y[rng.uniform(size=900) < 0.4] = 0.0
    seen, points, parameters = {
        "zeros": (y, [0, 1, 2, 4], {}),
        "counts": (y, range(1, 8), {"step": 1}),
        "left": (Outcomes.left_censored(np.maximum(y, 1.5), y > 1.5), [1.5, 2, 3, 5], {}),
        "visits": (Outcomes(2 * np.floor(y / 2), 2 * np.floor(y / 2) + 2), [2, 4, 6, 8], {}),
    }[kind]
    return Normal(loc, np.full(900, 2.0)), seen, y, np.array([*points], dtype=float), parameters


@pytest.mark.parametrize("kind", ["zeros", "counts", "left", "visits"])
@pytest.mark.parametrize(
    ("name", "n_predictions"),
    [("isotonic", 1), ("isotonic", 3), ("isotonic", 12), ("auto", 1), ("auto", 3)],
)
def test_few_predictions_get_the_shares_of_their_outcomes(name, n_predictions, kind):
    """Equal rows are not left out together: learnt CDFs are as near as chance to what was seen.

    That is the root mean square of their distances to the shares of outcomes of each prediction,
    in standard errors of these.
    """
    errors = []
    for seed in range(3 if name == "isotonic" else 2):
        dist, seen, y, points, parameters = rows_of_few_predictions(kind, n_predictions, seed)
        learner = regcal.get_calibrator("isotonic", **parameters)
        if name == "auto":
            known = ("identity", "pit", "isotonic")
            candidates = [(one, regcal.get_calibrator(one)) for one in known]
            learner = regcal.AutoCalibrator(candidates, **parameters)
        learner.fit(dist, seen)
        for loc in np.unique(dist.loc):
            own = dist.loc == loc
            share = (y[own, np.newaxis] <= points).mean(axis=0)
            spread = np.sqrt(np.maximum(share * (1 - share), 0.01) / own.sum())
            learnt = learner.transform(dist[own][:1]).cdf(points[np.newaxis, :])[0]
            errors.append((learnt - share) / spread)

    assert np.sqrt(np.mean(np.square(errors))) < 1.5


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("name", ["pit", "isotonic", "e-beta", "gpc", "gp-density"])
def test_censoring_makes_no_mass_at_an_end_where_none_was_seen(name, side, rng):
    """Below a limit of detection there is what is predicted above the end; at it, what was seen."""
    y = rng.gamma(2.0, 1.0, 400)
    dist = Normal(np.full(400, side * 2.0), 1.5)  # 9 % beyond 0
    support = (0.0, None) if side > 0 else (None, 0.0)

    def mass_at_end(y):
        known = (y > 1.0) | (y == 0)
        censored = Outcomes.left_censored if side > 0 else Outcomes.right_censored
        seen = censored(side * np.where(known, y, 1.0), known)
        calibrator = regcal.get_calibrator(name, support=support).fit(dist, seen)
        return calibrator.transform(dist[:1]).mass(0.0)[0]

    assert mass_at_end(y) < 0.01
    assert mass_at_end(np.where(rng.random(400) < 0.3, 0.0, y)) > 0.25


def test_an_end_is_bare_until_an_outcome_is_seen_there(rng):
    """Whatever came before it: batches tell what all rows at once do."""
    y = rng.gamma(2.0, 1.0, 300)
    seen = Outcomes.left_censored(np.maximum(y, 1.0), y > 1.0)
    zeros, dist = Outcomes.exact(np.zeros(60)), Normal(np.full(300, 2.0), 1.5)
    both = Outcomes(
        *(np.r_[a, b] for a, b in ((seen.lower, zeros.lower), (seen.upper, zeros.upper)))
    )
    whole, parts = (regcal.get_calibrator("gpc", support=(0.0, None)) for _ in range(2))
    whole.fit(Normal(np.full(360, 2.0), 1.5), both)
    parts.partial_fit(dist, seen)

    assert parts.support_.bare_low
    parts.partial_fit(dist[:60], zeros)
    assert parts.support_ == whole.support_ == regcal.calibrators.Support(low=0.0)
    assert_allclose(parts.transform(dist[:1]).mass(0.0), whole.transform(dist[:1]).mass(0.0))
