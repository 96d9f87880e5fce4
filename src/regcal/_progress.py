"""What a long fit says of itself while somebody waits for it."""

import multiprocessing
import sys
import threading
import time
from types import TracebackType
from typing import Self, TextIO

# Seconds after which somebody may wonder.
_PATIENCE = 2.0


class Progress:
    """The steps of a fit, told on standard error.

    With `verbose` each step is a line, and another tells how long all took. Without it, a terminal
    shows the current step of a fit that takes longer than two seconds, and nothing stays of it;
    where nobody watches, as in a file, another process or a thread, nothing is written.

    Parameters
    ----------
    name : str
        What is being fitted.
    verbose : int
    stream : text stream, optional
        Standard error by default.

    Examples
    --------
    >>> import sys
    >>> from regcal._progress import Progress
    >>> with Progress("auto", verbose=1, stream=sys.stdout) as progress:
    ...     progress.step("comparing pit, 1 of 2")  # doctest: +ELLIPSIS
    auto: comparing pit, 1 of 2
    auto: done after ... s
    """

    def __init__(self, name: str, verbose: int, stream: TextIO | None = None) -> None:
        self._name, self._verbose = name, verbose
        self._stream = sys.stderr if stream is None else stream
        self._text, self._shown = "", False
        self._lock = threading.Lock()
        self._start = time.monotonic()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if not self._verbose and _is_watched(self._stream):
            self._timer = threading.Timer(_PATIENCE, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
            with self._lock:
                self._timer = None
                if self._shown:
                    self._write("\r\x1b[K")
        elif self._verbose and error is None:
            self._write(f"{self._name}: done after {time.monotonic() - self._start:.1f} s\n")

    def step(self, text: str) -> None:
        """Tell which step begins."""
        if self._verbose:
            self._write(f"{self._name}: {text}\n")
            return
        with self._lock:
            self._text = text
            if self._shown:
                self._write(f"\r\x1b[K{self._name}: {text}")

    def _show(self) -> None:
        with self._lock:
            if self._timer is not None:  # the fit may have ended meanwhile
                self._shown = True
                self._write(f"\r\x1b[K{self._name}: {self._text}")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _is_watched(stream: TextIO) -> bool:
    """Return whether a person may see what this part of the program writes."""
    mine = threading.current_thread() is threading.main_thread()
    return (
        mine
        and multiprocessing.current_process().name == "MainProcess"
        and stream is not None
        and hasattr(stream, "isatty")
        and stream.isatty()
    )
