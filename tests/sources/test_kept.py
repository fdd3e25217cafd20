"""Answers about the sources outlive a process, but no edit of a source."""

import sys

import pytest

from lookalike.sources import kept as kept_module
from lookalike.sources import trees
from lookalike.sources.kept import answers, kept


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "lookalike"
    folder.mkdir()
    (folder / "a.py").write_text("A = 1\n")
    monkeypatch.setattr(trees, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(kept_module, "atexit", Leaving())
    answers.cache_clear()
    yield folder
    answers.cache_clear()


class Leaving:
    """Instead of the end of the process."""

    def register(self, function):
        pass


def as_new_process():
    answers(trees.ROOT).write()
    answers.cache_clear()


def refuse():
    raise AssertionError("asked although the answer is known")


def files(package):
    return sorted((package / "__pycache__").glob("answers-*.json"))


def test_an_answer_is_found_once_for_all_processes(package):
    assert kept("digest of a", lambda: "1") == "1"
    assert kept("digest of a", refuse) == "1"
    as_new_process()
    assert kept("digest of a", refuse) == "1"


def test_an_edit_of_any_source_begins_anew_and_leaves_no_older_file(package):
    kept("digest of a", lambda: "1")
    as_new_process()
    (before,) = files(package)
    (package / "a.py").write_text("A = 2\n")
    assert kept("digest of a", lambda: "2") == "2"
    as_new_process()
    (after,) = files(package)
    assert after != before


@pytest.mark.parametrize("change", ["renamed", "added", "removed"])
def test_a_file_more_a_file_less_and_another_name_are_edits(package, change):
    (package / "b.py").write_text("B = 1\n")
    before = trees.state()
    if change == "renamed":
        (package / "b.py").rename(package / "c.py")
    elif change == "added":
        (package / "c.py").write_text("")
    else:
        (package / "b.py").unlink()
    assert trees.state() != before


def test_an_answer_found_while_a_source_was_edited_is_not_kept(package):
    kept("digest of a", lambda: "1")
    (package / "a.py").write_text("A = 2\n")
    as_new_process()
    assert files(package) == []


def test_two_processes_keep_the_answers_of_both(package):
    first, second = kept_module._Answers(package / "__pycache__"), kept_module._Answers(package / "__pycache__")
    first.by_question["a"], second.by_question["b"] = "1", "2"
    first.write()
    second.write()
    assert kept("a", refuse) + kept("b", refuse) == "12"


@pytest.mark.parametrize("content", ["", "{", "[1]", b"\xff"])
def test_a_spoiled_file_is_found_again(package, content):
    kept("digest of a", lambda: "1")
    as_new_process()
    (file,) = files(package)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert kept("digest of a", lambda: "1") == "1"
    as_new_process()
    assert kept("digest of a", refuse) == "1"


def test_an_error_is_not_kept(package):
    with pytest.raises(ZeroDivisionError):
        kept("digest of a", lambda: str(1 // 0))
    assert kept("digest of a", lambda: "1") == "1"


def test_nothing_is_written_where_python_writes_no_bytecode(package, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    kept("digest of a", lambda: "1")
    as_new_process()
    assert files(package) == []


def test_a_package_that_cannot_be_written_is_no_error(package):
    (package / "__pycache__").write_text("a file where the folder would be")
    kept("digest of a", lambda: "1")
    as_new_process()
    assert kept("digest of a", lambda: "1") == "1"
