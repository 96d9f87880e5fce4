"""What a calibrated regressor promises comes from rows that nothing in it has seen."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from cases import DISTRIBUTIONS, STANDARD, WITH_MASSES
from numpy.testing import assert_allclose, assert_array_equal
from rows import QUICK_AUTO, Recorder, checked_by_scikit_learn, there_and_back
from sklearn.base import clone
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, TimeSeriesSplit

import regcal
from regcal import (
    CalibratedRegressorCV,
    ConformalLevels,
    CrossGuarantee,
    Normal,
    Outcomes,
    SplitGuarantee,
)
from regcal.regressor._guarantee import Difference


@checked_by_scikit_learn(
    {
        "split": CalibratedRegressorCV(
            BayesianRidge(), "scale", cv=2, guarantee=SplitGuarantee(rows=0.3)
        ),
        "cross": CalibratedRegressorCV(
            BayesianRidge(), "scale", cv=2, guarantee=CrossGuarantee(cv=4)
        ),
    }
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator, check):
    """All of scikit-learn's own checks pass, but for one that needs rows dealt by their values."""
    if check.func.__name__.startswith("check_sample_weight_equivalence"):
        pytest.skip("a row of weight 2 is held out as one, two equal rows are dealt apart")
    check(estimator)


def fitted(data, guarantee, calibrator="scale", **options):
    model = CalibratedRegressorCV(BayesianRidge(), calibrator, guarantee=guarantee, **options)
    return model.fit(*data)


# ------------------------------------------------------------------------------------------- split


@pytest.mark.parametrize("calibrator", ["scale", QUICK_AUTO])
def test_split_is_a_model_of_some_rows_and_levels_of_the_others(data, calibrator):
    """By hand: the last fold of the splitter is held out of everything."""
    X, y = data
    train, test = list(KFold(3).split(X))[-1]

    model = fitted(data, "split", calibrator, cv=KFold(3))

    plain = CalibratedRegressorCV(BayesianRidge(), calibrator, cv=KFold(3))
    plain.fit(X[train], y[train])
    levels = ConformalLevels().fit(plain.predict_dist(X[test]), y[test])
    assert_array_equal(model.predict_interval(X), plain.predict_interval(X))
    assert_array_equal(
        model.predict_interval(X, 0.8, guarantee=True).T,
        levels.interval(plain.predict_dist(X), 0.8),
    )
    assert_array_equal(
        model.predict_quantiles(X, [0.1, 0.8], guarantee=True),
        levels.bounds(plain.predict_dist(X), [0.1, 0.8]),
    )
    assert model.guarantee_.exact
    assert "guarantee" in str(model.guarantee_)


@pytest.mark.filterwarnings("ignore::regcal.FewRowsWarning")
@pytest.mark.parametrize(
    ("n_rows", "rows", "held_out"),
    [
        (20, None, 10),
        (150, None, 75),
        (300, None, 100),
        (800, None, 200),
        (6000, None, 1000),
        (150, 40, 40),
        (150, 0.2, 30),
    ],
)
def test_rows_that_are_held_out(n_rows, rows, held_out, rng):
    """A quarter, but 100 if half of the rows are as many, or as many as are asked for."""
    X = rng.normal(size=(n_rows, 1))
    model = CalibratedRegressorCV(BayesianRidge(), "scale", guarantee=SplitGuarantee(rows))
    model.fit(X, X[:, 0] + rng.normal(size=n_rows))

    assert len(model.guarantee_.levels.weights_) == held_out


def test_later_rows_are_held_out_in_time_order(rng):
    """The model of a time series has seen none of the rows that judge it, nor later ones."""
    X, y = np.arange(120.0)[:, np.newaxis], rng.normal(size=120)
    model = CalibratedRegressorCV(Recorder(), "scale", cv=TimeSeriesSplit(3), ensemble=False)

    model.set_params(guarantee="split").fit(X, y)

    assert_array_equal(model.members_[0].estimator.rows_, np.arange(90.0))


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored by KFold")
@pytest.mark.parametrize("cv", [3, GroupKFold(3)])
@pytest.mark.parametrize("guarantee", ["split", "cross"])
def test_groups_stay_together(cv, guarantee, rng):
    """No row is held out of a model that has seen others of its group."""
    groups = np.repeat(np.arange(30), 5)
    X = np.column_stack([groups, rng.normal(size=150)]).astype(float)
    y = rng.normal(size=30)[groups] + 0.01 * X[:, 1]
    model = CalibratedRegressorCV(Lookup(), "identity", cv=cv, guarantee=guarantee)

    levels = model.fit(X, y, groups=groups).guarantee_.levels

    # of a group that it has seen, the model knows the outcome
    assert np.abs(levels.high_).min() > 0.05


