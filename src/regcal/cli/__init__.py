"""The command line: ``regcal`` and ``python -m regcal``.

Needs the extra ``cli``. A command is one file in `regcal.cli.commands`, named in `regcal.cli.app`.
"""

import os
import sys

from regcal.cli._errors import TerminatedError, missing_package


def main() -> None:
    """Run the command line and end the process."""
    try:
        from regcal.cli.app import INTERRUPTED, run
    except ModuleNotFoundError as error:
        told = missing_package(error)
        if told is None:
            raise
        sys.stderr.write(told + "\n")
        sys.exit(2)
    try:
        code = run()
    except TerminatedError as end:
        code, stopped = int(end.code or 0), True
    else:
        stopped = code == INTERRUPTED
    if stopped and "pyarrow" in sys.modules:
        # its threads, which may still read, would abort the process as it ends
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
