"""The page on adding things, done as written in a copy of the project."""

import csv
import json
import re
import shutil

import pytest
import yaml

from lookalike.app.command import main
from lookalike.app.command.new import FILE, applied, blocks
from projects import ROOT, make_project
from workflow_calls import call

PAGE = (ROOT / "docs" / "adding.md").read_text()
OVERLAY = """
name: own
datasets:
  pictures: {layout: flat, folder: flat, stands_for: cub}
"""
LOSS = PAGE[PAGE.index("## A loss") : PAGE.index("## A method")]
CALL = "--cores 2 --configfile own.yaml --"


def means_of(project, table):
    """Means of a table by row and metric."""
    with (project.root / table).open() as stream:
        return {(cell["label"], cell["metric"]): cell["mean"] for cell in csv.DictReader(stream)}


def apply(page, root):
    """Do what a page says in a copy of the project."""
    for file, text in applied(page, root).items():
        (root / file).write_text(text)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy with all of the page, and only one row of the comparison beside the new ones, for the sake of time."""
    root = tmp_path_factory.mktemp("copy")
    project = make_project(root)
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    tables = root / "params/tables/comparison.yaml"
    kept = [line for line in tables.read_text().splitlines() if "- {label" not in line or "label: Margin," in line]
    tables.write_text("\n".join(kept) + "\n")
    (root / "docs").mkdir()
    (root / "docs/adding.md").write_text(PAGE)  # which the command reads
    apply(PAGE.replace(LOSS, ""), root)
    own = (root / "own.yaml").read_text()
    (root / "own.yaml").write_text(OVERLAY + own[own.index("recipe:") :])
    (root / "flat").mkdir()
    for picture in (root / "pictures").glob("*/*.png"):
        picture.rename(root / "flat" / f"{picture.parent.name}-{picture.name}")
    return project


@pytest.fixture(scope="module")
def made(copy):
    """The copy, once the page's files have been asked for."""
    files = ("tables/comparison.csv", "tables/example_1.csv", "figures/diml_boundary.png")
    call(copy, f"{CALL} {' '.join(f'results/own/{file}' for file in files)}")
    return copy


@pytest.mark.slow
def test_a_row_a_method_a_table_a_pooling_a_metric_a_layout_and_a_figure_work_at_first_try(made):
    found = means_of(made, "results/own/tables/comparison.csv")
    for label in ("Margin", "Unit", "Median", "NT-Xent"):
        assert float(found[label, "R@1"]) <= float(found[label, "MRR"]) <= 100
    with (made.root / "results/own/tables/example_1.csv").open() as stream:
        (cell,) = [cell for cell in csv.DictReader(stream) if cell["label"] == "Margin"]
    assert float(cell["published"]) == 60.0
    figure = json.loads((made.root / "results/own/figures/diml_boundary.json").read_text())
    assert figure["told"].startswith("# DIML, boundary")


@pytest.mark.slow
def test_a_loss_and_a_method_that_are_begun_by_their_command_train_nothing_but_themselves(made, monkeypatch, capsys):
    monkeypatch.chdir(made.root)
    assert main(["new", "loss", "closer"]) == main(["new", "method", "nearer"]) == 0
    told = capsys.readouterr().out
    assert "written: src/lookalike/losses/closer.py" in told and "written: src/lookalike/methods/nearer.py" in told
    table = "results/own/tables/comparison.csv"
    planned = call(made, f"-n {CALL} {table}")
    jobs = re.findall(r"Job \d+: ((?:Train|Evaluate|Assemble) \w+)", planned)
    own = ("closer", "nearer_margin")
    assert sorted(set(jobs)) == sorted(
        ["Assemble comparison", *(f"{job} {each}" for each in own for job in ("Train", "Evaluate"))]
    )

    before = means_of(made, table)
    call(made, f"{CALL} {table}")
    after = means_of(made, table)
    assert {label for label, _ in after.keys() - before.keys()} == {"Closer", "Nearer"}
    assert {"Margin", "Chance", "Untrained features"} <= {label for label, _ in before}
    assert {cell: after[cell] for cell in before} == before
    assert all(0 <= float(after[label, "R@1"]) <= 100 for label in ("Closer", "Nearer"))


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
def test_a_data_set_is_drawn_split_and_trained_on_and_belongs_to_its_scale(copy):
    call(copy, "--cores 2 -- data/splits/figurines_aviary.csv")
    with (copy.root / "data/splits/figurines_aviary.csv").open() as stream:
        assert {row["role"] for row in csv.DictReader(stream)} == {"train", "test"}
    planned = call(copy, "-n --cores 2 --printshellcmds rates --config scale=fair")
    assert "Try rates for compared_ntxent on figurines_birds" in planned
    planned = call(copy, "-n --cores 2 -- results/mini/metrics/wide_margin/figurines_aviary/seed0.json")
    assert "Train wide_margin on figurines_aviary" in planned
    copy.edit("params/scales/ci.yaml", "datasets:\n", "datasets:\n  figurines_aviary: {}\n")
    measured = "results/ci/metrics/compared_margin/figurines_aviary/seed0.json"
    call(copy, f"--cores 2 --config scale=ci -- {measured}")
    assert 0 < json.loads((copy.root / measured).read_text())["last"]["R@1"] <= 1


def test_rates_for_what_is_new_are_searched_as_at_mini():
    [fair] = [text for _, file, text in blocks(PAGE) if file == "params/scales/fair.yaml"]
    mini = yaml.safe_load((ROOT / "params/scales/mini.yaml").read_text())["rates"]
    assert yaml.safe_load(fair)["rates"] == mini


def test_a_method_takes_three_files_and_a_recipe():
    section = PAGE.split("## A method")[1].split("\n## ")[0]
    files = [file for _, file, _ in blocks(PAGE) if f"`{file}`" in section]
    code = {file for file in files if file.startswith("src/") and not file.endswith("method.py")}
    assert code == {
        "src/lookalike/workflow/training/methods/unit.py",
        "src/lookalike/methods/unit.py",
        "src/lookalike/methods/__init__.py",
    }


def test_every_file_that_the_page_names_is_there_or_is_made_by_it():
    new = {file for kind, file, _ in blocks(PAGE) if kind != "diff"}
    named = set(FILE.findall(PAGE)) - new
    assert [file for file in sorted(named) if not (ROOT / file).is_file()] == []


@pytest.mark.slow
def test_a_new_data_set_needs_no_line_beside_its_file_and_its_scale(project):
    for code in ("figurines", "lookalike/workflow/data/readers"):  # on which the stages of dvc.yaml depend
        (project.root / "src" / code).mkdir(parents=True)
        (project.root / "src" / code / "some.py").touch()
    generator = (
        "{preset: birds, seed: 7, train_classes: 2, test_classes: 2, images_per_class: [2], images_per_test_class: [2]}"
    )
    (project.root / "params/datasets/aviary.yaml").write_text(
        f"title: drawn\nlayout: cub\ngenerator: {generator}\nclasses: {{train: [1, 2], test: [3, 4]}}\nrecall_at: [1]\n"
    )
    project.edit("params/scales/ci.yaml", "datasets:\n", "datasets:\n  aviary: {}\n")
    done = project.run("--cores 1 --config scale=ci -- data/splits/aviary.csv")
    assert done.returncode == 0, done.stderr
    assert (project.root / "data/splits/aviary.csv").is_file()
    assert "drawn:\n  - aviary\n" in (project.root / "params/stages.yaml").read_text()
    log = (project.root / "logs/ci/download/aviary.log").read_text()
    assert "params/stages.yaml is written anew" in log