class Lookup(Recorder):
    """Predicts the mean of what it has seen of the group in the first column, else 0."""

    def fit(self, X, y, sample_weight=None):
        self.known_ = {group: y[X[:, 0] == group].mean() for group in np.unique(X[:, 0])}
        return self

    def predict(self, X, return_std=False):
        return np.array([self.known_.get(group, 9.0) for group in X[:, 0]]), np.ones(len(X))


# ------------------------------------------------------------------------------------------- cross


def test_cross_is_a_model_of_all_rows_and_levels_of_folds(data):
    """By hand: each fold's rows are judged by a model, calibrator and choice without them."""
    X, y = data
    model = fitted(data, "cross", QUICK_AUTO, cv=KFold(4))

    plain = CalibratedRegressorCV(BayesianRidge(), QUICK_AUTO, cv=KFold(4))
    expected = np.empty(len(y))
    for train, test in KFold(4).split(X):
        part = clone(plain).fit(X[train], y[train])
        expected[test] = part.predict_dist(X[test]).probit(y[test])
    assert_allclose(model.guarantee_.levels.high_, expected)
    assert_array_equal(model.predict_interval(X), plain.fit(X, y).predict_interval(X))
    assert not model.guarantee_.exact
    assert "approximate" in str(model.guarantee_)


def test_rows_that_are_held_out_twice_count_once(data):
    """Repeated folds do not make more rows."""
    model = fitted(data, "cross", cv=RepeatedKFold(n_splits=3, n_repeats=2, random_state=0))

    assert_allclose(model.guarantee_.levels.weights_.sum(), 150.0)


class Boastful(Recorder):
    """States a spread that changes with the number of rows it was fitted on."""

    def __init__(self, power=0.0, follows=0.0):
        self.power, self.follows = power, follows

    def fit(self, X, y, sample_weight=None):
        self.scale_ = (len(y) / 160.0) ** self.power
        self.known_ = dict(zip(np.asarray(X)[:, 0].tolist(), y.tolist(), strict=True))
        return self

    def predict(self, X, return_std=False):
        seen = np.array([self.known_.get(x, 0.0) for x in np.asarray(X)[:, 0]])
        return self.follows * seen, np.full(len(X), self.scale_)


@pytest.mark.parametrize(
    ("model", "refused"),
    [
        (Boastful(), False),
        (Boastful(power=-3.0), True),  # half of the spread with 5/4 of the rows
        (Boastful(power=-0.1), False),
        (Boastful(power=3.0), False),  # promises too little, which is allowed
        (Boastful(follows=0.5), False),  # follows rows that it has seen, and is as sure of them
    ],
)
def test_cross_is_refused_where_the_model_says_something_else(model, refused, rng):
    """It is judged by what the models of the folds say of the same rows."""
    X, y = rng.normal(size=(200, 1)), rng.normal(size=200)
    regressor = CalibratedRegressorCV(model, "identity", ensemble=False, guarantee="cross")
    regressor.fit(X, y)

    if refused:
        with pytest.raises(ValueError, match=r"cross cannot tell how to reach 0\.9: .*less \(its"):
            regressor.predict_interval(X, 0.9, guarantee=True)
        with pytest.raises(ValueError, match=r"cross cannot tell how to reach 0\.95"):
            regressor.predict_quantiles(X, [0.05], guarantee=True)
    else:
        assert regressor.predict_interval(X, 0.9, guarantee=True).shape == (200, 2)
        assert regressor.predict_quantiles(X, [0.05, 0.9], guarantee=True).shape == (200, 2)


