"""The command line: ``regcal`` and ``python -m regcal``.

Needs the extra ``cli``. A command is one file in `regcal.cli.commands`, named in `regcal.cli.app`.
"""

import sys

from regcal.cli._errors import missing_package


def main() -> None:
    """Run the command line and end the process."""
    try:
        from regcal.cli.app import run
    except ModuleNotFoundError as error:
        told = missing_package(error)
        if told is None:
            raise
        sys.stderr.write(told + "\n")
        sys.exit(2)
    sys.exit(run())
