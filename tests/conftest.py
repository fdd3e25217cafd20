"""Fixtures for all tests."""

import os
import shutil
from pathlib import Path

import pytest

from projects import ROOT, Project, make_project


def pytest_configure(config: pytest.Config) -> None:
    """Set what holds for all processes of the tests.

    With several of them, modules are handed out as they are sorted below, and not the ones with many tests first. Each
    takes one thread, as a stage does without a device: of tensors as small as those here, a second one costs more time
    than it saves, and with two processes on two cores four of them wait for each other. They compute on the processor,
    where every bit is promised; a device is for the tests marked `gpu`, which are asked for by `-m gpu`.
    """
    config.option.loadscopereorder = False
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported
    if Path("/dev/nvidiactl").exists() and "gpu" not in config.option.markexpr:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with whole workflows: one of them running alone at the end would leave the other processes idle."""
    items.sort(key=lambda item: "workflow" not in item.path.parts)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A copy of the workflow with a folder of pictures."""
    return make_project(tmp_path)


@pytest.fixture
def params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the parameter files to change, in a project of its own."""
    for part in ("params", "workflow"):
        shutil.copytree(ROOT / part, tmp_path / part)
    shutil.copy(ROOT / "Snakefile", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "params"
