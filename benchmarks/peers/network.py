"""A small neural network that predicts mean and spread, as people write it with PyTorch."""

import numpy as np
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.preprocessing import StandardScaler

import regcal


class Network(RegressorMixin, BaseEstimator):
    """Two hidden layers, trained by the likelihood of a normal distribution; standard units.

    Parameters
    ----------
    width, epochs : int
    rate, decay : float
        Of Adam with weight decay.
    random_state : int
    """

    def __init__(self, width=32, epochs=300, rate=0.01, decay=1e-3, random_state=0) -> None:
        self.width = width
        self.epochs = epochs
        self.rate = rate
        self.decay = decay
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Network":
        """Train on all rows at once."""
        self.of_x_ = StandardScaler().fit(X)
        self.of_y_ = StandardScaler().fit(y[:, np.newaxis])
        x, target = self._tensor(X), torch.tensor(self.of_y_.transform(y[:, np.newaxis])[:, 0])
        with torch.random.fork_rng():
            torch.manual_seed(self.random_state)
            self.network_ = torch.nn.Sequential(
                torch.nn.Linear(x.shape[1], self.width),
                torch.nn.Tanh(),
                torch.nn.Linear(self.width, self.width),
                torch.nn.Tanh(),
                torch.nn.Linear(self.width, 2),
            ).double()
        steps = torch.optim.AdamW(self.network_.parameters(), lr=self.rate, weight_decay=self.decay)
        for _ in range(self.epochs):
            steps.zero_grad()
            mean, log_spread = self.network_(x).T
            loss = (log_spread + 0.5 * ((target - mean) * torch.exp(-log_spread)) ** 2).mean()
            loss.backward()
            steps.step()
        return self

    def _tensor(self, X: np.ndarray) -> torch.Tensor:
        return torch.tensor(self.of_x_.transform(X))

    def predict_dist(self, X: np.ndarray) -> regcal.Normal:
        """Return normal distributions in the units of y."""
        with torch.no_grad():
            mean, log_spread = self.network_(self._tensor(X)).T.numpy()
        unit, centre = float(self.of_y_.scale_[0]), float(self.of_y_.mean_[0])
        return regcal.Normal(centre + unit * mean, unit * np.exp(log_spread))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the means."""
        return self.predict_dist(X).mean()
