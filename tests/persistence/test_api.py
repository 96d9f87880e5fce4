"""What is saved comes back the same, for every calibrator, or is refused."""

import importlib.util
import json
import operator
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cases import BY_NAME, DISTRIBUTIONS, STANDARD, WITH_MASSES, fitted_calibrator
from numpy.testing import assert_allclose, assert_array_equal
from rows import POINTS, assert_same, known_rows, there_and_back
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVR

import regcal
from regcal.persistence import _api

GOLDEN = Path(__file__).parents[1] / "golden"
GOLDEN_FILES = sorted(GOLDEN.glob("*.regcal"))


def golden_script():
    spec = importlib.util.spec_from_file_location("golden_write", GOLDEN / "write.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ------------------------------------------------------------------------------------- round trips


def test_every_calibrator_comes_back_the_same(calibrator, path):
    """A loaded calibrator is of the same class and predicts the same bits."""
    new = BY_NAME["normal"].make(7)

    again = there_and_back(calibrator, path)

    assert type(again) is type(calibrator)
    assert_same(again.transform(new), calibrator.transform(new))


def test_every_calibrators_result_comes_back_the_same(calibrator, path):
    """Calibrated distributions can be stored as well."""
    dist = calibrator.transform(BY_NAME["normal"].make(7))

    assert_same(there_and_back(dist, path), dist)


@pytest.mark.parametrize(
    "case",
    [case for case in DISTRIBUTIONS if not case.name.startswith("custom")],
    ids=lambda case: case.name,
)
def test_every_distribution_comes_back_the_same(case, path):
    """All batches but those made of functions can be stored."""
    dist = case.make(3)

    assert_same(there_and_back(dist, path), dist)


@pytest.mark.parametrize("name", WITH_MASSES)
@pytest.mark.parametrize("seen", [lambda d: d, lambda d: regcal.Clipped(d, 0.3), regcal.Rounded])
def test_point_masses_come_back_the_same(name, seen, path):
    """Draws, quantiles and bins keep their ends in a file."""
    dist = seen(WITH_MASSES[name](STANDARD))

    again = there_and_back(dist, path)

    assert_same(again, dist)
    assert again._ends() == dist._ends()


BASES = {
    "bayesian ridge": BayesianRidge(),
    "least squares": regcal.paper_ols(),
    "forest": regcal.NormalResidualRegressor(RandomForestRegressor(5, random_state=0)),
    "boosting": regcal.NormalResidualRegressor(GradientBoostingRegressor(n_estimators=5)),
    "histogram boosting": regcal.NormalResidualRegressor(HistGradientBoostingRegressor(max_iter=5)),
    "process": GaussianProcessRegressor(ConstantKernel() * RBF() + WhiteKernel(), optimizer=None),
    "paper's process": regcal.paper_gpr(),
    "pipeline": make_pipeline(StandardScaler(), BayesianRidge()),
    "search": regcal.NormalResidualRegressor(GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=2)),
    "transformed": make_pipeline(FunctionTransformer(np.tanh), BayesianRidge()),
}


@pytest.fixture
def data(rng):
    X = rng.normal(size=(60, 3))
    return X, X[:, 0] + 0.4 * rng.normal(size=60)


@pytest.mark.parametrize("name", BASES)
def test_calibrated_models_come_back_the_same(name, data, path):
    """scikit-learn's models survive inside the wrapper, without any explicit trust."""
    X, y = data
    model = regcal.CalibratedRegressorCV(BASES[name], "scale").fit(X, y)

    again = there_and_back(model, path)

    assert_same(again.predict_dist(X), model.predict_dist(X))
    assert again.fingerprint() == model.fingerprint() == regcal.file_info(path)["fingerprint"]


def test_frames_with_categories_and_own_folds_come_back(data, path):
    """Column names, encoders and splitters are kept."""
    pd = pytest.importorskip("pandas")
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "ß", "c"]).assign(kind=np.where(X[:, 1] > 0, "x", "z"))
    encoded = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    base = make_pipeline(encoded, BayesianRidge())
    model = regcal.CalibratedRegressorCV(base, cv=TimeSeriesSplit(3)).fit(frame, y)

    again = there_and_back(model, path)

    assert_same(again.predict_dist(frame), model.predict_dist(frame))
    info = regcal.file_info(path)
    assert info["training"]["feature_names"] == ["a", "ß", "c", "kind"]
    assert info["training"]["chosen"] == model.selection_.chosen_
    assert [score["name"] for score in info["scores"]] == [s.name for s in model.selection_.scores_]


