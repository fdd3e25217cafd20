"""GPUs of the machine, found without importing torch, and the one that a job may use.

Snakemake limits how many GPU jobs run at once but does not tell them apart: jobs started together would all pick
device 0. Each job therefore takes the first free place by a file lock, which the kernel drops when the job dies. A
device has one place, or as many as the variable `SHARING` says: small trainings leave most of a large device idle.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl as fcntl
except ModuleNotFoundError:
    raise ImportError(
        "lookalike's workflow needs Linux or macOS: this system has no fcntl and no fork (on Windows, use WSL); "
        "its methods and losses need neither"
    ) from None

SHARING = "LOOKALIKE_JOBS_PER_DEVICE"
# What SLURM names an allocation by, and what of it a step has: devices of another one may have the same numbers.
ALLOCATION = ("SLURM_JOB_ID", "SLURM_STEP_GPUS")


def visible_devices(environment: Mapping[str, str] = os.environ, device_folder: Path = Path("/dev")) -> list[str]:
    """Identifiers of the CUDA devices this process may use.

    Args:
        environment: ``CUDA_VISIBLE_DEVICES`` in it decides where it is set, by CUDA's own rule. The list ends before
            the first name of no device: ``-1``, ``none``, a number too large. A device that is named twice hides all.
        device_folder: where the driver's device files are, ``nvidia0``, ``nvidia1``, ...

    Returns:
        Identifiers as ``CUDA_VISIBLE_DEVICES`` takes them; empty where there is no device.
    """
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    # Counted, as CUDA does: a container keeps the host's name of a file, and may have nvidia3 alone.
    there = device_files(device_folder)
    if chosen is None:
        return [str(number) for number in range(there)]
    kind = chosen[:4] if chosen.startswith(("GPU-", "MIG-")) else ""  # all names are of the first one's kind
    devices: list[str] = []
    for name in chosen.split(","):
        number = re.match(r"\s*\+?(\d+)", name)  # CUDA reads `1gpu` as 1
        if kind:
            device = name if name.startswith(kind) else ""
        else:  # a driver without files, as that of WSL, does not tell how many there are
            device = str(int(number[1])) if number and (int(number[1]) < there or not there) else ""
        if not device:
            break
        if device in devices:
            return []
        devices.append(device)
    return devices


def device_files(folder: Path = Path("/dev")) -> int:
    """Number of devices that the driver has files of."""
    return sum(path.name.removeprefix("nvidia").isdigit() for path in folder.glob("nvidia[0-9]*"))


def jobs_per_device() -> int:
    """Number of jobs that a device takes at once.

    Raises:
        ValueError: if the variable `SHARING` is no number of jobs.
    """
    said = os.environ.get(SHARING, "") or "1"
    if not said.isdecimal() or int(said) < 1:
        raise ValueError(f"{SHARING}={said}: a device takes 1 job or more at once, such as 2")
    return int(said)


def cores_at_hand() -> int:
    """Cores that this process may use: a container or a scheduler may leave it fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def loading_threads() -> int:
    """Cores of a job beside a device: its share of this machine's, or 8 where another machine will run it.

    Raises:
        ValueError: as `jobs_per_device`.
    """
    devices = len(visible_devices()) * jobs_per_device()
    return max(2, min(16, cores_at_hand() // devices)) if devices else 8


@contextmanager
def own_device(wanted: int, lock_folder: Path | None = None) -> Iterator[str | None]:
    """Hold a place on one device for as long as the context lasts, and hide all others from CUDA.

    Must be entered before CUDA is first used in this process. Waits while every place is taken, by jobs of this user
    and, under SLURM, of this allocation.

    Args:
        wanted: devices asked for, 0 or 1. With 0 CUDA is hidden altogether.
        lock_folder: where the folder with the locks lies; on a local disk, since network file systems do not keep such
            locks.

    Yields:
        The identifier of the device, ``None`` for a job without one.

    Raises:
        ValueError: if more than one device is asked for, or one where there is none; as `jobs_per_device`.
    """
    devices = visible_devices()
    if wanted not in (0, 1):
        raise ValueError(f"gpu={wanted}: a job uses 0 or 1 devices")
    if wanted == 0:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        yield None
        return
    if not devices:
        raise ValueError("gpu=1, but no CUDA device is visible")
    parts = ["lookalike-devices", str(os.getuid()), *(os.environ[name] for name in ALLOCATION if name in os.environ)]
    folder = (lock_folder or Path(tempfile.gettempdir())) / "-".join(parts)
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, device = _first_free(devices, folder)
    try:
        os.environ["CUDA_VISIBLE_DEVICES"] = device
        yield device
    finally:
        os.close(descriptor)


def _first_free(devices: list[str], folder: Path) -> tuple[int, str]:
    places = [(place, device) for place in range(jobs_per_device()) for device in devices]  # devices fill up evenly
    while True:
        for place, device in places:
            name = device.replace("/", "_")  # parts of a device are named with it by older drivers
            descriptor = os.open(folder / (f"{name}.{place}.lock" if place else f"{name}.lock"), os.O_CREAT | os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return descriptor, device
            except BlockingIOError:
                os.close(descriptor)
        time.sleep(0.2)
