"""Let a call of Snakemake go on where one was killed, and keep two living ones apart.

Snakemake locks its working directory by files that a killed process leaves behind, and then refuses to start. Here
every call also holds a lock of the kernel for as long as it lives. Whoever gets that lock for itself alone knows that
no other call is alive, and drops the files. Two living calls are told apart by Snakemake's own files as ever. Network
folders that keep no locks of the kernel, such as Lustre without its option ``flock``, leave that to the user.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lookalike.running.posix import fcntl

_held: list[int] = []  # open descriptors; the kernel drops their locks when this process ends


def drop_locks_of_the_dead(folder: Path = Path(".snakemake")) -> int:
    """Remove lock files of calls that are no longer alive.

    Args:
        folder: Snakemake's own folder of the working directory.

    Returns:
        How many files were removed.
    """
    folder.mkdir(exist_ok=True)
    descriptor = os.open(folder / "alive.lock", os.O_CREAT | os.O_RDWR)
    removed = 0
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass  # another call lives: its files stay, and Snakemake decides
    except OSError as error:
        os.close(descriptor)
        if any((folder / "locks").glob("*.lock")):
            line = f"{folder}: {error.strerror or error}, so a killed call cannot be told from one at work"
            print(f"{line}; if none is at work here, `snakemake --unlock`", file=sys.stderr, flush=True)
        return 0
    else:
        for path in (folder / "locks").glob("*.lock"):
            path.unlink()
            removed += 1
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    _held.append(descriptor)
    return removed