BATCHES = {case.name: lambda case=case: case.make(3, n_rows=9) for case in DISTRIBUTIONS} | {
    name: lambda make=make: make(STANDARD) for name, make in WITH_MASSES.items()
}


@pytest.mark.parametrize("name", BATCHES)
def test_nothing_is_lost_where_models_say_the_same(name, rng):
    """For every distribution, masses included, the difference of equals is none."""
    dist = BATCHES[name]()
    levels = ConformalLevels().fit(dist, dist.ppf(rng.uniform(0.2, 0.8, size=len(dist))))

    difference = Difference.between(dist, dist, levels)

    assert_allclose(difference.ratios, 1.0, atol=1e-6)
    assert_allclose(difference.shifts, 0.0, atol=1e-6)
    assert_allclose(difference.lost(levels, -1.0, 1.0), 0.0, atol=1e-9)


def test_a_difference_is_told_in_units_of_the_folds_models(rng):
    """Closed form for normal distributions: P(-w < Z < w) falls to P(d - rw < Z < d + rw)."""
    y = rng.normal(size=20_000)
    said, fitted = Normal(np.zeros(20_000), 2.0), Normal(np.full(20_000, 0.6), 1.0)
    levels = ConformalLevels().fit(said, 2.0 * y)

    difference = Difference.between(said, fitted, levels)
    expected = Normal([0.0], [1.0]).prob(-1.6, 1.6) - Normal([0.0], [1.0]).prob(-0.5, 1.1)

    assert_allclose(difference.ratios, 0.5)
    assert_allclose(difference.shifts, 0.3, atol=0.02)
    assert_allclose(difference.lost(levels, -1.6, 1.6), expected, atol=0.02)


# ------------------------------------------------------------------------------ groups and weights


def test_groups_by_columns_of_a_frame(rng):
    """Each group's interval is as wide as its own rows ask for."""
    frame = pd.DataFrame({"x": rng.normal(size=400), "kind": ["quiet", "wild"] * 200})
    frame["number"] = (frame["kind"] == "wild").astype(float)
    y = frame["x"] + np.where(frame["kind"] == "wild", 5.0, 0.5) * rng.normal(size=400)
    base = Columns("x")
    model = CalibratedRegressorCV(base, "scale", guarantee=SplitGuarantee(0.5, by="kind"))

    ends = model.fit(frame, y).predict_interval(frame, 0.9, guarantee=True)

    width = (ends["upper"] - ends["lower"]).groupby(frame["kind"]).mean()
    inside = ((ends["lower"] <= y) & (y <= ends["upper"])).groupby(frame["kind"]).mean()
    assert width["wild"] > 4 * width["quiet"]
    assert (inside > 0.8).all()
    with pytest.raises(ValueError, match="'color'"):
        model.set_params(guarantee__by="color").fit(frame, y)


class Columns(Recorder):
    """Predicts a column of a frame, with a spread of 1."""

    def __init__(self, column):
        self.column = column

    def predict(self, X, return_std=False):
        return X[self.column].to_numpy(), np.ones(len(X))


@pytest.mark.filterwarnings("ignore::regcal.FewRowsWarning")
def test_weights_of_old_and_new_rows_count(data):
    """They are those of the layer below; rows of weight 0 do not count."""
    X, y = data
    weights = np.where(X[:, 0] > 0, np.where(X[:, 1] > 0, 1.0, 2.0), 0.0)
    model = CalibratedRegressorCV(BayesianRidge(), "scale", guarantee="split")
    model.fit(X, y, sample_weight=weights)

    known = model.guarantee_.levels.weights_
    heavy, light = (
        model.predict_interval(X, 0.8, guarantee=True, sample_weight=np.full(150, weight))
        for weight in (9.0, 1.0)
    )

    assert set(known) == {1.0, 2.0}
    assert 20 < len(known) < 55
    assert f"from {len(known)} rows" in str(model.guarantee_)
    assert (np.diff(heavy) > np.diff(light)).all()
    with pytest.raises(ValueError, match="Pass sample_weight= of the new rows"):
        model.predict_interval(X, 0.8, guarantee=True)


