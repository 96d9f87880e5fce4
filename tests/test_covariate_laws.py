"""Laws of every way to learn from covariates: rows, units, levels and last digits do not show."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rows import known_rows
from sklearn.ensemble import HistGradientBoostingRegressor

import regcal
from regcal.covariates import Covariates

FEW = {"max_iter": 8, "min_samples_leaf": 10}
TREES = (HistGradientBoostingRegressor(**FEW), HistGradientBoostingRegressor(loss="gamma", **FEW))
LEARNERS = {"additive": "additive", "trees": TREES}
LEVELS = np.linspace(0.02, 0.98, 9)[np.newaxis]
N_ROWS = 150


@pytest.fixture(params=LEARNERS)
def learner(request):
    return LEARNERS[request.param]


@pytest.fixture
def rows(rng):
    """Return predictions, outcomes and covariates, some of which are missing."""
    dist, y, known = known_rows(rng, N_ROWS)
    known["age"][::9] = np.nan
    return dist, y, known | {"region": np.where(np.arange(N_ROWS) % 11, known["region"], None)}


def calibrator(learner):
    return regcal.ConditionalCalibrator(learner, regcal.PITCalibrator())


def fitted(learner, dist, y, known, weights=None):
    cal = calibrator(learner).fit(dist, y, weights, known)
    assert cal.correction_ is not None
    return cal


def taken(known, places):
    return {name: np.asarray(column)[places] for name, column in known.items()}


def answers(cal, rows, unit=1.0):
    dist, _, known = rows
    new = regcal.Normal(unit * dist.loc, unit * dist.scale)
    return cal.transform(new, known).ppf(LEVELS) / unit


def test_order_of_rows_and_columns_does_not_show(learner, rows, rng):
    """Rows in any order, and columns in any order, give the same."""
    dist, y, known = rows
    order = rng.permutation(N_ROWS)
    moved = dict(reversed(taken(known, order).items()))

    other = fitted(learner, dist[order], y[order], moved)

    assert_allclose(answers(other, rows), answers(fitted(learner, *rows), rows), atol=1e-6)


def test_a_weight_of_two_is_two_rows(learner, rows, rng):
    """Repeated rows teach what their weight does."""
    dist, y, known = rows
    times = rng.integers(1, 4, N_ROWS)
    places = np.repeat(np.arange(N_ROWS), times)

    weighted = fitted(learner, dist, y, known, times)
    repeated = fitted(learner, dist[places], y[places], taken(known, places))

    assert_allclose(answers(repeated, rows), answers(weighted, rows), atol=1e-6)


def test_units_do_not_show(learner, rows):
    """Grams or kilograms: the same probabilities."""
    dist, y, known = rows
    scaled = fitted(learner, regcal.Normal(1e3 * dist.loc, 1e3 * dist.scale), 1e3 * y, known)

    assert_allclose(answers(scaled, rows, 1e3), answers(fitted(learner, *rows), rows), atol=1e-5)


def test_last_digits_do_not_show(learner, rows, rng):
    """Another processor rounds differently, covariates too, and those that are equal stay so."""
    dist, y, known = rows
    digits = 1 + rng.integers(-1, 2, (4, N_ROWS)) * 2.0**-52
    noisy = regcal.Normal(dist.loc * digits[0], dist.scale * digits[1])
    numbers = {name: known[name] * digits[3] for name in ("age", "floors")}

    other = fitted(learner, noisy, y * digits[2], known | numbers)

    assert_allclose(answers(other, rows), answers(fitted(learner, *rows), rows), atol=1e-5)


def test_batches_are_the_whole(learner, rows):
    """Batches that have not seen all levels, or no value of a column, teach what all rows do."""
    dist, y, known = rows
    by_region = np.argsort(known["region"] == "south", kind="stable")
    parts = [(dist[p], y[p], None, taken(known, p)) for p in np.array_split(by_region, 4)]
    parts[0][3]["floors"] = parts[0][3]["floors"].astype(float)

    whole = answers(fitted(learner, *rows), rows)
    at_once = calibrator(learner).fit_batches(parts)
    one_by_one = calibrator(learner)
    for part in parts:
        one_by_one.partial_fit(*part)

    for cal in (at_once, one_by_one):
        assert cal.columns_["region"].levels == ("north", "south", "west")
        assert_allclose(answers(cal, rows), whole, atol=1e-6)


def test_slices_of_answers_are_answers_of_slices(learner, rows):
    """A row's answer does not hang on the rows beside it."""
    dist, _, known = rows
    cal = fitted(learner, *rows)
    places = np.array([4, 9, 2, 140])

    part = cal.transform(dist[places], taken(known, places))

    assert_array_equal(part.ppf(LEVELS), cal.transform(dist, known)[places].ppf(LEVELS))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_mappings(library, learner, rows):
    """Frames of any library, with missing values of their own, are what mappings are."""
    frames = pytest.importorskip(library)
    dist, y, known = rows
    frame = frames.DataFrame(known)
    if library == "polars":
        frame = frame.with_columns(frame["age"].fill_nan(None))
    wanted = answers(fitted(learner, *rows), rows)

    cal = fitted(learner, dist, y, frame)

    assert_array_equal(cal.transform(dist, frame).ppf(LEVELS), wanted)
    assert_array_equal(answers(cal, rows), wanted)


