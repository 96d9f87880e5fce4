"""Turn distributions of skpro into ours, by duck typing: skpro is not imported.

Families that SciPy has keep their parameters, which makes their tails exact. Mixtures, draws,
quantiles and bins become ours. All others are evaluated through their own methods.
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.stats
from scipy.special import ndtr

from regcal._validation import Array, as_float_array
from regcal.distributions.base import Distribution
from regcal.distributions.custom import CustomDistribution, RowFunction
from regcal.distributions.histogram import Histogram
from regcal.distributions.mixture import Mixture
from regcal.distributions.normal import Normal
from regcal.distributions.quantiles import Quantiles
from regcal.distributions.samples import Samples
from regcal.distributions.scipy_family import ScipyDistribution
from regcal.ends import find_ends_of_draws

# skpro's class name -> how scipy.stats calls the parameters, for families that are not adapters
_FAMILIES: dict[str, Callable[[Callable[[str], Array]], Any]] = {
    "ChiSquared": lambda p: scipy.stats.chi2(p("dof")),
    "Laplace": lambda p: scipy.stats.laplace(p("mu"), p("scale")),
    "LogNormal": lambda p: scipy.stats.lognorm(p("sigma"), scale=np.exp(p("mu"))),
    "Logistic": lambda p: scipy.stats.logistic(p("mu"), p("scale")),
    "Pareto": lambda p: scipy.stats.pareto(p("alpha"), scale=p("scale")),
    "Rayleigh": lambda p: scipy.stats.rayleigh(scale=p("scale")),
    "TDistribution": lambda p: scipy.stats.t(p("df"), p("mu"), p("sigma")),
    "Uniform": lambda p: scipy.stats.uniform(p("lower"), p("upper") - p("lower")),
    "Weibull": lambda p: scipy.stats.weibull_min(p("k"), scale=p("scale")),
}

# Levels beyond this probit are not told apart from 0 and 1.
_FAR = 8.0

# Draws that stand for a weighted sample.
_N_DRAWS = 200

# These put mass on single points if skpro calls them mixed; "mixed" alone is what it calls all
# that say nothing about themselves.
_WITH_ATOMS = ("HistogramQPD", "Hurdle", "ZeroInflated")


def from_skpro(prediction: Any) -> Distribution:
    """Return a distribution of skpro as ours."""
    if not hasattr(prediction, "log_pdf"):  # a component
        msg = f"A part of skpro's distribution is no distribution of skpro, but {prediction!r}."
        raise TypeError(msg)
    wrapped = getattr(prediction, "dist", None)  # of regcal.skpro
    if isinstance(wrapped, Distribution):
        return wrapped
    n_rows = _count_rows(prediction)
    name = type(prediction).__name__
    for recognise in (_from_parameters, _from_parts, _from_table):
        dist = recognise(prediction, name, n_rows)
        if dist is not None:
            return dist
    return _from_functions(prediction, name, n_rows)


def _count_rows(prediction: Any) -> int:
    """Return the number of rows; a scalar distribution is one row."""
    shape = _shape(prediction)
    if len(shape) == 2 and shape[1] != 1:
        msg = (
            f"Got a skpro distribution with {shape[1]} columns; ours have one number per row. Pass "
            "one column at a time: prediction.iloc[:, [0]]."
        )
        raise ValueError(msg)
    return shape[0] if len(shape) == 2 else 1


def _shape(prediction: Any) -> tuple[int, ...]:
    return prediction.shape if hasattr(prediction, "shape") else (len(prediction.index), 1)


def _tag(prediction: Any, name: str) -> Any:
    return prediction.get_tag(name, "", raise_error=False) if hasattr(prediction, "get_tag") else ""


def _from_parameters(prediction: Any, name: str, n_rows: int) -> Distribution | None:
    def parameter(key: str) -> Array:
        return _column(getattr(prediction, key), n_rows)

    if name == "Normal":
        return Normal(parameter("mu"), parameter("sigma"))
    if name in _FAMILIES:
        return ScipyDistribution(_FAMILIES[name](parameter))
    if not hasattr(prediction, "_get_scipy_param"):
        return None
    if _tag(prediction, "distr:measuretype") == "discrete":
        raise TypeError(_discrete(name))
    args, kwds = prediction._get_scipy_param()
    args = [_column(value, n_rows) for value in args]
    kwds = {key: _column(value, n_rows) for key, value in kwds.items()}
    return ScipyDistribution(prediction._get_scipy_object()(*args, **kwds))


def _column(values: Any, n_rows: int) -> Array:
    return np.broadcast_to(np.ravel(as_float_array(values, "parameters")), n_rows)


def _discrete(name: str) -> str:
    return (
        f"skpro's {name} puts mass on single points and has no density there. Only continuous "
        "distributions can be calibrated: pass a matrix of draws, which are smoothed, instead."
    )


def _from_parts(prediction: Any, name: str, n_rows: int) -> Distribution | None:
    """Recognise mixtures and repetitions."""
    if name == "NormalMixture":
        weights, means, spreads = (
            as_float_array(getattr(prediction, key), key).reshape(n_rows, -1)
            for key in ("pi", "mu", "sigma")
        )
        parts = [Normal(means[:, k], spreads[:, k]) for k in range(means.shape[1])]
        return Mixture(parts, weights)
    if name == "IID":
        return _repeated(from_skpro(prediction.distribution), n_rows)
    if name != "Mixture":
        return None
    members = [part[1] if isinstance(part, tuple) else part for part in prediction.distributions]
    components = [_repeated(from_skpro(member), n_rows) for member in members]
    weights = prediction.weights
    return Mixture(components, None if weights is None else np.divide(weights, np.sum(weights)))


def _repeated(dist: Distribution, n_rows: int) -> Distribution:
    """Return a scalar component, or a component of one row, once per row."""
    return dist[np.zeros(n_rows, dtype=int)] if len(dist) == 1 else dist


def _from_table(prediction: Any, name: str, n_rows: int) -> Distribution | None:
    """Recognise quantiles, draws and bins."""
    if name == "QPD_Empirical":
        levels, values = _by_instance(prediction.quantiles, prediction)
        order = np.argsort(levels)
        if levels.min() > 0 and levels.max() < 1 and len(levels) > 1:
            return Quantiles(levels[order], values[:, order])
    if name in ("Empirical", "QPD_Empirical"):
        draws = _by_instance(prediction.spl, prediction)[1]
        if prediction.weights is None:
            return Samples(draws)
        weights = _by_instance(prediction.weights, prediction)[1]
        # a heavy draw is repeated, which makes no point mass of it
        return Samples(_equal_draws(draws, weights), support=find_ends_of_draws(draws))
    if name == "Histogram":
        edges, masses = prediction.bins, prediction.bin_mass
        if not _shape(prediction):
            return _histogram([edges], [masses])
        return _histogram([row[0] for row in edges], [row[0] for row in masses])
    return None


def _histogram(edges: list[Any], masses: list[Any]) -> Histogram:
    """Return bins of rows; the last bin of a row with fewer than others is cut into equal parts."""
    n_bins = max(len(row) for row in masses)
    table = []
    for row in edges:
        last = np.linspace(row[-2], row[-1], n_bins - len(row) + 3)
        table.append(np.concatenate([row[:-2], last]))
    shares = []
    for row in masses:
        n_parts = n_bins - len(row) + 1
        shares.append(np.concatenate([row[:-1], np.full(n_parts, row[-1] / n_parts)]))
    return Histogram(np.array(table, dtype=float), np.array(shares, dtype=float))


def _equal_draws(draws: Array, weights: Array) -> Array:
    """Return draws of equal weight: the quantiles of weighted ones at equally spaced levels."""
    levels = (np.arange(_N_DRAWS) + 0.5) / _N_DRAWS
    rows = np.empty((len(draws), _N_DRAWS))
    for k, order in enumerate(np.argsort(draws, axis=1)):
        below = np.cumsum(weights[k, order]) / weights[k].sum()
        rows[k] = draws[k, order[np.minimum(np.searchsorted(below, levels), len(order) - 1)]]
    return rows


def _by_instance(frame: Any, prediction: Any) -> tuple[Array, Array]:
    """Return the first index level of a long frame, and its values as rows × that level."""
    if frame.index.nlevels == 1:
        return np.asarray(frame.index, dtype=float), np.asarray(frame, dtype=float).reshape(1, -1)
    column = frame if frame.ndim == 1 else frame.iloc[:, 0]
    wide = column.unstack(level=0).loc[prediction.index]
    return np.asarray(wide.columns, dtype=float), wide.to_numpy(dtype=float)


def _from_functions(prediction: Any, name: str, n_rows: int) -> Distribution:
    kind = _tag(prediction, "distr:measuretype")
    if kind == "discrete" or (kind == "mixed" and name in _WITH_ATOMS):
        raise TypeError(_discrete(name))

    def part(rows: np.ndarray) -> Any:
        return prediction.iloc[rows, :] if _shape(prediction) else prediction

    def cdf(points: Array, rows: np.ndarray) -> Array:
        values = _skpro_columns(part(rows), "cdf", points)
        if np.isnan(values).any():  # outside of the support
            middle = _skpro_columns(part(rows), "ppf", np.full((len(rows), 1), 0.5))
            values = np.where(np.isnan(values), points > middle, values)
        return np.where(np.isinf(points), points > 0, values)

    def pdf(points: Array, rows: np.ndarray) -> Array:
        values = _skpro_columns(part(rows), "pdf", points)
        return np.where(np.isinf(points) | np.isnan(values), 0.0, values)

    def ppf(levels: Array, rows: np.ndarray) -> Array:
        return _skpro_columns(part(rows), "ppf", levels)

    exact = _tag(prediction, "capabilities:exact") or ("cdf", "pdf")
    density = pdf if "pdf" in exact else None
    if "ppf" in exact:
        return SkproDistribution(cdf, n_rows, density, ppf)
    return CustomDistribution(cdf, n_rows, pdf=density)


class SkproDistribution(CustomDistribution):
    """Functions with the inverse of the CDF, from which quantiles are polished."""

    def __init__(
        self, cdf: RowFunction, n_rows: int, pdf: RowFunction | None, ppf: RowFunction
    ) -> None:
        self._own_ppf = ppf
        super().__init__(cdf, n_rows, pdf=pdf)

    def _take(self, rows: np.ndarray) -> Self:
        part = super()._take(rows)
        part._own_ppf = self._own_ppf
        return part

    def _find_quartiles(self) -> Array:
        quartiles = self._own_ppf(np.tile([0.25, 0.5, 0.75], (len(self), 1)), self._rows)
        spread = np.isfinite(quartiles).all() and (quartiles[:, 0] < quartiles[:, 2]).all()
        return quartiles if spread else super()._find_quartiles()

    def _bracket(self, probits: Array) -> tuple[Array, Array]:
        low, high = super()._bracket(probits)
        first = self._own_ppf(ndtr(np.clip(probits, -_FAR, _FAR)), self._rows)
        found = np.isfinite(first)
        return np.where(found, first, low), np.where(found, first, high)


def _skpro_columns(prediction: Any, method: str, points: Array) -> Array:
    """Evaluate a one-column skpro distribution, a column of points at a time.

    Some of its families are NaN at infinity: those points are moved to 0, for callers to replace.
    """
    evaluate = getattr(prediction, method)
    points = np.where(np.isinf(points), 0.0, points)
    with np.errstate(all="ignore"):
        if not _shape(prediction):
            values = [float(evaluate(point)) for point in points.ravel().tolist()]
            return np.reshape(np.array(values), points.shape)
        columns = [np.asarray(evaluate(points[:, k : k + 1])) for k in range(points.shape[1])]
    return np.concatenate([column.reshape(-1, 1) for column in columns], axis=1).astype(float)
