"""The alarm over time."""

from typing import TYPE_CHECKING, Self

import numpy as np

from regcal.online import CalibrationMonitor, MonitorHistory
from regcal.plots._base import BLUE, GREY, VERMILLION, Display, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class MonitorDisplay(Display):
    """Evidence against calibration after every row, and the line at which it is enough.

    Parameters
    ----------
    history : MonitorHistory
    name : str, optional
        Title of the panel.

    Examples
    --------
    >>> from regcal.online import CalibrationMonitor
    >>> from regcal.plots import MonitorDisplay
    >>> display = MonitorDisplay.from_monitor(CalibrationMonitor().update([0.99] * 20))
    >>> display.history.alarm.kind
    'bias'
    """

    def __init__(self, history: MonitorHistory, name: str | None = None) -> None:
        self.history = history
        self.name = name

    @classmethod
    def from_monitor(
        cls, monitor: CalibrationMonitor, *, name: str | None = None, ax: "Axes | None" = None
    ) -> Self:
        """Draw the history of a monitor.

        Parameters
        ----------
        monitor : CalibrationMonitor
        name : str, optional
        ax : matplotlib Axes, optional

        Returns
        -------
        MonitorDisplay
        """
        return cls(monitor.history(), name).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw on `ax`, or on a new figure, and return this display."""
        ax = self._start(ax, (6.4, 3.4))
        told, alarm = self.history, self.history.alarm
        ax.plot(told.rows, told.log_money / np.log(10.0), color=BLUE, label="evidence")
        enough = f"alarm: {100 * told.alpha:g} % false ones over all time"
        ax.axhline(-np.log10(told.alpha), color=VERMILLION, linewidth=1, label=enough)
        if alarm is not None:
            since = f"{alarm.kind} since about row {alarm.since}"
            ax.axvline(alarm.since, color=GREY, linewidth=1, linestyle=":", label=since)
            ax.axvline(alarm.row, color=VERMILLION, linewidth=1, linestyle=":")
        ax.set(xlabel="Row", ylabel="Money, powers of ten")
        legend_above(ax, self.name, columns=3)
        return self
