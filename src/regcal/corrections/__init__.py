"""Location and spread of outcomes under their predictions, as functions of covariates."""

from regcal.corrections.additive import AdditiveLearner
from regcal.corrections.base import Learner
from regcal.corrections.cross_fit import Averaged, Blend, Correction, CrossFitted, cross_fitted
from regcal.corrections.regressors import RegressorLearner, trees
from regcal.corrections.seen import Seen

__all__ = [
    "AdditiveLearner",
    "Averaged",
    "Blend",
    "Correction",
    "CrossFitted",
    "Learner",
    "RegressorLearner",
    "Seen",
    "cross_fitted",
    "trees",
]