@pytest.mark.parametrize("unit", [1e-3, 1e3])
@pytest.mark.parametrize("guarantee", [SplitGuarantee(rows=9), CrossGuarantee(cv=3)])
def test_equal_weights_promise_what_no_weights_do(data, guarantee, unit):
    """A weight of 1000 for each row makes no rows, whatever it teaches the model."""
    X, y = (part[:60] for part in data)
    cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    cv = cv if isinstance(guarantee, CrossGuarantee) else 3
    model = CalibratedRegressorCV(BayesianRidge(), "scale", cv=cv, guarantee=guarantee)

    plain = model.fit(X, y).guarantee_
    weighted = model.fit(X, y, sample_weight=np.full(60, unit)).guarantee_

    assert str(weighted) == str(plain)
    assert_array_equal(weighted.levels.weights_, plain.levels.weights_)
    with pytest.raises(ValueError, match=r"needs 99 held-out rows, and there are (9|60):"):
        model.predict_interval(X, 0.99, guarantee=True)
    with pytest.raises(ValueError, match="Pass sample_weight= to fit as well"):
        model.predict_interval(X, 0.8, guarantee=True, sample_weight=1.0 + np.arange(60))
    same = model.predict_interval(X, 0.8, guarantee=True, sample_weight=np.full(60, unit))
    assert_array_equal(same, model.predict_interval(X, 0.8, guarantee=True))


def test_weights_of_all_rows_tell_whether_they_differ(data):
    """Also where those of the rows that are held out are equal by chance."""
    X, y = data
    weights = np.r_[0.5, np.full(149, 2.0)]
    model = CalibratedRegressorCV(BayesianRidge(), "scale", cv=KFold(3), guarantee="split")
    model.fit(X, y, sample_weight=weights)

    assert (model.guarantee_.levels.weights_ == 2.0).all()
    assert model.predict_interval(X, 0.8, True, sample_weight=weights).shape == (150, 2)
    with pytest.raises(ValueError, match="Pass sample_weight= of the new rows"):
        model.predict_interval(X, 0.8, guarantee=True)


def test_held_out_rows_without_weight_are_told(data):
    """They tell nothing."""
    X, y = data
    model = CalibratedRegressorCV(BayesianRidge(), "scale", cv=KFold(3), guarantee="split")

    with pytest.raises(ValueError, match="All 50 rows that are held out have weight 0"):
        model.fit(X, y, sample_weight=np.repeat([1.0, 1.0, 0.0], 50))


# ------------------------------------------------------------------------------------------- other


