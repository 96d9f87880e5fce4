"""Laws of batches: what a calibrator says of a row does not depend on the rows it comes with.

Draws and quantiles that pile up at an end are read with what their batch tells, see
`regcal.distributions.reading`; a fitted calibrator reads those of new rows as it read its own.
"""

import functools
import warnings

import cases
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from shell import Commands

import regcal
from regcal.online import OnlineCalibrator

N_ROWS = 80
LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
EDGES = np.array([0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0])
GRID = np.array([[-0.5, 0.0, 0.3, 1.0, 2.5, 5.0, 9.0]])


@functools.cache
def rain() -> tuple[np.ndarray, np.ndarray]:
    """Return draws that are too sure of themselves, and outcomes; zeros are in both."""
    rng = np.random.default_rng(3)
    middle = rng.normal(0.3, 1.0, N_ROWS)
    draws = middle[:, np.newaxis] + 0.5 * rng.normal(size=(N_ROWS, 12))
    draws = np.round(np.clip(1.5 * draws, 0.0, 7.9), 2)
    return draws, np.clip(1.5 * (middle + 0.8 * rng.normal(size=N_ROWS)), 0.0, 7.5)


def odd_rows() -> dict[str, np.ndarray]:
    """Return rows that tell little by themselves."""
    zeros = (rain()[0] == 0).sum(axis=1)
    return {
        "dry": np.flatnonzero(zeros == 12)[:1],
        "two dry ones": np.flatnonzero(zeros == 12)[1:3],
        "nearly dry": np.flatnonzero(zeros == 11)[:1],
        "a few zeros": np.flatnonzero((zeros > 0) & (zeros < 4))[:1],
        "wet": np.flatnonzero(zeros == 0)[:1],
        "the other half": np.arange(N_ROWS)[::-2],
    }


KINDS = {
    "draws": lambda draws: draws,
    "quantiles": lambda draws: regcal.Quantiles(LEVELS, cases.quantiles_of(draws)),
    "bins": lambda draws: regcal.Histogram(*cases.bins_of(draws, EDGES)),
    "a mixture of draws": lambda draws: regcal.Mixture(
        [regcal.Samples(draws), regcal.Samples(1.2 * draws)]
    ),
    "clipped draws": lambda draws: regcal.Clipped(regcal.Samples(draws), high=6.0),
    "folds of draws": lambda draws: regcal.concatenate(
        [regcal.Samples(draws[: len(draws) // 2 + 1]), regcal.Samples(draws[len(draws) // 2 + 1 :])]
        if len(draws) > 1
        else [regcal.Samples(draws)]
    ),
}
OF_ALL = ["draws", "quantiles", "bins"]
SLOW = ["conditional", "gpc-paper"]
PAIRS = [
    *((name, "draws") for name in cases.CALIBRATORS),
    *(
        (name, kind)
        for name in regcal.calibrator_names()
        if name not in SLOW
        for kind in OF_ALL[1:]
    ),
    *(("pit", kind) for kind in KINDS if kind not in OF_ALL),
]


@pytest.mark.parametrize(("name", "kind"), PAIRS, ids=lambda part: part)
def test_a_row_says_the_same_in_any_batch(name, kind):
    """Alone, among a few or with all others."""
    draws, y = rain()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few bins and a few rows do not fit well
        calibrator = cases.CALIBRATORS[name]().fit(KINDS[kind](draws), y)
    whole = calibrator.transform(KINDS[kind](draws))
    for label, rows in odd_rows().items():
        part = calibrator.transform(KINDS[kind](draws[rows]))

        assert_allclose(part.cdf(GRID), whole[rows].cdf(GRID), rtol=1e-9, err_msg=label)
        assert_allclose(part.sf(GRID), whole[rows].sf(GRID), rtol=1e-9, err_msg=label)
        assert_allclose(part.mass(0.0), whole[rows].mass(0.0), rtol=1e-9, err_msg=label)


@pytest.mark.parametrize("kind", ["draws", "quantiles"])
def test_batches_that_differ_teach_what_all_rows_teach(kind):
    """A season without rain, and one that never is dry, are read as parts of a year."""
    draws, y = rain()
    order = np.argsort(draws.mean(axis=1), kind="stable")
    parts = [(KINDS[kind](draws[rows]), y[rows]) for rows in np.array_split(order, 3)]
    at_once = regcal.get_calibrator("pit").fit(KINDS[kind](draws), y)
    in_parts = regcal.get_calibrator("pit").fit_batches(parts)
    other_order = regcal.get_calibrator("pit").fit_batches(parts[::-1])

    new = KINDS[kind](draws[:40])
    wanted = at_once.transform(new).cdf(GRID)
    assert_allclose(in_parts.transform(new).cdf(GRID), wanted, atol=0.01)
    assert_allclose(other_order.transform(new).cdf(GRID), in_parts.transform(new).cdf(GRID))


def test_streams_read_single_rows_as_all_earlier_ones():
    """Row by row, as a stream asks, or all at once."""
    draws, y = rain()
    stream = OnlineCalibrator("pit", half_life=1000.0)
    for start in range(0, N_ROWS, 30):
        stream.update(draws[start : start + 30], y[start : start + 30])
    whole = stream.transform(draws).sf(GRID)
    for rows in odd_rows().values():
        assert_allclose(stream.transform(draws[rows]).sf(GRID), whole[rows], rtol=1e-9)


def test_the_command_line_reads_chunks_alike(tmp_path, monkeypatch):
    """A file that begins with a dry season is answered as if it were shuffled."""
    pytest.importorskip("pyarrow")
    draws, y = rain()
    run, names = Commands(tmp_path), [f"m{k}" for k in range(draws.shape[1])]
    table = pd.DataFrame(draws, columns=names).assign(y=y)
    table.to_parquet(tmp_path / "rain.parquet")
    columns = ",".join(names)
    run.good(f"calibrate rain.parquet --target y --samples {columns} --save m --calibrator pit")
    order = np.argsort(draws.mean(axis=1), kind="stable")
    table.iloc[order].to_parquet(tmp_path / "sorted.parquet")
    monkeypatch.setattr("regcal.cli._reading._BLOCK_ROWS", 10)
    run.good("predict m sorted.parquet --above 2 --output answers.csv")

    answers = pd.read_csv(tmp_path / "answers.csv")["above_2"].to_numpy()
    wanted = regcal.get_calibrator("pit").fit(draws, y).transform(draws).sf(2.0)
    assert_allclose(answers, wanted[order], rtol=1e-6)


def test_draws_beyond_an_end_that_was_learnt_are_told_of():
    """They are taken to be at it, in any batch; ends that are given with them stay."""
    draws, y = rain()
    calibrator = regcal.get_calibrator("pit").fit(draws, y)
    new = draws[:4].copy()
    new[1, 2] = -3.0
    with pytest.warns(UserWarning, match=r"1 of 48 draws, the first is -3, lie beyond .*0"):
        told = calibrator.transform(new)

    assert_allclose(told.cdf(-0.1), 0.0)
    given = calibrator.transform_latent(regcal.Samples(new, support=None))
    assert given.cdf(-0.1)[1] > 0
