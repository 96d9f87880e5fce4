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


def _bins_and_times(n_censored, after):
    """Return bins from 0 to 2, and times of which the last are only known to be later."""
    dist = regcal.Histogram([0.0, 1.0, 2.0], np.full((50, 2), 0.5))
    times = np.append(np.linspace(0.1, 1.9, 50 - n_censored), np.full(n_censored, after))
    return dist, times, np.arange(50) < 50 - n_censored


@pytest.mark.parametrize("name", [n for n in regcal.calibrator_names() if n != "gpc-paper"])
def test_censoring_beyond_every_prediction_is_refused(name):
    """No map can give it a probability, and the rows that are left would mislead."""
    dist, times, observed = _bins_and_times(40, 5.0)
    seen = regcal.Outcomes.right_censored(times, observed)

    for fit in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=r"All 40 .* from 5 to inf.* Widen the predictions"):
            getattr(regcal.get_calibrator(name), fit)(dist, seen)


@pytest.mark.parametrize("name", ["e-beta", "e-isotonic", "isotonic", "pit", "gp-density"])
def test_some_censoring_beyond_predictions_is_told(name):
    """One censored row can be learnt from, and nine others are counted."""
    dist, times, observed = _bins_and_times(10, 5.0)
    times[-1] = 1.0

    with pytest.warns(regcal.ImpossibleOutcomesWarning, match=r"9 of (50 out|10 inter).* [Ww]iden"):
        fitted = regcal.get_calibrator(name).fit(
            dist, regcal.Outcomes.right_censored(times, observed)
        )

    assert fitted.transform(dist).sf(2.0).max() == 0.0


@pytest.mark.parametrize("name", [n for n in regcal.calibrator_names() if n != "gpc-paper"])
@pytest.mark.parametrize("support", [None, "auto"])
def test_outcomes_without_probability_are_told(name, support):
    """No method invents predictions: what lies beyond the last bin, or is 0, stays impossible."""
    dist = regcal.Histogram([0.5, 1.0, 2.0], np.full((80, 2), 0.5))
    y = np.linspace(0.6, 1.9, 80)
    y[::8] = 0.0 if support == "auto" else 5.0

    with pytest.warns(regcal.ImpossibleOutcomesWarning, match=r"10 of 80 outcomes .*[Ww]iden"):
        fitted = regcal.get_calibrator(name, support=support).fit(dist, y)

    assert np.isneginf(regcal.log_score(y, fitted.transform(dist))).sum() == 10


@pytest.mark.parametrize("name", ["e-beta", "isotonic"])
def test_outcomes_that_get_a_probability_are_not_told(name):
    """At an end, where a density is, and in a hole, calibrators of segments do without."""
    dist = regcal.Histogram([0.0, 1.0, 2.0, 3.0], np.tile([0.5, 0.0, 0.5], (80, 1)))
    y = np.concatenate([np.linspace(0.1, 0.9, 35), np.linspace(2.1, 2.9, 35), np.full(10, 1.5)])
    y[:3] = 0.0
    fitted = regcal.get_calibrator(name, support=None).fit(dist, y)

    assert np.isfinite(regcal.log_score(y, fitted.transform(dist))).all()
