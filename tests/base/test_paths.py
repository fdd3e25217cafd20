from __future__ import annotations

from pathlib import Path

import pytest

from lookalike.base import paths


def test_the_project_is_the_nearest_folder_with_snakefile_and_params(tmp_path, monkeypatch):
    for project in (tmp_path, tmp_path / "inner"):
        (project / "params").mkdir(parents=True)
        (project / "Snakefile").touch()
    (tmp_path / "inner" / "deep" / "params").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "inner" / "deep")
    assert paths.project_root() == tmp_path / "inner"
    monkeypatch.chdir(tmp_path)
    assert paths.project_root() == tmp_path


def test_a_line_for_the_project_leads_there_first_from_elsewhere(tmp_path, monkeypatch):
    root = tmp_path / "two words"
    (root / "params").mkdir(parents=True)
    (root / "Snakefile").touch()
    monkeypatch.chdir(root)
    assert paths.in_project("snakemake -n") == "snakemake -n"
    monkeypatch.chdir(root / "params")
    assert paths.in_project("snakemake -n") == f"cd '{root}' && snakemake -n"


def test_outside_of_every_project_it_is_the_checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert paths.project_root() == Path(__file__).resolve().parents[2]


def test_without_a_checkout_either_it_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "CHECKOUT", tmp_path / "site-packages")
    said = r"^\S+ is not in a project's folder, which holds Snakefile and params/; clone the repository, and call again"
    with pytest.raises(ValueError, match=said):
        paths.project_root()
    assert paths.project_or_here() == tmp_path


def test_the_environment_says_where_archives_are_before_the_configuration_does(monkeypatch):
    monkeypatch.setenv("LOOKALIKE_ARCHIVES", "/media/archives")
    assert paths.archives_of("data/archives") == "/media/archives"
    for nothing in (
        lambda: monkeypatch.setenv("LOOKALIKE_ARCHIVES", ""),
        lambda: monkeypatch.delenv("LOOKALIKE_ARCHIVES"),
    ):
        nothing()
        assert paths.archives_of("data/archives") == "data/archives"
