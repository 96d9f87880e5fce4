"""A bridge to skpro: our regressor and our distributions under its interface.

It needs skpro's base classes when it is imported, so nothing else in regcal imports it. The way
back needs no bridge: `as_distribution` and `predict_dist` understand what skpro has.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from regcal._validation import Array, as_float_array
from regcal.distributions import Clipped, Distribution, Rounded, as_distribution
from regcal.distributions._quadrature import integrate
from regcal.outcomes import Outcomes
from regcal.regressor import CalibratedRegressorCV

try:
    import pandas as pd
    from skpro.distributions.base import BaseDistribution
    from skpro.regression.base import BaseProbaRegressor
except ModuleNotFoundError as error:
    msg = f"regcal.skpro needs skpro. Install it: pip install 'regcal[skpro]' ({error})."
    raise ModuleNotFoundError(msg, name=error.name) from error

__all__ = ["CalibratedRegressor", "PredictiveDistribution"]


class PredictiveDistribution(BaseDistribution):
    """A batch of our distributions as a distribution of skpro with one column.

    Nothing is approximated by draws: energies and norms are integrals, so that skpro's metrics
    are as exact as ours. It becomes our distribution again by its attribute ``dist``.

    A distribution that is clipped or rounded is a mixed one, with ``pmf``. At a point mass ``pdf``
    gives the mass as well, as all of regcal does, so that skpro's log loss is our log score.

    Parameters
    ----------
    dist : Distribution or anything `regcal.as_distribution` takes
        One distribution per row.
    index : pd.Index, optional
        Labels of the rows; numbers by default. A single distribution without `index` and
        `columns` is a scalar one, as everywhere in skpro.
    columns : pd.Index, optional
        The name of the one column; 0 by default.

    Examples
    --------
    >>> import regcal
    >>> from regcal.skpro import PredictiveDistribution
    >>> dist = regcal.Normal([0.0, 10.0], [1.0, 2.0])
    >>> prediction = PredictiveDistribution(dist, index=["a", "b"], columns=["y"])
    >>> prediction.quantile([0.5])
          y
        0.5
    a   0.0
    b  10.0
    >>> prediction.loc[["b"]].dist
    Normal(rows=1)
    """

    _tags = {  # noqa: RUF012
        "distr:measuretype": "continuous",
        "distr:paramtype": "nonparametric",
        "capabilities:exact": [
            "mean",
            "var",
            "energy",
            "pdf",
            "log_pdf",
            "pdfnorm",
            "pmf",
            "log_pmf",
            "cdf",
            "surv",
            "haz",
            "ppf",
        ],
        "capabilities:approx": [],
        "broadcast_init": "off",
    }

    def __init__(self, dist: Any, index: Any = None, columns: Any = None) -> None:
        self.dist = dist
        self._dist = as_distribution(dist)
        if not (index is None and columns is None and len(self._dist) == 1):
            index = pd.RangeIndex(len(self._dist)) if index is None else index
            columns = pd.RangeIndex(1) if columns is None else columns
            _check_labels(len(self._dist), len(index), len(columns))
        super().__init__(index=index, columns=columns)
        if isinstance(self._dist, Clipped | Rounded):
            self.set_tags(**{"distr:measuretype": "mixed"})

    def _iloc(self, rowidx: Any = None, colidx: Any = None) -> "PredictiveDistribution":
        if _is_number(rowidx) and _is_number(colidx):
            return self._iat(rowidx, colidx)
        rows, columns = _places(rowidx, len(self)), _places(colidx, 1)
        return type(self)(self._dist[rows], self.index[rows], self.columns[columns])

    def _iat(self, rowidx: Any = None, colidx: Any = None) -> "PredictiveDistribution":
        if rowidx is None or colidx is None:
            msg = "iat and at need a row and a column, for example prediction.iat[0, 0]."
            raise ValueError(msg)
        _places(colidx, 1)
        return type(self)(self._dist[_places(rowidx, len(self))])

    def _shaped(self, values: Array) -> Any:
        """Return one value per row as a column, or as a number if this is a scalar."""
        return values[:, np.newaxis] if self.ndim else values[0]

    def _at_points(self, method: Callable[[Array], Array], points: Any) -> Any:
        return self._shaped(method(np.reshape(as_float_array(points, "points"), -1)))

    def _pdf(self, x: Any) -> Any:
        return self._at_points(self._dist.pdf, x)

    def _log_pdf(self, x: Any) -> Any:
        return self._at_points(self._dist.logpdf, x)

    def _pmf(self, x: Any) -> Any:
        return self._at_points(self._dist.mass, x)

    def _log_pmf(self, x: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(self._pmf(x))

    def _cdf(self, x: Any) -> Any:
        return self._at_points(self._dist.cdf, x)

    def _surv(self, x: Any) -> Any:
        return self._at_points(self._dist.sf, x)

    def _haz(self, x: Any) -> Any:
        return self._at_points(lambda t: np.exp(self._dist.logpdf(t) - self._dist.logsf(t)), x)

    def _ppf(self, p: Any) -> Any:
        return self._at_points(self._dist.ppf, p)

    def _mean(self) -> Any:
        return self._shaped(self._dist.mean())

    def _var(self) -> Any:
        return self._shaped(self._dist.var())

    def _energy_self(self) -> Any:
        return self._shaped(_mean_difference(self._dist))

    def _energy_x(self, x: Any) -> Any:
        # CRPS = E|X - x| - E|X - Y| / 2
        half = 0.5 * _mean_difference(self._dist)
        return self._at_points(lambda t: self._dist.crps(t) + half, x)

    def pdfnorm(self, a: float = 2) -> Any:
        """Return the integral of the density to the power `a`.

        Parameters
        ----------
        a : float, default=2

        Returns
        -------
        pd.DataFrame with the index and columns of this distribution
        """
        norm = _integral(self._dist, lambda part, t: part._pdf(t) ** a)
        values = self._shaped(norm)
        return pd.DataFrame(values, self.index, self.columns) if self.ndim else values

    def _sample(self, n_samples: int | None = None) -> Any:
        # skpro's distributions draw from NumPy's global generator, as scikit-learn's None does
        generator = check_random_state(None)
        draws = self._dist.sample(1 if n_samples is None else n_samples, random_state=generator)
        if self.ndim == 0:
            return draws[0, 0] if n_samples is None else pd.DataFrame(draws.T)
        frames = [pd.DataFrame(column, self.index, self.columns) for column in draws.T]
        return frames[0] if n_samples is None else pd.concat(frames, keys=range(n_samples))

    def _repr_html_(self) -> str:
        return self._dist._repr_html_()

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for skpro's tests."""
        from regcal.distributions import Mixture, Normal, Quantiles, Samples

        normal = Normal([0.0, 1.0, 5.0], [1.0, 0.5, 2.0])
        mixture = Mixture([normal, Normal([2.0, 2.0, 2.0], 1.0)])
        quantiles = Quantiles([0.1, 0.5, 0.9], [[0.0, 1.0, 3.0], [1.0, 2.0, 2.5]])
        samples = Samples([[0.0, 1.0, 3.0, 4.0]])
        return [
            {"dist": normal, "index": pd.Index([1, 2, 5]), "columns": pd.Index(["y"])},
            {"dist": mixture},
            {"dist": quantiles, "index": pd.Index(["a", "b"])},
            {"dist": samples},
            {"dist": Clipped(normal, low=0.5), "columns": pd.Index(["y"])},
        ]


