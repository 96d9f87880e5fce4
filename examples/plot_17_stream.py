"""
A year with a change in it
==========================

A shop predicts its visitors of each hour. In summer a second shop opens next door: fewer visitors
come, and their number varies more than the model knows. The data are simulated, so that it is known
what happened.
"""

import matplotlib.pyplot as plt
import numpy as np

import regcal
from regcal.online import CalibrationMonitor, OnlineCalibrator
from regcal.plots import MonitorDisplay

rng = np.random.default_rng(0)
day = np.repeat(np.arange(365), 8)  # eight hours a day
hour = np.tile(np.arange(8), 365)
typical = 60.0 + 25.0 * np.sin(np.pi * hour / 7) + 10.0 * np.sin(2 * np.pi * day / 365)
opened = day >= 200
shift, spread = np.where(opened, -12.0, 0.0), np.where(opened, 16.0, 9.0)
visitors = typical + shift + spread * rng.normal(size=len(day))

said = regcal.Normal(typical, 7.0)  # the model is a little too sure from the beginning

# %%
# January and February are held out to calibrate, once and for all; the rest of the year is new. One
# stream learns every evening from the day that has passed.

past = day < 59
once = regcal.get_calibrator("pit").fit(said[past], visitors[past]).transform(said)
stream = OnlineCalibrator("pit")
scores, inside = np.empty(len(day)), np.empty(len(day), dtype=bool)
half_lives = []
for today in range(365):
    rows = slice(8 * today, 8 * today + 8)
    scores[rows] = stream.transform(said[rows]).logpdf(visitors[rows])
    low, high = stream.interval(said[rows], 0.9)
    inside[rows] = (low <= visitors[rows]) & (visitors[rows] <= high)
    stream.update(said[rows], visitors[rows])
    half_lives.append(stream.half_life_)

for name, when in (("before", ~past & ~opened), ("after", opened)):
    gain_once = (once.logpdf(visitors) - said.logpdf(visitors))[when].mean()
    gain = (scores - said.logpdf(visitors))[when].mean()
    print(f"{name} the change: calibrated once {gain_once:+.3f}, stream {gain:+.3f} nats a row")
print(f"90 % intervals of the stream held {inside[~past].mean():.1%}")

# %%
# Coverage of 90 % intervals over the last four weeks: that of the calibrator that was fitted once
# breaks down, that of the stream recovers.

held_once = np.abs(regcal.pit(visitors, once) - 0.5) <= 0.45
window = np.ones(28 * 8) / (28 * 8)
figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
for name, held in (("calibrated once", held_once), ("stream", inside)):
    ax.plot(day[len(window) - 1 :], np.convolve(held, window, "valid"), label=name)
ax.axhline(0.9, color="0.3", linewidth=1, linestyle=":")
ax.axvline(200, color="0.3", linewidth=1, linestyle=":")
ax.set(xlabel="Day", ylabel="Coverage, last 28 days")
ax.legend(frameon=False)

# %%
# The stream forgets more when it has to: its half-life, in rows.

print("half-life on day 190:", half_lives[190], "and on day 240:", half_lives[240])

# %%
# An alarm watches the calibrator that was fitted once. Its reference are March's rows, which nobody
# has learnt from. It says when and what; without a change, 5 % of years at most set it off.

pit = regcal.pit(visitors, once)
march = (day >= 59) & (day < 90)
monitor = CalibrationMonitor(alpha=0.05, reference=pit[march])
for today in range(90, 365):
    monitor.update(pit[day == today])
print(monitor.alarm_)
print("found on day", 90 + monitor.alarm_.row // 8)

# %%
# The evidence over time: what bets against calibration have made of 1.

display = MonitorDisplay.from_monitor(monitor, name="The calibrator that was fitted once")
