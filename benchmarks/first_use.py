"""How long a new user waits: install, first result, demonstration, each from a fresh clone.

    python benchmarks/first_use.py

Prints seconds on the clock and of CPU. Packages come from wherever pip finds them: the second run,
which has them in its cache, is the one to quote.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "plots,report,cli"

FIRST_RESULT = """
from sklearn.linear_model import BayesianRidge
import regcal
from regcal.datasets import load_concrete

data = load_concrete()
model = regcal.CalibratedRegressorCV(BayesianRidge()).fit(data.X, data.y)
print(model.predict_above(data.X[:3], 40.0))
"""


def timed(name: str, *command: str, folder: Path) -> None:
    """Run a command, and print how long it took."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{name:<40} {wall:7.1f} s on the clock {cpu:7.1f} s of CPU", flush=True)


def main() -> None:
    """Measure everything in a folder that goes afterwards."""
    with tempfile.TemporaryDirectory() as name:
        clone = Path(name, "regcal")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        python = str(clone / "env/bin/python")
        subprocess.run([sys.executable, "-m", "venv", str(clone / "env")], check=True)
        install = [python, "-m", "pip", "install", "--quiet", f".[{EXTRAS}]"]
        timed(f"pip install '.[{EXTRAS}]'", *install, folder=clone)
        timed("first result in Python, first start", python, "-c", FIRST_RESULT, folder=clone)
        timed("first result in Python, later", python, "-c", FIRST_RESULT, folder=clone)
        timed("make demo, with its own environment", "make", "demo", folder=clone)
        timed("make demo, again", "make", "demo", folder=clone)


if __name__ == "__main__":
    main()
