"""What a learner of corrections is: two regressions on covariates."""

from abc import ABC, abstractmethod
from typing import Protocol

from regcal._validation import Array
from regcal.covariates import Covariates


class Regression(Protocol):
    """A fitted function of covariates."""

    def __call__(self, columns: Covariates) -> Array:
        """Return a number per row."""
        ...


class Learner(ABC):
    """Learns where outcomes lie under their predictions, and how far they spread.

    Outcomes are given on the probit scale: 0 is the predicted median, and 1 is a predicted standard
    deviation above it, whatever the distribution.
    """

    @abstractmethod
    def learn_shift(self, columns: Covariates, outcomes: Array, weights: Array) -> Regression:
        """Return the mean of outcomes as a function of covariates."""

    @abstractmethod
    def learn_log_factor(self, columns: Covariates, squares: Array, weights: Array) -> Regression:
        """Return half the log of the mean of squares as a function of covariates."""