class CalibratedRegressor(BaseProbaRegressor):
    """Calibrate a regressor's predictive distributions, as a probabilistic regressor of skpro.

    This is `regcal.CalibratedRegressorCV` with skpro's methods: it can stand wherever skpro takes
    a probabilistic regressor, such as its pipelines, searches and benchmarks.

    Parameters
    ----------
    estimator : estimator
        A probabilistic regressor of skpro or any other model that `regcal.predict_dist`
        understands.
    calibrator : str or Calibrator, default="auto"
        A name that `regcal.get_calibrator` knows, or a calibrator.
    cv : int or splitter, default=3
        Folds whose rows are held out for the calibrator.
    ensemble : bool or "auto", default="auto"
        Whether to average the calibrated models of all folds.
    n_jobs : int, optional
        Number of models fitted at once, through joblib.
    point : {"mean", "median"}, default="mean"
        What `predict` returns.
    support : {"auto", None} or (low, high), default="auto"
        Ends at which outcomes beyond are seen, such as 0 for times: found where outcomes pile up,
        none, or given.
    step : float or "auto", optional
        Distance of the values that outcomes are rounded to: 1 for counts.
    covariates : None, "all", or names or numbers of columns of X, default=None
        What the calibrator may look at besides the prediction: "auto" and "conditional" can.

    Attributes
    ----------
    model_ : CalibratedRegressorCV
        The fitted model with our methods, for example ``model_.predict_above``.

    Notes
    -----
    It takes censored outcomes: ``fit(X, y, C)``, where C is 0 for an outcome that was seen and 1
    for one that is only known to be at least y. A model of survival times inside is given C, too.

    Examples
    --------
    >>> from regcal.datasets import load_diabetes
    >>> from regcal.skpro import CalibratedRegressor
    >>> from sklearn.linear_model import BayesianRidge
    >>> data = load_diabetes()
    >>> model = CalibratedRegressor(BayesianRidge(), "scale").fit(data.X, data.y)
    >>> model.predict_proba(data.X[:2]).shape
    (2, 1)
    """

    _tags = {  # noqa: RUF012
        "capability:multioutput": False,
        "capability:missing": True,
        "capability:survival": True,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
        "C_inner_mtype": "pd_DataFrame_Table",
    }

    def __init__(
        self,
        estimator: Any,
        calibrator: Any = "auto",
        cv: Any = 3,
        ensemble: bool | str = "auto",
        n_jobs: int | None = None,
        point: str = "mean",
        support: Any = "auto",
        step: Any = None,
        covariates: Any = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble
        self.n_jobs = n_jobs
        self.point = point
        self.support = support
        self.step = step
        self.covariates = covariates
        super().__init__()

    def _fit(self, X: Any, y: Any, C: Any = None) -> "CalibratedRegressor":
        if y.shape[1] != 1:
            msg = f"y has {y.shape[1]} columns. Fit one regressor per column."
            raise ValueError(msg)
        model = CalibratedRegressorCV(**self.get_params(deep=False))
        values, censored = (None if one is None else one.iloc[:, 0].to_numpy() for one in (y, C))
        seen = values if censored is None else _right_censored(values, censored)
        # without an index, it gets that of X
        own = {"C": censored} if censored is not None and _is_survival(self.estimator) else {}
        self.model_ = model.fit(_with_names(X), seen, **own)
        self._y_columns = y.columns
        return self

    def _predict(self, X: Any) -> Any:
        points = self.model_.predict(_with_names(X))
        return pd.DataFrame(points, index=X.index, columns=self._y_columns)

    def _predict_proba(self, X: Any) -> PredictiveDistribution:
        dist = self.model_.predict_dist(_with_names(X))
        return PredictiveDistribution(dist, X.index, self._y_columns)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for skpro's tests."""
        from sklearn.linear_model import BayesianRidge, LinearRegression
        from skpro.regression.residual import ResidualDouble

        from regcal.calibrators import ConditionalCalibrator, PITCalibrator

        inner = ResidualDouble(LinearRegression())
        return [
            {"estimator": BayesianRidge(), "calibrator": "scale"},
            {"estimator": inner, "calibrator": PITCalibrator(), "cv": 2, "ensemble": True},
            {
                "estimator": BayesianRidge(),
                "calibrator": ConditionalCalibrator("additive", PITCalibrator()),
                "covariates": "all",
            },
        ]


def _right_censored(values: Any, censored: Any) -> Outcomes:
    if not np.isin(censored, (0, 1)).all():
        odd = censored[~np.isin(censored, (0, 1))][0]
        msg = f"C must be 0 where y was seen and 1 where it is right-censored, got {odd}."
        raise ValueError(msg)
    return Outcomes.right_censored(values, observed=censored == 0)


def _is_survival(estimator: Any) -> bool:
    """Return whether a model's fit takes C: one of skpro that says so."""
    return isinstance(estimator, BaseProbaRegressor) and estimator.get_tag("capability:survival")


def _with_names(X: Any) -> Any:
    """Return a frame whose column names are strings if some are: scikit-learn refuses mixtures."""
    mixed = len({isinstance(name, str) for name in X.columns}) > 1
    return X.set_axis([str(name) for name in X.columns], axis=1) if mixed else X


def _check_labels(n_rows: int, n_index: int, n_columns: int) -> None:
    if n_index != n_rows or n_columns != 1:
        msg = (
            f"Got {n_index} labels in index and {n_columns} in columns for {n_rows} distributions. "
            "Pass one label per distribution, and the name of one column."
        )
        raise ValueError(msg)


def _is_number(place: Any) -> bool:
    return place is not None and np.ndim(place) == 0 and not isinstance(place, slice)


def _places(chosen: Any, size: int) -> np.ndarray:
    """Return numbers of rows or columns."""
    if chosen is None:
        return np.arange(size)
    key = chosen if isinstance(chosen, slice) else np.asarray(chosen)
    return np.atleast_1d(np.arange(size)[key])


def _integral(dist: Distribution, function: Callable[[Distribution, Array], Array]) -> Array:
    """Integrate a function of distributions and points over all points, row by row."""
    parts = [dist[rows] for rows in dist._integral_blocks()]
    values = [integrate(partial(function, part), part._panel_edges()) for part in parts]
    return np.concatenate(values or [np.empty(0)])


def _mean_difference(dist: Distribution) -> Array:
    """Return E|X - Y| of two independent draws: twice the integral of cdf times sf."""
    return 2.0 * _integral(dist, lambda part, t: part._cdf(t) * part._sf(t))
