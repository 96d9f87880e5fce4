"""Fingerprints follow what was learnt and nothing else."""

import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from cases import BY_NAME, CALIBRATORS
from rows import POINTS, there_and_back

import regcal


def test_fingerprint_survives_files_pickles_and_use(calibrator, path):
    """It depends on what was learnt, not on where the object has been or what it cached."""
    before = calibrator.fingerprint()
    calibrator.transform(BY_NAME["normal"].make(1)).cdf(POINTS)

    assert there_and_back(calibrator, path).fingerprint() == before
    assert pickle.loads(pickle.dumps(calibrator)).fingerprint() == before
    assert regcal.file_info(path)["fingerprint"] == before


@pytest.mark.parametrize("name", regcal.calibrator_names())
def test_fingerprint_tells_calibrators_apart(name):
    """Other outcomes, or fewer rows, make another calibrator."""
    dist = BY_NAME["normal"].make(0, n_rows=40)
    y = dist.median() + np.random.default_rng(0).normal(size=40)
    trials = [(dist, y), (dist, 1.01 * y), (dist[:39], y[:39])]

    prints = {CALIBRATORS[name]().fit(*trial).fingerprint() for trial in trials}

    assert len(prints) == (2 if name == "identity" else 3)


ELSEWHERE = """
import sys, regcal
print(regcal.load(sys.argv[1]).fingerprint())
dist = regcal.Normal([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
print(regcal.AutoCalibrator().fit(dist, [0.5, 0.2, 2.5]).fingerprint())
"""


def test_fingerprint_is_the_same_in_every_process(path):
    """Neither the process nor its hash seed changes it, whether loaded or fitted there."""
    dist = regcal.Normal([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
    here = regcal.AutoCalibrator().fit(dist, [0.5, 0.2, 2.5])
    regcal.save(here, path)

    answer = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(path)],
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert answer.stdout.split() == [here.fingerprint()] * 2
    assert re.fullmatch("[0-9a-f]{64}", here.fingerprint())
