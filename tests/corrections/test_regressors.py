"""Trees and other regressors of scikit-learn as learners."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from regcal.corrections import trees
from regcal.corrections.regressors import _snapped, as_table
from regcal.covariates import Covariates


def test_categories_are_places_and_gaps_are_nan():
    """What scikit-learn's trees take."""
    columns = Covariates.of({"age": [1.0, None, 3.0], "kind": ["b", "a", None]})

    assert_array_equal(as_table(columns), [[1.0, 1.0], [np.nan, 0.0], [3.0, np.nan]])


def test_trees_find_what_a_category_and_a_gap_do(rng):
    """Each value has its own location, a missing one too."""
    kind = rng.choice(np.array(["a", "b", None], dtype=object), 900)
    mean = np.select([kind == "a", kind == "b"], [2.0, -1.0], 0.5)
    columns = Covariates.of({"kind": kind})
    fitted = trees(columns).learn_shift(columns, rng.normal(mean, 0.1), np.ones(900))
    new = columns.read({"kind": ["a", "b", None, "c"]})

    assert_allclose(fitted(new), [2.0, -1.0, 0.5, 0.5], atol=0.1)


def test_trees_find_interactions_in_the_spread(rng):
    """Half the log of mean squares, where a sum of terms sees nothing."""
    x = rng.choice([-1.0, 1.0], (2, 4000))
    log_spread = 0.5 * x[0] * x[1]
    columns = Covariates.of({"a": x[0], "b": x[1]})
    squares = np.exp(2.0 * log_spread) * rng.normal(size=4000) ** 2
    fitted = trees(columns).learn_log_factor(columns, squares, np.ones(4000))

    assert np.abs(fitted(columns) - log_spread).max() < 0.1


def test_few_values_are_quantiles_next_below(rng):
    """At most 250 of them, in the order of the numbers; gaps stay gaps."""
    values = rng.normal(size=5000)
    values[:7] = np.nan
    few = _snapped(values)
    known = ~np.isnan(values)

    assert len(np.unique(few[known])) == 250
    assert np.isin(few[known], values[known]).all()
    assert (few[known] <= values[known]).all()
    assert (np.diff(few[known][np.argsort(values[known])]) >= 0).all()
    assert np.isnan(few[:7]).all()
    assert_array_equal(_snapped(few), few)
