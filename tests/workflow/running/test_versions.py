"""A project's repository is the one that tracks it, and none that it only lies in."""

import os
import subprocess

import pytest

from lookalike.workflow.running.versions import commit, ignores, is_own


def git(folder, *words):
    names = {f"GIT_{who}_{what}": "somebody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["git", *words], cwd=folder, env=os.environ | names, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path):
    """A folder with a project, below another one that is a repository with a commit of its own."""
    root = tmp_path / "outer" / "project"
    root.mkdir(parents=True)
    (root / "dvc.yaml").touch()
    (root.parent / "readme").touch()
    git(root.parent, "init", "--quiet")
    git(root.parent, "add", "readme")
    git(root.parent, "commit", "--quiet", "--message", "another's")
    return root


def test_a_repository_that_the_project_only_lies_in_is_anothers_and_says_nothing_of_its_commit(project):
    assert not is_own(project)
    assert commit(project) == "unknown"


def test_a_repository_that_tracks_the_project_is_its_own_though_it_begins_above(project):
    git(project, "add", "dvc.yaml")
    git(project, "commit", "--quiet", "--message", "the project")
    assert is_own(project)
    assert len(commit(project)) == 12
    (project / "dvc.yaml").write_text("stages: {}")
    assert commit(project).endswith("-dirty")


def test_a_new_repository_that_has_nothing_of_the_project_yet_is_not_its_own(project):
    git(project, "init", "--quiet")
    assert not is_own(project)


def test_without_git_a_project_is_without_a_repository(project, monkeypatch):
    git(project, "add", "dvc.yaml")
    monkeypatch.setenv("PATH", str(project))
    assert not is_own(project)
    assert not ignores(project, "dvc.yaml")
    assert commit(project) == "unknown"


def test_a_repository_of_somebody_else_whom_git_does_not_trust_is_as_none(project):
    git(project, "add", "dvc.yaml")
    if os.getuid():
        pytest.skip("files cannot be given away here")
    for folder in (project.parent, project, project.parent / ".git"):
        os.chown(folder, 12345, 12345)
    assert not is_own(project)


def test_a_file_is_ignored_by_a_rule_whether_or_not_it_was_added(project):
    git(project, "add", "dvc.yaml")
    assert not ignores(project, "dvc.yaml", "dvc.lock")
    (project / ".gitignore").write_text("*.lock\n")
    assert ignores(project, "dvc.yaml", "dvc.lock")
    assert not ignores(project, "dvc.yaml")
