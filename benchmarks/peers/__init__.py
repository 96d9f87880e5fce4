"""regcal beside the packages one can install today: same rows, same outputs, same scores.

`catalogue` lists the methods and `run` works through them, each in a process of its own.
"""
