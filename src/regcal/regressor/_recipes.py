"""The base models of Song, Kull and Flach (2018), Section 6.

Depends on scikit-learn and `_residuals`.
"""

from typing import Any

import numpy as np
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from regcal.regressor._residuals import NormalResidualRegressor


def paper_ols() -> NormalResidualRegressor:
    """Return the paper's OLS: least squares with the residual's standard deviation.

    Examples
    --------
    >>> from regcal import paper_ols
    >>> paper_ols()
    NormalResidualRegressor(estimator=LinearRegression())
    """
    return NormalResidualRegressor(LinearRegression())


def paper_brr() -> Pipeline:
    """Return the paper's Bayesian ridge regression, on scaled features.

    Examples
    --------
    >>> from regcal import paper_brr
    >>> paper_brr()[-1]
    BayesianRidge()
    """
    return make_pipeline(StandardScaler(), BayesianRidge())


def paper_gpr() -> Pipeline:
    """Return the paper's Gaussian process regression on one feature.

    The feature with the largest variance is taken and scaled; the kernel is a squared
    exponential plus white noise. The bounds of the kernel's parameters are wide enough for all
    of the paper's data sets, and narrow enough to keep it from interpolating noise.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import paper_gpr, predict_dist
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 2)) * [1.0, 10.0]
    >>> model = paper_gpr().fit(X, np.sin(X[:, 1] / 10) + 0.1 * rng.normal(size=50))
    >>> predict_dist(model, X[:1]).std().round(1)
    array([0.1])
    """
    kernel = ConstantKernel(1.0, (1e-4, 1e4)) * RBF(1.0, (0.05, 1e3)) + WhiteKernel(1.0, (1e-6, 10))
    regressor = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    return make_pipeline(SelectKBest(column_variances, k=1), StandardScaler(), regressor)


def column_variances(X: Any, y: Any) -> np.ndarray:
    """Return the variance of each feature, for a selector that also hands over the targets."""
    return np.var(X, axis=0)
