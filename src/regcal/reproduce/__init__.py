"""The paper's experiments as functions; ``regcal reproduce`` calls them.

Song, Kull and Flach (2018), Sections 5 and 6: the toy figures and the study on five data sets.
"""

from regcal.reproduce.cells import FULL, QUICK, Cell, Study, Unit, seed_of
from regcal.reproduce.means import Scores
from regcal.reproduce.paper_claims import claims
from regcal.reproduce.report import write_study
from regcal.reproduce.results import read_results
from regcal.reproduce.scores import Row
from regcal.reproduce.study import load_datasets, run_cell, run_study
from regcal.reproduce.toy import reproduce_toy

__all__ = [
    "FULL",
    "QUICK",
    "Cell",
    "Row",
    "Scores",
    "Study",
    "Unit",
    "claims",
    "load_datasets",
    "read_results",
    "reproduce_toy",
    "run_cell",
    "run_study",
    "seed_of",
    "write_study",
]