@pytest.mark.parametrize("guarantee", ["split", CrossGuarantee(cv=3, by=[1])])
def test_kept_in_files(data, guarantee, tmp_path):
    """A model with a guarantee is stored and loaded, by pickle too."""
    X, y = data
    X = np.column_stack([X[:, 0], np.sign(X[:, 1])])
    model = fitted((X, y), guarantee)
    expected = model.predict_interval(X, 0.8, guarantee=True)

    for again in (there_and_back(model, tmp_path / "m.regcal"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(again.predict_interval(X, 0.8, guarantee=True), expected)
        assert again.fingerprint() == model.fingerprint()


def test_a_new_fit_forgets_the_old_promise(data):
    """What was promised of an earlier model is not promised of this one."""
    model = fitted(data, "split", QUICK_AUTO)
    model.set_params(guarantee=None, calibrator="scale").fit(*data)

    assert not hasattr(model, "guarantee_")
    with pytest.raises(ValueError, match=r'Pass guarantee="split" or "cross"'):
        model.predict_interval(data[0], guarantee=True)
    assert not hasattr(model.set_params(guarantee="split").fit(*data), "selection_")


def test_files_from_before_there_were_guarantees():
    """They come back as models that promise nothing."""
    model = regcal.load(Path(__file__).parents[1] / "golden" / "regressor.regcal")

    assert "BayesianRidge" in repr(model)
    assert model.guarantee is None


def test_censored_outcomes_have_lower_bounds(data):
    """Survival times: of the 50 rows held out, 46 last as long as promised, and no more.

    That is ceil(0.9 (50 + 1)), where a censored row counts as long as it was looked at.
    """
    X, y = data
    seen = Outcomes.right_censored(np.minimum(y, 2.0), observed=y <= 2.0)
    model = fitted((X, seen), "split", "pit", cv=KFold(3))

    held_out = slice(100, 150)
    bounds = model.predict_quantiles(X[held_out], [0.1], guarantee=True)[:, 0]
    assert np.count_nonzero(seen.lower[held_out] >= bounds) == 46
    assert np.count_nonzero(y[held_out] >= bounds) >= 46
    with pytest.raises(ValueError, match="censored"):
        model.predict_interval(X, 0.95, guarantee=True)


def test_rows_that_tell_nothing_tell_of_no_difference(rng):
    """Of those censored before anything can happen, the probits of both ends are infinite."""
    seen = Outcomes(
        np.r_[np.zeros(5), np.full(35, 1.0)], np.r_[np.full(5, np.inf), np.full(35, 1.0)]
    )
    dist = regcal.ScipyDistribution(scipy.stats.expon(scale=np.linspace(0.5, 3.0, 40)))
    levels = ConformalLevels().fit(dist, seen)

    difference = Difference.between(dist, dist, levels)

    assert levels.low_[0] == -np.inf
    assert_allclose(difference.shifts, 0.0, atol=1e-9)
    assert_allclose(difference.lost(levels, -np.inf, 1.0), 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": [(np.arange(100), np.arange(100, 150))]}, "folds within folds"),
        ({"guarantee": SplitGuarantee(150)}, "rows=150 holds out 150 of n_samples=150"),
        ({"guarantee": SplitGuarantee(0.001)}, "holds out 0 of n_samples=150"),
        ({"guarantee": SplitGuarantee(149)}, "rows=149 .*leaves 1.* at least 6 to fit"),
        ({"guarantee": SplitGuarantee("a")}, "rows='a' is neither a share"),
        ({"guarantee": SplitGuarantee(2.5)}, "rows=2.5 is neither a share"),
        ({"guarantee": SplitGuarantee(True)}, "rows=True is neither a share"),
        ({"guarantee": SplitGuarantee(-3)}, "rows=-3 is neither a share"),
        ({"guarantee": SplitGuarantee(by=len)}, "by=<built-in function len> names no columns"),
        ({"guarantee": CrossGuarantee(by=[])}, r"by=\[\] names no columns"),
    ],
)
def test_what_cannot_be_held_out_is_told(data, options, message):
    """There must be rows to learn from and rows to judge by."""
    with pytest.raises(ValueError, match=message):
        CalibratedRegressorCV(BayesianRidge(), "scale").set_params(
            **{"guarantee": "split"} | options
        ).fit(*data)


@pytest.mark.parametrize(
    ("guarantee", "way"),
    [("split", r"rows by SplitGuarantee\(rows="), ("cross", "Fit it on more rows")],
)
def test_too_few_rows_are_told_with_a_way_out(data, guarantee, way):
    """Cross cannot hold out more than all rows."""
    model = fitted(data, guarantee)

    with pytest.raises(ValueError, match=rf"needs 999 .*{way}.*, or ask for .* at most 0\.9"):
        model.predict_interval(data[0], 0.999, guarantee=True)
    with pytest.raises(ValueError, match=rf"needs 999 .*{way}"):
        model.predict_quantiles(data[0], [0.001], guarantee=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"guarantee": "cross"}, "guarantee must be True or False here, got 'cross'"),
        ({"guarantee": 1}, "guarantee must be True or False here, got 1"),
        ({"sample_weight": np.ones(150)}, "without guarantee=True"),
    ],
)
def test_questions_that_mean_nothing_are_told(data, options, message):
    """Nothing is passed over in silence."""
    model = fitted(data, "split")

    with pytest.raises(ValueError, match=message):
        model.predict_interval(data[0], 0.9, **options)
    with pytest.raises(ValueError, match=message):
        model.predict_quantiles(data[0], [0.9], **options)
    with pytest.raises(ValueError, match="coverage is None"):
        model.predict_interval(data[0], None, guarantee=True)
    with pytest.raises(ValueError, match="levels is None"):
        model.predict_quantiles(data[0], None)


def test_a_guarantee_is_shown_in_a_line(data):
    """Without the arrays it is made from."""
    assert len(repr(fitted(data, "cross").guarantee_)) < 80
