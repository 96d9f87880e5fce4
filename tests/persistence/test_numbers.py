"""Numbers in files obey the rules of the objects that hold them."""

import copy
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cases import BY_NAME, STANDARD, fitted_calibrator
from hostile import members_of, npy, sealed
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.preprocessing import KBinsDiscretizer

import regcal
from regcal.calibrators.dirichlet import BandedMap
from regcal.calibrators.one_vs_rest import DecodedMaps
from regcal.corrections.additive import Additive, LevelTerm, SmoothTerm
from regcal.corrections.cross_fit import Averaged, Blend, Correction
from regcal.corrections.regressors import Fitted
from regcal.covariates import Column, Covariates
from regcal.distributions import Stacked, Transformed
from regcal.gp.laplace import LaplacePosterior
from regcal.maps import (
    Axis,
    PiecewiseMap,
    RationalQuadraticSpline,
    RowLines,
    ScaleMap,
    Surface,
)
from regcal.online import CalibrationMonitor, OnlineCalibrator
from regcal.online.levels import AdaptiveLevels
from regcal.persistence import _api
from regcal.persistence._compiled import check_parts
from regcal.persistence._numbers import check_numbers
from regcal.persistence.fingerprint import walk


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.regcal"


@pytest.fixture
def forged(monkeypatch):
    """Let the fingerprint be right, as a forger would."""
    monkeypatch.setattr(_api, "_check_fingerprint", lambda *_: None)


def with_number(data: bytes, name: str, value) -> bytes:
    """Return a file in which one number of one object was changed."""
    members = members_of(data)
    schema = json.loads(members["schema.json"])

    def change(part) -> bool:
        if isinstance(part, dict):
            if isinstance(part.get(name), dict) and part[name].get("__loader__") == "JsonNode":
                part[name]["content"] = json.dumps(value)
                return True
            return any(map(change, part.values()))
        return isinstance(part, list) and any(map(change, part))

    assert change(schema)
    return sealed(members | {"schema.json": json.dumps(schema).encode()})


@pytest.mark.usefixtures("forged")
@pytest.mark.parametrize(
    "value", [-1.0, 0.0, 1e-320, float("nan"), float("inf"), "1", None, True, [1.0]]
)
def test_scale_factors_are_positive_numbers(value, path):
    """A map that turns or flattens the line is none."""
    regcal.save(fitted_calibrator("scale", "normal", 0, STANDARD), path)
    path.write_bytes(with_number(path.read_bytes(), "factor", value))

    with pytest.raises(regcal.FileError, match="'factor' of a ScaleMap"):
        regcal.load(path)


def test_changed_numbers_change_the_fingerprint(path):
    """A number that would be allowed is not the one that was saved."""
    regcal.save(fitted_calibrator("scale", "normal", 0, STANDARD), path)
    path.write_bytes(with_number(path.read_bytes(), "factor", 1.5))

    with pytest.raises(regcal.FileError, match="fingerprint in its manifest"):
        regcal.load(path)


KNOTS = np.array([[0.0, 1.0, 3.0]])
LINE = np.array([0.0, 1.0])
GRID = (np.linspace(-6, 6, 5), np.linspace(-1, 1, 4))


def stacked(part, row):
    dist = Stacked([regcal.Normal([0.0, 1.0], [1.0, 1.0])])
    dist._part, dist._row = np.array(part), np.array(row)
    return dist


def spoiled(dist, **changes):
    """Return an object with parts that its constructor would not have given it."""
    vars(dist).update(changes)
    return dist


def binned(attribute, change):
    """Return bins with one part changed."""
    rows = np.arange(12.0)[:, np.newaxis]
    bins = KBinsDiscretizer(3, strategy="uniform").fit(rows)
    owner = bins if hasattr(bins, attribute) else bins._encoder
    setattr(owner, attribute, change(getattr(owner, attribute)))
    return bins


