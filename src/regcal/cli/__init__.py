"""The command line: ``regcal`` and ``python -m regcal``.

Needs the extra ``cli``. A command is one file in `regcal.cli.commands`, named in `regcal.cli.app`.
"""

import sys

_EXTRA = {"pandas", "pyarrow", "rich", "skops", "typer"}


def main() -> None:
    """Run the command line and end the process."""
    try:
        from regcal.cli.app import run
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _EXTRA:
            raise
        sys.stderr.write(
            f"The command line needs {error.name}, which is not installed: "
            "pip install 'regcal[cli]'\n"
        )
        sys.exit(2)
    sys.exit(run())
