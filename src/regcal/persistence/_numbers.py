"""What numbers of objects must be: rules by class, applied to what was loaded.

A file bypasses constructors, so that their checks are repeated here, for regcal's own classes and
the models of scikit-learn that are most common. A class of regcal without rules of its own only has
to be complete and free of NaN.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator

from regcal.persistence._archive import FileError
from regcal.persistence._checks import (
    Check,
    Sizes,
    no_nan,
)
from regcal.persistence._laws import LAWS
from regcal.persistence._rules import RULES


def check_numbers(value: Any) -> None:
    """Refuse an object whose attributes break the rules of its class."""
    known = vars(value) if hasattr(value, "__dict__") else {}
    for name in known:
        if isinstance(getattr(type(value), str(name), None), cached_property):
            _refuse(value, name, "is computed when it is needed, and never stored")
    sizes: Sizes = {}
    optional = isinstance(value, BaseEstimator)
    for name, check in _rules_of(type(value)).items():
        # what has a default is that in files from before there was any other
        if name not in known and not optional and not hasattr(type(value), name):
            _refuse(value, name, "is missing")
        if name in known and not check(known[name], sizes):
            _refuse(value, name, "is not what it should be")
    for kind, law in LAWS.items():
        if isinstance(value, kind) and not _holds(law, value):
            msg = f"the parts of a {type(value).__name__} do not fit together"
            raise FileError(msg)


def _holds(law: Callable[[Any], bool], value: Any) -> bool:
    with np.errstate(all="ignore"):
        return law(value)


def _refuse(value: Any, name: str, reason: str) -> NoReturn:
    msg = f"{name!r} of a {type(value).__name__} {reason}"
    raise FileError(msg)


def _rules_of(kind: type) -> dict[str, Check]:
    """Return the rules of a class and of its bases."""
    found: dict[str, Check] = {}
    if is_dataclass(kind):
        found.update({field.name: no_nan for field in fields(kind)})
    for base in reversed(kind.__mro__):
        found.update(RULES.get(base, {}))
    return found
