"""Device and memory of this process, as torch and the system tell them."""

from __future__ import annotations

import platform
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lookalike.workflow.running.devices import device_files

if TYPE_CHECKING:  # importing it takes seconds, which stages without tensors need not spend
    import torch


def job_device() -> torch.device:
    """The device of a job: the only one that `own_device` left it, else the CPU."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def check_device(device: str | None) -> None:
    """Refuse a job whose device torch cannot use: `job_device` would give it the CPU, for days and without a word.

    A device in name, on a machine without any, leaves a job on the CPU: some set ``CUDA_VISIBLE_DEVICES`` everywhere.

    Args:
        device: as `own_device` yields it.

    Raises:
        ValueError: if there is a device and no CUDA.
    """
    import torch

    if device is not None and device_files() and not torch.cuda.is_available():
        raise ValueError(
            f"CUDA device {device} is there, but torch {torch.__version__} cannot use it: install a torch with CUDA "
            "and the driver that it wants (`nvidia-smi` tells yours), or set CUDA_VISIBLE_DEVICES= to take the CPU"
        )


def device_name(device: torch.device) -> str:
    """Name of a device; of the CPU its model, or its architecture where the system tells no model."""
    if device.type == "cuda":
        import torch

        return torch.cuda.get_device_name(device)
    return _processor_name()


def used_device() -> str:
    """Name of the device of this process' job: the processor where torch has not been imported."""
    return device_name(job_device()) if "torch" in sys.modules else _processor_name()


def device_peak_megabytes() -> float | None:
    """Largest memory that tensors of this process have taken on a CUDA device, ``None`` where it uses none."""
    if "torch" not in sys.modules:
        return None
    import torch

    taken = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0  # which begins no use of a device
    return round(taken / 1e6, 1) if taken else None


def _processor_name() -> str:
    path = Path("/proc/cpuinfo")
    model = (
        re.search(r"^model name\s*:\s*(.+)", path.read_text(encoding="utf-8"), re.MULTILINE) if path.is_file() else None
    )
    return model[1].strip() if model else platform.machine()


def resident_megabytes() -> float:
    """Memory that this process holds now.

    Raises:
        OSError: where the system has no ``/proc``.
    """
    return _status("VmRSS")


def peak_megabytes() -> float:
    """Largest memory that this process has held; unlike `resource`'s it does not begin with that of the caller.

    Raises:
        OSError: where the system has no ``/proc``.
    """
    return _status("VmHWM")


def _status(field: str) -> float:
    kibibytes = re.search(rf"{field}:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))
    if kibibytes is None:
        raise OSError(f"/proc/self/status has no {field}")
    return int(kibibytes[1]) * 1024 / 1e6
