"""Checks of what compiled code takes on trust: trees, encoders, random states; rules by class.

Trees are arrays of node numbers and column numbers that prediction follows without looking; a
crafted file could lead it anywhere in memory. What concerns the arrays that a tree is built of is
checked by `regcal.persistence._schema`, before it is built.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np
from sklearn._loss.link import BaseLink
from sklearn._loss.loss import BaseLoss
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree
from sklearn.utils import check_array

from regcal.persistence._archive import FileError
from regcal.persistence._numbers import check_numbers
from regcal.persistence.fingerprint import walk

# Words of state of the Mersenne twister.
_TWISTER_WORDS = 624

# A bitset of the 256 categories that histogram boosting can tell apart has so many words.
_BITSET_WORDS = 8


def check_parts(model: Any) -> None:
    """Refuse objects with which compiled code would leave its arrays, or whose numbers are off."""
    checked: set[int] = set()
    held: set[int] = set()
    for value in walk(model):
        if isinstance(value, Tree | TreePredictor):
            held.add(id(value))
        if not isinstance(value, type):
            check_numbers(value)
        _check_names(value)
        for kind, rule in _RULES.items():
            if isinstance(value, kind):
                checked.update(map(id, rule(value) or ()))
    if held - checked:
        _refuse("it holds a tree that belongs to no model")


def _refuse(reason: str) -> NoReturn:
    raise FileError(reason)


def _check_names(value: Any) -> None:
    """Refuse attributes that stand before the methods of a class."""
    kind = type(value)
    own = () if isinstance(value, type) else getattr(value, "__dict__", ())
    for name in own:
        if not isinstance(name, str) or inspect.isroutine(getattr(kind, name, None)):
            _refuse(f"{name!r} of a {kind.__name__} is a method and cannot be stored")


def _check_estimator(model: Any) -> None:
    """Check what fitting again would take from the file."""
    name = type(model).__name__
    if getattr(model, "memory", None) is not None:
        _refuse(
            f"a {name} has a cache folder, and fitting it again would read pickles from there; "
            "set memory=None before saving"
        )
    if getattr(model, "warm_start", False) is not False:
        _refuse(
            f"a {name} has warm_start, and fitting it again would go on from unchecked arrays; "
            "set warm_start=False before saving"
        )


def _check_random_state(state: Any) -> None:
    place = state.get_state(legacy=False)["state"]["pos"]
    if not 0 <= place <= _TWISTER_WORDS:
        _refuse("a random state is at a place that it does not have")


# ------------------------------------------------------------------------------------------- trees


def _check_whole_tree(tree: Any) -> None:
    if tree.node_count != tree.capacity:
        _refuse("a tree claims more nodes than it has")


def _check_tree_model(model: Any) -> list[Any]:
    if not hasattr(model, "tree_"):
        return []
    _check_tree(model.tree_, model.n_features_in_)
    return [model.tree_]


def _check_tree(tree: Any, n_features: int) -> None:
    if not isinstance(tree, Tree):
        _refuse("a model of trees holds something else")
    _check_whole_tree(tree)
    if not 0 < tree.n_features <= int(n_features):
        _refuse("a tree was grown on more columns than its model has")
    left, right = tree.children_left, tree.children_right
    inner = np.flatnonzero(left != -1)
    _check_nodes(inner, left[inner], right[inner], tree.feature[inner], len(left), tree.n_features)
    _check_leaves(tree.value)
    if tree.max_depth < _depth(left, right):
        _refuse("a tree is deeper than it claims")


def _check_forest(model: Any) -> None:
    """Check trees that are given a table whose columns only the ensemble has counted."""
    for tree in getattr(model, "estimators_", []):
        _check_member(tree, model)


def _check_member(tree: Any, model: Any) -> None:
    if not isinstance(tree, BaseDecisionTree):
        _refuse("an ensemble of trees holds something else")
    _check_tree(tree.tree_, model.n_features_in_)


def _check_gradient_boosting(model: Any) -> None:
    if not hasattr(model, "estimators_"):
        return
    trees, start = model.estimators_, model.init_
    if not isinstance(trees, np.ndarray) or trees.shape != (len(trees), 1):
        _refuse("an ensemble has another number of trees than it claims")
    if getattr(model, "n_trees_per_iteration_", 1) != 1:
        _refuse("an ensemble has another number of trees than it claims")
    if not isinstance(model._loss, BaseLoss) or not isinstance(model._loss.link, BaseLink):
        _refuse("gradient boosting has no loss")
    for tree in trees[:, 0]:
        _check_member(tree, model)
    # compiled code adds to what this predicts, row by row, without counting the rows
    plain = isinstance(start, DummyRegressor) and type(start.n_outputs_) is int
    if start != "zero" and not (plain and start.n_outputs_ == 1 and np.size(start.constant_) == 1):
        _refuse("gradient boosting starts from another model, which cannot be checked")


def _check_nodes(
    inner: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    feature: np.ndarray,
    n_nodes: int,
    n_features: int,
) -> None:
    """Check inner nodes: children come later than their parent, columns exist."""
    children = np.stack([left, right]).astype(np.int64)
    columns = feature.astype(np.int64)
    if n_nodes < 1 or (children <= inner).any() or (children >= n_nodes).any():
        _refuse("a tree has a node that leads to no node below it")
    if (columns < 0).any() or (columns >= int(n_features)).any():
        _refuse("a tree asks for a column that its model does not have")


def _check_leaves(values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        _refuse("a tree has a leaf without a number")


def _depth(left: np.ndarray, right: np.ndarray) -> int:
    depth, level = -1, np.array([0])
    while len(level):
        depth, inner = depth + 1, level[left[level] != -1]
        level = np.unique(np.concatenate([left[inner], right[inner]]))
    return depth


# ------------------------------------------------------------------------------ histogram boosting


def _check_histogram_boosting(model: Any) -> list[Any]:
    if not hasattr(model, "_predictors"):
        return []
    n_features = int(model.n_features_in_)
    categorical = _categorical_columns(model, n_features)
    trees = [tree for stage in model._predictors for tree in stage]
    if any(len(stage) != 1 for stage in model._predictors) or model.n_trees_per_iteration_ != 1:
        _refuse("an ensemble has another number of trees than it claims")
    start = model._baseline_prediction
    if np.shape(start) != (1, 1) or start.dtype.kind != "f":
        _refuse("histogram boosting starts from something else than a number")
    for tree in trees:
        _check_predictor(tree, n_features, categorical)
    return trees


def _categorical_columns(model: Any, n_features: int) -> np.ndarray:
    """Return which columns of the encoded table are categories."""
    mapper = model._bin_mapper
    flags = mapper.is_categorical_ if isinstance(mapper, _BinMapper) else None
    if not isinstance(flags, np.ndarray) or flags.shape != (n_features,):
        _refuse("histogram boosting does not know which of its columns are categories")
    categorical = flags.astype(bool)
    thresholds = mapper.bin_thresholds_
    if len(thresholds) != n_features:
        _refuse("histogram boosting does not know the categories of its columns")
    for column in np.flatnonzero(categorical):
        known = np.asarray(thresholds[column], dtype=float)
        if known.ndim != 1 or not ((known >= 0) & (known < 32 * _BITSET_WORDS)).all():
            _refuse("histogram boosting has categories that it cannot tell apart")
    if model._preprocessor is not None:
        _check_preprocessor(model._preprocessor, n_features)
    elif categorical.any():
        _refuse("histogram boosting has categories and nothing that encodes them")
    return categorical


def _check_preprocessor(columns: Any, n_features: int) -> None:
    """Check that as many columns come out as trees may ask for."""
    parts = getattr(columns, "transformers_", None)
    indices = getattr(columns, "_transformer_to_input_indices", {})
    if type(columns) is not ColumnTransformer or not isinstance(parts, list):
        _refuse("histogram boosting encodes its columns by something else")
    used = np.zeros(n_features, dtype=int)
    for name, part, mask in parts:
        if name == "remainder" and part == "drop":
            continue
        encoder = type(part) is OrdinalEncoder and len(part.categories_) == int(mask.sum())
        if not encoder and not _passes_numbers(part):
            _refuse("histogram boosting encodes its columns by something else")
        if mask.dtype != bool or not np.array_equal(np.flatnonzero(mask), indices[name]):
            _refuse("histogram boosting encodes other columns than it has")
        used += mask
    if (used != 1).any():
        _refuse("histogram boosting encodes other columns than it has")


def _passes_numbers(part: Any) -> bool:
    return (
        type(part) is FunctionTransformer
        and isinstance(part.func, partial)
        and part.func.func is check_array
        and not part.func.args
        and not part.kw_args
        and not part.validate
        and set(part.func.keywords) <= {"dtype", "ensure_all_finite", "force_all_finite"}
    )


def _check_predictor(tree: Any, n_features: int, categorical: np.ndarray) -> None:
    if not isinstance(tree, TreePredictor):
        _refuse("histogram boosting holds something else than trees")
    nodes, bitsets = tree.nodes, tree.raw_left_cat_bitsets
    if nodes.ndim != 1 or nodes.dtype != PREDICTOR_RECORD_DTYPE:
        _refuse("histogram boosting holds something else than trees")
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    feature = nodes["feature_idx"][inner]
    _check_nodes(
        inner, nodes["left"][inner], nodes["right"][inner], feature, len(nodes), n_features
    )
    _check_leaves(nodes["value"])
    splits = inner[nodes["is_categorical"][inner] != 0]
    if not categorical[nodes["feature_idx"][splits]].all():
        _refuse("a tree has categories that its model does not have")
    if bitsets.dtype != np.uint32 or bitsets.ndim != 2 or bitsets.shape[1] != _BITSET_WORDS:
        _refuse("a tree has categories that it cannot tell apart")
    if (nodes["bitset_idx"][splits].astype(np.int64) >= len(bitsets)).any():
        _refuse("a tree has categories that it does not know")


# ---------------------------------------------------------------------------------------- encoders


def _check_one_hot(encoder: Any) -> None:
    """Check that no category gets a column beyond those that the encoder counts."""
    if not hasattr(encoder, "categories_"):
        return
    dropped = encoder._drop_idx_after_grouping
    mappings = encoder._default_to_infrequent_mappings if encoder._infrequent_enabled else None
    counted = encoder._n_features_outs
    if len(counted) != len(encoder.categories_):
        _refuse("an encoder counts other columns than it has")
    for k, categories in enumerate(encoder.categories_):
        size = len(categories) if mappings is None else _grouped(mappings[k], len(categories))
        drop = None if dropped is None else dropped[k]
        if drop is not None and not 0 <= int(drop) < size:
            _refuse("an encoder leaves out a category that it does not have")
        if type(counted[k]) is not int or counted[k] != size - (drop is not None):
            _refuse("an encoder counts other columns than it has")


def _grouped(mapping: Any, n_categories: int) -> int:
    """Return how many categories are left when rare ones are put together."""
    if mapping is None:
        return n_categories
    if mapping.shape != (n_categories,) or mapping.dtype.kind != "i" or mapping.min() < 0:
        _refuse("an encoder groups other categories than it has")
    return int(mapping.max()) + 1


# Compiled parts first: a rule may read only what the rules before it have let through.
_RULES: dict[type, Callable[[Any], list[Any] | None]] = {
    Tree: _check_whole_tree,
    np.random.RandomState: _check_random_state,
    BaseEstimator: _check_estimator,
    BaseDecisionTree: _check_tree_model,
    BaseForest: _check_forest,
    GradientBoostingRegressor: _check_gradient_boosting,
    BaseHistGradientBoosting: _check_histogram_boosting,
    OneHotEncoder: _check_one_hot,
}
