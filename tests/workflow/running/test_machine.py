"""What this process runs on and holds of it."""

import mmap
import platform
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from lookalike.workflow.running import machine
from lookalike.workflow.running.machine import check_device, device_name, job_device, peak_megabytes, resident_megabytes

CPU = torch.device("cpu")


def test_without_a_device_to_be_seen_a_job_computes_on_the_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert job_device() == CPU


@pytest.mark.parametrize(
    ("device", "files", "usable", "refused"),
    [("0", 1, False, True), ("0", 1, True, False), ("0", 0, False, False), (None, 1, False, False)],
    ids=["no torch for it", "all is well", "a device in name", "a job without a device"],
)
def test_a_device_that_torch_cannot_use_is_no_reason_to_take_the_cpu(device, files, usable, refused, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: usable)
    monkeypatch.setattr(machine, "device_files", lambda: files)
    with pytest.raises(ValueError, match=r"^CUDA device 0 is there, but torch .* use it") if refused else nullcontext():
        check_device(device)


@pytest.mark.gpu
def test_with_a_device_a_job_computes_there_and_the_device_says_its_name():
    assert job_device().type == "cuda"
    assert device_name(job_device()) == torch.cuda.get_device_name()


def test_a_processor_says_its_model(tmp_path, monkeypatch):
    information = tmp_path / "cpuinfo"
    information.write_text("processor\t: 0\nmodel\t\t: 85\nmodel name\t: Made-up 9000 @ 2.1GHz\nflags\t: fpu\n")
    monkeypatch.setattr(machine, "Path", lambda _: information)
    assert device_name(CPU) == "Made-up 9000 @ 2.1GHz"


@pytest.mark.parametrize("content", [None, "processor\t: 0\n"])
def test_a_processor_without_a_model_says_its_architecture(content, tmp_path, monkeypatch):
    information = tmp_path / "cpuinfo"
    if content is not None:
        information.write_text(content)
    monkeypatch.setattr(machine, "Path", lambda _: information)
    assert device_name(CPU) == platform.machine()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system tells no memory of a process")
def test_memory_held_and_the_largest_follow_what_is_allocated_and_freed():
    before = resident_megabytes()
    # Asked of the system: torch may hand out pages that an earlier test gave back and the process still holds.
    held = mmap.mmap(-1, 160_000_000)
    for start in range(0, len(held), mmap.PAGESIZE):
        held[start] = 1
    grown = resident_megabytes() - before
    assert 150 < grown < 200
    peak = peak_megabytes()
    held.close()
    assert resident_megabytes() < before + 50
    assert peak_megabytes() == pytest.approx(peak, abs=5)
    assert peak >= before + 150


def test_a_field_that_the_system_does_not_have_is_named(tmp_path, monkeypatch):
    status = tmp_path / "status"
    status.write_text("Name:\tpython\n")
    monkeypatch.setattr(machine, "Path", lambda _: status)
    with pytest.raises(OSError, match=r"/proc/self/status has no VmRSS$"):
        resident_megabytes()
