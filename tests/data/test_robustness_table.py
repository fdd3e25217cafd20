"""``docs/robustness.md`` names tests that exist, and all of those that are about nothing else."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from lookalike.paths import project_root

TESTS = project_root() / "tests"
DOCUMENT = (project_root() / "docs" / "robustness.md").read_text()
ROWS = [line for line in DOCUMENT.splitlines() if line.startswith("| ") and not line.startswith("| Fault")]
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)(?:\[([^\]]+)\])?`")


@cache
def contents_of(file):
    """Names of the tests in a file, and the texts and names that can make up the ids of its parameters."""
    tree = ast.parse((TESTS / file).read_text())
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return {name for name in functions if name.startswith("test_")}, texts | functions | {"True", "False"}


def test_there_are_rows():
    assert len(ROWS) > 40


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_every_fault_names_tests_that_exist(row):
    fault, happens, named, *measured = (cell.strip() for cell in row.strip("|").split("|"))
    assert fault
    assert happens
    assert len(measured) <= 1
    assert all(measured), "the last outcome is empty"
    references, targets = NAMED.findall(named), re.findall(r"`(\.ci/\w+)`", named)
    assert len(references) == named.count("::")
    assert references or targets
    assert all((project_root() / target).is_file() for target in targets)
    for file, test, identifier in references:
        tests, texts = contents_of(file)
        assert test in tests, f"{file} has no {test}"
        parts = {identifier, *re.split("^(?:True|False)-", identifier)} if identifier else {""}
        assert not identifier or parts & texts, f"{file} has no {identifier!r}"


def test_every_test_of_robustness_stands_in_the_table():
    listed = {test for _, test, _ in NAMED.findall(DOCUMENT)}
    assert contents_of("data/test_robustness.py")[0] <= listed
