"""Which classes and functions a file may name without the user's explicit trust.

A name here stands for data: nothing in this list runs code that a file brings along.
"""

import importlib
import inspect
import pkgutil
import sys
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels
from sklearn.gaussian_process._gpc import _BinaryGaussianProcessClassifierLaplace
from sklearn.model_selection import BaseCrossValidator, _split
from sklearn.utils import Bunch, all_estimators

from regcal import (
    binary,
    calibrators,
    codes,
    corrections,
    covariates,
    distributions,
    gp,
    grids,
    maps,
    online,
    outcomes,
    regressor,
    tables,
)

# The parts of regcal whose classes fitted objects consist of.
_PARTS = (
    binary,
    calibrators,
    codes,
    corrections,
    covariates,
    distributions,
    gp,
    grids,
    maps,
    online,
    outcomes,
    regressor,
    tables,
)

# Estimators whose compiled code reads memory as the stored arrays tell it to, unchecked: full names
# and packages.
_UNCHECKED = (
    *(f"sklearn.svm._classes.{name}" for name in ("SVR", "NuSVR", "SVC", "NuSVC", "OneClassSVM")),
    "sklearn.cluster.",
    "sklearn.decomposition._dict_learning.",
    "sklearn.decomposition._lda.",
    "sklearn.decomposition._nmf.",
    "sklearn.ensemble._gb.GradientBoostingClassifier",
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier",
    "sklearn.ensemble._iforest.IsolationForest",
    "sklearn.feature_extraction.",
    "sklearn.manifold.",
    "sklearn.neighbors.",
    "sklearn.preprocessing._label.MultiLabelBinarizer",
    "sklearn.semi_supervised._label_propagation.",
)

# What fitted estimators hold that is no estimator itself. Trees are checked node by node.
_HELD = {
    "sklearn.compose._column_transformer": ["make_column_selector"],
    "sklearn._loss.link": ["HalfLogitLink", "IdentityLink", "Interval", "LogLink", "LogitLink"],
    "sklearn._loss.loss": [
        "AbsoluteError",
        "HalfGammaLoss",
        "HalfPoissonLoss",
        "HalfSquaredError",
        "HuberLoss",
        "PinballLoss",
    ],
    "sklearn.ensemble._hist_gradient_boosting.binning": ["_BinMapper"],
    "sklearn.ensemble._hist_gradient_boosting.predictor": ["TreePredictor"],
    "sklearn.metrics._scorer": ["_PassthroughScorer"],
    "sklearn.neural_network._stochastic_optimizers": ["AdamOptimizer", "SGDOptimizer"],
}

FUNCTIONS = frozenset(
    {
        "regcal.distributions.segmented.keep_masses",
        "regcal.regressor._recipes.column_variances",
        "regcal.regressor._recipes.most_probable",
        "sklearn.feature_selection._mutual_info.mutual_info_regression",
        "sklearn.feature_selection._univariate_selection.f_regression",
        "sklearn.feature_selection._univariate_selection.r_regression",
    }
)

# Functions that a file may bind to arguments: they look at an array and return it.
CHECKING_FUNCTIONS = frozenset({"sklearn.utils.validation.check_array"})

# Compiled parts of the losses of gradient boosting; their constructors take numbers only.
LOSSES = frozenset(
    f"{module}.{name}"
    for module in ("_loss", "sklearn._loss._loss")
    for name in (
        "CyAbsoluteError",
        "CyHalfGammaLoss",
        "CyHalfPoissonLoss",
        "CyHalfSquaredError",
        "CyHuberLoss",
        "CyPinballLoss",
    )
)

SCALARS = frozenset(
    f"numpy.{kind.__name__}" for kind in {np.dtype(code).type for code in "?bhilqBHILQefdgU"}
) | {"numpy.bool", "numpy.bool_"}

# Types as values, such as the dtypes that select columns.
PLAIN_TYPES = (
    frozenset(f"builtins.{kind}" for kind in ("bool", "float", "int", "object", "str"))
    | SCALARS
    | {f"numpy.{kind}" for kind in ("floating", "generic", "integer", "number")}
)

MAPPINGS = frozenset({"builtins.dict", "collections.OrderedDict", f"{Bunch.__module__}.Bunch"})

TREE = "sklearn.tree._tree.Tree"


def type_name(kind: Any) -> str:
    """Return the name under which a file knows a class or function."""
    return f"{kind.__module__}.{kind.__name__}"


@cache
def object_types() -> frozenset[str]:
    """Return the classes whose instances a file may hold."""
    names = {type_name(kind) for part in _PARTS for kind in _classes_of(part)}
    estimators = {type_name(kind) for _, kind in all_estimators()}
    names |= {name for name in estimators if not name.startswith(_UNCHECKED)}
    names |= {type_name(kind) for kind in _defined_in(kernels, kernels.Kernel)}
    names |= {type_name(kind) for kind in _defined_in(_split, BaseCrossValidator)}
    names.add(type_name(_BinaryGaussianProcessClassifierLaplace))
    names |= {f"{module}.{name}" for module, held in _HELD.items() for name in held}
    return frozenset(names)


def _classes_of(part: ModuleType) -> set[type]:
    """Return the classes that a module, or the modules of a package, define."""
    found = _defined_in(part, object)
    for info in pkgutil.iter_modules(getattr(part, "__path__", [])):
        found |= _defined_in(importlib.import_module(f"{part.__name__}.{info.name}"), object)
    return found


def _defined_in(module: ModuleType, base: type) -> set[type]:
    classes = (kind for _, kind in inspect.getmembers(module, inspect.isclass))
    return {
        kind for kind in classes if kind.__module__ == module.__name__ and issubclass(kind, base)
    }


def is_function(name: str) -> bool:
    """Return whether a file may refer to a function: a few by name, and ufuncs of numpy, scipy."""
    if name in FUNCTIONS | CHECKING_FUNCTIONS:
        return True
    module, _, function = name.rpartition(".")
    loaded = sys.modules.get(module) if module.split(".")[0] in ("numpy", "scipy") else None
    return isinstance(vars(loaded).get(function) if loaded else None, np.ufunc)
