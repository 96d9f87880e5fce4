"""Binomial observations of a latent function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regcal.gp.design import Design
from regcal.gp.likelihood import Likelihood, Term
from regcal.gp.links import Derivatives, Link, Probit

__all__ = ["BinomialLikelihood", "BinomialObservations"]


@dataclass(frozen=True, eq=False)
class BinomialObservations:
    """Successes among trials with probability F(offset + predictor)."""

    trials: NDArray
    successes: NDArray
    offset: NDArray
    link: Link
    constant_curvature: ClassVar[bool] = False

    def value(self, eta: NDArray) -> float:
        """Return the log-likelihood up to the binomial coefficients."""
        eta = eta + self.offset
        failures = self.trials - self.successes
        return float(self.successes @ self.link.log_cdf(eta) + failures @ self.link.log_cdf(-eta))

    def derivatives(self, eta: NDArray) -> Derivatives:
        """Return pointwise log-likelihood, first, negative second and third derivative."""
        eta = eta + self.offset
        failures = self.trials - self.successes
        up, down = self.link.derivatives(eta), self.link.derivatives(-eta)
        return Derivatives(
            self.successes * up.value + failures * down.value,
            self.successes * up.first - failures * down.first,
            self.successes * up.second + failures * down.second,
            self.successes * up.third - failures * down.third,
        )


class BinomialLikelihood(Likelihood):
    """Likelihood of binomial cells: fractional trials are welcome.

    Parameters
    ----------
    design : Design
        Turns coefficients into one latent value per cell, for example `TensorDesign.values`.
    successes : array-like of shape (n_cells,)
        Weight of the positive outcomes in each cell.
    trials : array-like of shape (n_cells,) or float
        Weight of all outcomes in each cell.
    offset : array-like of shape (n_cells,) or float
        Prior mean on the link scale.
    link : Link
        `Probit` or `Logit`.

    Examples
    --------
    >>> from regcal.gp import DenseDesign
    >>> likelihood = BinomialLikelihood(DenseDesign(np.ones((1, 1))), successes=[3.0], trials=4.0)
    >>> round(likelihood.value(np.array([0.6744897501960817])), 4)
    -2.2493
    """

    def __init__(
        self,
        design: Design,
        successes: ArrayLike,
        trials: ArrayLike = 1.0,
        offset: ArrayLike = 0.0,
        link: Link | None = None,
    ):
        positive = np.asarray(successes, dtype=float).ravel()
        total, offset = (
            np.array(np.broadcast_to(np.ravel(a) if np.ndim(a) else a, positive.shape), dtype=float)
            for a in (trials, offset)
        )
        if np.any(positive < 0) or np.any(positive > total):
            msg = (
                f"Got {positive.min()} to {positive.max()} successes for {total.min()} to "
                f"{total.max()} trials. Every cell needs 0 <= successes <= trials."
            )
            raise ValueError(msg)
        link = Probit() if link is None else link
        super().__init__([Term(design, BinomialObservations(total, positive, offset, link))])
