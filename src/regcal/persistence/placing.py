"""Files that are complete or not there: written beside their place and moved there at the end.

What a killed process has left beside the place is removed by the next one that writes there.
"""

import contextlib
import hashlib
import os
import platform
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def check_place(path: str | Path) -> Path:
    """Return where a file will be, links resolved, if that is a regular file or nothing yet."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        msg = (
            f"There is no folder {str(target.parent)!r} for {str(path)!r}: name a file in a folder "
            "that exists."
        )
        raise FileNotFoundError(msg)
    if target.is_dir():
        msg = f"{str(path)!r} is a folder: name a file in it."
        raise IsADirectoryError(msg)
    if target.exists() and not target.is_file():
        msg = (
            f"{str(path)!r} is a device or a pipe, which would be replaced by a file. Name a "
            "regular file, or one that does not exist."
        )
        raise OSError(msg)
    return target


@contextmanager
def placed(path: str | Path) -> Iterator[Path]:
    """Give a path to write to, which becomes `path` when all went well and is removed if not."""
    target = check_place(path)
    _remove_what_killed_processes_left(target)
    part = target.with_name(f".{target.name}.{_process(os.getpid())}-{secrets.token_hex(4)}.part")
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _process(number: int | str) -> str:
    """Return a name of a process that is told from those of other machines on a shared disk."""
    machine = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
    return f"{machine}-{number}"


def _remove_what_killed_processes_left(target: Path) -> None:
    ours = re.compile(
        re.escape(f".{target.name}.") + _process(r"(\d{1,9})") + r"-[0-9a-f]{8}\.part"
    )
    for path in target.parent.iterdir():
        found = ours.fullmatch(path.name)
        if found and not _is_running(int(found.group(1))):
            with contextlib.suppress(OSError):
                path.unlink()


def _is_running(number: int) -> bool:
    if os.name != "posix":
        # elsewhere the question would end the process
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
