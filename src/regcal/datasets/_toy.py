"""The paper's toy problem, with its exact conditional distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr

from regcal._random import RandomState, as_generator
from regcal.datasets._dataset import Dataset


@dataclass(frozen=True)
class ToyMixture:
    """Targets that follow the input or stay flat, with equal probability.

    The input x is uniform on [-1, 1]; y is x or `flat`, each with probability one half, plus
    Gaussian noise. A model that predicts one normal per row is wrong about every row, and the
    right answer is known: all methods below are exact, also far in the tails.

    `x` and `t` broadcast against each other, so an ``(n, 1)`` input and a ``(K,)`` grid give
    an ``(n, K)`` answer.

    Parameters
    ----------
    noise : float, default=0.1
        Standard deviation of the noise, positive.
    flat : float, default=-0.5
        Centre of the component that ignores x.

    Examples
    --------
    >>> from regcal.datasets import ToyMixture
    >>> toy = ToyMixture()
    >>> data = toy.sample(4, random_state=0)
    >>> toy.cdf(data.X, [-5.0, 5.0])
    array([[0., 1.],
           [0., 1.],
           [0., 1.],
           [0., 1.]])
    """

    noise: float = 0.1
    flat: float = -0.5

    def __post_init__(self) -> None:
        if not self.noise > 0:
            msg = f"Got noise={self.noise!r}. Pass a positive standard deviation."
            raise ValueError(msg)

    def sample(self, n: int, random_state: RandomState = None) -> Dataset:
        """Draw inputs and targets.

        Parameters
        ----------
        n : int
            Number of rows.
        random_state : int, RandomState, Generator or None, default=None
            Pass an int for the same rows at every call.

        Returns
        -------
        Dataset
            `X` has shape (n, 1).

        Examples
        --------
        >>> from regcal.datasets import ToyMixture
        >>> ToyMixture(noise=0.2).sample(100, random_state=0)
        Dataset('toy_mixture', n_samples=100, n_features=1, target='y')
        """
        rng = as_generator(random_state)
        x = rng.uniform(-1.0, 1.0, size=n)
        centre = np.where(rng.random(size=n) < 0.5, x, self.flat)
        y = rng.normal(centre, self.noise)
        return Dataset(
            name="toy_mixture",
            X=x[:, np.newaxis],
            y=y,
            feature_names=("x",),
            target_name="y",
            description=(
                f"x uniform on [-1, 1]; y is x or {self.flat} with equal probability, plus "
                f"Gaussian noise of {self.noise}. Simulated."
            ),
            citation=(
                "Song, Kull, Flach (2018). Non-Parametric Calibration of Probabilistic "
                "Regression. arXiv:1806.07690."
            ),
        )

    def pdf(self, x: ArrayLike, t: ArrayLike) -> NDArray[np.float64]:
        """Return the density of y at `t` given `x`.

        Examples
        --------
        >>> from regcal.datasets import ToyMixture
        >>> ToyMixture().pdf(0.5, [-0.5, 0.0, 0.5]).round(4)
        array([1.9947, 0.    , 1.9947])
        """
        return np.exp(self.logpdf(x, t))

    def logpdf(self, x: ArrayLike, t: ArrayLike) -> NDArray[np.float64]:
        """Return the log density of y at `t` given `x`.

        Examples
        --------
        >>> from regcal.datasets import ToyMixture
        >>> ToyMixture().logpdf(0.5, [0.5, 9.5]).round(2).tolist()
        [0.69, -4049.31]
        """
        following, flat = self._standardize(x, t)
        log_normalizer = np.log(2.0 * self.noise * np.sqrt(2.0 * np.pi))
        return np.logaddexp(-0.5 * following**2, -0.5 * flat**2) - log_normalizer

    def cdf(self, x: ArrayLike, t: ArrayLike) -> NDArray[np.float64]:
        """Return P(y <= t) given `x`.

        Examples
        --------
        >>> from regcal.datasets import ToyMixture
        >>> ToyMixture().cdf(0.5, [-0.5, 0.0, 0.5]).round(4)
        array([0.25, 0.5 , 0.75])
        """
        following, flat = self._standardize(x, t)
        return 0.5 * (ndtr(following) + ndtr(flat))

    def sf(self, x: ArrayLike, t: ArrayLike) -> NDArray[np.float64]:
        """Return P(y > t) given `x`, accurate where it is tiny.

        Examples
        --------
        >>> from regcal.datasets import ToyMixture
        >>> bool(ToyMixture().sf(0.5, 2.0) > 0)
        True
        """
        following, flat = self._standardize(x, t)
        return 0.5 * (ndtr(-following) + ndtr(-flat))

    def logcdf(self, x: ArrayLike, t: ArrayLike) -> NDArray[np.float64]:
        """Return log P(y <= t) given `x`, finite far in the tail.

        Examples
        --------
        >>> from regcal.datasets import ToyMixture
        >>> ToyMixture().logcdf(0.5, [-9.5, 0.0]).round(2).tolist()
        [-4056.11, -0.69]
        """
        following, flat = self._standardize(x, t)
        return np.logaddexp(log_ndtr(following), log_ndtr(flat)) - np.log(2.0)

    def logsf(self, x: ArrayLike, t: ArrayLike) -> NDArray[np.float64]:
        """Return log P(y > t) given `x`, finite far in the tail.

        Examples
        --------
        >>> from regcal.datasets import ToyMixture
        >>> ToyMixture().logsf(0.5, [0.0, 9.5]).round(2).tolist()
        [-0.69, -4056.11]
        """
        following, flat = self._standardize(x, t)
        return np.logaddexp(log_ndtr(-following), log_ndtr(-flat)) - np.log(2.0)

    def _standardize(
        self, x: ArrayLike, t: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the distance of `t` from both centres in standard deviations."""
        x, t = np.asarray(x, dtype=np.float64), np.asarray(t, dtype=np.float64)
        return (t - x) / self.noise, (t - self.flat) / self.noise


def make_toy_mixture(n: int = 600, random_state: RandomState = None) -> Dataset:
    """Draw the paper's toy problem; `ToyMixture` knows its true distribution.

    Parameters
    ----------
    n : int, default=600
        Number of rows.
    random_state : int, RandomState, Generator or None, default=None
        Pass an int for the same rows at every call.

    Returns
    -------
    Dataset
        `X` has shape (n, 1).

    Examples
    --------
    >>> from regcal.datasets import make_toy_mixture
    >>> make_toy_mixture(100, random_state=0)
    Dataset('toy_mixture', n_samples=100, n_features=1, target='y')
    """
    return ToyMixture().sample(n, random_state)
