"""`regcal info` tells what is in a file."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import regcal


def test_info_tells_what_is_in_a_file(run):
    """Class, source, scores and versions, without building the model."""
    told = json.loads(run.good("info fit.regcal --json").out)
    text = run.good("info fit.regcal").out

    assert told["class"].endswith("TableRegressor")
    assert {score["name"] for score in told["scores"]} >= {"log score", "CRPS"}
    assert "concrete.csv" in text
    assert f"regcal {regcal.__version__}" in text


@pytest.mark.parametrize("name", ["fit", "scale", "wide", "auto"])
def test_info_fits_a_screen(run, name):
    """80 columns and 24 lines hold it, however many columns or candidates there are."""
    path = f"{name}.regcal"
    if name == "wide":
        table = pd.DataFrame({f"a_long_name_{k}": np.arange(12.0) for k in range(60)})
        table.assign(y=np.sin(np.arange(12.0))).to_csv(run.folder / "wide.csv", index=False)
        run.good(f"fit wide.csv --target y --calibrator scale --output {path}")
    elif name == "auto":
        golden = Path(__file__).parents[2] / "golden" / path
        (run.folder / path).write_bytes(golden.read_bytes())

    lines = run.good(f"info {path}").out.splitlines()

    assert len(lines) < 24  # the prompt takes one
    assert max(map(len, lines)) <= 80
    assert lines[-1].endswith(f"regcal info {path} --full")
    if name == "wide":
        assert any(line.endswith("more") for line in lines)


def test_info_in_full_tells_every_parameter(run):
    """What was learnt, too."""
    text = run.good("info scale.regcal --full").out

    assert "support: 'auto'" in text
    assert "factor" in text
    assert "fingerprint" in text
