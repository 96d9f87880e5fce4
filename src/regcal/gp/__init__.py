"""Gaussian processes in two dimensions, fast: Hilbert-space basis and Laplace inference.

Nothing here knows of calibration. A `HilbertBasis` expands the process, a `Design` turns its
coefficients into predictors, a `Likelihood` says how probable the data are, and `fit_process` finds
hyper-parameters and posterior.
"""

from regcal.gp.basis import HilbertBasis
from regcal.gp.binomial import BinomialLikelihood
from regcal.gp.design import DenseDesign, Design, TensorDesign
from regcal.gp.interval_likelihood import IntervalTerm, interval_derivatives, log_interval
from regcal.gp.kernels import RBF, Kernel, Matern32, Matern52
from regcal.gp.laplace import LaplacePosterior, ProcessPrior, find_mode, laplace_posterior
from regcal.gp.likelihood import Likelihood, Term
from regcal.gp.links import Link, Logit, Probit
from regcal.gp.process import BasisWarning, FittedProcess, fit_process
from regcal.gp.search import EvidenceSearch, HyperPrior
from regcal.gp.transformation import Barrier, LogSlope, SoftSlope, TransformationLikelihood

__all__ = [
    "RBF",
    "Barrier",
    "BasisWarning",
    "BinomialLikelihood",
    "DenseDesign",
    "Design",
    "EvidenceSearch",
    "FittedProcess",
    "HilbertBasis",
    "HyperPrior",
    "IntervalTerm",
    "Kernel",
    "LaplacePosterior",
    "Likelihood",
    "Link",
    "LogSlope",
    "Logit",
    "Matern32",
    "Matern52",
    "Probit",
    "ProcessPrior",
    "SoftSlope",
    "TensorDesign",
    "Term",
    "TransformationLikelihood",
    "find_mode",
    "fit_process",
    "interval_derivatives",
    "laplace_posterior",
    "log_interval",
]
