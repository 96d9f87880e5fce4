"""Any continuous family of `scipy.stats`, frozen with array parameters."""

import warnings
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
import scipy.stats
from scipy.special import ndtr, ndtri

from regcal._validation import Array, refuse_masked
from regcal.distributions._tails import log_mass_beyond
from regcal.distributions.base import Distribution
from regcal.distributions.primitives import log_normal_density

# Up to this probit SciPy's quantiles are taken as they are. Beyond, families that subtract a level
# from 1 or search for a root go astray.
_FAR = 8.0

# Relative error of a probit that is as good as none.
_TOLERANCE = 1e-6


class ScipyDistribution(Distribution):
    """A frozen continuous distribution of `scipy.stats`, one row per parameter value.

    Parameters
    ----------
    frozen : scipy.stats frozen distribution
        For example ``scipy.stats.gamma(a=[2.0, 3.0], scale=[1.0, 0.5])``. Scalar parameters are
        shared by all rows.

    Examples
    --------
    >>> import scipy.stats
    >>> from regcal import ScipyDistribution
    >>> dist = ScipyDistribution(scipy.stats.expon(scale=[1.0, 2.0]))
    >>> dist.mean()
    array([1., 2.])
    >>> dist[1].median().round(3)
    array([1.386])
    """

    _explicit = True
    _row_fields = ("parameters",)

    def __init__(self, frozen: Any) -> None:
        family: Any = getattr(frozen, "dist", None)
        if not hasattr(family, "_parse_args") or not hasattr(family, "_pdf"):
            msg = (
                f"Need a frozen continuous scipy.stats distribution such as "
                f"scipy.stats.t(df=5, loc=means, scale=spreads), got {type(frozen).__name__}. "
                "Of one for counts, pass draws: regcal.Samples(frozen.rvs((1000, n_rows)).T)."
            )
            raise TypeError(msg)
        names = [*(family.shapes or "").replace(",", " ").split(), "loc", "scale"]
        for name, value in {**dict(zip(names, frozen.args, strict=False)), **frozen.kwds}.items():
            refuse_masked(value, name)
        shapes, loc, scale = family._parse_args(*frozen.args, **frozen.kwds)
        parameters = np.broadcast_arrays(*np.atleast_1d(*shapes, loc, scale))
        if parameters[0].ndim != 1:
            msg = (
                f"Parameters must be scalars or one per row, got shape {parameters[0].shape}. "
                "Flatten them first."
            )
            raise ValueError(msg)
        self.family = family
        self.parameters = [np.array(p, dtype=float) for p in parameters]
        self._check()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        name = getattr(self.family, "name", "")
        if type(getattr(scipy.stats, name, None)) is type(self.family):
            # a name says as much as the object, which holds functions
            state["family"] = name
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        family = state["family"]
        if isinstance(family, str):
            family = getattr(scipy.stats, family, None)
            if not isinstance(family, scipy.stats.rv_continuous):
                msg = f"scipy.stats has no continuous family {state['family']!r}."
                raise ValueError(msg)
        vars(self).update(state, family=family)

    def _scipy(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the family with all parameters as columns."""
        columns = (p[:, np.newaxis] for p in self.parameters)
        return getattr(self.family, method)(*arguments, *columns, **options)

    def _check(self) -> None:
        # a shape may be infinite, such as an end of a truncated family; its family knows
        finite = np.isfinite(self.parameters[-2:]).all(axis=0)
        with np.errstate(all="ignore"):
            bad = np.flatnonzero(~finite | ~np.isfinite(self._scipy("ppf", 0.5))[:, 0])
        if len(bad):
            values = [float(p[bad[0]]) for p in self.parameters]
            msg = (
                f"{self.family.name} does not allow the parameters {values} (shapes, loc, scale) "
                f"of row {bad[0]}. Scales must be positive, loc and scale finite, and shapes "
                "within the family's limits."
            )
            raise ValueError(msg)

    def __len__(self) -> int:
        return len(self.parameters[0])

    def _details(self) -> list[str]:
        return [self.family.name]

    def _take(self, rows: np.ndarray) -> Self:
        part = object.__new__(type(self))
        part.family = self.family
        part.parameters = [p[rows] for p in self.parameters]
        return part

    def _cdf(self, points: Array) -> Array:
        return self._scipy("cdf", points)

    def _sf(self, points: Array) -> Array:
        return self._scipy("sf", points)

    def _logpdf(self, points: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.where(np.isinf(points), -np.inf, self._scipy("logpdf", points))

    def _logcdf(self, points: Array) -> Array:
        return self._log_tail("logcdf", points, -1.0)

    def _logsf(self, points: Array) -> Array:
        return self._log_tail("logsf", points, 1.0)

    def _log_tail(self, method: str, points: Array, direction: float) -> Array:
        """Return a log tail probability, from the density where SciPy's value underflows."""
        points = np.broadcast_to(points, (len(self), points.shape[1]))
        with np.errstate(all="ignore"):
            values = np.array(self._scipy(method, points))
        start, end = self._scipy("support")
        # at an end of the support and beyond it, nothing is lost: SciPy's 0 and 1 are exact
        lost = ~(values > -650.0) & (points > start) & (points < end)
        if lost.any():
            lost &= np.isfinite(self._logpdf(points))
            part, at = self._take(np.nonzero(lost)[0]), points[lost][:, np.newaxis]
            start, end = part._scipy("support")
            room = at - start if direction < 0 else end - at
            step = 1e-5 * np.minimum(np.abs(at - part._scipy("ppf", 0.5)), room)
            values[lost] = log_mass_beyond(part._logpdf, at, direction, room, step)[:, 0]
        return values

    def _from_probit(self, probits: Array) -> Array:
        probits = np.broadcast_to(probits, (len(self), probits.shape[1]))
        far = np.abs(probits) > _FAR
        # what root finders complain of far out is looked at
        quiet = warnings.catch_warnings(action="ignore", category=RuntimeWarning)
        with quiet if far.any() else nullcontext():
            quantiles = self._scipy_quantiles(probits)
            doubtful = far | ~np.isfinite(quantiles)
            return self._checked(quantiles, probits, doubtful) if doubtful.any() else quantiles

    def _trace(self, probits: Array) -> tuple[Array, Array]:
        quantiles = self._from_probit(probits)
        with np.errstate(over="ignore"):
            return quantiles, np.exp(log_normal_density(probits) - self._logpdf(quantiles))

    def _scipy_quantiles(self, probits: Array) -> Array:
        """Return SciPy's own quantiles; beyond |z| = 37 their level is not a number any more."""
        z = np.clip(np.where(np.isinf(probits), 0.0, probits), -37.0, 37.0)
        with np.errstate(all="ignore"):
            lower = self._scipy("ppf", ndtr(np.minimum(z, 0.0)))
            upper = self._scipy("isf", ndtr(-np.maximum(z, 0.0)))
        return np.where(z < 0, lower, upper)

    def _checked(self, quantiles: Array, probits: Array, doubtful: np.ndarray) -> Array:
        """Return quantiles of which the doubtful ones are solved for unless they are right."""
        start, end = self._scipy("support")
        wrong = doubtful & np.isfinite(probits)
        wrong[wrong] = ~self._reached(np.nonzero(wrong)[0], quantiles[wrong], probits[wrong])
        if wrong.any():
            lowest, highest = self._outermost_probits()
            quantiles = np.where(wrong & (probits <= lowest), start, quantiles)
            quantiles = np.where(wrong & (probits >= highest), end, quantiles)
            wrong &= (probits > lowest) & (probits < highest)
            part, wanted = self._take(np.nonzero(wrong)[0]), probits[wrong][:, np.newaxis]
            quantiles[wrong] = super(type(self), part)._from_probit(wanted)[:, 0]
        quantiles = np.where(np.isinf(probits), probits, quantiles)
        return np.clip(quantiles, start, end)

    def _outermost_probits(self) -> tuple[Array, Array]:
        """Return the probits beyond which a quantile cannot be told from an end of the support."""
        ends = np.concatenate(self._scipy("support"), axis=1)
        range_ = self._scipy("ppf", 0.75) - self._scipy("ppf", 0.25)
        with np.errstate(invalid="ignore"):
            nearest = np.fmax(np.finfo(float).eps * range_, np.spacing(np.abs(ends)))
            z = self._probit(ends + nearest * [1.0, -1.0])
        return z[:, :1], z[:, 1:]

    def _reached(self, rows: np.ndarray, quantiles: Array, probits: Array) -> np.ndarray:
        """Return whether quantiles of some rows have the probits that they should."""
        found = self._take(rows)._probit(quantiles[:, np.newaxis])[:, 0]
        return np.abs(found - probits) <= _TOLERANCE * np.abs(probits)

    def _bracket(self, probits: Array) -> tuple[Array, Array]:
        # from the last quantile on that SciPy is trusted with
        guess = self._scipy_quantiles(np.clip(probits, -_FAR, _FAR))
        guess = np.where(np.isfinite(guess), guess, self._scipy("ppf", 0.5))
        return guess, guess

    def _ppf(self, levels: Array) -> Array:
        far = levels < ndtr(-_FAR)
        quantiles = self._scipy("ppf", np.where(far, 0.5, levels))
        return (
            np.where(far, self._from_probit(ndtri(levels)), quantiles) if far.any() else quantiles
        )

    def _mean_and_var(self) -> tuple[Array, Array]:
        mean, var = self._scipy("stats", moments="mv")
        return (
            np.broadcast_to(mean, (len(self), 1))[:, 0].copy(),
            np.broadcast_to(var, (len(self), 1))[:, 0].copy(),
        )
