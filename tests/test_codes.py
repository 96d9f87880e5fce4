"""Codes and their decoder against other solvers, and labels of unions against a count."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import isotonic_regression, minimize
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression

from regcal import (
    DenseCode,
    LeastSquaresDecoder,
    Normal,
    OneVsRestCalibrator,
    ThresholdCode,
    get_calibrator,
)
from regcal.codes import code_matrix, decoded, isotonic_rows, log_unions, union_labels

CODES = {
    "one-vs-rest": np.eye(5),
    "thresholds": ThresholdCode().matrix(5),
    "dense": DenseCode().matrix(5),
    "pairs": [[a in pair for a in range(5)] for pair in itertools.combinations(range(5), 2)],
}


@pytest.mark.parametrize("kind", ["random", "ties", "falling", "rising"])
def test_isotonic_rows_against_scipy(kind, rng):
    """All rows at once are what one after the other is."""
    values, weights = rng.uniform(size=(40, 9)), rng.uniform(0.1, 3.0, (40, 9))
    if kind == "ties":
        values = np.round(3 * values) / 3
    if kind in ("falling", "rising"):
        values = np.sort(values, axis=1)[:, :: -1 if kind == "falling" else 1]

    found = isotonic_rows(values, weights)

    for row, own, expected in zip(values, weights, found, strict=True):
        assert_allclose(isotonic_regression(row, weights=own).x, expected, atol=1e-12)


def best_masses(matrix, rates, weights):
    """Return the nearest masses by a general solver."""
    found = minimize(
        lambda q: weights @ (matrix @ q - rates) ** 2,
        np.full(matrix.shape[1], 1 / matrix.shape[1]),
        jac=lambda q: 2 * matrix.T @ (weights * (matrix @ q - rates)),
        bounds=[(0, 1)] * matrix.shape[1],
        constraints={
            "type": "eq",
            "fun": lambda q: q.sum() - 1,
            "jac": lambda q: np.ones(matrix.shape[1]),
        },
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.x


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("name", CODES)
def test_least_squares_against_a_general_solver(name, weighted, rng):
    """Masses at the edge of the simplex and inside of it are the nearest ones."""
    matrix = code_matrix(CODES[name], 5)
    rates = np.clip(rng.dirichlet(np.full(5, 0.4), 12) @ matrix.T, 0.001, 0.999)
    rates = np.clip(rates + 0.1 * rng.normal(size=rates.shape), 1e-9, 1 - 1e-9)
    masses = LeastSquaresDecoder(weighted).masses(matrix, np.log(rates), 50.0)

    share = (50 * rates + 0.5) / 51
    weights = 1 / (share * (1 - share)) if weighted else np.ones_like(rates)
    for row, own, expected in zip(rates, weights, masses, strict=True):
        best = best_masses(matrix, row, own)
        assert_allclose(expected, best, atol=1e-5)
        assert own @ (matrix @ expected - row) ** 2 <= own @ (matrix @ best - row) ** 2 + 1e-10
    assert (masses < 1e-9).any()
    assert_allclose(masses.sum(axis=1), 1.0)


@pytest.mark.parametrize("name", CODES)
def test_probabilities_that_fit_together_are_decoded_exactly(name, rng):
    """Unions of masses lead back to the masses, and alone as beside other rows."""
    matrix, masses = code_matrix(CODES[name], 5), rng.dirichlet(np.ones(5), 30)
    log_rates = np.log(masses @ matrix.T)
    found = LeastSquaresDecoder().masses(matrix, log_rates, 1000.0)

    assert_allclose(found, masses, atol=1e-6)
    assert_array_equal(LeastSquaresDecoder().masses(matrix, log_rates[3:4], 1000.0), found[3:4])


def test_unions_keep_their_digits_in_both_tails():
    """A union of nearly everything is as exact as one of next to nothing."""
    log_p = np.log([[1e-30, 1.0 - 2e-20, 2e-20]])

    found = log_unions(log_p, np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]))

    assert_allclose(found, [[np.log(1e-30), -2e-20, -1e-30]])


def test_labels_of_unions_against_a_count():
    """A label is known if all segments that may hold the outcome agree."""
    matrix = DenseCode().matrix(4)
    known = np.array([[0, 1, 0, 0], [0, np.nan, np.nan, 0], [np.nan] * 4])
    labels = union_labels(known, matrix)

    for row, found in zip(known, labels, strict=True):
        own = [{matrix[u, k] for k in np.flatnonzero(row != 0)} for u in range(len(matrix))]
        assert_array_equal(found, [values.pop() if len(values) == 1 else np.nan for values in own])
    assert_array_equal(union_labels(known, np.eye(4)), known)


@pytest.mark.parametrize("n_segments", [2, 3, 17, 65])
def test_dense_codes_tell_all_segments_apart(n_segments):
    """They are draws of a seed, without empty unions."""
    matrix = DenseCode().matrix(n_segments)

    assert_array_equal(matrix, DenseCode(random_state=0).matrix(n_segments))
    assert_array_equal(code_matrix(matrix, n_segments), matrix)


BAD_CODES = {
    "shape": (np.eye(3), r"code has shape \(3, 3\) for 4 segments"),
    "values": (2 * np.eye(4), r"code must hold 0 and 1, got 2\.0"),
    "empty union": (np.vstack([np.eye(4), np.zeros(4)]), "no segments or of all, in row 4"),
    "whole union": (np.vstack([np.ones(4), np.eye(4)]), "no segments or of all, in row 0"),
    "rank": (np.eye(4)[:2], "with 2 unions does not tell its 4 segments apart"),
    "dense": (DenseCode(2), "n_unions=2 unions cannot tell 4 segments apart"),
}


@pytest.mark.parametrize("problem", BAD_CODES)
def test_bad_codes_are_refused(problem):
    """The message names the rule."""
    code, words = BAD_CODES[problem]

    with pytest.raises(ValueError, match=words):
        code_matrix(code, 4)


class OwnCode:
    """A code of one's own, with any matrix."""

    def __init__(self, matrix):
        self.own = matrix

    def matrix(self, n_segments):
        return self.own