@pytest.mark.parametrize("calibrator", ["pit", "gp-density", "e-beta"])
def test_models_of_censored_outcomes_come_back(calibrator, data, path):
    """Ends and steps are kept, also for programs that only read the manifest."""
    X, y = data
    times = np.maximum(np.round(y), 0.0)
    seen = regcal.Outcomes.right_censored(times, observed=np.arange(len(y)) % 4 > 0)
    model = regcal.CalibratedRegressorCV(
        BayesianRidge(), calibrator, ensemble=False, support=(0, None), step=1.0
    ).fit(X, seen)

    again = there_and_back(model, path)

    assert again.support_ == model.support_
    assert_same(again.predict_dist(X), model.predict_dist(X))
    words = "values at or below 0 are seen at 0; multiples of 1"
    assert regcal.file_info(path)["training"]["support"] == words


LEARNERS = {
    "additive": "additive",
    "trees": (
        HistGradientBoostingRegressor(max_iter=4, categorical_features=[1, 2]),
        HistGradientBoostingRegressor(max_iter=4, loss="gamma", categorical_features=[1, 2]),
    ),
    "regressors": (
        RandomForestRegressor(4, max_depth=3, random_state=0),
        GridSearchCV(HistGradientBoostingRegressor(max_iter=3), {"max_depth": [2, 3]}, cv=2),
    ),
}


def with_missing(known):
    """Return the same rows, some of which lack a value or have one that is new."""
    return known | {
        "age": np.where(np.arange(len(known["age"])) % 5 == 0, np.nan, known["age"]),
        "region": [None, "east", *known["region"][2:]],
    }


@pytest.mark.parametrize("name", LEARNERS)
def test_corrections_by_covariates_come_back_the_same(name, rng, path):
    """Levels that are text, truth values or numbers are read as before, missing ones too."""
    dist, y, known = known_rows(rng)
    cal = regcal.ConditionalCalibrator(LEARNERS[name], regcal.PITCalibrator())
    cal.fit(dist, y, covariates=known)
    assert cal.correction_ is not None

    again = there_and_back(cal, path)

    new = with_missing(known)
    assert_same(again.transform(dist, new), cal.transform(dist, new))
    assert again.columns_.kinds == ("number", "category", "category", "number")
    assert again.columns_["damp"].levels == (False, True)
    info = regcal.file_info(path)
    assert info["fingerprint"] == cal.fingerprint() == again.fingerprint()
    assert info["training"]["covariates"] == list(known)
    assert "columns_: age, region (3 levels), damp (2 levels), floors" in info["summary"]


def test_models_that_look_at_covariates_come_back(data, path):
    """What was chosen given columns of a frame predicts the same."""
    pd = pytest.importorskip("pandas")
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["kind"] = pd.Categorical(np.where(X[:, 1] > 0, 7, 3))
    y = y + 3.0 * (X[:, 1] > 0) + 2.0 * np.sin(3.0 * X[:, 1])
    columns = make_column_transformer(("passthrough", ["a", "b", "c"]))
    both = [
        ("identity", regcal.get_calibrator("identity")),
        ("conditional", regcal.ConditionalCalibrator("additive", regcal.PITCalibrator())),
    ]
    model = regcal.CalibratedRegressorCV(
        make_pipeline(columns, BayesianRidge()),
        regcal.AutoCalibrator(both),
        covariates=["b", "kind"],
    ).fit(frame, y)
    assert "conditional" in model.selection_.chosen_

    again = there_and_back(model, path)

    assert_same(again.predict_dist(frame), model.predict_dist(frame))
    assert again.fingerprint() == model.fingerprint() == regcal.file_info(path)["fingerprint"]
    assert regcal.file_info(path)["training"]["covariates"] == ["b", "kind"]
    assert again.members_[0].calibrator.columns_["kind"].levels == (3, 7)


