"""
A year with a change in it
==========================

Washington's bike sharing began in September 2010. A model that learnt from 2011 how many bikes are
rented on a day goes on in 2012, when the scheme has grown: two thirds more bikes are rented, and
nobody has told the model. The data are real (Fanaee-T, 2013, UCI Machine Learning Repository,
CC BY 4.0), one row a day.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import BayesianRidge

import regcal
from regcal.datasets import load_bike_sharing
from regcal.online import CalibrationMonitor, OnlineCalibrator
from regcal.plots import MonitorDisplay

data = load_bike_sharing()
column = dict(zip(data.feature_names, data.X.T, strict=True))
day = np.arange(len(data))
season = 2 * np.pi * day / 365.25
X = np.column_stack(
    [
        *(column["working_day"], column["weather"] == 2, column["weather"] == 3),
        *(column["temperature"], column["temperature"] ** 2),
        *(column["humidity"], column["wind_speed"], np.sin(season), np.cos(season)),
    ]
)
rentals = data.y

# %%
# The model learns from every other week of 2011. Of the weeks between, a calibrator learns from
# every other one, once and for all; from the rest nobody learns yet.

new = day >= 365
week = day // 7
train, held_out, unseen = (~new & np.isin(week % 4, some) for some in ([0, 2], [1], [3]))
model = BayesianRidge().fit(X[train], rentals[train])
said = regcal.predict_dist(model, X)
calibrator = regcal.get_calibrator("pit", support=(0, None))
once = calibrator.fit(said[held_out], rentals[held_out]).transform(said)

# %%
# In 2012 a stream learns every evening from the day that has passed; it may remember a month, a
# season or everything, and uses what has predicted best of late.

stream = OnlineCalibrator(calibrator, half_life=[30.0, 90.0, np.inf])
stream.update(said[held_out | unseen], rentals[held_out | unseen])
scores, ends = np.full(len(day), np.nan), np.full((len(day), 2), np.nan)
for today in day[new]:
    row = slice(today, today + 1)
    scores[today] = stream.transform(said[row]).logpdf(rentals[row])[0]
    ends[today] = np.concatenate(stream.interval(said[row], 0.9))
    stream.update(said[row], rentals[row])

base = said.logpdf(rentals)
inside = (ends[:, 0] <= rentals) & (rentals <= ends[:, 1])
ends_once = np.column_stack(once.interval(0.9))
inside_once = (ends_once[:, 0] <= rentals) & (rentals <= ends_once[:, 1])
for name, gain, held, own in (
    ("calibrated once", once.logpdf(rentals) - base, inside_once, ends_once),
    ("stream", scores - base, inside, ends),
):
    print(
        f"{name}: {gain[new].mean():+.2f} nats a day against the model alone, 90 % intervals held "
        f"{held[new].mean():.0%} of the days, {np.diff(own[new]).mean():.0f} bikes wide"
    )

# %%
# The model predicts the bikes of 2011. The stream finds the way within weeks; it pays with wider
# intervals, for it corrects the model's mistake and cannot undo it.

figure, axes = plt.subplots(
    2, 1, figsize=(6.4, 5.2), sharex=True, sharey=True, layout="constrained"
)
for ax, (name, own) in zip(axes, (("Calibrated once", ends_once), ("Stream", ends)), strict=True):
    ax.fill_between(day[new] - 364, *own[new].T, alpha=0.4, linewidth=0, label="90 % interval")
    ax.plot(day[new] - 364, rentals[new], "k.", markersize=2.5, label="Rentals")
    ax.set(title=name, ylabel="Bikes a day")
axes[0].legend(frameon=False, loc="lower center", ncols=2)
axes[1].set(xlabel="Day of 2012")

# %%
# An alarm watches the calibrator that was fitted once. Its reference are PIT values of the weeks
# that it has not learnt from. For independent days, at most 5 % of years without a change would set
# it off. Errors of days in a row resemble each other, so take that as a guide; this year leaves no
# doubt.

pit = regcal.pit(rentals, once)
monitor = CalibrationMonitor(alpha=0.05, reference=pit[unseen])
for today in day[new]:
    monitor.update(pit[today])
print(monitor.alarm_)

errors = said.probit(rentals)[~new]
alike = np.corrcoef(errors[1:], errors[:-1])[0, 1]
print(f"correlation of a day's error with that of the day before: {alike:.2f}")

# %%
# The evidence over time: what bets against calibration have made of 1.

display = MonitorDisplay.from_monitor(monitor, name="The calibrator that was fitted once")
