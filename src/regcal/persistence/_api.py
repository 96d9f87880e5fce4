"""Save, load and describe."""

import hashlib
import io
import json
import platform
import warnings
import zipfile
from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError

from regcal._inspection import check_has_learnt
from regcal._version import __version__
from regcal.calibrators import Support
from regcal.distributions import Distribution
from regcal.persistence import _types, other_libraries
from regcal.persistence._archive import FileError, pack, read_file, unpack, write_atomically
from regcal.persistence._schema import audit, parse, tidy
from regcal.persistence.description import describe
from regcal.persistence.fingerprint import fingerprint, walk
from regcal.tables import TableCalibrator, TableModel, outcome_columns

_FORMAT = 1

# Nodes of older protocols of skops checked less.
_OLDEST_PROTOCOL = 2

_MANIFEST, _SCHEMA = "manifest.json", "schema.json"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "skops")


def save(model: Any, path: Any) -> None:
    """Keep a fitted object in a file, without pickle.

    The file is a zip archive. It holds numbers, names of classes, and a manifest that people can
    read; see `file_info`. It is written beside its place and moved there when complete. Equal
    objects give equal files.

    Parameters
    ----------
    model : estimator or Distribution
        A fitted calibrator, a fitted `CalibratedRegressorCV`, any fitted model that follows
        scikit-learn's rules, or a batch of distributions.
    path : str or path
        The file; an existing one is replaced.

    Raises
    ------
    FileError
        If the object holds something that cannot be stored, such as a lambda.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import regcal
    >>> dist = regcal.Normal([0.0, 1.0], [1.0, 1.0])
    >>> cal = regcal.ScaleCalibrator().fit(dist, [2.0, -1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     regcal.save(cal, Path(folder) / "scale.regcal")
    ...     again = regcal.load(Path(folder) / "scale.regcal")
    >>> again.factor_ == cal.factor_
    True
    """
    write_atomically(path, _to_bytes(model))


def load(path: Any, trusted: Iterable[str | type] = ()) -> Any:
    """Return the object in a file that `save` wrote.

    Nothing in a file is run. Classes of regcal, estimators of scikit-learn and plain data are
    built; any other class or function has to be trusted explicitly. If nothing has, estimators of
    scikit-learn have to predict the few rows that they predicted when they were saved.

    Parameters
    ----------
    path : str or path
    trusted : sequence of str or type
        Further classes and functions that the file may use, themselves or by their full names.
        Trust only what you would import and run.

    Returns
    -------
    object

    Raises
    ------
    FileError
        If the file is damaged, no regcal file, of a newer format, holds what does not work, or
        uses anything that is not trusted; the message says what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import regcal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     regcal.save(regcal.Normal([0.0, 1.0], [1.0, 2.0]), Path(folder) / "dist.regcal")
    ...     regcal.load(Path(folder) / "dist.regcal").std()
    array([1., 2.])
    """
    given = [trusted] if isinstance(trusted, str | type) else list(trusted)
    names = {item if isinstance(item, str) else _types.type_name(item) for item in given}
    data = read_file(path)
    try:
        members, manifest = _verified(data)
        model = _built(members, names)
        _check_fingerprint(model, manifest)
        if not names:
            _check_answers(model, manifest)
    except FileError as error:
        msg = f"{path} is refused: {error}."
        raise FileError(msg) from error
    _warn_of_other_versions(path, manifest, members[_SCHEMA])
    return model


def file_info(path: Any) -> dict[str, Any]:
    """Return what a file says about the object in it, without building it.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict
        ``format``, ``class``, ``fingerprint``, ``summary`` (a text), ``training`` (rows, features,
        covariates, parts and method, as far as the object knows), ``scores`` (of the candidates
        of an automatic choice; of what the command line fitted, on rows held out),
        ``versions``, ``trusted`` (names that `load` has to be given) and ``size``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import regcal
    >>> cal = regcal.ScaleCalibrator().fit(regcal.Normal([0.0, 1.0], [1.0, 1.0]), [2.0, -1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     regcal.save(cal, Path(folder) / "scale.regcal")
    ...     info = regcal.file_info(Path(folder) / "scale.regcal")
    >>> info["class"], info["training"], info["fingerprint"] == cal.fingerprint()
    ('regcal.calibrators.scale.ScaleCalibrator', {'rows': 2}, True)
    """
    data = read_file(path)
    try:
        _, manifest = _verified(data)
    except FileError as error:
        msg = f"{path} is refused: {error}."
        raise FileError(msg) from error
    told = {key: part for key, part in manifest.items() if key not in ("answered", "members")}
    return told | {"size": len(data)}


# ------------------------------------------------------------------------------------------- write