def spoiled_pieces(**changes):
    """Return a map of three pieces whose parts, each by itself, are fine."""
    good = PiecewiseMap.with_slopes(np.arange(4.0), np.array([1.0, 2.0, 1.0, 3.0]), start=-2.0)
    return replace(good, **changes)


def decoded(**changes):
    """Return maps of eight thresholds with parts of others."""
    maps = regcal.BetaCalibrator()
    maps.coefficients_ = np.ones((8, 3))
    good = DecodedMaps(maps, np.tri(8, 9), regcal.LeastSquaresDecoder(), 10.0)
    check_numbers(good)
    return replace(good, **changes)


def additive(**changes):
    """Return a sum of a line of a number and two levels, with parts changed."""
    smooth = SmoothTerm("age", np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    good = Additive(
        terms=(smooth, LevelTerm("kind", 1)),
        coefficients=(np.zeros(2), np.zeros(2)),
        constant=0.0,
        centres=(np.zeros(2), np.zeros(2)),
        covariances=(np.eye(2), np.eye(2)),
    )
    return replace(good, **changes)


def blend(*parts, **changes):
    """Return half of the average of these regressions, with parts changed."""
    return replace(Blend((Averaged(parts),), np.array([0.5])), **changes)


def correction(**changes):
    """Return a correction by age and kind, with parts changed."""
    good = Correction(blend(additive(), additive()), blend(additive()), 0.0, 0.0, 1.0)
    return replace(good, **changes)


def conditional(part, known=None, **changes):
    """Return a calibrator with this correction, and columns that it has read."""
    cal = regcal.ConditionalCalibrator(with_prediction=False)
    known = {"age": [1.0], "kind": ["a"]} if known is None else known
    columns = Covariates.of(known)[:0]
    return spoiled(cal, correction_=part, columns_=columns, origin_=0.0, **changes)


def boosted(n_columns, smallest=0.1):
    """Return a correction by trees of so many columns."""
    trees = HistGradientBoostingRegressor(max_iter=1).fit(np.eye(9)[:, :n_columns], np.ones(9))
    return correction(
        shift=blend(Fitted(trees)), log_factor=blend(Fitted(trees, log=True, smallest=smallest))
    )


AGES, PLACES = np.array([3.0]), np.array([0])
SMOOTH = additive().terms[0]

BROKEN = {
    "infinite ages": lambda: Column("age", "number", np.array([np.inf])),
    "ages with levels": lambda: Column("age", "number", AGES, ("old",)),
    "ages that are places": lambda: Column("age", "number", PLACES),
    "ages in a table": lambda: Column("age", "number", AGES[:, np.newaxis]),
    "a level that is not there": lambda: Column("kind", "category", PLACES + 1, ("a",)),
    "a level twice": lambda: Column("kind", "category", PLACES, ("a", "a")),
    "levels that are numbers": lambda: Column("kind", "category", AGES, ("a", "b", "c", "d")),
    "a column of another kind": lambda: Column("kind", "date", AGES),
    "a column without a text for a name": lambda: Column(3, "number", AGES),
    "no columns": lambda: Covariates(()),
    "two columns of one name": lambda: Covariates((Column("a", "number", AGES),) * 2),
    "columns of other lengths": lambda: Covariates(
        (Column("a", "number", AGES), Column("b", "number", AGES[:0]))
    ),
    "falling ranks": lambda: replace(SMOOTH, ranks=SMOOTH.ranks[::-1]),
    "falling quantiles": lambda: replace(SMOOTH, quantiles=-SMOOTH.quantiles),
    "a rank beyond 1": lambda: replace(SMOOTH, ranks=2.0 * SMOOTH.ranks),
    "a quantile too few": lambda: replace(SMOOTH, quantiles=np.zeros(1)),
    "fewer levels than none": lambda: LevelTerm("kind", -1),
    "coefficients of another length": lambda: additive(coefficients=(np.zeros(2), np.zeros(3))),
    "a term without coefficients": lambda: additive(coefficients=(np.zeros(2),)),
    "a coefficient that is no number": lambda: additive(coefficients=(np.full(2, np.nan),) * 2),
    "a centre too few": lambda: additive(centres=(np.zeros(2), np.zeros(1))),
    "bands of another length": lambda: additive(covariances=(np.eye(2), np.eye(3))),
    "no terms": lambda: additive(terms=(), coefficients=(), centres=(), covariances=()),
    "a negative unit": lambda: correction(unit=-1.0),
    "no unit": lambda: correction(unit=0.0),
    "a negative share": lambda: blend(additive(), shares=np.array([-0.5])),
    "a share too many": lambda: blend(additive(), shares=np.ones(2)),
    "an average of nothing": lambda: Averaged(()),
    "no regression": lambda: Averaged((np.exp,)),
    "no blend": lambda: correction(shift=additive()),
    "a spread beyond numbers": lambda: correction(
        log_factor=blend(additive(), additive(coefficients=(np.full(2, 400.0), np.zeros(2))))
    ),
    "the log of nothing": lambda: boosted(2, smallest=0.0),
    "a spread that is no log": lambda: correction(log_factor=boosted(2).shift),
    "a class instead of a regressor": lambda: Fitted(HistGradientBoostingRegressor),
    "a term of a column that is not there": lambda: conditional(correction(), {"age": [1.0]}),
    "a term of a column of another kind": lambda: conditional(
        correction(), {"age": ["young"], "kind": ["a"]}
    ),
    "a term of other levels": lambda: conditional(
        correction(), {"age": [1.0, 2.0], "kind": ["a", "b"]}
    ),
    "a correction of no columns": lambda: spoiled(
        regcal.ConditionalCalibrator(with_prediction=False), correction_=correction()
    ),
    "trees of more columns": lambda: conditional(boosted(3)),
    "trees of fewer columns": lambda: conditional(boosted(2), with_prediction=True),
    "columns that are none": lambda: spoiled(regcal.ConditionalCalibrator(), columns_=["age"]),
    "scores that are none": lambda: conditional(correction(), scores_=[1.0]),
    "lines of other rows": lambda: Transformed(
        regcal.Normal([0.0, 1.0], 1.0), RowLines(np.zeros(3), np.ones(3))
    ),
    "a line that falls": lambda: RowLines(np.zeros(2), -np.ones(2)),
    "an axis of no width": lambda: Axis(0.0, 0.0),
    "an axis of an unknown width": lambda: Axis(0.0, np.nan),
    "an axis of a list": lambda: Axis(0.0, []),
    "an axis around nothing": lambda: Axis(np.inf, 1.0),
    "a surface along no axis": lambda: Surface(*GRID, np.zeros((5, 4)), (1.0, 1.0), axis=None),
    "an end that is no float": lambda: spoiled(regcal.Histogram(LINE, [[1.0]]), low=-(2**70)),
    "a clipped end that is no float": lambda: spoiled(
        regcal.Clipped(regcal.Normal([0.0], [1.0]), 0.0), high=2**70
    ),
    "a binary map that learnt something else": lambda: spoiled(
        regcal.LogisticCalibrator(), thresholds_=LINE
    ),
    "a bin too many": lambda: binned("n_bins_", lambda counts: counts + 1),
    "bins of other columns": lambda: binned("n_bins_", lambda counts: np.repeat(counts, 2)),
    "falling bins": lambda: binned("bin_edges_", lambda edges: -edges),
    "bins without edges": lambda: binned("bin_edges_", lambda edges: edges[0]),
    "bins that are not encoded": lambda: binned("categories_", lambda known: [known[0] + 1]),
    "pieces that do not meet": lambda: spoiled_pieces(heights=np.array([-2.0, -0.4, 1.0, 3.0])),
    "pieces that fall back": lambda: spoiled_pieces(right=np.array([50.0, 1.0, 3.0])),
    "edges moved": lambda: spoiled_pieces(edges=np.array([0.0, 1.2, 2.0, 3.0])),
    "a bend without end": lambda: PiecewiseMap(
        np.array([0.0, 5e-324]), np.zeros(2), np.ones(1), np.full(1, 2.0)
    ),
    "a piece that starts flat": lambda: PiecewiseMap(
        np.arange(4.0), np.array([0.0, 1.0, 1.5, 2.5]), np.array([1.0, 0.0, 1.0]), np.ones(3)
    ),
    "a stored cache": lambda: spoiled(spoiled_pieces(), _bends=np.array([9.0, 9.0, 9.0])),
    "a table of another surface": lambda: spoiled(
        Surface(*GRID, np.zeros((5, 4)), (1.0, 1.0)), table=None
    ),
    "a surface beyond numbers": lambda: Surface(*GRID, np.full((5, 4), 1e308), (1.0, 1.0)),
    "a surface too steep": lambda: Surface(*GRID, np.zeros((5, 4)), (1.0, 1e308)),
    "a surface on an uneven small grid": lambda: Surface(
        GRID[0], 1e-12 * np.array([-1.0, 0.1, 0.2, 1.0]), np.zeros((5, 4)), (1.0, 1.0)
    ),
    "curves of other quantiles": lambda: spoiled(
        regcal.Quantiles([0.1, 0.9], [[0.0, 1.0]]),
        _spline=regcal.Quantiles([0.1, 0.9], [[0.0, 2.0]])._spline,
    ),
    "another probability below": lambda: spoiled(
        regcal.Histogram([0.0, 1.0, 2.0], [[0.5, 0.5]]), _below=np.array([[0.0, 0.2]])
    ),
    "no bin with a width": lambda: spoiled(
        regcal.Histogram([0.0, 1.0], [[1.0]]), edges=np.array([[-np.inf, np.inf]])
    ),
    "a half-life below zero": lambda: spoiled(
        OnlineCalibrator("scale").update(regcal.Normal([0.0], [1.0]), [0.5]).tracks_[0],
        half_life=-1.0,
    ),
    "levels of other quantiles": lambda: AdaptiveLevels(np.zeros(3)),
    "an alarm with other cells": lambda: spoiled(
        CalibrationMonitor().update([0.5]), counts_=np.zeros(3, dtype=int)
    ),
    "a log that is no table": lambda: spoiled(CalibrationMonitor().update([0.5]), log_=[]),
    "a log without rows": lambda: spoiled(CalibrationMonitor().update([0.5]), log_={"columns": []}),
    "no bandwidth": lambda: spoiled(regcal.Samples([[0.0, 1.0]]), bandwidth=np.array([0.0])),
    "ends beyond all thresholds": lambda: spoiled(
        IsotonicRegression(out_of_bounds="clip").fit([0.1, 0.5], [0.0, 1.0]), X_min_=-1.0
    ),
    "falling edges": lambda: PiecewiseMap(LINE[::-1], LINE, np.ones(1), np.ones(1)),
    "falling heights": lambda: PiecewiseMap(LINE, -LINE, np.ones(1), np.ones(1)),
    "a slope too many": lambda: PiecewiseMap(LINE, LINE, np.ones(2), np.ones(1)),
    "a negative slope": lambda: PiecewiseMap(LINE, LINE, -np.ones(1), np.ones(1)),
    "a flat end": lambda: PiecewiseMap(LINE, LINE, np.zeros(1), np.ones(1)),
    "no dimension": lambda: PiecewiseMap(np.array(0.0), LINE, np.ones(1), np.ones(1)),
    "a list": lambda: PiecewiseMap([0.0, 1.0], LINE, np.ones(1), np.ones(1)),
    "texts": lambda: PiecewiseMap(LINE.astype(str), LINE, np.ones(1), np.ones(1)),
    "a spline of other heights": lambda: RationalQuadraticSpline(KNOTS, KNOTS[:, :2], KNOTS + 1),
    "a flat spline": lambda: RationalQuadraticSpline(KNOTS, KNOTS, KNOTS),
    "a surface of another shape": lambda: Surface(*GRID, np.zeros((4, 5)), (1.0, 1.0)),
    "a surface with a hole": lambda: Surface(*GRID, np.full((5, 4), np.nan), (1.0, 1.0)),
    "a surface of one slope": lambda: Surface(*GRID, np.zeros((5, 4)), (1.0,)),
    "a surface that starts nowhere": lambda: Surface(*GRID, np.zeros((5, 4)), (1.0, 1.0), None),
    "a negative spread": lambda: spoiled(regcal.Normal([0.0], [1.0]), scale=np.array([-1.0])),
    "no spread": lambda: spoiled(regcal.Normal([0.0], [1.0]), scale=np.array([0.0])),
    "a mean too few": lambda: spoiled(regcal.Normal([0.0], [1.0]), scale=np.ones(2)),
    "masses beyond 1": lambda: spoiled(
        regcal.Histogram([0.0, 1.0], [[1.0]]), masses=np.array([[2.0]])
    ),
    "ends in the wrong order": lambda: spoiled(
        regcal.Clipped(regcal.Normal([0.0], [1.0]), 0.0, 1.0), low=2.0
    ),
    "an end that is no number": lambda: spoiled(regcal.Samples([[0.0, 1.0]]), high=np.nan),
    "a step of no width": lambda: spoiled(regcal.Rounded(regcal.Normal([0.0], [1.0])), step=0.0),
    "weights beyond 1": lambda: spoiled(
        regcal.Mixture([regcal.Normal([0.0], [1.0])]), weights=np.array([[0.5]])
    ),
    "unequal parts": lambda: spoiled(
        regcal.Mixture([regcal.Normal([0.0], [1.0])] * 2),
        components=[regcal.Normal([0.0], [1.0]), regcal.Normal([0.0, 1.0], [1.0, 1.0])],
    ),
    "a code that tells nothing apart": lambda: decoded(matrix=np.ones((8, 9))),
    "a code of halves": lambda: decoded(matrix=0.5 * np.tri(8, 9)),
    "a map too few": lambda: decoded(matrix=np.tri(9, 10)),
    "a decoder that does not decode": lambda: decoded(decoder=None),
    "a band that is too wide": lambda: BandedMap(np.zeros((5, 5))),
    "a band of other segments": lambda: spoiled(
        copy.copy(fitted_calibrator("dirichlet", "normal", 0, STANDARD)),
        map_=BandedMap(np.zeros((5, 4))),
    ),
    "an interval whose ends are swapped": lambda: regcal.Outcomes.unchecked(LINE[::-1], LINE),
    "an interval with no end": lambda: regcal.Outcomes.unchecked(LINE, np.full(2, np.nan)),
    "an end too few": lambda: regcal.Outcomes.unchecked(LINE, LINE[1:]),
    "a row that is not there": lambda: stacked([0, 0], [0, 5]),
    "a part that is not there": lambda: stacked([0, 1], [0, 0]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_objects_are_refused(name):
    """What a constructor would refuse does not come from a file either."""
    with pytest.raises(ValueError, match=r"of a |parts|edges must be finite"):
        check_numbers(BROKEN[name]())


@pytest.mark.usefixtures("forged")
@pytest.mark.parametrize("name", ["active", "cholesky", "theta"])
def test_processes_fit_together(name, path):
    """Numbers of functions that a basis does not have are refused."""
    model = fitted_calibrator("gpc", "normal", 0, STANDARD)
    posterior = model.process_.posterior
    parts = {key: getattr(posterior, key) for key in LaplacePosterior.__dataclass_fields__}
    parts[name] = parts[name] + 10**6 if name == "active" else parts[name][:-1]

    with pytest.raises(regcal.FileError, match="LaplacePosterior"):
        check_numbers(LaplacePosterior(**parts))


def test_methods_cannot_be_hidden(path):
    """An attribute of the name of a method would be called in its place."""
    model = fitted_calibrator("scale", "normal", 0, STANDARD)
    copy = regcal.ScaleCalibrator()
    vars(copy).update(vars(model), transform=np.exp)

    with pytest.raises(regcal.FileError, match="'transform' of a ScaleCalibrator is a method"):
        regcal.save(copy, path)


@pytest.mark.usefixtures("forged")
def test_arrays_of_maps_are_checked_in_files(path):
    """The same holds for arrays in the archive, with every digest right."""
    regcal.save(fitted_calibrator("pit", "normal", 0, STANDARD), path)
    members = members_of(path.read_bytes())
    for name in [name for name in members if name.endswith(".npy")]:
        array = np.load(io.BytesIO(members[name]))
        falling = -np.abs(array) - np.arange(len(array))
        for other in (array[:-1], array[0], array[np.newaxis], array * np.nan, falling):
            path.write_bytes(sealed(members | {name: npy(other)}))
            with pytest.raises(regcal.FileError, match="PiecewiseMap"):
                regcal.load(path)


MADE_OF_PARTS = (PiecewiseMap, Surface, RationalQuadraticSpline, regcal.Histogram, regcal.Quantiles)


def with_another_number(model, rng):
    """Return a copy in which one number of one part has changed."""
    changed = copy.deepcopy(model)
    parts = [part for part in walk(changed) if isinstance(part, MADE_OF_PARTS)]
    part = parts[rng.integers(len(parts))]
    names = [name for name, value in vars(part).items() if isinstance(value, np.ndarray)]
    name = names[rng.integers(len(names))]
    array = vars(part)[name].copy()
    place = rng.integers(array.size)
    value = rng.choice([-0.3, 0.0, 1e-9, 0.3, 5.0, 1e6, -1e6, 1e308, 5e-324])
    array.flat[place] = rng.choice([value, array.flat[place] + value])
    vars(part)[name] = array
    return changed


@pytest.mark.parametrize(
    "name",
    ["pit", "gpc", "gp-density", "quantiles", "histogram", "open histogram", "gapped histogram"],
)
def test_what_the_rules_let_through_is_a_distribution(name, rng):
    """A number that was changed is refused, or does no harm: F increases, and sf is 1 - F."""
    points = np.linspace(-5.0, 6.0, 45)[np.newaxis, :]
    is_base = name in BY_NAME
    model = BY_NAME[name].make(3) if is_base else fitted_calibrator(name, "normal", 0, STANDARD)
    for _ in range(40):
        changed = with_another_number(model, rng)
        try:
            check_parts(changed)
        except ValueError:
            continue
        dist = changed if is_base else changed.transform(BY_NAME["normal"].make(7))
        assert (np.diff(dist.cdf(points)) >= -1e-12).all()
        assert np.abs(dist.cdf(points) + dist.sf(points) - 1.0).max() < 1e-6
        assert not np.isnan(dist.logpdf(points)).any()
        assert (np.diff(dist.ppf(np.linspace(0.02, 0.98, 25)[np.newaxis, :])) >= 0).all()


def test_every_distribution_obeys_its_rules():
    """The rules let through what constructors make, slices included."""
    for case in BY_NAME.values():
        if not case.name.startswith("custom"):
            check_numbers(case.make(0))
            check_numbers(case.make(0)[:2])
    check_numbers(ScaleMap(1e-90))
    check_numbers(binned("encode", str))
    for part in (correction(), boosted(2)):
        check_numbers(conditional(part))
        check_numbers(part)
    check_numbers(additive())
    check_numbers(Column("age", "number", np.array([np.nan])))