def test_tables_that_differ_are_refused(rows):
    """What fit was given has to be given again: all columns, and of the same kind."""
    dist, y, known = rows
    cal = fitted("additive", *rows)
    plain = calibrator("additive").fit(dist, y)
    without = {name: column for name, column in known.items() if name != "age"}

    with pytest.raises(ValueError, match="learnt from the covariates age, region, damp, floors"):
        cal.transform(dist)
    with pytest.raises(ValueError, match="'age' not found"):
        cal.transform(dist, without)
    with pytest.raises(ValueError, match="'region' holds numbers, but categories such as 'north'"):
        cal.transform(dist, known | {"region": np.arange(N_ROWS)})
    with pytest.raises(ValueError, match="'age' has 3 values for 150 rows"):
        cal.transform(dist, known | {"age": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="fitted without covariates"):
        plain.transform(dist, known)
    with pytest.raises(ValueError, match="ScaleCalibrator does not look at covariates"):
        regcal.ScaleCalibrator().fit(dist, y, covariates=known)
    with pytest.raises(ValueError, match="but were"):
        calibrator("additive").partial_fit(dist, y, None, known).partial_fit(dist, y, None, without)


def test_new_levels_and_missing_values_get_an_answer(learner, rows):
    """What was never seen is missing, and a row without any value is a row."""
    dist, _, known = rows
    cal = fitted(learner, *rows)
    nothing = {name: [None] * N_ROWS for name in known}

    assert np.isfinite(cal.transform(dist, nothing).ppf(LEVELS)).all()
    with pytest.warns(UserWarning, match=r"such as 'east', was seen before"):
        east = cal.transform(dist, known | {"region": ["east"] * N_ROWS})
    unknown = cal.transform(dist, known | {"region": [None] * N_ROWS})
    assert_array_equal(east.ppf(LEVELS), unknown.ppf(LEVELS))
    assert_array_equal(cal.transform(dist, Covariates.of(known)).ppf(LEVELS), answers(cal, rows))


ODD = {
    "constant": np.ones(N_ROWS),
    "missing": np.full(N_ROWS, np.nan),
    "nothing": [None] * N_ROWS,
    "one level": ["a"] * N_ROWS,
    "a level each": [f"row {k}" for k in range(N_ROWS)],
    "numbers and text": [1, "a"] * (N_ROWS // 2),
    "huge": 1e300 * np.linspace(-1.0, 1.0, N_ROWS),
    "tiny": 1e-310 * np.linspace(-1.0, 1.0, N_ROWS) ** 3,
    "late": 1e15 + np.arange(N_ROWS),
    "rare": np.where(np.arange(N_ROWS) == 7, 1.0, np.nan),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_columns_get_an_answer(name, learner, rows):
    """Columns that say nothing, or are far from 0 and 1, do no harm."""
    dist, y, known = rows
    odd = {"age": known["age"], "odd": ODD[name]}

    cal = fitted(learner, dist, y, odd)

    assert np.isfinite(cal.transform(dist, odd).ppf(LEVELS)).all()


def test_covariates_are_not_called_as_those_of_the_prediction(rows):
    """One of two columns of a name would be taken for the other."""
    dist, y, known = rows

    with pytest.raises(ValueError, match=r"called 'predicted median'.* another name"):
        calibrator("additive").fit(dist, y, covariates={"predicted median": known["age"]})
