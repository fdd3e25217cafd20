"""What pictures look like: each decoded once, in several processes, before anything is trained."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lookalike.data.copies import perceptual_hash
from lookalike.data.pictures import read_picture

CHUNK = 32  # pictures that a process takes at once
REPORTS = 20  # lines of progress
DARK = round(4095 / 257)  # the brightest value of a picture of 12 bits in a file of 16


class Look(NamedTuple):
    """A picture at a look.

    Attributes:
        fault: why it cannot be read, empty if it can.
        dark: whether it uses at most a sixteenth of the range of its values.
        hash: its perceptual hash, if it has one.
    """

    fault: str = ""
    dark: bool = False
    hash: bytes | None = None


def looked_at(paths: Sequence[Path], *, processes: int = 1) -> dict[Path, Look]:
    """A look at each picture, in the order given; progress is printed.

    Args:
        paths: picture files.
        processes: number of pictures decoded at the same time.
    """
    looks: dict[Path, Look] = {}
    step, faults = max(CHUNK, len(paths) // REPORTS), 0
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("fork")) as pool:
        seen = pool.map(_look, paths, chunksize=CHUNK)
        for done, (path, look) in enumerate(zip(paths, seen, strict=True), start=1):
            looks[path] = look
            faults += bool(look.fault)
            if done % step == 0 or done == len(paths):
                print(f"{done:,} of {len(paths):,} pictures decoded, {faults} cannot be read", flush=True)
    return looks


def _look(path: Path) -> Look:
    try:
        picture = read_picture(path)
    except ValueError as error:
        return Look(fault=str(error).removeprefix(f"{path}: "))
    return Look(dark=int(np.asarray(picture).max()) <= DARK, hash=perceptual_hash(picture))
