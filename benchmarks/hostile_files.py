"""Thousands of model files, changed on purpose and sealed again: what becomes of each.

    python benchmarks/hostile_files.py                  12 000 files
    python benchmarks/hostile_files.py --files 500      fewer
    python benchmarks/hostile_files.py --from 12000     others
    python benchmarks/hostile_files.py --estimators     of scikit-learn's estimators, one by one

Every digest in a file is right, and so is its fingerprint, as a careful forger would have it. A
file must be refused, or give an object; the object is then asked for predictions, of columns and
categories that it says it knows. One that raises an ordinary error "fails when asked"; the first of
each kind stands below the table. Crashes, more than 5 s, more than 500 MB beyond what the process
had, started processes, imports of a trap and files opened for writing count as bad, and end with
exit code 1. Models of other libraries are loaded without trust, as a stranger's file would be.
"""

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import hostile

# Files per process: a crash costs the rest of none.
_BATCH = 500

_KINDS = ("refused", "works", "fails when asked", *hostile.BAD)


def kind_of(verdict: str) -> str:
    return verdict.partition(":")[0]


def print_table(names: list[str], found: dict[int, tuple[str, float]]) -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    slowest: dict[str, float] = defaultdict(float)
    for seed, (verdict, seconds) in found.items():
        name = names[seed % len(names)]
        counts[name][kind_of(verdict)] += 1
        slowest[name] = max(slowest[name], seconds)
    print("| object | files | " + " | ".join(_KINDS) + " | slowest, s |")
    print("|---|" + "---:|" * (len(_KINDS) + 2))
    total: Counter[str] = Counter()
    for name in names:
        row, total = counts[name], total + counts[name]
        cells = " | ".join(str(row[kind]) for kind in _KINDS)
        print(f"| {name} | {row.total()} | {cells} | {slowest[name]:.2f} |")
    cells = " | ".join(str(total[kind]) for kind in _KINDS)
    print(f"| all | {total.total()} | {cells} | {max(slowest.values()):.2f} |")


def print_failures(names: list[str], found: dict[int, tuple[str, float]]) -> None:
    """Print the first file of every kind of failure, by its number."""
    shown = set()
    for seed, (verdict, _) in sorted(found.items()):
        key = names[seed % len(names)], verdict[:60]
        if verdict not in ("refused", "works") and key not in shown:
            shown.add(key)
            print(f"{seed}: {key[0]}: {verdict}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=12_000)
    parser.add_argument("--from", dest="first", type=int, default=0, help="number of the first")
    parser.add_argument("--estimators", action="store_true", help="those of scikit-learn")
    options = parser.parse_args()
    last = options.first + options.files
    with tempfile.TemporaryDirectory() as folder:
        makers = hostile.estimators() if options.estimators else hostile.storable()
        names = hostile.write_originals(Path(folder), makers)
        found: dict[int, tuple[str, float]] = {}
        for first in range(options.first, last, _BATCH):
            found = hostile.run(Path(folder), first, min(last, first + _BATCH))
            counts = Counter(kind_of(verdict) for verdict, _ in found.values())
            print(f"{len(found)} of {options.files}: {dict(counts)}", file=sys.stderr, flush=True)
    print_table(names, found)
    print_failures(names, found)
    return int(any(kind_of(verdict) in hostile.BAD for verdict, _ in found.values()))


if __name__ == "__main__":
    sys.exit(main())
