"""Fixtures for all tests."""

import shutil
from pathlib import Path

import pytest

from projects import ROOT, Project, make_project


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
