"""Bad input is refused with a message that names the value, the rule and the way out."""

import re

import numpy as np
import pytest
import scipy.stats
from cases import CALIBRATORS
from sklearn.exceptions import NotFittedError

import regcal
from regcal import grids


def refuses(*parts, error=ValueError):
    """Expect an error whose message holds all parts, in this order."""
    return pytest.raises(error, match=r"(?s)" + ".*".join(re.escape(part) for part in parts))


def logistic_cdf(points, rows):
    return scipy.stats.logistic.cdf(points)


NORMAL = regcal.Normal([0.0, 1.0, 2.0], 1.0)

BAD_DISTRIBUTIONS = {
    "NaN in loc": (
        lambda: regcal.Normal([0.0, np.nan], 1.0),
        ("loc", "1 value(s)", "not finite", "nan at index 1", "Remove or impute"),
    ),
    "infinite scale": (
        lambda: regcal.Normal([0.0, 1.0], [1.0, np.inf]),
        ("scale", "inf at index 1"),
    ),
    "zero scale": (
        lambda: regcal.Normal([0.0, 1.0], [1.0, 0.0]),
        ("scale must be positive", "0.0 at index 1", "small positive spread"),
    ),
    "negative scale": (lambda: regcal.Normal([0.0], [-2.0]), ("positive", "-2.0 at index 0")),
    "lengths of loc and scale": (
        lambda: regcal.Normal([0.0, 1.0, 2.0], [1.0, 2.0]),
        ("3 values of loc and 2 of scale", "one of each per row"),
    ),
    "no rows": (lambda: regcal.Normal([], []), ("loc is empty", "at least one row")),
    "strings": (lambda: regcal.Normal(["a", "b"], 1.0), ("loc must hold numbers",)),
    "ragged loc": (lambda: regcal.Normal([[1.0], [2.0, 3.0]], 1.0), ("loc must hold numbers",)),
    "matrix as loc": (
        lambda: regcal.Normal(np.ones((2, 2)), 1.0),
        ("loc must be one-dimensional", "(2, 2)", "one value per row"),
    ),
    "negative scale of scipy": (
        lambda: regcal.ScipyDistribution(scipy.stats.gamma([2.0, 3.0], scale=[1.0, -1.0])),
        ("gamma does not allow", "[3.0, 0.0, -1.0]", "row 1", "positive"),
    ),
    "NaN of scipy": (
        lambda: regcal.ScipyDistribution(scipy.stats.t(5, loc=[0.0, np.nan])),
        ("t does not allow", "row 1"),
    ),
    "matrix of scipy parameters": (
        lambda: regcal.ScipyDistribution(scipy.stats.norm(np.ones((2, 2)))),
        ("one per row", "(2, 2)", "Flatten"),
    ),
    "NaN in quantiles": (
        lambda: regcal.Quantiles([0.1, 0.9], [[0.0, np.nan]]),
        ("values", "nan at index (0, 1)"),
    ),
    "unsorted levels": (
        lambda: regcal.Quantiles([0.9, 0.1], [[0.0, 1.0]]),
        ("levels must be strictly increasing", "0.9 before 0.1 at index 0"),
    ),
    "levels in percent": (
        lambda: regcal.Quantiles([10, 50, 90], [[0.0, 1.0, 2.0]]),
        ("strictly between 0 and 1", "[10.0, 50.0, 90.0]", "10 % as 0.1"),
    ),
    "one level": (
        lambda: regcal.Quantiles([0.5], [[0.0]]),
        ("at least two probabilities", "[0.5]", "does not tell the spread"),
    ),
    "columns of quantiles": (
        lambda: regcal.Quantiles([0.1, 0.9], [[0.0, 1.0, 2.0]]),
        ("(1, 3) for 2 levels", "one column per level", "transpose"),
    ),
    "equal quantiles everywhere": (
        lambda: regcal.Quantiles([0.1, 0.9], [[1.0, 1.0], [2.0, 2.0]]),
        ("All 2 rows have equal quantiles", "NormalResidualRegressor"),
    ),
    "one draw": (
        lambda: regcal.Samples([[1.0], [2.0]]),
        ("at least two draws", "(2, 1)", "Transpose"),
    ),
    "infinite draw": (
        lambda: regcal.Samples([[1.0, -np.inf]]),
        ("draws", "-inf at index (0, 1)"),
    ),
    "equal draws": (
        lambda: regcal.Samples([[2.0, 2.0], [3.0, 3.0]]),
        ("draws agree in all 2 rows", "first on 2", "Pass bandwidth="),
    ),
    "zero bandwidth": (
        lambda: regcal.Samples([[1.0, 2.0]], bandwidth=0.0),
        ("bandwidth must be positive", "0.0"),
    ),
    "number of bandwidths": (
        lambda: regcal.Samples([[1.0, 2.0]], bandwidth=[1.0, 2.0, 3.0]),
        ("3 bandwidths for 1 rows", "one per row"),
    ),
    "masses that do not sum to 1": (
        lambda: regcal.Histogram([0, 1, 2], [[0.5, 0.5], [0.5, 0.4]]),
        ("sum to 1", "row 1 sums to 0.9", "Divide by"),
    ),
    "negative mass": (
        lambda: regcal.Histogram([0, 1, 2], [[1.5, -0.5]]),
        ("must not be negative", "row 0 has -0.5"),
    ),
    "NaN mass": (
        lambda: regcal.Histogram([0, 1, 2], [[np.nan, 1.0]]),
        ("masses", "nan at index (0, 0)"),
    ),
    "NaN edge": (
        lambda: regcal.Histogram([0, np.nan, 2], [[0.5, 0.5]]),
        ("inner edges", "nan"),
    ),
    "infinite edge at the wrong end": (
        lambda: regcal.Histogram([np.inf, 1, 2], [[0.5, 0.5]]),
        ("outer edges", "-inf for the first"),
    ),
    "unsorted edges": (
        lambda: regcal.Histogram([0.0, 2.0, 1.0], [[0.5, 0.5]]),
        ("edges must be strictly increasing", "row 0", "Sort"),
    ),
    "number of edges": (
        lambda: regcal.Histogram([0.0, 1.0], [[0.5, 0.5]]),
        ("(1, 2) for masses of shape (1, 2)", "Pass 3 edges"),
    ),
    "no finite bin": (
        lambda: regcal.Histogram([-np.inf, 0.0, np.inf], [[0.5, 0.5]]),
        ("At least two edges must be finite",),
    ),
    "no components": (lambda: regcal.Mixture([]), ("at least one component",)),
    "components of unequal length": (
        lambda: regcal.Mixture([NORMAL, NORMAL[:2]]),
        ("same number of rows", "[3, 2]"),
    ),
    "mixture weights": (
        lambda: regcal.Mixture([NORMAL, NORMAL], [0.5, 0.6]),
        ("sum to 1", "Divide"),
    ),
    "number of mixture weights": (
        lambda: regcal.Mixture([NORMAL, NORMAL], [0.5, 0.2, 0.3]),
        ("(1, 3) for 3 rows of 2 components",),
    ),
    "no rows of functions": (
        lambda: regcal.CustomDistribution(logistic_cdf, 0),
        ("n_rows must be at least 1, got 0",),
    ),
    "cdf with wrong limits": (
        lambda: regcal.CustomDistribution(lambda t, rows: 0.5 * logistic_cdf(t, rows), 2),
        ("0 at -inf and 1 at inf", "row 0 gives [0.0, 0.5]", "Clip"),
    ),
    "cdf of wrong shape": (
        lambda: regcal.CustomDistribution(lambda t, rows: np.zeros(3), 2),
        ("returned shape (3,)", "rows[:, np.newaxis]"),
    ),
    "cdf that is NaN": (
        lambda: regcal.CustomDistribution(lambda t, rows: t * np.nan, 2),
        ("returned NaN for row 0",),
    ),
    "cdf with a jump": (
        lambda: regcal.CustomDistribution(lambda t, rows: np.where(t < 3.0, 0.0, 1.0), 2),
        ("row 0 jumps", "at 3.", "draws or bins"),
    ),
}


