"""Compare the average of the folds' calibrated models with one model fitted on all rows.

    python benchmarks/averaging.py [--rows 300 1000] [--seeds 4]

Prints, for boosted trees and forests and for signals of different strength, the share of the
variance that the model explains, and what averaging gains over refitting in log score and CRPS.
`CalibratedRegressorCV` takes its rule for `ensemble="auto"` from it.
"""

import argparse

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

import regcal

MODELS = {
    "boosting": HistGradientBoostingRegressor(random_state=0),
    "forest": RandomForestRegressor(100, random_state=0),
}
NOISE = (15.0, 8.0, 5.0, 2.5, 1.0)
N_TEST = 3000


def scores(model, ensemble, train, test):
    """Return the mean log score and CRPS, and the share of the variance that is explained."""
    wrapped = regcal.CalibratedRegressorCV(
        regcal.NormalResidualRegressor(model), "pit", ensemble=ensemble
    )
    X, y = test
    dist = wrapped.fit(*train).predict_dist(X)
    explained = 1.0 - np.mean((y - dist.median()) ** 2) / y.var()
    return dist.logpdf(y).mean(), dist.crps(y).mean(), explained


def gains(model, n_rows, noise, seed):
    """Return what is explained, and the gains of averaging in log score and in CRPS."""
    X, y = make_friedman1(n_rows + N_TEST, n_features=10, noise=noise, random_state=seed)
    train, test = (X[:n_rows], y[:n_rows]), (X[n_rows:], y[n_rows:])
    averaged, refitted = (scores(model, ensemble, train, test) for ensemble in (True, False))
    return refitted[2], averaged[0] - refitted[0], 1.0 - averaged[1] / refitted[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    print(f"{'model':10}{'rows':>6}{'noise':>7}{'explained':>11}{'log score':>11}{'CRPS':>8}")
    for n_rows in options.rows:
        for name, model in MODELS.items():
            for noise in NOISE:
                found = [gains(model, n_rows, noise, seed) for seed in range(options.seeds)]
                explained, log_score, crps = np.mean(found, axis=0)
                line = f"{name:10}{n_rows:6}{noise:7.1f}{explained:11.2f}{log_score:+11.3f}"
                print(f"{line}{100 * crps:+7.1f}%", flush=True)


if __name__ == "__main__":
    main()
