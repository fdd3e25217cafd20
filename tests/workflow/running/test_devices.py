"""Devices are found without torch, and no two jobs get the same one."""

import os
import subprocess
import sys
from contextlib import ExitStack

import pytest
import torch

from lookalike.workflow.running.devices import loading_threads, own_device, visible_devices

HOLD = """
import sys, time
from pathlib import Path
from lookalike.workflow.running.devices import own_device
with own_device(1, Path(sys.argv[1])) as device:
    print(device, flush=True)
    time.sleep(30)
"""


def test_device_files_are_counted_where_nothing_else_is_said_as_cuda_does_whatever_their_names(tmp_path):
    assert visible_devices({}, tmp_path) == []
    for name in ("nvidia3", "nvidia10", "nvidia7", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert visible_devices({}, tmp_path) == ["0", "1", "2"]


LISTS = {
    "": [],
    "-1": [],
    "1": ["1"],
    "0, 3": ["0", "3"],
    # The list ends before the first name of no device.
    "NoDevFiles": [],
    "none": [],
    "0,-1,1": ["0"],
    "0,,1": ["0"],
    "2, none, 1": ["2"],
    "1,4,0": ["1"],
    # CUDA reads a number as far as it goes.
    " 2 ,1": ["2", "1"],
    "01,2gpu,+3": ["1", "2", "3"],
    # A device that is named twice hides all.
    "0,0": [],
    "1,2,01": [],
    "GPU-a,GPU-a": [],
    # All names are of the first one's kind.
    "GPU-8932f937,GPU-d72c4106": ["GPU-8932f937", "GPU-d72c4106"],
    "MIG-5c89a701,MIG-GPU-5c89a701/1/0": ["MIG-5c89a701", "MIG-GPU-5c89a701/1/0"],
    "GPU-8932f937,0": ["GPU-8932f937"],
    "0,GPU-8932f937": ["0"],
}


@pytest.mark.parametrize(("value", "devices"), LISTS.items())
def test_the_environment_decides_where_it_says_something_by_the_rule_of_cuda(tmp_path, monkeypatch, value, devices):
    for number in range(4):
        (tmp_path / f"nvidia{number}").touch()
    assert visible_devices({"CUDA_VISIBLE_DEVICES": value}, tmp_path) == devices
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    of_torch = torch.cuda._parse_visible_devices()  # what CUDA itself would say, but for how many there are
    assert [str(device) for device in of_torch][: len(devices)] == devices
    if "4" not in value:
        assert len(of_torch) == len(devices)


def test_a_number_counts_where_the_driver_has_no_files(tmp_path):
    assert visible_devices({"CUDA_VISIBLE_DEVICES": "4,7"}, tmp_path) == ["4", "7"]


@pytest.mark.parametrize("value", ["NoDevFiles", "none", "0,0"])
def test_where_no_device_is_named_jobs_ask_for_none_and_load_as_on_the_processor(monkeypatch, value):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert loading_threads() == 8
    with pytest.raises(ValueError, match="no CUDA device is visible"), own_device(1):
        pass


@pytest.mark.parametrize("allocation", [{}, {"SLURM_JOB_ID": "17"}], ids=["no scheduler", "one allocation of SLURM"])
def test_jobs_started_together_get_different_devices_and_a_killed_one_frees_its_own(allocation, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    for name, value in allocation.items():
        monkeypatch.setenv(name, value)
    jobs = [
        subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        held = [job.stdout.readline().strip() for job in jobs]
        assert sorted(held) == ["4", "7"]
        jobs[0].kill()
        jobs[0].wait()
        with own_device(1, tmp_path) as device:
            assert device == held[0]
    finally:
        for job in jobs:
            job.kill()
            job.wait()
            job.stdout.close()


def test_by_choice_a_device_takes_several_jobs_and_devices_fill_up_evenly(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    monkeypatch.setenv("LOOKALIKE_JOBS_PER_DEVICE", "2")
    jobs = []
    try:
        for _ in range(4):
            jobs.append(
                subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
            )
            jobs[-1].held = jobs[-1].stdout.readline().strip()
        assert [job.held for job in jobs] == ["4", "7", "4", "7"]
        jobs[1].kill()
        jobs[1].wait()
        with own_device(1, tmp_path) as device:
            assert device == "7"
    finally:
        for job in jobs:
            job.kill()
            job.wait()
            job.stdout.close()


@pytest.mark.parametrize("said", ["0", "-1", "two", "1.5"])
def test_a_number_of_jobs_that_no_device_can_take_is_refused(monkeypatch, said):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("LOOKALIKE_JOBS_PER_DEVICE", said)
    with pytest.raises(ValueError, match=rf"LOOKALIKE_JOBS_PER_DEVICE={said}: a device takes 1 job or more"):
        loading_threads()


@pytest.mark.parametrize(("name", "values"), [("SLURM_JOB_ID", ("17", "18")), ("SLURM_STEP_GPUS", ("2", "3"))])
def test_jobs_and_steps_of_slurm_take_devices_of_their_own_beside_others_of_their_number(
    name, values, tmp_path, monkeypatch
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    with ExitStack() as held:
        for value in values:
            monkeypatch.setenv(name, value)
            assert held.enter_context(own_device(1, tmp_path)) == "0"


def test_a_part_of_a_device_may_be_named_with_its_device(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-GPU-5c89a701/1/0")
    with own_device(1, tmp_path / "not there yet") as device:
        assert device == os.environ["CUDA_VISIBLE_DEVICES"] == "MIG-GPU-5c89a701/1/0"


def test_a_job_without_a_device_sees_none(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with own_device(0) as device:
        assert device is None
        assert visible_devices() == []


def test_impossible_wishes_are_refused(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(ValueError, match="no CUDA device is visible"), own_device(1):
        pass
    with pytest.raises(ValueError, match=r"gpu=2: a job uses 0 or 1"), own_device(2):
        pass


@pytest.mark.parametrize(
    ("cores", "devices", "expected"),
    [(16, 1, 16), (64, 1, 16), (16, 2, 8), (24, 4, 6), (2, 2, 2), (2, 0, 8)],
)
def test_a_job_beside_a_device_has_its_share_of_the_cores(monkeypatch, cores, devices, expected):
    monkeypatch.setattr(
        "lookalike.workflow.running.devices.visible_devices", lambda: [str(number) for number in range(devices)]
    )
    monkeypatch.setattr(
        "lookalike.workflow.running.devices.os.sched_getaffinity", lambda process: set(range(cores)), raising=False
    )
    assert loading_threads() == expected
    monkeypatch.setenv("LOOKALIKE_JOBS_PER_DEVICE", "2")
    assert loading_threads() == (max(2, min(16, cores // (2 * devices))) if devices else 8)
