"""Keep what jobs print off the terminal while a call shows its own state there."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TextIO


class Terminal:
    """The terminal of a call, on which nothing but this process writes between `take` and `give_back`.

    Jobs inherit the file descriptor of standard error, so all that they and their children print there, also as they
    are interrupted, would stand between or after the lines of the call. It is read from a pipe instead.

    Attributes:
        stream: to write to.
        said: told each line that a job has printed.
    """

    def __init__(self, said: Callable[[str], None]) -> None:
        self.stream: TextIO = sys.stderr
        self.said = said
        self._usual: TextIO | None = None
        self._rest = b""
        self._lock = threading.Lock()

    def take(self) -> None:
        """Begin: only this process' own prints reach the terminal from now on."""
        try:
            terminal = os.dup(2)
        except OSError:  # a process without standard error has no lines to keep apart
            return
        sys.stderr.flush()
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.dup2(writing, 2)
        os.close(writing)
        self._usual = sys.stderr
        # As Python's own, which can print the name of any file.
        encoding, errors = sys.stderr.encoding, "backslashreplace"
        self.stream = sys.stderr = os.fdopen(terminal, "w", buffering=1, encoding=encoding, errors=errors)

    def read(self) -> None:
        """Pass on what jobs have printed up to now."""
        if self._usual is None:
            return
        with self._lock:
            while True:
                try:
                    piece = os.read(self._reading, 2**16)
                except BlockingIOError:
                    return
                if not piece:
                    return
                *lines, self._rest = (self._rest + piece).split(b"\n")
                for line in lines:
                    self.said(line.decode(errors="replace"))

    def give_back(self) -> None:
        """End: standard error is the terminal again, for everybody."""
        if self._usual is None:
            return
        self.read()
        if self._rest:
            self.said(self._rest.decode(errors="replace"))
        self.stream.flush()
        os.dup2(self.stream.fileno(), 2)
        os.close(self._reading)
        if sys.stderr is self.stream:
            sys.stderr = self._usual
        self.stream, self._usual = self._usual, None
