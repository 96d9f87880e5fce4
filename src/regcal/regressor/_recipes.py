"""The base models of Song, Kull and Flach (2018), Section 6."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from regcal._validation import Array
from regcal.regressor._residuals import NormalResidualRegressor

Objective = Callable[[Array], tuple[float, Array]]

# Of log parameters: a factor of 20 either way is one standard deviation.
_PRIOR_VARIANCE = 9.0


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
    exponential plus white noise. A weak prior keeps the kernel's parameters finite where the
    feature tells nothing about the target, as in the forest fires: there the likelihood alone
    has no maximum, and scikit-learn warns that a bound was reached.

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
    # not needed by most, and half of what `import regcal` would take from scikit-learn
    from sklearn.feature_selection import SelectKBest
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(1.0)
    regressor = GaussianProcessRegressor(kernel, optimizer=most_probable, normalize_y=True)
    return make_pipeline(SelectKBest(column_variances, k=1), StandardScaler(), regressor)


def most_probable(objective: Objective, start: Array, bounds: Array) -> tuple[Array, float]:
    """Minimise a negative log likelihood of log parameters, each with a N(0, 3^2) prior.

    The signature is that of `GaussianProcessRegressor`'s `optimizer`.
    """

    def negative_log_posterior(theta: Array) -> tuple[float, Array]:
        value, gradient = objective(theta)
        return value + 0.5 * float(
            theta @ theta
        ) / _PRIOR_VARIANCE, gradient + theta / _PRIOR_VARIANCE

    best = minimize(negative_log_posterior, start, jac=True, bounds=bounds, options={"ftol": 1e-7})
    return best.x, best.fun


def column_variances(X: Any, y: Any) -> Array:
    """Return the variance of each feature, for a selector that also hands over the targets."""
    return np.var(X, axis=0)
