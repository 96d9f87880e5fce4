"""What every fit does to the process it runs in, and what every calibrator tells of itself."""

import inspect
import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from threadpoolctl import threadpool_info, threadpool_limits

import regcal


class CountsThreads(RegressorMixin, BaseEstimator):
    """A regressor that notes how many threads it may use."""

    def fit(self, X, y, sample_weight=None):
        self.threads_ = {
            library["user_api"]: library["num_threads"] for library in threadpool_info()
        }
        return self

    def predict(self, X):
        return 1.0 + X[:, 0] ** 2


def test_fits_take_one_thread_and_leave_the_others(rng):
    """Neither linear algebra nor trees wait for threads, and the process has them again after."""
    x = rng.normal(size=60)
    cal = regcal.ConditionalCalibrator((CountsThreads(), CountsThreads()), regcal.PITCalibrator())

    with threadpool_limits(limits=2):
        cal.fit(regcal.Normal(np.zeros(60), 1.0), 2.0 + x**2 + rng.normal(size=60), None, x)
        after = {library["num_threads"] for library in threadpool_info()}

    parts = [part.regressor for part in cal.correction_.shift.parts[0].parts]
    assert all(set(part.threads_.values()) == {1} for part in parts)
    assert {"blas", "openmp"} <= set(parts[0].threads_)
    assert after == {2}


CALIBRATORS = [
    one
    for one in vars(regcal.calibrators).values()
    if isinstance(one, type) and issubclass(one, regcal.Calibrator) and one is not regcal.Calibrator
]


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_every_parameter_is_described(calibrator):
    """`help` and the documentation tell of all parameters, those of every calibrator included."""
    told = inspect.getdoc(calibrator).partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    names = re.findall(r"^(\w+(?:, \w+)*) : .*\n    \S", told, flags=re.MULTILINE)

    wanted = list(inspect.signature(calibrator).parameters)
    assert [name for line in names for name in line.split(", ")] == wanted
