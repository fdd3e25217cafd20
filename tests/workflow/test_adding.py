"""The page on adding things, done as it is written there in a copy of the project."""

import csv
import json
import re
import shutil

import pytest

from projects import ROOT, make_project
from workflow_calls import call

PAGE = (ROOT / "docs" / "adding.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`((?:src|params|dvc)[\w./]*\.(?:py|yaml|csv))`")
OVERLAY = """
name: own
datasets:
  pictures: {layout: flat, folder: flat, stands_for: cub}
"""


def blocks():
    """Kind, file and text of every block; the file is the last one that is named before."""
    for block in BLOCK.finditer(PAGE):
        yield block[1], FILE.findall(PAGE[: block.start()])[-1], block[2]


def changed(text, block):
    """A text in which a block's lines with ``-`` or a space have made way for those with ``+`` or a space."""
    lines = [(line[:1], line[1:]) for line in block.splitlines()]
    old = [line for mark, line in lines if mark != "+"]
    new = [line for mark, line in lines if mark != "-"]
    if not old:
        return text + "".join(f"{line}\n" for line in new)
    before = "\n".join(["", *old])
    assert f"\n{text}".count(before) == 1, before
    return f"\n{text}".replace(before, "\n".join(["", *new]))[1:]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy with all of the page, and only one row of the comparison beside the new ones, for the sake of time."""
    root = tmp_path_factory.mktemp("copy")
    project = make_project(root)
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    tables = root / "params/tables/comparison.yaml"
    kept = [line for line in tables.read_text().splitlines() if "- {label" not in line or "label: Margin," in line]
    tables.write_text("\n".join(kept) + "\n")
    for kind, file, text in blocks():
        path = root / file
        if kind != "diff":
            assert not path.exists(), f"{file} exists already"
            path.write_text(text)
        else:
            path.write_text(changed(path.read_text(), text))
    own = (root / "own.yaml").read_text()
    (root / "own.yaml").write_text(OVERLAY + own[own.index("recipe:") :])
    (root / "flat").mkdir()
    for picture in (root / "pictures").glob("*/*.png"):
        picture.rename(root / "flat" / f"{picture.parent.name}-{picture.name}")
    return project


@pytest.mark.slow
def test_a_row_a_method_a_table_a_pooling_a_metric_a_layout_and_a_figure_work_at_first_try(copy):
    made = ("tables/comparison.csv", "tables/example_1.csv", "figures/diml_boundary.png")
    call(copy, f"--cores 2 --configfile own.yaml -- {' '.join(f'results/own/{file}' for file in made)}")
    with (copy.root / "results/own/tables/comparison.csv").open() as stream:
        cells = list(csv.DictReader(stream))
    assert {"Margin", "Unit", "Median", "NT-Xent"} <= {cell["label"] for cell in cells}
    found = {(cell["label"], cell["metric"]): float(cell["mean"]) for cell in cells if cell["mean"]}
    for label in ("Margin", "Unit", "Median", "NT-Xent"):
        assert found[label, "R@1"] <= found[label, "MRR"] <= 100
    with (copy.root / "results/own/tables/example_1.csv").open() as stream:
        (cell,) = [cell for cell in csv.DictReader(stream) if cell["label"] == "Margin"]
    assert float(cell["published"]) == 60.0
    figure = json.loads((copy.root / "results/own/figures/diml_boundary.json").read_text())
    assert figure["told"].startswith("# DIML, boundary")


@pytest.mark.nightly
@pytest.mark.slow
def test_an_explainer_is_measured_by_its_name(copy):
    made = "results/own/explanations/compared_margin/pictures/nearest-seed0.json"
    call(copy, f"--cores 2 --configfile own.yaml -- {made}")
    measures = json.loads((copy.root / made).read_text())
    assert measures["method"] == "nearest" and len(measures["values"]["partner"]) == 24
    assert measures["reasons"]["gap"] == "the method has no sum"
    planned = call(copy, "-n --cores 2 -- explanations")
    assert "Explain compared_proxy_anchor on figurines_birds by nearest, seed 0" in planned


@pytest.mark.nightly
@pytest.mark.slow
def test_a_data_set_is_drawn_and_split_and_belongs_to_its_scale(copy):
    call(copy, "--cores 2 -- data/splits/figurines_aviary.csv")
    with (copy.root / "data/splits/figurines_aviary.csv").open() as stream:
        assert {row["role"] for row in csv.DictReader(stream)} == {"train", "test"}
    planned = call(copy, "-n --cores 2 --logger-lookalike-full rates --config scale=fair")
    assert "for compared_ntxent on figurines_birds, seed 101" in planned
    planned = call(copy, "-n --cores 2 -- results/mini/metrics/wide_margin/figurines_aviary/seed0.json")
    assert "Train wide_margin on figurines_aviary" in planned


def test_a_method_takes_three_files_and_a_recipe():
    section = PAGE.split("## A method")[1].split("\n## ")[0]
    files = [file for _, file, _ in blocks() if f"`{file}`" in section]
    code = {file for file in files if file.startswith("src/") and not file.endswith("method.py")}
    assert code == {
        "src/lookalike/learners/unit.py",
        "src/lookalike/methods/unit.py",
        "src/lookalike/methods/__init__.py",
    }


def test_every_file_that_the_page_names_is_there_or_is_made_by_it():
    new = {file for kind, file, _ in blocks() if kind != "diff"}
    named = set(FILE.findall(PAGE)) - new
    assert [file for file in sorted(named) if not (ROOT / file).is_file()] == []
