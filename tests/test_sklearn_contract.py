"""Calibrators, binary maps and regressors with any calibrator keep scikit-learn's contract.

scikit-learn's checks feed a matrix X to ``fit``. Calibrators take distributions and binary
maps take one column of probabilities, so most of them cannot run; those that look at
construction and parameters only are called one by one. What the others would check (cloning,
weights, repeated fits, unchanged parameters) is tested on distributions. `CalibratedRegressorCV`
takes a matrix, and passes all checks with every calibrator.
"""

import inspect
import pickle

import numpy as np
import pytest
from cases import CALIBRATORS, DISTRIBUTIONS, outcomes
from numpy.testing import assert_allclose, assert_array_equal
from rows import checked_by_scikit_learn
from sklearn.base import clone
from sklearn.linear_model import BayesianRidge
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

import regcal

ESTIMATORS = CALIBRATORS | {
    "BetaCalibrator": regcal.BetaCalibrator,
    "LogisticCalibrator": regcal.LogisticCalibrator,
    "OneVsRestCalibrator": regcal.OneVsRestCalibrator,
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
every_calibrator = pytest.mark.parametrize("name", CALIBRATORS)
# The paper's reference draws its pairs at random, so that every order of rows gives another draw.
every_exact_calibrator = pytest.mark.parametrize(
    "name", [name for name in CALIBRATORS if name != "gpc-paper"]
)
every_map = pytest.mark.parametrize("binary", [regcal.BetaCalibrator, regcal.LogisticCalibrator])

# These never call fit with a matrix.
CHECKS = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_mixin_order",
]


@every_estimator
@pytest.mark.parametrize("check", CHECKS)
def test_scikit_learns_own_checks(name, check):
    """Construction and parameters are as scikit-learn wants them."""
    if not hasattr(estimator_checks, check):
        pytest.skip(f"this scikit-learn has no {check}")
    estimator = ESTIMATORS[name]()

    getattr(estimator_checks, check)(type(estimator).__name__, estimator)


def quick(name):
    """Return a calibrator by its name, with settings that cost little on a few rows."""
    if name == "auto":
        return regcal.AutoCalibrator([(one, quick(one)) for one in ("scale", "e-beta")])
    settings = {
        **{one: {"thresholds": 4} for one in ("e-logistic", "e-beta", "e-isotonic", "gpc")},
        # next to an end, where models that interpolate differ in noise alone, noise would decide
        # which rows are equal and share a fold: no end to learn
        "conditional": {
            "learner": "additive",
            "calibrator": regcal.PITCalibrator(),
            "support": None,
        },
        # pairs are drawn, so that a weight of 2 is two rows on average only: no end to learn
        "gpc-paper": {
            "n_pairs": 30,
            "prediction_thresholds": 8,
            "random_state": 0,
            "support": None,
        },
    }
    return regcal.get_calibrator(name, **settings.get(name, {}))


# Medians cost less than means. Averaged, a fold of three may hold two rows, whose targets may be
# equal; the other calibrators meet that in `test_calibrated.py`.
AVERAGED = ("scale", "pit", "e-beta")


@checked_by_scikit_learn(
    {
        name: regcal.CalibratedRegressorCV(
            BayesianRidge(),
            quick(name),
            cv=3 if name in AVERAGED else 2,
            ensemble=name in AVERAGED,
            point="median",
        )
        for name in regcal.calibrator_names()
    }
    | {
        "covariates": regcal.CalibratedRegressorCV(
            BayesianRidge(),
            quick("conditional"),
            cv=2,
            ensemble=False,
            point="median",
            covariates="all",
        )
    }
)
@pytest.mark.filterwarnings("ignore")
def test_regressors_pass_scikit_learns_checks_with_every_calibrator(estimator, check):
    """No calibrator breaks what scikit-learn asks of a regressor, on however few rows."""
    check(estimator)


@pytest.fixture
def rows(rng):
    """Return predictions and outcomes of forty rows."""
    dist = DISTRIBUTIONS[0].make(seed=7, n_rows=40)
    return dist, outcomes(dist)


def scores(name, dist, y, weight=None):
    """Return log densities of a fresh fit, on a grid."""
    fitted = CALIBRATORS[name]().fit(dist, y, sample_weight=weight)
    new = DISTRIBUTIONS[0].make(seed=8, n_rows=5)
    return fitted.transform(new).logpdf(np.linspace(-2.0, 3.0, 9)[np.newaxis, :])


@every_calibrator
def test_clone_forgets_the_fit_and_keeps_the_parameters(name, rows):
    """A clone is unfitted, has equal parameters and learns the same."""
    fitted = CALIBRATORS[name]().fit(*rows)
    copy = clone(fitted)

    assert repr(copy) == repr(CALIBRATORS[name]())
    assert not hasattr(copy, "n_rows_seen_")
    check_is_fitted(fitted)
    assert_array_equal(
        copy.fit(*rows).transform(rows[0]).logpdf(rows[1]),
        fitted.transform(rows[0]).logpdf(rows[1]),
    )