def test_codes_of_ones_own_are_checked_as_arrays_are():
    """What is wrong with a matrix is wrong whoever made it."""
    assert_array_equal(code_matrix(OwnCode(CODES["pairs"]), 5), CODES["pairs"])
    for matrix in (0.5 * np.eye(5), np.zeros((5, 5)), np.full((5, 5), np.nan), np.eye(4)):
        with pytest.raises(ValueError, match="code"):
            code_matrix(OwnCode(matrix), 5)


@pytest.mark.parametrize("code", [ThresholdCode, "threshold"])
def test_names_and_classes_of_codes_are_refused(code):
    """The message says how to write it."""
    with pytest.raises(TypeError, match=r"Pass regcal\.ThresholdCode\(\)"):
        code_matrix(code, 5)


@pytest.mark.parametrize("seed", [None, np.random.default_rng(0)])
def test_codes_are_drawn_from_a_number(seed):
    """A code is drawn more than once."""
    with pytest.raises(TypeError, match="random_state must be a whole number"):
        DenseCode(random_state=seed).matrix(4)


@pytest.mark.parametrize("n_unions", ["a", 12.5])
def test_numbers_of_unions_are_whole(n_unions):
    """The message names the value."""
    with pytest.raises(TypeError, match=f"whole number, or None, got {n_unions!r}"):
        DenseCode(n_unions).matrix(4)


def test_options_of_decoders_are_checked():
    """A word is not taken for True."""
    dist, y = Normal(np.zeros(50), np.ones(50)), np.linspace(-2.0, 2.0, 50)
    wrong = get_calibrator("e-beta", code=ThresholdCode(), decoder=LeastSquaresDecoder("no"))
    with pytest.raises(TypeError, match="weighted must be True or False, got 'no'"):
        wrong.fit(dist, y)


