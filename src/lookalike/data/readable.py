"""Whether pictures can be read: each decoded once, in several processes, before anything is trained."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from lookalike.data.pictures import read_picture

CHUNK = 32  # pictures that a process takes at once
REPORTS = 20  # lines of progress


def unreadable(paths: Sequence[Path], *, processes: int = 1) -> dict[Path, str]:
    """Pictures that cannot be decoded, each with the reason, in the order given; progress is printed.

    Args:
        paths: picture files.
        processes: number of pictures decoded at the same time.
    """
    faults: dict[Path, str] = {}
    step = max(CHUNK, len(paths) // REPORTS)
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("fork")) as pool:
        for done, (path, fault) in enumerate(
            zip(paths, pool.map(_fault, paths, chunksize=CHUNK), strict=True), start=1
        ):
            if fault:
                faults[path] = fault
            if done % step == 0 or done == len(paths):
                print(f"{done:,} of {len(paths):,} pictures decoded, {len(faults)} cannot be read", flush=True)
    return faults


def _fault(path: Path) -> str:
    """Why a picture cannot be read, empty if it can."""
    try:
        read_picture(path)
    except ValueError as error:
        return str(error).removeprefix(f"{path}: ")
    return ""
