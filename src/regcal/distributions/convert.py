"""Turn what models return into a Distribution, by duck typing.

None of the packages whose objects are recognised is imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special
import scipy.stats
from numpy.typing import ArrayLike

from regcal._validation import Array, refuse_masked
from regcal.distributions.base import Distribution
from regcal.distributions.custom import CustomDistribution
from regcal.distributions.histogram import Histogram
from regcal.distributions.mixture import Mixture
from regcal.distributions.normal import Normal
from regcal.distributions.quantiles import Quantiles
from regcal.distributions.samples import Samples
from regcal.distributions.scipy_family import ScipyDistribution
from regcal.distributions.stacked import concatenate, joined

_ACCEPTED = (
    "a Distribution; (mean, std); (edges, masses); a matrix of quantiles with levels=; a matrix of "
    "draws, or draws of shape (chain, draw, row); a data frame whose columns are levels, or mean "
    "and std; a scipy.stats distribution, or a list with one per row; an NGBoost, skpro or torch "
    "distribution; the full output of TabPFN; draws of xarray or ArviZ"
)

# What to do with the P(T > t) of models of survival times.
_OF_CURVES = (
    "Their falls are the masses of bins: pass regcal.Histogram(edges, masses) with edges = "
    "np.r_[0, times, np.inf] and masses = -np.diff(alive, prepend=1, append=0), where alive has a "
    'row per prediction and a column per time; see "a survival curve" in the guide to outputs of '
    "models"
)

# So many draws of a row do not fall by chance: 8 do once in 40 320 times.
_CHANCE_COLUMNS = 8

# Columns that are named after quantiles, such as q05, p95, quantile_0.5 and 97.5%.
_QUANTILE_NAME = re.compile(r"(?:q|p|quantile|percentile)[_ ]?(\d*\.?\d+)|(\d*\.?\d+) ?%", re.I)

# Columns that are named after the parameters of a normal distribution.
_MEANS, _SPREADS = {"mean", "mu", "loc"}, {"std", "sigma", "scale", "sd"}

# Dimensions along which xarray and ArviZ keep draws.
_DRAWN_ALONG = ("chain", "draw", "sample")

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
        (without); draws of shape (chain, draw, row), as Markov chains give them; a data frame
        whose columns are levels (``0.05``, ``"q05"``, ``"5%"``), or ``"mean"`` and ``"std"``; a
        dictionary from levels to columns; a `scipy.stats` distribution, frozen or of the new
        kind, or a list with one per row; an NGBoost, skpro or torch distribution; what TabPFN
        returns for ``output_type="full"``; an xarray
        object with a dimension "draw", "chain" or "quantile", or the InferenceData of ArviZ, of
        which ``predictions`` are taken, else ``posterior_predictive``.
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
    if isinstance(prediction, Distribution) and levels is None:
        return prediction
    prediction = _without_tensors(prediction)
    if levels is not None:
        return Quantiles(levels, prediction)
    if str(getattr(prediction, "dtype", "")) == "object" and np.ndim(prediction) == 1:
        prediction = list(prediction)
    if _is_list_of_distributions(prediction):
        return _from_rows(prediction)
    if isinstance(prediction, tuple):
        return _from_pair(prediction)
    if isinstance(prediction, dict) and {"criterion", "logits"} <= set(prediction):
        return _from_bars(prediction["criterion"], prediction["logits"])
    if isinstance(prediction, dict):
        refuse_masked(list(prediction.values()), "predictions")
        return Quantiles(
            [float(level) for level in prediction], np.column_stack(list(prediction.values()))
        )
    for recognise in (
        _from_scipy,
        _from_new_scipy,
        _from_torch,
        _from_skpro,
        _from_frame,
        _from_xarray,
    ):
        dist = recognise(prediction)
        if dist is not None:
            return dist
    return _from_matrix(prediction)


def _without_tensors(prediction: Any) -> Any:
    """Return tensors of torch as arrays, those in a tuple too, also while they are being learnt."""
    if isinstance(prediction, tuple):
        return tuple(_without_tensors(part) for part in prediction)
    return _numpy(prediction) if hasattr(type(prediction), "detach") else prediction


def _is_list_of_distributions(prediction: Any) -> bool:
    listed = isinstance(prediction, list | tuple) and len(prediction) > 0
    return listed and all(hasattr(one, "cdf") for one in prediction)


def _from_rows(predictions: Sequence[Any]) -> Distribution:
    """Put distributions of a row each, or of some rows, below each other."""
    parts = [as_distribution(prediction) for prediction in predictions]
    whole = joined(parts)
    return concatenate(parts) if whole is None else whole


def _from_pair(pair: tuple[Any, ...]) -> Distribution:
    if len(pair) != 2:
        msg = f"Got a tuple of {len(pair)} parts. Pass (mean, std) or (edges, masses)."
        raise TypeError(msg)
    if np.ndim(pair[1]) == 2 and np.shape(pair[1])[1:] != (1,):
        return Histogram(*pair)
    return Normal(*pair)


def _from_bars(criterion: Any, logits: Any) -> Distribution:
    """Return the bars of TabPFN; of an outermost one with a tail, half is beyond its border."""
    borders = _numpy(criterion.borders)
    masses = scipy.special.softmax(_numpy(logits), axis=-1)
    if type(criterion).__name__ != "FullSupportBarDistribution":
        return Histogram(borders, masses)
    ends = 0.5 * masses[:, [0, -1]]
    inner = np.column_stack([ends[:, 0], masses[:, 1:-1], ends[:, 1]])
    return Histogram(
        np.concatenate([[-np.inf], borders, [np.inf]]),
        np.column_stack([ends[:, 0], inner, ends[:, 1]]),
    )


def _from_skpro(prediction: Any) -> Distribution | None:
    if not (hasattr(prediction, "log_pdf") and hasattr(prediction, "iloc")):
        return None
    from regcal.distributions._skpro import from_skpro

    return from_skpro(prediction)


def _from_scipy(prediction: Any) -> Distribution | None:
    """Recognise scipy's frozen distributions, and NGBoost's, which keep one as `dist`."""
    if isinstance(prediction, scipy.stats.rv_histogram):
        prediction = prediction()
    inner = getattr(prediction, "dist", None)
    if hasattr(inner, "dist") and hasattr(inner, "args"):
        return _from_scipy(inner)
    if not (hasattr(prediction, "args") and hasattr(prediction, "kwds") and inner is not None):
        return None
    dist = ScipyDistribution(prediction)
    if dist.family.name == "norm":
        return Normal(*dist.parameters)
    return dist


def _from_new_scipy(prediction: Any) -> Distribution | None:
    """Recognise objects of scipy.stats.Normal, of make_distribution, and shifted or scaled ones."""
    if not (hasattr(prediction, "iccdf") and hasattr(prediction, "logccdf")):
        return None
    middle = np.atleast_1d(prediction.median())
    if type(prediction).__name__ in ("Normal", "StandardNormal"):
        return Normal(middle, np.atleast_1d(prediction.standard_deviation()))
    if middle.ndim > 1:
        msg = f"Parameters must be scalars or one per row, got shape {middle.shape}. Flatten them."
        raise ValueError(msg)
    rows_of = _rows_of_new_scipy(prediction, len(middle))

    def asked(method: str) -> Callable[[Array, np.ndarray], Array]:
        return lambda points, rows: getattr(rows_of(rows), method)(points)

    return CustomDistribution(asked("cdf"), len(middle), pdf=asked("pdf"), sf=asked("ccdf"))


def _rows_of_new_scipy(prediction: Any, n_rows: int) -> Callable[[np.ndarray], Any]:
    """Return a function from row numbers to a distribution whose parameters are columns."""
    kind = type(prediction).__name__
    shifted = kind == "ShiftedScaledDistribution"  # whose loc and scale may be nobody's originals
    own = getattr(prediction, "_parameters" if shifted else "_original_parameters", {})
    columns = {
        name: np.broadcast_to(value, (n_rows,))[:, np.newaxis] for name, value in own.items()
    }
    if shifted:
        inner = _rows_of_new_scipy(prediction._dist, n_rows)
        loc, scale = columns["loc"], columns["scale"]
        return lambda rows: inner(rows) * scale[rows] + loc[rows]
    if n_rows == 1:
        return lambda rows: prediction
    if hasattr(prediction, "_dist") or not columns:
        msg = (
            f"The rows of scipy's {kind} cannot be told apart. Pass a list with one distribution "
            "per row, or draws: dist.sample((1000,)).T."
        )
        raise TypeError(msg)
    return lambda rows: type(prediction)(**{name: c[rows] for name, c in columns.items()})


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
    names = [c[-1] if isinstance(c, tuple) else c for c in columns]
    levels = np.array([_level_named(name) for name in names])
    if ((levels > 0) & (levels < 1)).all():
        return Quantiles(levels, np.asarray(prediction))
    _refuse_curves(prediction)
    if np.array_equal(levels, np.arange(len(levels))):  # no names: draws
        return None
    kinds = [str(name).lower() for name in names]
    if len(kinds) == 2 and _MEANS & set(kinds) and _SPREADS & set(kinds):
        mean, std = np.asarray(prediction, dtype=float).T[:: 1 if kinds[0] in _MEANS else -1]
        return Normal(mean, std)
    msg = (
        f"The columns {_some(names)} are neither levels between 0 and 1, such as 0.05, q05 or "
        "5%, nor mean and std. Choose the columns and rename them, or pass frame.to_numpy() if "
        "they are draws."
    )
    raise TypeError(msg)


def _refuse_curves(frame: Any) -> None:
    """Refuse a frame of survival functions, as lifelines gives them: a column per prediction."""
    index = getattr(frame, "index", None)
    if type(index).__name__ == "RangeIndex" or len(frame) < 2:
        return
    try:
        times, alive = np.asarray(index, dtype=float), np.asarray(frame, dtype=float)
    except (TypeError, ValueError):
        return
    if times.ndim == 1 and (np.diff(times) > 0).all() and _all_fall(alive.T):
        msg = (
            f"The frame holds probabilities that fall along its index, from {times[0]:g} to "
            f"{times[-1]:g}, in each of its columns: survival curves, not rows. {_OF_CURVES}."
        )
        raise TypeError(msg)


def _all_fall(alive: Array) -> bool:
    """Return whether all rows hold probabilities that fall."""
    inside = (alive >= 0).all() and (alive <= 1).all()
    falling = (np.diff(alive, axis=1) <= 0).all() and (alive[:, -1] < alive[:, 0]).all()
    return bool(inside and falling)


def _some(names: Sequence[Any]) -> str:
    """Return a list of names as a text, the first of many."""
    first = ", ".join(map(repr, names[:6]))
    return f"[{first}]" if len(names) <= 6 else f"[{first}, ... {len(names)} in all]"


def _level_named(name: Any) -> float:
    """Return the level that the name of a column tells, or NaN: q05 and 5% are 0.05."""
    try:
        return float(name)
    except (TypeError, ValueError):
        pass
    found = _QUANTILE_NAME.fullmatch(str(name).strip())
    if found is None:
        return np.nan
    digits, percents = found.groups()
    if percents is not None:
        return float(percents) / 100
    if "." in digits:  # q0.05, q97.5
        return float(digits) if float(digits) < 1 else float(digits) / 100
    return float(digits) / 100 if len(digits) == 1 else float(f"0.{digits}")  # q5; q05, q975


def _from_xarray(prediction: Any) -> Distribution | None:
    """Recognise arrays with named dimensions, and the groups and variables that hold them."""
    for group in ("predictions", "posterior_predictive"):
        if hasattr(prediction, group):
            return _from_xarray(getattr(prediction, group))
    if hasattr(prediction, "data_vars"):
        names = list(prediction.data_vars)
        if len(names) != 1:
            msg = (
                f"There are {len(names)} variables, {names}. Pass the one of the outcome, such as "
                'idata.posterior_predictive["y"].'
            )
            raise TypeError(msg)
        return _from_xarray(prediction[names[0]])
    if not (hasattr(prediction, "dims") and hasattr(prediction, "coords")):
        return None
    dims, values = list(prediction.dims), np.asarray(prediction, dtype=float)
    along = [dims.index(name) for name in (*_DRAWN_ALONG, "quantile") if name in dims]
    if not along or len(dims) - len(along) > 1:
        msg = (
            f"The dimensions {dims} are not those of draws or quantiles: one for rows beside "
            f"{', '.join(_DRAWN_ALONG)} or quantile. Select or stack the others first."
        )
        raise TypeError(msg)
    values = np.moveaxis(values, along, range(len(along)))
    columns = values.reshape(int(np.prod(values.shape[: len(along)])), -1).T
    if "quantile" in dims:
        return Quantiles(np.asarray(prediction.coords["quantile"], dtype=float), columns)
    return Samples(columns)


def _from_matrix(prediction: Any) -> Distribution:
    try:
        array = np.asarray(prediction, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim == 2:
        if len(array) and array.shape[1] >= _CHANCE_COLUMNS and _all_fall(array):
            msg = (
                f"Each of {len(array)} rows holds {array.shape[1]} probabilities that fall: "
                f"survival curves, not draws. {_OF_CURVES}. Were they draws, sort them first."
            )
            raise TypeError(msg)
        return Samples(prediction)
    if array.ndim == 3:  # chain, draw, row
        return Samples(array.reshape(-1, array.shape[2]).T)
    if isinstance(prediction, list) and any(hasattr(one, "domain") for one in prediction):
        # scikit-survival's step functions
        msg = f"Got a list of {len(prediction)} functions of time: survival curves. {_OF_CURVES}."
        raise TypeError(msg)
    filled = array.ndim > 0 and array.size > 0
    kind = f"an array of shape {array.shape}" if filled else type(prediction).__name__
    msg = f"Cannot make a distribution of {kind}. Accepted: {_ACCEPTED}."
    raise TypeError(msg)
