"""The methods: where each is, and which of regcal's does the same kind of thing.

Only the standard library is imported here, so that the runner stays small: a child process
inherits its parent's peak memory.
"""

import importlib
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Entry:
    """A method of the benchmark.

    `counterpart` is regcal's method of the same kind: one factor on the spread, one map of
    probabilities, or a map that also depends on the row or on the target.
    """

    name: str
    package: str
    module: str
    factory: str
    counterpart: str = ""
    options: dict = field(default_factory=dict)

    def make(self):
        """Import the package and return the method, not yet fitted."""
        module = importlib.import_module(f"peers.{self.module}")
        return getattr(module, self.factory)(**self.options)


def _ours(name: str, *, features: bool = False) -> Entry:
    options = {"name": name, "features": features}
    shown = f"{name}, features" if features else name
    return Entry(shown, "regcal", "regcal_methods", "Ours", options=options)


def _calpit(name: str, *, trees: bool, moments: bool) -> Entry:
    options = {"trees": trees, "moments": moments}
    counterpart = "gp-density" if moments else "conditional, features"
    return Entry(name, "calpit", "calpit_methods", "Calpit", counterpart, options)


OURS = [
    *map(_ours, ("identity", "scale", "pit", "isotonic", "e-logistic", "e-beta", "gpc")),
    *map(_ours, ("gp-density", "auto")),
    _ours("conditional", features=True),
    _ours("auto", features=True),
]

PEERS = [
    Entry("netcal VarianceScaling", "netcal", "netcal_methods", "VarianceScale", "scale"),
    Entry("netcal IsotonicRegression", "netcal", "netcal_methods", "Isotonic", "pit"),
    Entry("netcal GPNormal", "netcal", "netcal_methods", "ProcessNormal", "gp-density"),
    Entry("netcal GPBeta", "netcal", "netcal_methods", "ProcessBeta", "gp-density"),
    Entry("crepes CPS", "crepes", "crepes_methods", "Conformal", "pit", {"normalized": False}),
    Entry("crepes CPS normalized", "crepes", "crepes_methods", "Conformal", "pit"),
    Entry(
        "crepes CPS normalized Mondrian",
        "crepes",
        "crepes_methods",
        "Conformal",
        "gp-density",
        {"bins": 5},
    ),
    Entry("EasyUQ", "EasyUQ (a plain version)", "easyuq_methods", "PlainEasyUQ", "isotonic"),
    Entry("MAPIE split", "mapie", "mapie_methods", "Split", "pit"),
    Entry("uct std", "uncertainty-toolbox", "uncertainty_toolbox_methods", "Deviation", "scale"),
    Entry(
        "uct quantile (as it is)",
        "uncertainty-toolbox",
        "uncertainty_toolbox_methods",
        "Quantile",
        "pit",
        {"mirrored": False},
    ),
    Entry(
        "uct quantile (sign put right)",
        "uncertainty-toolbox",
        "uncertainty_toolbox_methods",
        "Quantile",
        "pit",
        {"mirrored": True},
    ),
    Entry("uct interval", "uncertainty-toolbox", "uncertainty_toolbox_methods", "Interval", "pit"),
    _calpit("calpit network, features", trees=False, moments=False),
    _calpit("calpit network, (mean, std)", trees=False, moments=True),
    _calpit("calpit trees, features", trees=True, moments=False),
    _calpit("calpit trees, (mean, std)", trees=True, moments=True),
    Entry(
        "scikit-learn GPC, 1000 pairs",
        "scikit-learn",
        "pairs_methods",
        "PairClassifier",
        "gpc",
        {"n_pairs": 1000, "sparse": False},
    ),
    Entry(
        "GPyTorch SVGP, 5000 pairs",
        "gpytorch",
        "pairs_methods",
        "PairClassifier",
        "gpc",
        {"n_pairs": 5000, "sparse": True},
    ),
]

METHODS = {entry.name: entry for entry in OURS + PEERS}

# What `import` is timed of, by package.
IMPORTS = {
    "scikit-learn": "sklearn.gaussian_process",
    "gpytorch": "gpytorch",
    "netcal": "netcal.regression",
    "crepes": "crepes",
    "mapie": "mapie.regression",
    "uncertainty-toolbox": "uncertainty_toolbox",
    "calpit": "calpit",
}