def _to_bytes(model: Any) -> bytes:
    skops = _skops()
    _check_model(model)
    foreign = [part for part in walk(model) if other_libraries.is_known(part)]
    try:
        members = _members(skops.dumps(other_libraries.with_stored(model, foreign)))
        _, missing = audit(parse(_SCHEMA, members[_SCHEMA]), _arrays(members), ())
        again = _built(members, missing)
    except (FileError, TypeError, ValueError, AttributeError, ImportError, RecursionError) as error:
        msg = f"This {type(model).__name__} cannot be saved: {error}. {_WAY_OUT}"
        raise FileError(msg) from error
    digest = fingerprint(model)
    if fingerprint(again) != digest:
        msg = f"This {type(model).__name__} does not come back from a file as it was. {_WAY_OUT}"
        raise FileError(msg)
    manifest = _manifest(model, digest, sorted(missing)) | {
        "answered": [] if missing else _answered_rows(again),
        "members": _digests(members),
    }
    for part in foreign:
        manifest["versions"] |= other_libraries.version_of(_types.type_name(type(part)))
    text = json.dumps(manifest, indent=1, allow_nan=False).encode()
    return pack({_MANIFEST: text, **members})


def _answered_rows(model: Any) -> list[list[str]]:
    from regcal.persistence._trial import answered_rows

    return answered_rows(model)


def _check_model(model: Any) -> None:
    if other_libraries.is_known(model):
        if not other_libraries.is_fitted(model):
            msg = f"This {type(model).__name__} is not fitted yet. Call fit before saving it."
            raise NotFittedError(msg)
    elif isinstance(model, BaseEstimator):
        check_has_learnt(model)
    elif not isinstance(model, Distribution):
        msg = (
            f"A {type(model).__name__} cannot be saved. Pass a fitted estimator or calibrator, or "
            "a Distribution."
        )
        raise FileError(msg)


_WAY_OUT = (
    "Objects whose state is made of numbers, texts, and functions and classes of importable "
    "modules can be."
)


def _members(raw: bytes) -> dict[str, bytes]:
    """Return skops' members with tidy names and without what differs from run to run."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    schema, arrays = tidy(json.loads(contents.pop(_SCHEMA)), contents)
    return {_SCHEMA: json.dumps(schema, separators=(",", ":")).encode(), **arrays}


def _manifest(model: Any, digest: str, missing: list[str]) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "class": _types.type_name(type(model)),
        "fingerprint": digest,
        "summary": describe(model),
        "training": _training(model),
        "scores": _scores(model),
        "versions": {
            "regcal": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in _PACKAGES},
        },
        "trusted": missing,
    }


def _training(model: Any) -> dict[str, Any]:
    """Return what a fitted object knows about its training."""
    if isinstance(model, TableModel):
        return _training_of_table(model)
    known: dict[str, Any] = {}
    members = getattr(model, "members_", None)
    if members is not None:
        known["rows"] = sum(int(member.calibrator.n_rows_seen_) for member in members)
        known["models"] = len(members)
        known["estimator"] = type(members[0].estimator).__name__
        known["calibrator"] = type(members[0].calibrator).__name__
    elif hasattr(model, "n_rows_seen_"):
        known["rows"] = int(model.n_rows_seen_)
    if isinstance(model, Distribution):
        known["rows"] = len(model)
    if hasattr(model, "n_features_in_"):
        known["features"] = int(model.n_features_in_)
    if hasattr(model, "feature_names_in_"):
        known["feature_names"] = [str(name) for name in model.feature_names_in_]
    support = getattr(model, "support_", None)
    if isinstance(support, Support) and support:
        known["support"] = support.described()
    columns = getattr(members[0].calibrator if members else model, "columns_", None)
    if columns is not None:
        known["covariates"] = list(columns.names)
    chosen = getattr(getattr(model, "selection_", model), "chosen_", None)
    return known if chosen is None else {**known, "chosen": chosen}


def _training_of_table(model: TableModel) -> dict[str, Any]:
    """Return what is known of the model inside, and the columns that this one knows by name."""
    inner = model.calibrator_ if isinstance(model, TableCalibrator) else model.model_
    known = {"calibrator": type(inner).__name__} | _training(inner)
    for name in ("features", "feature_names"):
        known.pop(name, None)  # which are the columns
    known |= {"columns": list(model.inputs), "outcome": outcome_columns(model.target).label}
    if hasattr(model, "source_"):
        known["source"] = model.source_
    return known | {"rows": model.n_rows_seen_}


def _scores(model: Any) -> list[dict[str, Any]]:
    scores = getattr(getattr(model, "selection_", model), "scores_", [])
    return [
        {key: None if value != value else value for key, value in asdict(score).items()}
        for score in scores
    ]


def _digests(members: dict[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}


# -------------------------------------------------------------------------------------------- read


def _verified(data: bytes) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Return the members of a file of a known format, and its manifest."""
    members = unpack(data)
    if _MANIFEST not in members or _SCHEMA not in members:
        msg = "its manifest or its tree is missing"
        raise FileError(msg)
    manifest = parse(_MANIFEST, members.pop(_MANIFEST))
    number = manifest.get("format") if isinstance(manifest, dict) else None
    if type(number) is not int or number < 1:
        msg = "its manifest does not tell the format"
        raise FileError(msg)
    if number > _FORMAT:
        versions = manifest.get("versions")
        writer = versions.get("regcal", "?") if isinstance(versions, dict) else "?"
        msg = (
            f"it has format {number}, written by regcal {writer}; regcal {__version__} reads up to "
            f"format {_FORMAT}. Upgrade regcal"
        )
        raise FileError(msg)
    if manifest.get("members") != _digests(members):
        msg = "its members are not those of its manifest"
        raise FileError(msg)
    return members, manifest


