"""For whom are predictions wrong: a search over groups, covariates and thresholds."""

from regcal.audit.build import audit
from regcal.audit.costs import DecisionCost
from regcal.audit.findings import Audit, AuditedSegment

__all__ = ["Audit", "AuditedSegment", "DecisionCost", "audit"]
