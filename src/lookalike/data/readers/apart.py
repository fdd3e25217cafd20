"""Read files in a process of their own: some broken files of MATLAB end whatever process scipy reads them in."""

from __future__ import annotations

import faulthandler
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TypeVar

Content = TypeVar("Content")


def read_apart(read: Callable[[Path], Content], paths: Sequence[Path]) -> list[Content]:
    """What a function makes of each file.

    Args:
        read: a function of a module.
        paths: files, read in their order in one process.

    Raises:
        ValueError: as ``read``, and naming the file at which the process ended.
    """
    done: list[Content] = []
    forked = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=forked, initializer=faulthandler.disable) as pool:  # the line below says it
        try:
            for content in pool.map(read, paths):
                done.append(content)
        except BrokenProcessPool:
            raise ValueError(f"{paths[len(done)]} is broken: the process that reads it crashes") from None
    return done
