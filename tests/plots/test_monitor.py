"""The alarm over time."""

import numpy as np
from numpy.testing import assert_allclose

from regcal.online import CalibrationMonitor
from regcal.plots import MonitorDisplay


def test_the_line_is_the_money_and_the_alarm_is_marked(rng):
    """What is drawn is what the monitor has kept."""
    pit = np.concatenate([rng.uniform(size=100), np.full(30, 0.99)])
    monitor = CalibrationMonitor(alpha=0.01).update(pit)

    display = MonitorDisplay.from_monitor(monitor, name="stream")
    money, enough, since, found = display.ax_.lines

    assert_allclose(money.get_xdata(), np.arange(1, 131))
    assert_allclose(10 ** money.get_ydata()[-1], monitor.money_)
    assert_allclose(enough.get_ydata(), 2.0)
    assert since.get_xdata()[0] == monitor.alarm_.since
    assert found.get_xdata()[0] == monitor.alarm_.row
    assert display.ax_.get_title(loc="left") == "stream"


def test_without_an_alarm_there_is_nothing_to_mark(rng):
    """The evidence and the line it has not reached."""
    display = MonitorDisplay.from_monitor(CalibrationMonitor().update(rng.uniform(size=50)))

    assert len(display.ax_.lines) == 2
