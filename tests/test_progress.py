"""Long fits tell what they do, to those who watch or ask, and to nobody else."""

import io
import re
import threading

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

import regcal
from regcal import _progress
from regcal._progress import Progress


class Terminal(io.StringIO):
    """A stream that a person sees."""

    def isatty(self):
        """Return True."""
        return True


class Impatient:
    """A timer that rings at once, when it is started."""

    def __init__(self, seconds, ring):
        self.ring = ring

    def start(self):
        """Ring as soon as the first step is told."""
        self.ring()

    def cancel(self):
        """Do nothing."""


@pytest.fixture
def impatient(monkeypatch):
    """Let progress be shown from the beginning."""
    monkeypatch.setattr(_progress.threading, "Timer", Impatient)


def fit_in_steps(stream, verbose=0):
    """Go through two steps."""
    with Progress("fit", verbose, stream) as progress:
        progress.step("one")
        progress.step("two")
    return stream.getvalue()


def test_nothing_is_written_where_nobody_watches(impatient):
    """A file, or another thread of a program with a terminal, gets nothing."""
    terminal = Terminal()
    thread = threading.Thread(target=fit_in_steps, args=(terminal,))
    thread.start()
    thread.join()

    assert fit_in_steps(io.StringIO()) == ""
    assert terminal.getvalue() == ""


def test_quick_fits_leave_a_terminal_alone():
    """Before the timer rings, nothing is shown."""
    assert fit_in_steps(Terminal()) == ""


def test_a_terminal_shows_one_line_that_goes_away(impatient):
    """Each step replaces the last, and in the end the line is empty."""
    written = fit_in_steps(Terminal())

    assert "fit: one" in written and "fit: two" in written
    assert "\n" not in written
    assert written.endswith("\r\x1b[K")


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_verbose_fits_write_lines_anywhere(stream):
    """Whoever asks gets a line a step, and how long it took."""
    first, second, last = fit_in_steps(stream(), verbose=1).splitlines()

    assert (first, second) == ("fit: one", "fit: two")
    assert re.fullmatch(r"fit: done after \d+\.\d s", last)


def test_a_regressor_tells_its_steps_and_those_of_auto(rng, capsys):
    """Folds, candidates and the last fit, once each; silence without verbose."""
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)
    candidates = [(name, regcal.get_calibrator(name)) for name in ("identity", "scale")]
    model = regcal.CalibratedRegressorCV(
        BayesianRidge(), regcal.AutoCalibrator(candidates), ensemble=False
    )

    silent = model.fit(X, y).predict(X)
    assert capsys.readouterr() == ("", "")
    told = model.set_params(verbose=1).fit(X, y).predict(X)
    lines = capsys.readouterr().err.splitlines()

    assert [line.split(": ")[1].split(",")[0] for line in lines if "done" not in line] == [
        "fitting the model on 3 folds",
        "fitting the model on all 60 rows",
        "calibrating its predictions",
        "comparing identity",
        "comparing scale",
    ]
    np.testing.assert_array_equal(told, silent)


def test_the_papers_classifier_tells_its_pairs(rng, capsys):
    """It is the slowest of all fits."""
    dist = regcal.Normal(np.zeros(30), 1.0)
    calibrator = regcal.PaperGPCalibrator(
        n_pairs=40, prediction_thresholds=8, random_state=0, verbose=1
    )
    calibrator.fit(dist, rng.normal(size=30))

    assert "gpc-paper: fitting the classifier on 40 pairs" in capsys.readouterr().err
