"""What is saved comes back the same, for every calibrator, and files are written whole."""

import importlib.util
import io
import json
import operator
import os
import pickle
import re
import subprocess
import sys
import zipfile
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from cases import BY_NAME, CALIBRATORS, DISTRIBUTIONS, STANDARD, fitted_calibrator
from numpy.testing import assert_allclose, assert_array_equal
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
from regcal._caching import WithoutCaches
from regcal.persistence import _api, _schema, _types

GOLDEN = Path(__file__).parent / "golden"
GOLDEN_FILES = sorted(GOLDEN.glob("*.regcal"))

POINTS = np.array([[-2.0, -0.1, 0.4, 1.7]])
LEVELS = np.array([[0.03, 0.5, 0.9]])


def golden_script():
    spec = importlib.util.spec_from_file_location("golden_write", GOLDEN / "write.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.regcal"


@pytest.fixture(params=CALIBRATORS)
def calibrator(request) -> regcal.Calibrator:
    """Return every calibrator, fitted; a new name joins by itself."""
    return fitted_calibrator(request.param, "normal", 0, STANDARD)


def assert_same(one, other):
    """Two batches of distributions are equal to the last bit."""
    assert_array_equal(one.cdf(POINTS), other.cdf(POINTS))
    assert_array_equal(one.logpdf(POINTS), other.logpdf(POINTS))
    assert_array_equal(one.ppf(LEVELS), other.ppf(LEVELS))


def there_and_back(model, path, **options):
    regcal.save(model, path)
    return regcal.load(path, **options)


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


# --------------------------------------------------------------------------- fingerprint, summary


def test_fingerprint_survives_files_pickles_and_use(calibrator, path):
    """It depends on what was learnt, not on where the object has been or what it cached."""
    before = calibrator.fingerprint()
    calibrator.transform(BY_NAME["normal"].make(1)).cdf(POINTS)

    assert there_and_back(calibrator, path).fingerprint() == before
    assert pickle.loads(pickle.dumps(calibrator)).fingerprint() == before
    assert regcal.file_info(path)["fingerprint"] == before


@pytest.mark.parametrize("name", regcal.calibrator_names())
def test_fingerprint_tells_calibrators_apart(name):
    """Other outcomes, or fewer rows, make another calibrator."""
    dist = BY_NAME["normal"].make(0, n_rows=40)
    y = dist.median() + np.random.default_rng(0).normal(size=40)
    trials = [(dist, y), (dist, 1.01 * y), (dist[:39], y[:39])]

    prints = {CALIBRATORS[name]().fit(*trial).fingerprint() for trial in trials}

    assert len(prints) == (2 if name == "identity" else 3)


ELSEWHERE = """
import sys, regcal
print(regcal.load(sys.argv[1]).fingerprint())
dist = regcal.Normal([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
print(regcal.AutoCalibrator().fit(dist, [0.5, 0.2, 2.5]).fingerprint())
"""


def test_fingerprint_is_the_same_in_every_process(path):
    """Neither the process nor its hash seed changes it, whether loaded or fitted there."""
    dist = regcal.Normal([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
    here = regcal.AutoCalibrator().fit(dist, [0.5, 0.2, 2.5])
    regcal.save(here, path)

    answer = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(path)],
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert answer.stdout.split() == [here.fingerprint()] * 2
    assert re.fullmatch("[0-9a-f]{64}", here.fingerprint())


def test_summary_tells_what_an_auditor_asks(calibrator):
    """Method, every parameter, rows and fingerprint are in it."""
    text = calibrator.summary()

    assert text.splitlines()[0] == type(calibrator).__name__
    assert f"n_rows_seen_: {calibrator.n_rows_seen_}" in text
    assert all(f"  {name}:" in text for name in calibrator.get_params(deep=False))
    assert text.endswith(calibrator.fingerprint())


def test_summary_shows_learnt_numbers_and_choices():
    """Hyper-parameters of the process and scores of candidates can be read off."""
    process = fitted_calibrator("gpc", "normal", 0, STANDARD)
    auto = fitted_calibrator("auto", "normal", 0, STANDARD)

    assert f"sigma_: {process.sigma_:.6g}" in process.summary()
    assert f"log_evidence_: {process.log_evidence_:.6g}" in process.summary()
    assert f"chosen_: {auto.chosen_!r}" in auto.summary()
    assert all(f"log_score: {s.log_score:.6g}" in auto.summary() for s in auto.scores_)


@pytest.mark.parametrize("method", ["fingerprint", "summary"])
def test_unfitted_calibrators_have_no_identity(method):
    """There is nothing to identify or describe before fit."""
    with pytest.raises(NotFittedError):
        getattr(regcal.ScaleCalibrator(), method)()


# ------------------------------------------------------------------------------------------- files


def test_equal_models_give_equal_files_without_caches(calibrator, tmp_path):
    """Neither time nor use nor object identities leave a trace."""
    first, second = tmp_path / "first", tmp_path / "second"
    regcal.save(calibrator, first)
    copy = regcal.load(first)
    copy.transform(BY_NAME["normal"].make(1)).cdf(POINTS)
    regcal.save(copy, second)

    assert first.read_bytes() == second.read_bytes()


def test_gaps_between_the_fields_of_records_are_cleared():
    """Trees hold records with gaps, where anything from the memory may be."""
    records = np.zeros(3, dtype=np.dtype([("a", "<i8"), ("b", "u1")], align=True))
    records["a"], records["b"] = [1, 2, 3], [4, 5, 6]
    stored = []
    for filler in (0, 255):
        raw = records.view(np.uint8).reshape(3, 16).copy()
        raw[:, 9:] = filler
        buffer = io.BytesIO()
        np.save(buffer, raw.view(records.dtype).ravel())
        stored.append(_schema._without_padding(buffer.getvalue()))

    assert stored[0] == stored[1]
    assert_array_equal(np.load(io.BytesIO(stored[1]))["a"], [1, 2, 3])


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
    assert set(warp.__getstate__()) == {"u", "t", "h", "slopes", "start"}


def test_other_versions_of_scikit_learn_are_told(data, path, monkeypatch):
    """Its models may predict otherwise in another version."""
    X, y = data
    regcal.save(regcal.CalibratedRegressorCV(BayesianRidge(), "scale").fit(X, y), path)
    monkeypatch.setattr(_api, "version", lambda name: "0.1")

    with pytest.warns(UserWarning, match=r"scikit-learn .* has fitted, and this is 0\.1"):
        regcal.load(path)


class Interrupted(BaseException):
    pass


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_interrupts_leave_the_old_file(step, tmp_path, monkeypatch):
    """Whenever writing stops, the old file is whole and nothing lies beside it."""
    path = tmp_path / "model.regcal"
    regcal.save(fitted_calibrator("scale", "normal", 0, STANDARD), path)
    old = path.read_bytes()

    def stop(*_):
        raise Interrupted

    if step == "fsync":
        monkeypatch.setattr(os, "fsync", stop)
    else:
        monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(Interrupted):
        regcal.save(fitted_calibrator("pit", "normal", 0, STANDARD), path)

    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_folders_in_the_way_and_missing_ones_are_told(tmp_path):
    """The system's own errors come through, and nothing is left behind."""
    model = fitted_calibrator("scale", "normal", 0, STANDARD)
    (tmp_path / "folder").mkdir()

    with pytest.raises(OSError, match="folder"):
        regcal.save(model, tmp_path / "folder")
    with pytest.raises(FileNotFoundError):
        regcal.save(model, tmp_path / "nowhere" / "model")
    with pytest.raises(FileNotFoundError):
        regcal.load(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_modes_and_links_are_those_of_ordinary_files(tmp_path):
    """A file can be read by whom a plain one could, and a link stays a link."""
    model = fitted_calibrator("scale", "normal", 0, STANDARD)
    plain, link, target = (tmp_path / name for name in ("plain", "link", "target"))
    plain.write_bytes(b"")
    target.write_bytes(b"")
    target.chmod(0o640)
    link.symlink_to(target)

    regcal.save(model, link)
    regcal.save(model, tmp_path / "new")

    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "new").stat().st_mode == plain.stat().st_mode


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


def test_list_of_types_holds_data_classes_only():
    """Classes of models and distributions are in it; nothing that acts on files or users is."""
    names = _types.object_types()

    assert "regcal.calibrators.gp_threshold.GPCalibrator" in names
    assert "regcal.maps.surface.Surface" in names
    allowed = ("regcal.binary", "regcal.calibrators", "regcal.distributions", "regcal.gp")
    allowed += ("regcal.grids", "regcal.maps", "regcal.regressor", "regcal.tables", "sklearn.")
    assert all(name.startswith(allowed) for name in names)
    assert "sklearn.svm._classes.SVR" not in names
    assert not any(name in names for name in _types.FUNCTIONS)


@pytest.mark.parametrize(
    "name", ["numpy.load", "numpy.fromfile", "scipy.io.loadmat", "os.system", "builtins.eval", ""]
)
def test_functions_that_act_are_not_known(name):
    """Of numpy and scipy only ufuncs are."""
    assert not _types.is_function(name)
    assert _types.is_function("numpy.exp")


def test_every_class_with_caches_leaves_them_out_of_files():
    """A cached property in a class that files hold would change its fingerprint with use."""
    kept = [
        kind
        for part in (regcal.binary, regcal.calibrators, regcal.distributions, regcal.grids)
        for kind in _types._classes_of(part)
        if any(isinstance(value, cached_property) for value in vars(kind).values())
    ]

    assert kept
    assert [kind for kind in kept if not issubclass(kind, WithoutCaches)] == []