def _arrays(members: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in members.items() if name != _SCHEMA}


def _built(members: dict[str, bytes], trusted: set[str]) -> Any:
    """Return the object, if everything in its tree is known or trusted."""
    schema = parse(_SCHEMA, members[_SCHEMA])
    try:
        allowed, missing = audit(schema, _arrays(members), trusted)
        _check_trust(missing)
        _check_protocol(schema)
        model = _constructed(members, allowed)
        _check_kind(model)
        _check_model(model)
    except (FileError, ImportError):
        raise
    except NotFittedError as error:
        msg = f"it holds a {type(model).__name__} that is not fitted"
        raise FileError(msg) from error
    except Exception as error:
        # whatever a crafted tree provokes in the code of numpy and scikit-learn
        msg = f"its content does not fit together ({type(error).__name__}: {error})"
        raise FileError(msg) from error
    return model


def _check_kind(model: Any) -> None:
    if not (isinstance(model, BaseEstimator | Distribution) or other_libraries.is_known(model)):
        msg = f"it holds a {type(model).__name__} instead of a model"
        raise FileError(msg)


def _check_fingerprint(model: Any, manifest: dict[str, Any]) -> None:
    """Refuse another object than was saved; other versions may keep the same one differently."""
    if fingerprint(model) != manifest.get("fingerprint") and not _other_versions(manifest):
        msg = "what it holds does not have the fingerprint in its manifest"
        raise FileError(msg)


def _check_answers(model: Any, manifest: dict[str, Any]) -> None:
    """Refuse models that no longer predict; other versions may take other rows."""
    # loads column transformers, which most sessions do not need
    from regcal.persistence._trial import check_answers

    if "answered" in manifest and not _other_versions(manifest):
        check_answers(model, manifest["answered"])


def _other_versions(manifest: dict[str, Any]) -> list[str]:
    """Return the packages of which another version has written the file."""
    written = manifest.get("versions")
    here = {"regcal": __version__, **{name: version(name) for name in _PACKAGES}}
    if not isinstance(written, dict):
        return list(here)
    return [name for name, number in here.items() if written.get(name) != number]


def _check_trust(missing: set[str]) -> None:
    if missing:
        names = ", ".join(sorted(missing))
        msg = (
            f"it uses {names}, which regcal does not know. If you trust where the file comes from "
            f"and what these do, pass trusted={sorted(missing)} to regcal.load"
        )
        raise FileError(msg)


def _check_protocol(schema: dict[str, Any]) -> None:
    protocol = schema.get("protocol")
    if type(protocol) is not int or protocol < _OLDEST_PROTOCOL:
        msg = f"its tree has protocol {protocol!r} instead of {_OLDEST_PROTOCOL} or later"
        raise FileError(msg)


def _constructed(members: dict[str, bytes], allowed: set[str]) -> Any:
    # loads all ensembles of scikit-learn, which most sessions do not need
    from regcal.persistence._compiled import check_parts

    with warnings.catch_warnings():
        # reported once, with both versions, by `load`
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        model = _skops().loads(_plain_zip(members), trusted=sorted(allowed))
        check_parts(model)
        stored = [part for part in walk(model) if isinstance(part, other_libraries.StoredModel)]
        return other_libraries.with_restored(model, stored, allowed)


def _plain_zip(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _warn_of_other_versions(path: Any, manifest: dict[str, Any], schema: bytes) -> None:
    if b"_sklearn_version" in schema and "scikit-learn" in _other_versions(manifest):
        versions = manifest.get("versions")
        written = versions.get("scikit-learn") if isinstance(versions, dict) else None
        msg = (
            f"{path} holds models that scikit-learn {written} has fitted, and this is "
            f"{version('scikit-learn')}. scikit-learn does not promise equal predictions; compare "
            "some, or fit again."
        )
        warnings.warn(msg, UserWarning, stacklevel=3)


def _skops() -> Any:
    try:
        from skops import io as skops_io
    except ImportError as error:
        msg = "Saving and loading need skops: pip install 'regcal[persistence]'."
        raise ImportError(msg) from error
    return skops_io
