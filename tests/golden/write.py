"""Write the files that every later version of regcal has to read.

Run it when a calibrator gets a name: ``python tests/golden/write.py``. Files that exist stay as
they are, since they stand for what users have kept.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.linear_model import BayesianRidge

import regcal

FOLDER = Path(__file__).parent
EXPECTED = FOLDER / "expected.json"
LEVELS = np.array([[0.05, 0.5, 0.95]])
POINTS = np.array([[-2.0, 0.0, 0.5, 3.0]])

SMALL = {
    "gpc": {"thresholds": 8},
    "gpc-paper": {"n_pairs": 30, "prediction_thresholds": 16, "random_state": 0},
    "e-isotonic": {"thresholds": 3},
    "conditional": {"learner": "additive"},
}

# What golden calibrators that look at covariates are asked about.
KNOWN = {"age": [2.0, 7.0, None], "kind": ["a", "b", "c"]}


def rows() -> regcal.Normal:
    """Return the distributions that golden calibrators are asked about."""
    return regcal.Normal([-0.5, 0.2, 1.0], [0.5, 1.0, 2.0])


def features() -> np.ndarray:
    """Return the rows that golden models are asked about."""
    return np.array([[0.1, -0.4], [1.2, 0.3], [-0.7, 0.9]])


def answers(model: object) -> dict[str, list]:
    """Return what a model says about its rows."""
    if isinstance(model, regcal.Distribution):
        dist = model
    elif isinstance(model, regcal.Calibrator):
        dist = model.transform(rows(), None if model.columns_ is None else KNOWN)
    else:
        dist = model.predict_dist(features())  # type: ignore[attr-defined]
    return {
        "cdf": dist.cdf(POINTS).tolist(),
        "ppf": dist.ppf(LEVELS).tolist(),
        "logpdf": dist.logpdf(POINTS).tolist(),
    }


def fitted(name: str) -> object:
    """Return a small fitted object by its name."""
    rng = np.random.default_rng(0)
    if name == "regressor":
        X = rng.normal(size=(40, 2))
        y = X[:, 0] + 0.3 * rng.normal(size=40)
        return regcal.CalibratedRegressorCV(BayesianRidge(), "pit", ensemble=False).fit(X, y)
    if name == "quantiles":
        return regcal.Quantiles([0.1, 0.5, 0.9], np.sort(rng.normal(size=(3, 3))))
    if name == "rain":
        return regcal.Samples(np.maximum(rng.normal(size=(3, 20)), 0.0))
    dist = regcal.Normal(rng.normal(size=30), np.full(30, 1.5))
    y = dist.loc + rng.normal(size=30)
    if name == "conditional":
        known = {"age": np.arange(30) % 10, "kind": np.where(y > 0, "a", "b")}
        y = y + 3.0 * (known["age"] < 4)
        return regcal.get_calibrator(name, **SMALL[name]).fit(dist, y, covariates=known)
    return regcal.get_calibrator(name, **SMALL.get(name, {})).fit(dist, y)


def main() -> None:
    """Write what is missing."""
    expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    for name in [*regcal.calibrator_names(), "quantiles", "rain", "regressor"]:
        path = FOLDER / f"{name}.regcal"
        if not path.exists():
            model = fitted(name)
            regcal.save(model, path)
            expected[name] = answers(model)
    EXPECTED.write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