def test_batches_with_covariates_go_on_after_a_file(rng, path):
    """What partial_fit has kept of covariates is kept in a file."""
    dist, y, known = known_rows(rng)
    first, second = slice(0, 80), slice(80, None)
    cal = regcal.ConditionalCalibrator("additive", regcal.PITCalibrator())
    parts = [
        (dist[rows], y[rows], None, {name: column[rows] for name, column in known.items()})
        for rows in (first, second)
    ]
    cal.partial_fit(*parts[0])

    again = there_and_back(cal, path).partial_fit(*parts[1])

    assert again.fingerprint() == cal.partial_fit(*parts[1]).fingerprint()


def test_regressors_that_are_not_known_need_trust(rng, path):
    """What corrects predictions is code as any other model is."""
    dist, y, known = known_rows(rng)
    pair = (BayesianRidge(), SVR())
    cal = regcal.ConditionalCalibrator(pair, regcal.PITCalibrator())
    cal.fit(dist, y, covariates={"age": known["age"]})
    regcal.save(cal, path)

    with pytest.raises(regcal.FileError, match=r"uses sklearn.svm._classes.SVR, which regcal does"):
        regcal.load(path)
    again = regcal.load(path, trusted=[SVR])
    assert_same(*(one.transform(dist, {"age": known["age"]}) for one in (again, cal)))


def test_levels_that_are_no_plain_values_are_refused(rng, path):
    """Intervals of pandas are objects, and not numbers or text."""
    pd = pytest.importorskip("pandas")
    dist, y, known = known_rows(rng)
    groups = pd.Series(pd.cut(known["age"], [0.0, 3.0, 10.0]), name="group")
    cal = regcal.ConditionalCalibrator("additive").fit(dist, y, covariates=groups.to_frame())

    with pytest.raises(regcal.FileError, match="cannot be saved"):
        regcal.save(cal, path)


@pytest.mark.filterwarnings("ignore:.*scikit-learn:UserWarning")
@pytest.mark.parametrize("file", GOLDEN_FILES, ids=lambda file: file.stem)
def test_golden_files_keep_loading(file):
    """Files of earlier versions load, and answer as they did then."""
    script = golden_script()
    expected = json.loads(script.EXPECTED.read_text())[file.stem]

    model = regcal.load(file)

    for name, values in script.answers(model).items():
        assert_allclose(values, expected[name], rtol=1e-8, atol=1e-12)
    if hasattr(model, "fingerprint"):
        assert model.fingerprint() == regcal.file_info(file)["fingerprint"]


def test_golden_files_are_there():
    """The format is pinned by a file for each calibrator of the first release."""
    names = {file.stem for file in GOLDEN_FILES}

    assert {"identity", "scale", "pit", "e-beta", "gpc", "gp-density", "auto"} <= names
    assert {regcal.file_info(file)["format"] for file in GOLDEN_FILES} == {1}


# ------------------------------------------------------------------------------------------- files


def test_equal_models_give_equal_files_without_caches(calibrator, tmp_path):
    """Neither time nor use nor object identities leave a trace."""
    first, second = tmp_path / "first", tmp_path / "second"
    regcal.save(calibrator, first)
    copy = regcal.load(first)
    copy.transform(BY_NAME["normal"].make(1)).cdf(POINTS)
    regcal.save(copy, second)

    assert first.read_bytes() == second.read_bytes()


def test_manifest_can_be_read_by_anyone(path):
    """Any zip program shows what is in a file."""
    model = fitted_calibrator("auto", "normal", 0, STANDARD)
    regcal.save(model, path)

    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))

    assert manifest["summary"] == model.summary()
    assert manifest["versions"]["regcal"] == regcal.__version__
    assert manifest["versions"]["numpy"] == np.__version__
    info = regcal.file_info(path)
    assert info["class"] == "regcal.calibrators.auto.AutoCalibrator"
    assert info["training"] == {"rows": model.n_rows_seen_, "chosen": model.chosen_}
    assert info["size"] == path.stat().st_size


def test_file_info_builds_nothing(path, monkeypatch):
    """A description needs neither trust nor skops."""
    regcal.save(fitted_calibrator("pit", "normal", 0, STANDARD), path)
    monkeypatch.setitem(sys.modules, "skops", None)

    assert regcal.file_info(path)["trusted"] == []


def test_missing_skops_names_the_extra(path, monkeypatch):
    """Without skops the error says what to install."""
    monkeypatch.setitem(sys.modules, "skops", None)

    with pytest.raises(ImportError, match=r"regcal\[persistence\]"):
        regcal.save(fitted_calibrator("scale", "normal", 0, STANDARD), path)


