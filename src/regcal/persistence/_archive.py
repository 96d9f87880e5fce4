"""The file: a zip archive of named members that ends with a digest of itself.

Whatever is wrong with a file is a `FileError`.
"""

import hashlib
import io
import os
import re
import shutil
import zipfile
import zlib
from typing import Any

from regcal.persistence.placing import as_path, check_place, placed

# The archive's comment, its last bytes: this mark and the SHA-256 of all that precedes the digest.
# It is the same for every format, so that damage is told from novelty.
_MARK = b"regcal sha256 "
_DIGEST = 64
_ZIP_START = b"PK\x03\x04"

# Members take at most so many times the size of the file, and this allowance.
_LARGEST_RATIO, _ALLOWANCE = 100, 2**24

_NAME = re.compile(r"(manifest|schema)\.json|arrays/[0-9]{1,9}\.npy")

# No file carries the time it was written: equal models give equal files.
_DATE = (1980, 1, 1, 0, 0, 0)


class FileError(ValueError):
    """A file that is refused, or an object that cannot be stored; the message says why.

    Examples
    --------
    >>> import tempfile
    >>> import regcal
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     try:
    ...         regcal.load(file.name)
    ...     except regcal.FileError as error:
    ...         print(error)
    /... is refused: it is not a regcal file but empty.
    """


def pack(members: dict[str, bytes]) -> bytes:
    """Return an archive of the members."""
    data = _zipped(members, zipfile.ZIP_DEFLATED)
    if sum(map(len, members.values())) > _limit(data):
        data = _zipped(members, zipfile.ZIP_STORED)
    body = data[:-_DIGEST]
    return body + hashlib.sha256(body).hexdigest().encode()


def _zipped(members: dict[str, bytes], method: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, _DATE)
            info.create_system = 3  # the same on every system
            archive.writestr(info, content, compress_type=method)
        archive.comment = _MARK + bytes(_DIGEST)
    return buffer.getvalue()


def _limit(data: bytes) -> int:
    return _LARGEST_RATIO * len(data) + _ALLOWANCE


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the members of an archive after every check that needs no knowledge of them."""
    _check_digest(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            _check_members(infos, data)
            return {info.filename: archive.read(info) for info in infos}
    except FileError:
        raise
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError) as error:
        msg = f"it is not a readable archive ({error})"
        raise FileError(msg) from error
    except (NotImplementedError, RuntimeError, MemoryError, OverflowError) as error:
        msg = f"its archive is not one that regcal writes ({error})"
        raise FileError(msg) from error


def _check_digest(data: bytes) -> None:
    if not data.startswith(_ZIP_START):
        kind = (
            "a pickle, which regcal never reads" if data.startswith(b"\x80") else "something else"
        )
        msg = f"it is not a regcal file but {'empty' if not data else kind}"
        raise FileError(msg)
    body, digest = data[:-_DIGEST], data[-_DIGEST:]
    if not body.endswith(_MARK):
        msg = "it is cut off, or another program's archive: the mark at its end is missing"
        raise FileError(msg)
    if hashlib.sha256(body).hexdigest().encode() != digest:
        msg = "it was damaged or changed: its content does not have the digest at its end"
        raise FileError(msg)


def _check_members(infos: list[zipfile.ZipInfo], data: bytes) -> None:
    names = [info.filename for info in infos]
    for info in infos:
        if not _NAME.fullmatch(info.filename) or info.filename != info.orig_filename:
            msg = f"it holds {info.orig_filename!r}, which no regcal file does"
            raise FileError(msg)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            msg = f"{info.filename} is compressed in a way that regcal does not use"
            raise FileError(msg)
    if len(set(names)) < len(names):
        msg = "it holds the same member twice"
        raise FileError(msg)
    stored, unpacked = (sum(getattr(i, k) for i in infos) for k in ("compress_size", "file_size"))
    if stored > len(data) or unpacked > _limit(data):
        msg = f"its {len(data)} bytes claim to unpack to {unpacked}, more than a model would"
        raise FileError(msg)


def read_file(path: Any) -> bytes:
    """Return the content of a regular file; what else has a name may be a folder, or never end."""
    file = as_path(path)
    if file.exists() and not file.is_file():
        what = "a folder" if file.is_dir() else "a device or a pipe"
        msg = f"{path} is refused: it is {what}, and only regular files are read."
        raise FileError(msg)
    if not file.exists():
        msg = f"There is no file {str(path)!r}. Give the path of one that regcal.save wrote."
        raise FileNotFoundError(msg)
    with file.open("rb") as stream:
        # no more than its size: files of the system may claim none and never end
        return stream.read(os.fstat(stream.fileno()).st_size)


def write_atomically(path: Any, data: bytes) -> None:
    """Write a file that is complete or not there, whatever happens meanwhile."""
    target = check_place(path)
    with placed(target) as part:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, part)