@pytest.mark.parametrize("name", BAD_DISTRIBUTIONS)
def test_bad_distributions_are_refused(name):
    """A constructor explains what is wrong with its arguments."""
    build, parts = BAD_DISTRIBUTIONS[name]

    with refuses(*parts):
        build()


BAD_CALLS = {
    "grid as one point per row": (
        lambda: NORMAL.cdf([0.0, 1.0]),
        ("2 points for 3 distributions", "points[np.newaxis, :]"),
    ),
    "NaN point": (lambda: NORMAL.pdf([0.0, np.nan, 1.0]), ("points", "1 NaN(s)")),
    "wrong matrix of points": (
        lambda: NORMAL.cdf(np.zeros((2, 4))),
        ("(2, 4) for 3 distributions", "(1, K) for a shared grid"),
    ),
    "string point": (lambda: NORMAL.cdf("high"), ("points must hold numbers",)),
    "level above one": (
        lambda: NORMAL.ppf(95),
        ("levels", "between 0 and 1", "95", "Write 90 % as 0.9"),
    ),
    "negative level": (lambda: NORMAL.ppf([[0.5, -0.1]]), ("between 0 and 1, got -0.1",)),
    "coverage in percent": (
        lambda: NORMAL.interval(90),
        ("coverage", "between 0 and 1, got 90", "90 % as 0.9"),
    ),
    "two coverages": (lambda: NORMAL.interval([0.5, 0.9]), ("coverage must be one number",)),
    "coverage as a string": (lambda: NORMAL.interval("90%"), ("coverage must hold numbers",)),
    "swapped ends": (
        lambda: NORMAL.prob(2.0, 1.0),
        ("low must not exceed high", "low = 2.0 and high = 1.0", "Swap"),
    ),
    "NaN target": (
        lambda: regcal.crps([0.0, np.nan, 1.0], NORMAL),
        ("y holds 1 value(s)", "nan at index 1"),
    ),
    "number of targets": (
        lambda: regcal.log_score([0.0, 1.0], NORMAL),
        ("2 targets for 3 distributions", "same order"),
    ),
    "string targets": (lambda: regcal.pit(["a", "b", "c"], NORMAL), ("y must hold numbers",)),
    "negative size": (lambda: NORMAL.sample(-1), ("size", "-1")),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls_are_refused(name):
    """A method explains what is wrong with its arguments."""
    call, parts = BAD_CALLS[name]

    with refuses(*parts):
        call()


def test_crossing_quantiles_are_sorted_with_a_warning():
    """Crossing rows are counted, the first is named, and they are sorted."""
    values = [[0.0, 1.0, 2.0], [1.0, 0.0, 2.0]]

    with pytest.warns(regcal.CrossingQuantilesWarning, match="1 of 2 rows .* row 1"):
        dist = regcal.Quantiles([0.1, 0.5, 0.9], values)
    np.testing.assert_allclose(dist.ppf([[0.1, 0.5, 0.9]])[1], [0.0, 1.0, 2.0], atol=1e-12)


def test_tied_quantiles_keep_a_finite_density():
    """Equal neighbours are moved apart, in any unit and far from zero."""
    for unit, shift in ((1.0, 0.0), (1e-9, 0.0), (1e-6, 1e9)):
        values = shift + unit * np.array([[0.0, 1.0, 1.0, 3.0], [0.0, 0.0, 0.0, 0.0]])
        dist = regcal.Quantiles([0.1, 0.4, 0.6, 0.9], values)

        assert np.isfinite(dist.logpdf(values)).all()


# -------------------------------------------------------------------------------------- calibrators

every_calibrator = pytest.mark.parametrize("name", CALIBRATORS)


@every_calibrator
def test_transform_before_fit_is_refused(name):
    """An unfitted calibrator says so."""
    with refuses("not fitted yet", error=NotFittedError):
        CALIBRATORS[name]().transform(NORMAL)


BAD_FITS = {
    "NaN target": (([0.0, np.nan, 1.0],), ("y holds", "nan at index 1")),
    "infinite target": (([0.0, np.inf, 1.0],), ("y holds", "inf at index 1")),
    "number of targets": (([0.0, 1.0],), ("2 targets for 3 distributions",)),
    "no targets": (([],), ("y is empty",)),
    "string targets": ((["a", "b", "c"],), ("y must hold numbers",)),
    "negative weight": (([0.0, 1.0, 2.0], [1.0, -1.0, 1.0]), ("-1.0 at index 1", "Use 0")),
    "zero weights": (([0.0, 1.0, 2.0], [0.0, 0.0, 0.0]), ("weights are zero",)),
    "number of weights": (([0.0, 1.0, 2.0], [1.0]), ("1 sample weights for 3 rows",)),
    "NaN weight": (([0.0, 1.0, 2.0], [1.0, np.nan, 1.0]), ("sample_weight", "nan at index 1")),
}


@every_calibrator
@pytest.mark.parametrize("problem", BAD_FITS)
def test_bad_fits_are_refused(name, problem):
    """Every calibrator explains what is wrong with targets or weights."""
    arguments, parts = BAD_FITS[problem]

    with refuses(*parts):
        CALIBRATORS[name]().fit(NORMAL, *arguments)


@every_calibrator
def test_impossible_outcomes_are_refused(name):
    """Outcomes in another unit than the predictions are noticed."""
    dist = regcal.Histogram([0.0, 1.0, 2.0], np.full((3, 2), 0.5))

    with refuses("None of the 3 outcomes is possible", "y = 5.0", "same units"):
        CALIBRATORS[name]().fit(dist, [5.0, 6.0, 7.0])


def test_constant_targets_need_thresholds():
    """No range can be cut, and the message says what can be done; given thresholds work."""
    with refuses("All targets equal 1.0", "pass thresholds as an array"):
        regcal.get_calibrator("e-beta").fit(NORMAL, [1.0, 1.0, 1.0])

    cal = regcal.get_calibrator("e-beta", thresholds=[0.0, 2.0]).fit(NORMAL, [1.0, 1.0, 1.0])
    assert np.isfinite(cal.transform(NORMAL).logpdf(1.0)).all()


@pytest.mark.parametrize("name", ["e-logistic", "e-beta", "e-isotonic"])
def test_one_row_is_enough_with_given_thresholds(name):
    """A single outcome is thin evidence but no error."""
    cal = regcal.get_calibrator(name, thresholds=[0.0, 2.0]).fit(NORMAL[:1], [0.3])

    assert np.isfinite(cal.transform(NORMAL).logpdf([0.3, 5.0, -40.0])).all()


BAD_SETTINGS = {
    "unsorted thresholds": ({"thresholds": [2.0, 1.0]}, ("increasing", "2.0 before 1.0"), None),
    "one threshold": ({"thresholds": 1}, ("at least 2 thresholds, got 1",), None),
    "threshold count as float": ({"thresholds": 16.0}, ("whole number", "16.0"), TypeError),
    "threshold name": ({"thresholds": "auto"}, ("whole number", "'auto'"), TypeError),
    "no thresholds": ({"thresholds": []}, ("thresholds is empty",), None),
    "NaN threshold": ({"thresholds": [0.0, np.nan]}, ("thresholds", "nan at index 1"), None),
    "shape": ({"shape": "round"}, ('"base" or "uniform"', "'round'"), None),
    "negative ridge": (
        {"binary": regcal.BetaCalibrator(ridge=-1.0)},
        ("ridge must be a number of at least 0, got -1.0",),
        None,
    ),
}


@pytest.mark.parametrize("problem", BAD_SETTINGS)
def test_bad_settings_are_refused_by_fit(problem):
    """Settings are checked when they are used, not when they are stored."""
    settings, parts, error = BAD_SETTINGS[problem]
    cal = regcal.OneVsRestCalibrator(**settings)

    with refuses(*parts, error=error or ValueError):
        cal.fit(NORMAL, [0.0, 1.0, 2.0])


@pytest.mark.parametrize("name", ["auto", "conditional"])
@pytest.mark.parametrize(("state", "error"), [("abc", TypeError), (-1, ValueError)])
def test_bad_random_states_are_refused(name, state, error):
    """What cannot seed a generator is named, with what can."""
    rng = np.random.default_rng(0)
    dist = regcal.Normal(np.zeros(40), 1.0)
    cal = regcal.get_calibrator(name, random_state=state)

    with refuses("random_state must be a whole number", repr(state), error=error):
        cal.fit(dist, rng.normal(size=40))


def test_unknown_names_are_refused():
    """The message lists the names there are."""
    with refuses("no calibrator 'betta'", "Known names", "e-beta"):
        regcal.get_calibrator("betta")


def test_thresholds_too_close_for_their_numbers_are_refused():
    """Targets that differ in their last digits only cannot be cut into many segments."""
    y = 1e9 + np.array([0.0, 1.2e-7, 2.4e-7])

    with refuses("thresholds must be strictly increasing"):
        grids.make_thresholds(64, y)


def test_weightless_map_refuses_weights():
    """A binary map that takes no weights says that it cannot be used with them."""

    class Mean(regcal.binary.BaseEstimator):
        def fit(self, p, rate):
            self.rate_ = np.mean(rate)
            return self

        def predict(self, p):
            return np.full(len(p), self.rate_)

    cal = regcal.OneVsRestCalibrator(Mean(), thresholds=[0.0, 1.0])

    with refuses("Mean.fit takes no sample_weight", error=TypeError):
        cal.fit(NORMAL, [0.0, 1.0, 2.0], [1.0, 2.0, 1.0])
    assert np.isfinite(cal.fit(NORMAL, [0.0, 1.0, 2.0]).transform(NORMAL).logpdf(0.5)).all()


BAD_PAIRS = {
    "p above one": (([0.5, 1.5], [0, 1]), ("between 0 and 1, got 1.5",)),
    "NaN p": (([0.5, np.nan], [0, 1]), ("p holds", "nan at index 1")),
    "no p": (([], []), ("non-empty",)),
    "matrix of p": ((np.ones((2, 2)), [0, 1]), ("one non-empty column", "(2, 2)")),
    "labels": (([0.5, 0.6], [0, 2]), ("labels must be 0 or 1, got 2.0",)),
    "number of labels": (([0.5, 0.6], [1]), ("1 labels for 2 probabilities",)),
    "string labels": (([0.5, 0.6], ["a", "b"]), ("labels must hold numbers",)),
}


@pytest.mark.parametrize("problem", BAD_PAIRS)
@pytest.mark.parametrize("binary", [regcal.BetaCalibrator, regcal.LogisticCalibrator])
def test_bad_labels_and_probabilities_are_refused(binary, problem):
    """A binary map explains what is wrong with its column."""
    arguments, parts = BAD_PAIRS[problem]

    with refuses(*parts):
        binary().fit(*arguments)


# --------------------------------------------------------------------------------------- conversion

WRONG_KINDS = {
    "a string": ("normal", ("Cannot make a distribution of str", "Accepted", "(mean, std)")),
    "nothing": (None, ("NoneType", "Accepted")),
    "a column": ([1.0, 2.0], ("an array of shape (2,)", "Accepted")),
    "three parts": (([0.0], [1.0], [2.0]), ("tuple of 3 parts", "(mean, std)")),
    "an object": (object(), ("object", "Accepted")),
    "a discrete family": (scipy.stats.poisson([2.0, 3.0]), ("continuous", "scipy.stats")),
}


@pytest.mark.parametrize("kind", WRONG_KINDS)
def test_what_is_no_prediction_is_refused(kind):
    """The message lists what is accepted."""
    prediction, parts = WRONG_KINDS[kind]

    with refuses(*parts, error=TypeError):
        regcal.as_distribution(prediction)


def test_frames_of_unknown_columns_are_refused():
    """A frame is not taken for draws when its columns have names of their own."""
    pandas = pytest.importorskip("pandas")

    for columns in (["mean", "max"], [10, 50]):
        frame = pandas.DataFrame(np.ones((3, 2)), columns=columns)
        with refuses("columns", str(columns[0]), "to_numpy()", error=TypeError):
            regcal.as_distribution(frame)
