"""A project whose sources are not those that are imported is told once, as edits there would do nothing."""

import shutil

import pytest

from lookalike.base.paths import PACKAGE
from lookalike.workflow.settings.sources.trees import other_sources


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "params").mkdir()
    (tmp_path / "Snakefile").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_project_without_sources_or_with_those_imported_has_nothing_to_tell(project):
    assert other_sources() == ""
    (project / "src").symlink_to(PACKAGE.parent)
    assert other_sources() == ""


def test_equal_copies_are_silent_and_one_changed_line_is_told(project):
    copy = project / "src" / "lookalike"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    assert other_sources() == ""
    with (copy / "text.py").open("a") as stream:
        stream.write("# mine\n")
    assert other_sources().startswith(f"lookalike is imported from {PACKAGE}, and {copy} is another one")
