"""Checks of what compiled code takes on trust: trees, random states; and of folders of pickles.

Trees are arrays of node numbers and column numbers that prediction follows without looking; a
crafted file could lead it anywhere in memory.
"""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

from regcal.persistence._archive import FileError
from regcal.persistence.fingerprint import walk

# Words of state of the Mersenne twister.
_TWISTER_WORDS = 624


def check_compiled_parts(model: Any) -> None:
    """Refuse objects with which compiled code would leave its arrays, or a fit read pickles."""
    checked: set[int] = set()
    held: set[int] = set()
    for value in walk(model):
        if isinstance(value, BaseEstimator) and getattr(value, "memory", None) is not None:
            _refuse(
                f"a {type(value).__name__} has a cache folder, and fitting it again would read "
                "pickles from there; set memory=None before saving"
            )
        if isinstance(value, Tree | TreePredictor):
            held.add(id(value))
            if isinstance(value, Tree) and value.node_count != value.capacity:
                _refuse("a tree claims more nodes than it has")
        elif isinstance(value, BaseDecisionTree) and hasattr(value, "tree_"):
            checked.add(_check_tree(value.tree_, value.n_features_in_))
        elif isinstance(value, BaseForest | BaseGradientBoosting):
            _check_ensemble(value)
        elif isinstance(value, BaseHistGradientBoosting):
            checked |= _check_boosting(value)
        elif isinstance(value, np.random.RandomState):
            place = value.get_state(legacy=False)["state"]["pos"]
            if not 0 <= place <= _TWISTER_WORDS:
                _refuse("a random state is at a place that it does not have")
    if held - checked:
        _refuse("it holds a tree that belongs to no model")


def _refuse(reason: str) -> None:
    raise FileError(reason)


def _check_ensemble(model: Any) -> None:
    """Check trees that are given a table whose columns only the ensemble has counted."""
    trees = getattr(model, "estimators_", [])
    if isinstance(model, BaseGradientBoosting) and len(trees):
        shape = np.shape(trees)
        if len(shape) != 2 or shape[1] != getattr(model, "n_trees_per_iteration_", 1):
            _refuse("an ensemble has another number of trees than it claims")
    for tree in np.ravel(np.asarray(trees, dtype=object)):
        if not isinstance(tree, BaseDecisionTree):
            _refuse("an ensemble of trees holds something else")
        _check_tree(tree.tree_, model.n_features_in_)


def _check_tree(tree: Any, n_features: int) -> int:
    if not isinstance(tree, Tree) or tree.node_count != tree.capacity:
        _refuse("a tree claims more nodes than it has")
    if not 0 < tree.n_features <= int(n_features):
        _refuse("a tree was grown on more columns than its model has")
    left, right = tree.children_left, tree.children_right
    inner = np.flatnonzero(left != -1)
    _check_nodes(inner, left[inner], right[inner], tree.feature[inner], tree.node_count, n_features)
    if tree.max_depth < _depth(left, right):
        _refuse("a tree is deeper than it claims")
    return id(tree)


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


def _depth(left: np.ndarray, right: np.ndarray) -> int:
    depth, level = -1, np.array([0])
    while len(level):
        depth, inner = depth + 1, level[left[level] != -1]
        level = np.unique(np.concatenate([left[inner], right[inner]]))
    return depth


def _check_boosting(model: Any) -> set[int]:
    predictors = [tree for stage in getattr(model, "_predictors", []) for tree in stage]
    if getattr(model, "_preprocessor", None) is not None:
        _refuse(
            "it holds histogram boosting with categories, whose trees cannot be checked; "
            "encode the categories in a pipeline before the model"
        )
    for tree in predictors:
        if not isinstance(tree, TreePredictor) or tree.nodes.ndim != 1:
            _refuse("histogram boosting holds something else than trees")
        nodes = tree.nodes
        if nodes["is_categorical"].any():
            _refuse("a tree has categories that its model does not have")
        inner = np.flatnonzero(nodes["is_leaf"] == 0)
        left, right = nodes["left"][inner], nodes["right"][inner]
        feature = nodes["feature_idx"][inner]
        _check_nodes(inner, left, right, feature, len(nodes), model.n_features_in_)
    return {id(tree) for tree in predictors}