@every_calibrator
def test_fit_changes_no_parameter_and_returns_self(name, rows):
    """What a fit learns ends with an underscore; parameters stay the very objects given."""
    cal = CALIBRATORS[name]()
    before = cal.get_params(deep=False)
    nested = {key: repr(value) for key, value in cal.get_params().items()}

    assert cal.fit(*rows) is cal
    after = cal.get_params(deep=False)
    assert all(after[key] is value for key, value in before.items())
    assert {key: repr(value) for key, value in cal.get_params().items()} == nested
    learnt = set(vars(cal)) - set(before)
    assert learnt
    assert all(key.endswith("_") for key in learnt)


def test_parameters_of_parts_can_be_set():
    """The binary map's ridge is reached through the calibrator, and has an effect."""
    cal = regcal.get_calibrator("e-beta")
    dist = DISTRIBUTIONS[0].make(seed=7, n_rows=40)
    weak = cal.set_params(binary__ridge=1e-3).fit(dist, outcomes(dist)).maps_.coefficients_
    strong = cal.set_params(binary__ridge=1e6).fit(dist, outcomes(dist)).maps_.coefficients_

    assert cal.get_params()["binary__ridge"] == 1e6
    assert_allclose(strong, np.tile([1.0, 1.0, 0.0], (len(strong), 1)), atol=1e-2)
    assert np.abs(weak - strong).max() > 0.5


@every_calibrator
def test_a_second_fit_forgets_the_first(name, rows):
    """Fitting again is as fitting afresh."""
    dist, y = rows
    cal = CALIBRATORS[name]().fit(dist[:20], y[:20] * 3).fit(dist, y)

    fresh = CALIBRATORS[name]().fit(dist, y)
    assert_array_equal(cal.transform(dist).logpdf(y), fresh.transform(dist).logpdf(y))


@every_exact_calibrator
def test_weights_are_repetitions(name, rows, rng):
    """A weight of two counts as two rows."""
    dist, y = rows
    weight = rng.integers(1, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weight)

    assert_allclose(
        scores(name, dist, y, weight), scores(name, dist[repeated], y[repeated]), atol=1e-5
    )


@every_calibrator
def test_zero_weight_is_removal(name, rows):
    """A weight of zero leaves a row out, however strange it is."""
    dist, y = rows
    weight = np.ones(len(y))
    weight[::3] = 0.0
    strange = np.where(weight == 0, 1e6, y)
    kept = weight > 0

    assert_allclose(scores(name, dist, strange, weight), scores(name, dist[kept], y[kept]))


@every_calibrator
def test_unit_weights_are_no_weights(name, rows):
    """Weights of one change nothing."""
    assert_array_equal(scores(name, *rows, np.ones(40)), scores(name, *rows))


@every_exact_calibrator
def test_order_of_rows_does_not_matter(name, rows, rng):
    """Shuffled rows teach the same."""
    dist, y = rows
    order = rng.permutation(len(y))

    assert_allclose(scores(name, dist[order], y[order]), scores(name, dist, y), atol=1e-5)


@every_calibrator
def test_fitted_calibrators_can_be_pickled(name, rows):
    """A fitted calibrator comes back from another process as it was."""
    dist, y = rows
    fitted = CALIBRATORS[name]().fit(dist, y)

    copy = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(copy.transform(dist).logpdf(y), fitted.transform(dist).logpdf(y))


@every_calibrator
def test_inputs_are_not_changed(name, rows):
    """Targets and weights stay as the caller has them."""
    dist, y = rows
    y.flags.writeable = False
    weight = np.ones(len(y))
    weight.flags.writeable = False

    scores(name, dist, y, weight)


def test_every_calibrator_is_of_one_base():
    """Names lead to calibrators whose fit and transform take the same arguments."""
    for name in regcal.calibrator_names():
        cal = regcal.get_calibrator(name)
        assert isinstance(cal, regcal.Calibrator)
        fit, transform = (
            list(inspect.signature(one).parameters) for one in (cal.fit, cal.transform)
        )
        assert fit == ["dist", "y", "sample_weight", "covariates"]
        assert transform == ["dist", "covariates"]


# -------------------------------------------------------------------------------------- binary maps


@pytest.fixture
def labelled(rng):
    """Return probabilities and labels."""
    p = rng.uniform(size=60)
    return p, (rng.uniform(size=60) < p**2).astype(int)


@every_map
def test_map_weights_are_repetitions(binary, labelled, rng):
    """Integer weights repeat, zero weights remove."""
    p, labels = labelled
    weight = rng.integers(0, 3, len(p))
    repeated = np.repeat(np.arange(len(p)), weight)

    weighted = binary().fit(p, labels, sample_weight=weight).coefficients_
    assert_allclose(weighted, binary().fit(p[repeated], labels[repeated]).coefficients_, atol=1e-7)


@every_map
def test_map_takes_columns_and_clones(binary, labelled):
    """A column is as good as a flat array, and a clone learns the same."""
    p, labels = labelled
    flat = binary().fit(p, labels)

    column = clone(flat).fit(p[:, np.newaxis], labels)
    assert_array_equal(flat.predict(p), column.predict(p[:, np.newaxis]))
    assert ((flat.predict([0.0, 1.0]) >= 0) & (flat.predict([0.0, 1.0]) <= 1)).all()


@every_map
def test_unfitted_map_is_refused(binary):
    """Predicting before fitting says so."""
    with pytest.raises(Exception, match="not fitted yet"):
        binary().predict([0.5])
