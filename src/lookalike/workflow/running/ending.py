"""End a job that is asked to: within seconds, and with its results so far on disk.

Nodes that are lent send SIGTERM some seconds before they are taken away. A stage hears it as `Terminated`, wherever it
is, so that what it holds is written on its way out; if it cannot listen, in a long call of a library, it is ended all
the same.
"""

from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psutil import Process

GRACE_S = 15.0  # for what a stage writes on its way out; whoever waits for it has some seconds more
SPARE_S = 5.0  # of these, for a process whose own processes did not end when they were told
AGAIN_S = 0.05  # until a signal is sent again that came where nothing can be raised, or before its job had begun


class Terminated(BaseException):
    """The process was told to end. No `Exception`, so that nobody takes it for a fault of a stage."""


@contextmanager
def listening() -> Iterator[None]:
    """Raise `Terminated` in the block when SIGTERM comes, and end the process if the block then takes too long.

    Outside of the main thread, where Python hears no signals, this does nothing. Where an exception would be lost, in
    the finaliser of an object, it is raised a little later.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    watch = threading.Timer(GRACE_S, os._exit, args=(1,))
    watch.daemon = True

    def end(number: int, frame: FrameType | None) -> None:
        if _is_finalising(frame):
            threading.Timer(AGAIN_S, os.kill, args=(os.getpid(), number)).start()
            return
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # loading processes hear it as well: their end is no fault now
        watch.start()
        raise Terminated

    earlier = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        watch.cancel()
        signal.signal(signal.SIGTERM, earlier)


def _is_finalising(frame: FrameType | None) -> bool:
    """Whether a frame was called by a finaliser, such as that of torch's loader: Python drops exceptions of one."""
    while frame is not None:
        if frame.f_code.co_name == "__del__" or frame.f_code.co_filename == weakref.__file__:
            return True
        frame = frame.f_back
    return False


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let signals wait while something is written, in the main thread; those from the block are heard behind it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[tuple[int, FrameType | None]] = []
    numbers = (signal.SIGTERM, signal.SIGCHLD)
    earlier: dict[int, Any] = {
        number: signal.signal(number, lambda number, frame: waiting.append((number, frame))) for number in numbers
    }
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
        for number, frame in waiting:
            if callable(earlier[number]):
                earlier[number](number, frame)
            elif number == signal.SIGTERM and earlier[number] == signal.SIG_DFL:
                os.kill(os.getpid(), number)


@contextmanager
def passing_on(stop: Callable[[], None]) -> Iterator[None]:
    """As `pass_on`, in the block alone."""
    earlier = signal.getsignal(signal.SIGTERM)
    pass_on(stop)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, earlier)


def tell_descendants(*, besides: Set[int] = frozenset()) -> list[Process]:
    """Send SIGTERM to the processes that this one has started, and to those that they have started.

    Args:
        besides: processes of which neither they nor what they have started is told.

    Returns:
        Those that were told.
    """
    import psutil

    first = [child for child in psutil.Process().children() if child.pid not in besides]
    told: list[Process] = []
    for child in first:
        with suppress(psutil.NoSuchProcess):
            told += [child, *child.children(recursive=True)]
    for process in told:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    return told


def end_descendants() -> None:
    """Ask the processes that this one has started to end, and theirs, and kill those that do not within seconds."""
    import psutil

    _, left = psutil.wait_procs(tell_descendants(), timeout=GRACE_S - SPARE_S)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def pass_on(stop: Callable[[], None]) -> None:
    """Call ``stop`` as well when this process gets SIGTERM, behind the handler that is there already.

    Args:
        stop: what is to be done.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # where Python hears no signals
    earlier = signal.getsignal(signal.SIGTERM)

    def handle(number: int, frame: FrameType | None) -> None:
        if callable(earlier):
            earlier(number, frame)
        stop()

    signal.signal(signal.SIGTERM, handle)