@pytest.mark.parametrize("code", [ThresholdCode(), DenseCode()])
@pytest.mark.parametrize("n_segments", [0, 1, 2.5])
def test_less_than_two_segments_are_refused(code, n_segments):
    """There is nothing to tell apart, and a draw would never end."""
    with pytest.raises(ValueError, match=f"at least 2, got {n_segments}"):
        code.matrix(n_segments)


class OwnDecoder:
    """A decoder of one's own, with any masses."""

    def __init__(self, masses):
        self.own = masses

    def masses(self, matrix, log_rates, n_trials):
        return np.tile(self.own, (len(log_rates), 1))


def test_masses_of_ones_own_decoders_are_checked():
    """They are a distribution in each row, or it is told which row is none."""
    matrix, rates = ThresholdCode().matrix(3), np.log([[0.2, 0.5], [0.3, 0.4]])

    assert_array_equal(decoded(OwnDecoder([0.5, 0.0, 0.5]), matrix, rates, 9.0)[1], [0.5, 0, 0.5])
    for masses in ([np.nan] * 3, [1.5, -0.5, 0.0], [0.0] * 3, [1.0] * 3):
        with pytest.raises(ValueError, match=r"sum to 1 in each row: clip them"):
            decoded(OwnDecoder(masses), matrix, rates, 9.0)
    with pytest.raises(ValueError, match=r"shape \(2, 2\). Return one of \(2, 3\)"):
        decoded(OwnDecoder([0.5, 0.5]), matrix, rates, 9.0)


@pytest.mark.parametrize("decoder", [LeastSquaresDecoder, "ls"])
def test_names_and_classes_of_decoders_are_refused(decoder):
    """The message says how to write it."""
    calibrator = get_calibrator("e-beta", code=ThresholdCode(), decoder=decoder)

    with pytest.raises(TypeError, match=r"Pass regcal\.LeastSquaresDecoder\(\)"):
        calibrator.fit(Normal(np.zeros(20), 1.0), np.linspace(-2.0, 2.0, 20))


@pytest.mark.parametrize("n_rows", [24, 34, 59, 74, 101, 138, 184])
def test_rates_of_one_are_rates(n_rows):
    """Last digits above 1 do not make masses negative, and rows what they were."""
    rng = np.random.default_rng(0)
    x = 2.0 * rng.normal(size=n_rows)
    cal = get_calibrator("e-isotonic", code=ThresholdCode())
    cal.fit(Normal(x, np.ones(n_rows)), x + 1.0 + rng.normal(size=n_rows))
    new = Normal(np.linspace(-3.0, 3.0, 7), np.ones(7))

    assert (np.abs(cal.transform(new).mean() - new.mean()) > 1e-3).all()


def test_maps_that_are_known_somewhere_only_are_refused():
    """scikit-learn's isotonic regression says nothing beyond its rows unless it is told to."""
    rng = np.random.default_rng(0)
    x = 2.0 * rng.normal(size=300)
    cal = OneVsRestCalibrator(IsotonicRegression())
    with pytest.raises(ValueError, match=r'IsotonicRegression.* is with out_of_bounds="clip"'):
        cal.fit(Normal(x, np.ones(300)), x + rng.normal(size=300))


class Triangle:
    """A code of one's own that does not tell what it is."""

    def matrix(self, n_segments):
        return np.tri(n_segments - 1, n_segments)


def test_batches_are_read_with_a_code_of_ones_own():
    """Its copy is no other."""
    rng = np.random.default_rng(0)
    dist, y = Normal(np.zeros(60), np.ones(60)), rng.normal(size=60)
    batches = [(dist[k : k + 20], y[k : k + 20]) for k in (0, 20, 40)]
    cal = get_calibrator("e-beta", code=Triangle())

    batched = clone(cal).fit_batches(batches).transform(dist[:3])

    assert_allclose(batched.cdf([[0.3]]), cal.fit(dist, y).transform(dist[:3]).cdf([[0.3]]))
