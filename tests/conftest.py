"""Fixtures for all tests."""

from pathlib import Path

import pytest

from projects import Project, make_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A copy of the workflow with a folder of pictures."""
    return make_project(tmp_path)
