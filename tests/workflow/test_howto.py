"""The README's how-to for a loss, done as it is written there in a copy of the project."""

import csv
import re
import shutil

import pytest

from projects import ROOT, make_project
from workflow_calls import call

CALL = "--cores 2 tables --configfile own.yaml"


@pytest.fixture(scope="module")
def steps():
    """What the README says goes where: the new file, and lines by the file that they go into."""
    text = re.search(r"^- \*\*a loss\*\*:(.*?)^- \*\*", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)[1]
    code = re.search(r"^  ```python\n(.*?)^  ```", text, re.DOTALL | re.MULTILINE)[1]
    spans = re.findall(r"`([^`]+)`", re.sub(r"^  ```.*?^  ```", "", text, flags=re.DOTALL | re.MULTILINE))
    return re.sub(r"^  ", "", code, flags=re.MULTILINE), [re.sub(r"\s+", " ", span) for span in spans]


@pytest.fixture
def copy(tmp_path):
    """A copy whose table of methods has a single row, for the sake of time."""
    project = make_project(tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    tables = tmp_path / "params/tables/comparison.yaml"
    kept = [line for line in tables.read_text().splitlines() if "- {label" not in line or "label: Margin," in line]
    tables.write_text("\n".join(kept) + "\n")
    return project


def insert(project, file, below, line):
    """Put a line below the first one that ends so."""
    text = (project.root / file).read_text()
    assert below in text, f"{file} has no line that ends in {below!r}"
    (project.root / file).write_text(text.replace(below, f"{below}{line}\n", 1))


@pytest.mark.slow
def test_a_loss_as_the_readme_adds_it_trains_nothing_but_itself(copy, steps):
    call(copy, CALL)

    code, (new, losses, line, dictionary, entry, recipes, under, recipe, tables, rows, row, *_) = steps
    assert (dictionary, under, rows) == ("LOSSES", "recipes:", "rows:")
    (copy.root / new).write_text(code)
    insert(copy, losses, "from torch import nn\n\n", line)
    insert(copy, losses, "LOSSES: dict[str, type[nn.Module]] = {\n", f"    {entry}")
    insert(copy, recipes, "recipes:\n", f"  {recipe}")
    insert(copy, tables, "rows: &rows\n", f"    {row}")

    planned = call(copy, f"-n {CALL}")
    jobs = re.findall(r"Job \d+: ((?:Train|Embed \w+ with|Evaluate|Assemble) \w+)", planned)
    assert sorted(set(jobs)) == ["Assemble comparison", "Embed pictures with pull", "Evaluate pull", "Train pull"]

    call(copy, CALL)
    with (copy.root / "results/own/tables/comparison.csv").open() as stream:
        cells = {cell["label"]: cell["mean"] for cell in csv.DictReader(stream)}
    assert set(cells) == {"Margin", "Pull", "Chance", "Untrained features"}
    assert 0 <= float(cells["Pull"]) <= 100


def test_the_readme_calls_the_loss_how_to_by_names_that_exist(steps):
    _, spans = steps
    files = [span for span in spans if span.startswith(("src/", "params/"))][1:]
    assert [file for file in files if not (ROOT / file).is_file()] == []
