"""What covariates say about a model: where it was wrong, by how much, and how sure that is."""

from regcal.explanation.build import explain
from regcal.explanation.findings import CovariateEffect, ExplainedSegment, Explanation

__all__ = ["CovariateEffect", "ExplainedSegment", "Explanation", "explain"]
