"""Types that files may hold are data."""

from functools import cached_property

import pytest

import regcal
from regcal._caching import WithoutCaches
from regcal.persistence import _types


def test_list_of_types_holds_data_classes_only():
    """Classes of models and distributions are in it; nothing that acts on files or users is."""
    names = _types.object_types()

    assert "regcal.calibrators.gp_threshold.GPCalibrator" in names
    assert "regcal.maps.surface.Surface" in names
    allowed = ("regcal.binary", "regcal.calibrators", "regcal.distributions", "regcal.gp")
    allowed += ("regcal.grids", "regcal.maps", "regcal.outcomes", "regcal.regressor")
    allowed += ("regcal.codes", "regcal.corrections", "regcal.covariates", "regcal.tables")
    allowed += ("regcal.online", "sklearn.")
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