def test_caches_are_not_stored():
    """A used map takes no more room than a new one."""
    warp = fitted_calibrator("gpc", "normal", 0, STANDARD).map_
    table = warp.table

    assert vars(warp)["table"] is table
    assert set(warp.__getstate__()) == {"u", "t", "h", "slopes", "start", "axis", "ends"}


def test_other_versions_of_scikit_learn_are_told(data, path, monkeypatch):
    """Its models may predict otherwise in another version."""
    X, y = data
    regcal.save(regcal.CalibratedRegressorCV(BayesianRidge(), "scale").fit(X, y), path)
    monkeypatch.setattr(_api, "version", lambda name: "0.1")

    with pytest.warns(UserWarning, match=r"scikit-learn .* has fitted, and this is 0\.1"):
        regcal.load(path)


# ------------------------------------------------------------------------------------------- trust


class Foreign(BayesianRidge):
    """A model of somebody else's package."""


def halved(X):
    return np.asarray(X) / 2


def test_foreign_types_need_explicit_trust(data, path):
    """The refusal names what to trust; with it, the model comes back."""
    X, y = data
    base = make_pipeline(FunctionTransformer(halved), Foreign())
    model = regcal.CalibratedRegressorCV(base, "scale").fit(X, y)
    regcal.save(model, path)

    with pytest.raises(regcal.FileError, match=rf"uses {__name__}\.Foreign, {__name__}\.halved"):
        regcal.load(path)
    with pytest.raises(regcal.FileError, match=rf"uses {__name__}\.halved"):
        regcal.load(path, trusted=Foreign)

    names = regcal.file_info(path)["trusted"]
    assert names == [f"{__name__}.Foreign", f"{__name__}.halved"]
    again = regcal.load(path, trusted=names)
    assert_same(again.predict_dist(X), model.predict_dist(X))
    assert_same(regcal.load(path, [Foreign, halved]).predict_dist(X), model.predict_dist(X))


def test_models_that_follow_stored_pointers_need_trust(data, path):
    """The library of support vectors does not check its arrays, so it is not trusted by itself."""
    X, y = data
    model = regcal.NormalResidualRegressor(SVR()).fit(X, y)
    regcal.save(model, path)

    with pytest.raises(regcal.FileError, match=r"sklearn\.svm\._classes\.SVR"):
        regcal.load(path)
    assert_array_equal(regcal.load(path, trusted=[SVR]).predict(X), model.predict(X))


def _local():
    def inner(X):
        return X

    return inner


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda X: X, "lambda"),
        (_local(), "inner"),
        (StandardScaler().fit_transform, "MethodNode"),
        (operator.itemgetter(slice(None)), "OperatorFuncNode"),
    ],
    ids=["lambda", "local function", "method", "operator"],
)
def test_what_cannot_come_back_is_not_written(function, reason, data, path):
    """The refusal comes when saving, not when it is too late."""
    model = make_pipeline(FunctionTransformer(function), BayesianRidge()).fit(*data)

    with pytest.raises(regcal.FileError, match=f"cannot be saved: .*{reason}"):
        regcal.save(model, path)
    assert not path.exists()


def test_cache_folders_are_not_written(data, path):
    """Fitting a loaded pipeline again must not read pickles from a folder that a file names."""
    model = make_pipeline(StandardScaler(), BayesianRidge()).fit(*data).set_params(memory="folder")

    with pytest.raises(regcal.FileError, match="memory=None"):
        regcal.save(model, path)


@pytest.mark.parametrize("thing", [{"a": 1}, [1, 2], "text", 3.0, np.ones(3)], ids=str)
def test_only_models_are_saved(thing, path):
    """Anything else is told to be none."""
    with pytest.raises(regcal.FileError, match="cannot be saved"):
        regcal.save(thing, path)


def test_unfitted_models_are_not_saved(path):
    """There is nothing to keep yet."""
    with pytest.raises(NotFittedError):
        regcal.save(regcal.GPCalibrator(), path)


def test_custom_functions_are_told(path):
    """Distributions made of local functions cannot be stored."""
    with pytest.raises(regcal.FileError, match="CustomDistribution cannot be saved"):
        regcal.save(BY_NAME["custom"].make(0), path)
