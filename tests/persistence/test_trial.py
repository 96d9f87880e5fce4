"""What a model answered when it was saved it answers when it is loaded, or it is refused."""

import json
import sys

import numpy as np
import pytest
from hostile import members_of, sealed
from rows import there_and_back
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    StandardScaler,
)

import regcal
from regcal.persistence._trial import answered_rows, check_answers

NUMBERS = ["zeros", "ones", "minus ones"]


@pytest.fixture
def table(rng):
    X = rng.uniform(0.5, 2.0, size=(20, 2))
    return X, X.sum(axis=1) + 0.1 * rng.normal(size=20)


def network():
    return MLPRegressor(hidden_layer_sizes=(3,), tol=1e9, n_iter_no_change=1, random_state=0)


def process():
    return GaussianProcessRegressor(RBF(), alpha=0.1, optimizer=None)


BROKEN = {
    "weights of another layer": (network, "coefs_", lambda value: [value[0], value[1].T]),
    "a layer too few": (network, "intercepts_", lambda value: value[:1]),
    "no such function": (network, "activation", lambda value: "null"),
    "rows of other columns": (process, "X_train_", lambda value: value[:, :1]),
    "weights of other rows": (process, "alpha_", lambda value: value[:-1]),
    "variances of other rows": (process, "L_", lambda value: value[:-1, :-1]),
    "a kernel of other columns": (process, "kernel_", lambda value: RBF([1.0] * 3)),
    "other texts": (KernelRidge, "dual_coef_", lambda value: value.astype(str)),
    "an intercept too many": (Ridge, "intercept_", lambda value: np.zeros(3)),
    "no number": (Ridge, "coef_", lambda value: value * np.nan),
}


@pytest.mark.filterwarnings("ignore::regcal.FewRowsWarning")
@pytest.mark.parametrize("name", BROKEN)
def test_models_whose_parts_do_not_fit_are_refused(name, table):
    """Every class of scikit-learn knows best what it needs, alone and inside of others."""
    make, attribute, change = BROKEN[name]
    model = make().fit(*table)
    whole = regcal.CalibratedRegressorCV(
        regcal.NormalResidualRegressor(make_pipeline(StandardScaler(), make())), "scale", cv=2
    ).fit(*table)
    inner = whole.members_[-1].estimator.estimator_[-1]
    known, known_inside = answered_rows(model), answered_rows(whole)

    assert known == [NUMBERS]
    assert known_inside == [NUMBERS] * len(known_inside)
    check_answers(whole, known_inside)
    for broken in (model, inner):
        setattr(broken, attribute, change(getattr(broken, attribute)))
    for broken, answered in ((model, known), (whole, known_inside)):
        with pytest.raises(regcal.FileError, match="does not answer rows that it answered"):
            check_answers(broken, answered)


HONEST = {
    "positive numbers only": (PowerTransformer("box-cox"), ["ones"]),
    "logarithms": (FunctionTransformer(np.log), ["ones"]),
    "square roots": (FunctionTransformer(np.sqrt), ["zeros", "ones"]),
    "missing numbers": (SimpleImputer(), [*NUMBERS, "missing"]),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_models_are_asked_what_they_take(name, table, path):
    """Rows that a model never took are not asked for."""
    first, rows = HONEST[name]
    model = make_pipeline(first, LinearRegression()).fit(*table)

    again = there_and_back(model, path)

    assert answered_rows(model) == [rows]
    np.testing.assert_array_equal(again.predict(table[0]), model.predict(table[0]))


def text_columns(encoder):
    return make_column_transformer((encoder, ["kind"]), remainder="passthrough")


@pytest.mark.parametrize(
    ("encoder", "rows"),
    [
        (OrdinalEncoder(), NUMBERS),
        (OneHotEncoder(sparse_output=False), NUMBERS),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder()), []),
    ],
    ids=["ordinal", "one hot", "unknown to the outside"],
)
def test_columns_of_texts_are_asked_by_their_categories(encoder, rows, table, path, monkeypatch):
    """Frames are made of columns and categories that a model knows by name, if there is pandas."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(table[0], columns=["a", "b"]).assign(kind=["x", "y"] * 10)
    model = make_pipeline(text_columns(encoder), LinearRegression()).fit(frame, table[1])

    again = there_and_back(model, path)

    assert answered_rows(model) == [rows]
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    if rows:
        model[0].output_indices_["remainder"] = slice(0, 9)
        model[-1].coef_ = model[-1].coef_[:-1]
        with pytest.raises(regcal.FileError, match="its Pipeline does not answer"):
            check_answers(model, [rows])
        monkeypatch.setitem(sys.modules, "pandas", None)
        check_answers(model, [rows])


def with_manifest(data, **changes):
    members = members_of(data)
    manifest = json.loads(members["manifest.json"]) | changes
    return sealed(members | {"manifest.json": json.dumps(manifest).encode()})


@pytest.mark.parametrize("answered", [None, [], [[], []], {}])
def test_manifests_name_every_model(answered, table, path):
    """A model more or less is another object."""
    regcal.save(Ridge().fit(*table), path)
    path.write_bytes(with_manifest(path.read_bytes(), answered=answered))

    with pytest.raises(regcal.FileError, match="what its models answered"):
        regcal.load(path)


def test_other_versions_are_not_asked(table, path):
    """They may take other rows than the version that has saved a model."""
    regcal.save(Ridge().fit(*table), path)
    versions = regcal.file_info(path)["versions"] | {"numpy": "0.0"}
    path.write_bytes(with_manifest(path.read_bytes(), answered=None, versions=versions))

    regcal.load(path)


def test_a_model_in_two_places_is_asked_once(table):
    """Folds may share what was fitted before."""
    model = Ridge().fit(*table)

    assert answered_rows([model, (model, model)]) == [NUMBERS]


class Loud(RegressorMixin, BaseEstimator):
    """A model of a user, which a file may hold with trust."""

    def fit(self, X, y):
        self.n_features_in_ = 2
        return self

    def predict(self, X):
        pytest.fail("was asked")


@pytest.mark.parametrize("wrapped", [False, True])
def test_code_of_users_is_not_run(wrapped, table, path):
    """Models that need trust are not asked, neither alone nor inside of others."""
    model = BaggingRegressor(Loud(), n_estimators=1) if wrapped else Loud()

    regcal.save(model.fit(*table), path)

    regcal.load(path, trusted=regcal.file_info(path)["trusted"])


@pytest.mark.parametrize("verbose", [9, 99])
def test_questions_leave_no_trace(verbose, table, path, capfd, monkeypatch):
    """No word, no warning and no worker, whatever is set; and the model stays what it was."""
    pd = pytest.importorskip("pandas")
    angles = FunctionTransformer(np.reciprocal), FunctionTransformer(np.arctan)
    encoder = OneHotEncoder(handle_unknown="ignore")
    model = BaggingRegressor(make_pipeline(*angles, encoder, Ridge()), 3, random_state=0)
    model.fit(pd.DataFrame(table[0], columns=["a", "b"]), table[1])
    model.set_params(verbose=verbose, n_jobs=2)
    monkeypatch.setattr("threading.Thread.start", lambda thread: pytest.fail("a worker"))
    capfd.readouterr()

    with config_context(transform_output="pandas"), np.errstate(all="raise"):
        regcal.save(model, path)
        first = path.read_bytes()
        regcal.save(regcal.load(path), path)

    assert json.loads(members_of(first)["manifest.json"])["answered"] == [[*NUMBERS, "missing"]]
    assert capfd.readouterr() == ("", "")
    assert path.read_bytes() == first
