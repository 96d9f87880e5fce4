"""Models of other libraries, in the formats that those libraries keep stable themselves.

In a file such a model is a `StoredModel`: its class, its attributes, and what the library writes.
Reading that is the library's business and not checked here, so that these classes need trust.
"""

import copy
import importlib
import sys
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regcal.persistence._archive import FileError


@dataclass
class StoredModel:
    """A model of another library, as a file holds it.

    Attributes
    ----------
    kind : str
        Full name of its class.
    written : ndarray of uint8
        What the library writes; empty if that is nothing.
    attributes : dict
        What else there is to know.
    """

    kind: str
    written: np.ndarray
    attributes: dict[str, Any]


STORED = f"{StoredModel.__module__}.{StoredModel.__name__}"


@dataclass(frozen=True)
class _Format:
    """How models of a class are stored and come back."""

    is_fitted: Callable[[Any], bool]
    write: Callable[[Any], bytes]
    attributes: Callable[[Any], dict[str, Any]]
    read: Callable[[type, bytes, dict[str, Any]], Any]


def is_known(model: Any) -> bool:
    """Return whether a model is of a class that is stored in its library's own format."""
    return _name(type(model)) in _FORMATS


def is_fitted(model: Any) -> bool:
    """Return whether such a model has been fitted."""
    return _FORMATS[_name(type(model))].is_fitted(model)


def as_stored(model: Any) -> StoredModel:
    """Return what a file holds of such a model."""
    name = _name(type(model))
    form = _FORMATS[name]
    written = form.write(model) if form.is_fitted(model) else b""
    return StoredModel(name, np.frombuffer(written, dtype=np.uint8), form.attributes(model))


def version_of(kind: str) -> dict[str, str]:
    """Return the version of the library of a class, by the library's name."""
    library = kind.partition(".")[0]
    return {library: sys.modules[library].__version__} if kind in _FORMATS else {}


def with_stored(model: Any, parts: list[Any]) -> Any:
    """Return a copy of a model in which some of its parts, outer before inner, are stored ones."""
    memo: dict[int, Any] = {}
    for part in reversed(parts):
        stored = as_stored(part)
        stored.attributes = copy.deepcopy(stored.attributes, memo)
        memo[id(part)] = stored
    return copy.deepcopy(model, memo) if parts else model


def with_restored(model: Any, parts: list[StoredModel], allowed: Collection[str]) -> Any:
    """Return a copy of a model in which stored parts, outer before inner, are models again."""
    memo: dict[int, Any] = {}
    for part in reversed(parts):
        memo[id(part)] = _restored(part, copy.deepcopy(part.attributes, memo), allowed)
    return copy.deepcopy(model, memo) if parts else model


def _restored(part: StoredModel, attributes: dict[str, Any], allowed: Collection[str]) -> Any:
    if part.kind not in _FORMATS or part.kind not in allowed:
        msg = f"it holds a model of {part.kind!r}, which was not trusted or is not known"
        raise FileError(msg)
    module, _, name = part.kind.rpartition(".")
    kind = getattr(importlib.import_module(module), name)
    return _FORMATS[part.kind].read(kind, part.written.tobytes(), attributes)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _without(*names: str) -> Callable[[Any], dict[str, Any]]:
    """Return a function that takes all attributes of a model but some."""

    def attributes(model: Any) -> dict[str, Any]:
        return {name: value for name, value in vars(model).items() if name not in names}

    return attributes


def _with_attributes(kind: type, attributes: dict[str, Any]) -> Any:
    model: Any = object.__new__(kind)
    vars(model).update(attributes)
    return model


# ---------------------------------------------------------------------------------------- LightGBM


def _lightgbm_attributes(model: Any) -> dict[str, Any]:
    attributes = _without("_Booster")(model)
    # a mapping with a default, which matters during training only
    return {**attributes, "_best_score": {k: dict(v) for k, v in model._best_score.items()}}


def _read_lightgbm(kind: type, written: bytes, attributes: dict[str, Any]) -> Any:
    import lightgbm

    model = _with_attributes(kind, {**attributes, "_Booster": None})
    if written:
        model._Booster = lightgbm.Booster(model_str=written.decode())
        model._Booster.best_iteration = attributes["_best_iteration"]
    return model


_LIGHTGBM = _Format(
    is_fitted=lambda model: model._Booster is not None,
    write=lambda model: model._Booster.model_to_string(num_iteration=-1).encode(),
    attributes=_lightgbm_attributes,
    read=_read_lightgbm,
)


# ----------------------------------------------------------------------------------------- XGBoost


def _read_xgboost(kind: type, written: bytes, attributes: dict[str, Any]) -> Any:
    import xgboost

    model = _with_attributes(kind, attributes)
    if written:
        model._Booster = xgboost.Booster(model_file=bytearray(written))
    return model


_XGBOOST = _Format(
    is_fitted=lambda model: getattr(model, "_Booster", None) is not None,
    write=lambda model: bytes(model._Booster.save_raw("json")),
    attributes=_without("_Booster"),
    read=_read_xgboost,
)


# ---------------------------------------------------------------------------------------- CatBoost


# What a model notes about when it was trained.
_CATBOOST_OCCASION = ("model_guid", "train_finish_time")


def _write_catboost(model: Any) -> bytes:
    """Return the same bytes for equal models, whenever they were trained."""
    plain = type(model)().load_model(blob=_as_cbm(model))
    notes = plain.get_metadata()
    for name in _CATBOOST_OCCASION:
        if name in notes:
            notes[name] = ""
    # the notes of a model that was read stand in a fixed order
    return _as_cbm(type(model)().load_model(blob=_as_cbm(plain)))


def _as_cbm(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save_model(str(path), format="cbm")
        return path.read_bytes()


def _read_catboost(kind: type, written: bytes, attributes: dict[str, Any]) -> Any:
    model = kind(**attributes["_init_params"])
    if written:
        model.load_model(blob=written)
        # reading has added what the model knows of its training
        model._init_params = attributes["_init_params"]
    return model


_CATBOOST = _Format(
    is_fitted=lambda model: bool(model.is_fitted()),
    write=_write_catboost,
    attributes=lambda model: {"_init_params": model._init_params},
    read=_read_catboost,
)


# ----------------------------------------------------------------------------------------- NGBoost


def _read_ngboost(kind: type, written: bytes, attributes: dict[str, Any]) -> Any:
    from ngboost.manifold import manifold

    made = manifold(attributes["Score"], attributes["Dist"])
    return _with_attributes(kind, {**attributes, "Manifold": made})


_NGBOOST = _Format(
    is_fitted=lambda model: bool(model.base_models),
    write=lambda model: b"",
    attributes=_without("Manifold"),
    read=_read_ngboost,
)


_FORMATS: dict[str, _Format] = {
    "lightgbm.sklearn.LGBMRegressor": _LIGHTGBM,
    "xgboost.sklearn.XGBRegressor": _XGBOOST,
    "xgboost.sklearn.XGBRFRegressor": _XGBOOST,
    "catboost.core.CatBoostRegressor": _CATBOOST,
    "ngboost.api.NGBRegressor": _NGBOOST,
}
