"""Batches of univariate predictive distributions."""

from regcal.distributions.base import Distribution, ProbitDistribution
from regcal.distributions.clipped import Bounded, Clipped
from regcal.distributions.convert import as_distribution
from regcal.distributions.custom import CustomDistribution
from regcal.distributions.histogram import Histogram
from regcal.distributions.mixture import Mixture
from regcal.distributions.normal import Normal
from regcal.distributions.quantiles import CrossingQuantilesWarning, Quantiles
from regcal.distributions.rounded import Rounded
from regcal.distributions.samples import Samples
from regcal.distributions.scipy_family import ScipyDistribution
from regcal.distributions.segmented import Segmented
from regcal.distributions.stacked import Stacked, concatenate
from regcal.distributions.transformed import Transformed

__all__ = [
    "Bounded",
    "Clipped",
    "CrossingQuantilesWarning",
    "CustomDistribution",
    "Distribution",
    "Histogram",
    "Mixture",
    "Normal",
    "ProbitDistribution",
    "Quantiles",
    "Rounded",
    "Samples",
    "ScipyDistribution",
    "Segmented",
    "Stacked",
    "Transformed",
    "as_distribution",
    "concatenate",
]
