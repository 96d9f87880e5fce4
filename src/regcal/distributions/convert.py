"""Turn what models return into a Distribution, by duck typing.

None of the packages whose objects are recognised is imported.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike

from regcal._validation import refuse_masked
from regcal.distributions.base import Distribution
from regcal.distributions.histogram import Histogram
from regcal.distributions.mixture import Mixture
from regcal.distributions.normal import Normal
from regcal.distributions.quantiles import Quantiles
from regcal.distributions.samples import Samples
from regcal.distributions.scipy_family import ScipyDistribution

_ACCEPTED = (
    "a Distribution; (mean, std); (edges, masses); a matrix of quantiles with levels=; a matrix of "
    "draws; a data frame whose columns are levels; a frozen scipy.stats distribution; an NGBoost, "
    "skpro or torch distribution"
)

# torch.distributions class name -> how its parameters are called by scipy.stats
_TORCH_FAMILIES: dict[str, Callable[[dict[str, np.ndarray]], Any]] = {
    "Laplace": lambda p: scipy.stats.laplace(p["loc"], p["scale"]),
    "Cauchy": lambda p: scipy.stats.cauchy(p["loc"], p["scale"]),
    "Gumbel": lambda p: scipy.stats.gumbel_r(p["loc"], p["scale"]),
    "StudentT": lambda p: scipy.stats.t(p["df"], p["loc"], p["scale"]),
    "LogNormal": lambda p: scipy.stats.lognorm(p["scale"], scale=np.exp(p["loc"])),
    "Gamma": lambda p: scipy.stats.gamma(p["concentration"], scale=1 / p["rate"]),
    "Exponential": lambda p: scipy.stats.expon(scale=1 / p["rate"]),
    "Weibull": lambda p: scipy.stats.weibull_min(p["concentration"], scale=p["scale"]),
    "Beta": lambda p: scipy.stats.beta(p["concentration1"], p["concentration0"]),
    "Uniform": lambda p: scipy.stats.uniform(p["low"], p["high"] - p["low"]),
    "HalfNormal": lambda p: scipy.stats.halfnorm(scale=p["scale"]),
}


def as_distribution(prediction: Any, *, levels: ArrayLike | None = None) -> Distribution:
    """Turn a model's prediction into a `Distribution`.

    Parameters
    ----------
    prediction : object
        A `Distribution` (returned as it is); a pair ``(mean, std)`` of 1-D arrays; a pair
        ``(edges, masses)`` with 2-D masses; a 2-D array of quantiles (with `levels`) or of draws
        (without); a data frame whose column names are levels, or a dictionary from levels to
        columns; a frozen `scipy.stats` distribution; an NGBoost, skpro or torch distribution.
        Draws and quantiles that pile up at an end keep the point mass there, see `Samples` and
        `Quantiles`, which can also be told the ends.
    levels : array-like of shape (n_levels,), optional
        The levels of the columns of a matrix of quantiles.

    Returns
    -------
    Distribution

    Examples
    --------
    >>> import regcal
    >>> regcal.as_distribution(([0.0, 1.0], [1.0, 2.0]))
    Normal(rows=2)
    >>> regcal.as_distribution([[1.0, 2.0, 4.0]], levels=[0.1, 0.5, 0.9])
    Quantiles(rows=1)
    >>> regcal.as_distribution(([0.0, 1.0, 2.0], [[0.5, 0.5]]))
    Histogram(rows=1)
    >>> regcal.as_distribution([[0.0, 0.0, 0.0, 1.2], [0.0, 0.0, 0.4, 2.5]])  # draws of rain
    Samples(low=0, rows=2)
    """
    if levels is not None:
        return Quantiles(levels, prediction)
    if isinstance(prediction, Distribution):
        return prediction
    if isinstance(prediction, tuple):
        return _from_pair(prediction)
    if isinstance(prediction, dict):
        refuse_masked(list(prediction.values()), "predictions")
        return Quantiles(
            [float(level) for level in prediction], np.column_stack(list(prediction.values()))
        )
    for recognise in (_from_scipy, _from_torch, _from_skpro, _from_frame):
        dist = recognise(prediction)
        if dist is not None:
            return dist
    return _from_matrix(prediction)


def _from_pair(pair: tuple[Any, ...]) -> Distribution:
    if len(pair) != 2:
        msg = f"Got a tuple of {len(pair)} parts. Pass (mean, std) or (edges, masses)."
        raise TypeError(msg)
    if np.ndim(pair[1]) == 2 and np.shape(pair[1])[1:] != (1,):
        return Histogram(*pair)
    return Normal(*pair)


def _from_skpro(prediction: Any) -> Distribution | None:
    if not (hasattr(prediction, "log_pdf") and hasattr(prediction, "iloc")):
        return None
    from regcal.distributions._skpro import from_skpro

    return from_skpro(prediction)


def _from_scipy(prediction: Any) -> Distribution | None:
    """Recognise scipy's frozen distributions, and NGBoost's, which keep one as `dist`."""
    inner = getattr(prediction, "dist", None)
    if hasattr(inner, "dist") and hasattr(inner, "args"):
        return _from_scipy(inner)
    if not (hasattr(prediction, "args") and hasattr(prediction, "kwds") and inner is not None):
        return None
    dist = ScipyDistribution(prediction)
    if dist.family.name == "norm":
        return Normal(*dist.parameters)
    return dist


def _from_torch(prediction: Any) -> Distribution | None:
    if not (hasattr(prediction, "batch_shape") and hasattr(prediction, "log_prob")):
        return None
    prediction = _unwrapped(prediction)
    if type(prediction).__name__ == "MixtureSameFamily":
        weights = _numpy(prediction.mixture_distribution.probs)
        parts = [
            _torch_family(prediction.component_distribution, k) for k in range(weights.shape[-1])
        ]
        return Mixture(parts, weights)
    return _torch_family(prediction, None)


def _torch_family(prediction: Any, component: int | None) -> Distribution:
    prediction = _unwrapped(prediction)
    name = type(prediction).__name__
    parameters = {}
    for key in prediction.arg_constraints:
        if hasattr(prediction, key):
            value = _numpy(getattr(prediction, key))
            parameters[key] = value if component is None else value[..., component]
    parameters = {key: np.atleast_1d(np.squeeze(value)) for key, value in parameters.items()}
    if name == "Normal":
        return Normal(parameters["loc"], parameters["scale"])
    if name in _TORCH_FAMILIES:
        return ScipyDistribution(_TORCH_FAMILIES[name](parameters))
    msg = (
        f"torch's {name} is not one of those known: Normal, MixtureSameFamily, "
        f"{', '.join(_TORCH_FAMILIES)}. Draw from it and pass the matrix of draws instead."
    )
    raise TypeError(msg)


def _unwrapped(prediction: Any) -> Any:
    while type(prediction).__name__ == "Independent":
        prediction = prediction.base_dist
    return prediction


def _numpy(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=float)


def _from_frame(prediction: Any) -> Distribution | None:
    columns = getattr(prediction, "columns", None)
    if columns is None:
        return None
    try:
        levels = np.array([float(c[-1] if isinstance(c, tuple) else c) for c in columns])
    except (TypeError, ValueError):
        levels = np.array([np.nan])
    if ((levels > 0) & (levels < 1)).all():
        return Quantiles(levels, np.asarray(prediction))
    if np.array_equal(levels, np.arange(len(levels))):  # no names: draws
        return None
    msg = (
        f"The columns {list(columns)} are not levels between 0 and 1. Rename them to levels, or "
        "pass frame.to_numpy() if they are draws, or (mean, std) as a tuple."
    )
    raise TypeError(msg)


def _from_matrix(prediction: Any) -> Distribution:
    try:
        array = np.asarray(prediction, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim == 2:
        return Samples(prediction)
    filled = array.ndim > 0 and array.size > 0
    kind = f"an array of shape {array.shape}" if filled else type(prediction).__name__
    msg = f"Cannot make a distribution of {kind}. Accepted: {_ACCEPTED}."
    raise TypeError(msg)
