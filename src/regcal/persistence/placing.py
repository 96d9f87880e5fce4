"""Files that are complete or not there: written beside their place and moved there at the end.

What a killed process has left beside the place is removed by the next one that writes there. Only
regular files are replaced.
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
from typing import Any

# As many links as Linux follows from one to the next.
_MOST_LINKS = 40

# Names of streams that are open already, whatever is behind them.
_STREAMS = ("/proc/", "/dev/fd/")


def as_path(path: Any) -> Path:
    """Return a path that the system takes, or say why it is none."""
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        msg = (
            f"A path must be a text or a pathlib.Path, got {type(path).__name__} {path!r}. "
            "Bytes become a text by os.fsdecode."
        )
        raise TypeError(msg)
    if "\0" in os.fspath(path):
        msg = f"The path {os.fspath(path)!r} holds a NUL, which no name of a file does."
        raise ValueError(msg)
    return Path(path)


def is_stream(path: str | Path) -> bool:
    """Return whether a path names an open stream, such as /dev/stdout, directly or by links."""
    for _ in range(_MOST_LINKS):
        path = Path(os.path.realpath(Path(path).parent)) / Path(path).name
        if path.as_posix().startswith(_STREAMS):
            return True
        if not path.is_symlink():
            return False
        path = path.parent / path.readlink()
    msg = f"The link {str(path)!r} leads back to itself. Name a regular file."
    raise OSError(msg)


def check_place(path: str | Path) -> Path:
    """Return where a file will be, links resolved, if that is a regular file or nothing yet."""
    path = as_path(path)
    stream = is_stream(path)
    target = Path(os.path.realpath(path))
    if stream or (target.exists() and not target.is_file() and not target.is_dir()):
        msg = (
            f"{str(path)!r} is a device or a pipe, which would be replaced by a file. Name a "
            "regular file, or one that does not exist."
        )
        raise OSError(msg)
    if not target.parent.is_dir():
        msg = (
            f"There is no folder {str(target.parent)!r} for {str(path)!r}: name a file in a folder "
            "that exists."
        )
        raise FileNotFoundError(msg)
    if target.is_dir():
        msg = f"{str(path)!r} is a folder: name a file in it."
        raise IsADirectoryError(msg)
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
