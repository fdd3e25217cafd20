"""What is begun under a name of one's own: whole, twice, or not at all."""

import re
import shutil
import subprocess

import pytest

from lookalike.app.command import main
from lookalike.app.command.new import KINDS, PAGE, renamed
from projects import ROOT
from workflow_calls import call


@pytest.fixture
def checkout(project, monkeypatch):
    """A project with the code and the page, where the call is."""
    for part in ("src", "docs"):
        shutil.copytree(
            ROOT / part, project.root / part, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
        )
    monkeypatch.chdir(project.root)
    return project


def files(root):
    """Every file by its path, with its text."""
    parts = [root / part for part in ("src", "params", "docs")]
    return {path: path.read_bytes() for part in parts for path in part.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_two_of_each_kind_are_planned_by_the_lines_that_are_printed(checkout, capsys):
    for kind in KINDS:
        for name in (f"my_{kind}", "second"):
            name = f"{name}_set" if kind == "dataset" else name if kind == "loss" else f"{name}_way"
            assert main(["new", kind, name]) == 0
            *told, line = capsys.readouterr().out.splitlines()
            assert all((checkout.root / each.partition(": ")[2]).is_file() for each in told[:-1])
            planned = call(checkout, line.removeprefix("snakemake").replace("--cores all", "-n --cores 2"))
            assert re.search(rf"(Train|Split) {name}", planned)


def test_imports_are_in_order_whatever_the_name(checkout):
    shutil.copy(ROOT / "pyproject.toml", checkout.root)
    for kind, name in (("loss", "aside"), ("method", "yonder")):
        assert main(["new", kind, name]) == 0
    subprocess.run(["ruff", "check", "--quiet", "--select", "I", "src"], check=True)


def test_each_form_of_a_name_is_taken_and_no_other_word():
    section = "pull pull_margin PullLoss PULL {Pull, pull} pulled pullers bullpull"
    expected = "my_loss my_loss_margin MyLossLoss MY_LOSS {MyLoss, my_loss} pulled pullers bullpull"
    assert renamed(section, "pull", "my_loss") == expected


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("loss", "margin", "loss 'margin': there is a loss margin already; another name would be right"),
        ("loss", "compared_margin", "loss 'compared_margin': there is a recipe compared_margin already"),
        ("method", "diml", "method 'diml': there is a method diml already"),
        ("dataset", "cub", "dataset 'cub': there is a dataset cub already"),
        ("loss", "MyLoss", "'MyLoss' is no name for a loss: small letters, digits and underscores, such as my_loss"),
        ("loss", "class", "'class' is no name for a loss"),
        ("loss", "true", "'true' is no name for a loss"),
        ("method", "null", "'null' is no name for a method"),
        ("loss", "../up", "'../up' is no name for a loss"),
        ("loss", "proxy", "src/lookalike/losses/proxy.py exists already; another name would be right"),
        ("los", "x", "unknown 'los', did you mean 'loss'?"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_is_written(checkout, capsys, kind, name, said):
    before = files(checkout.root)
    try:
        status = main(["new", kind, name])
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert said in capsys.readouterr().err
    assert files(checkout.root) == before


def test_lines_that_are_gone_are_named_and_nothing_is_written(checkout, capsys):
    checkout.edit("params/tables/comparison.yaml", "rows: &rows", "rows:  &rows")
    before = files(checkout.root)
    assert main(["new", "loss", "closer"]) == 2
    said = f"params/tables/comparison.yaml, for {PAGE}: '  rows: &rows' stands there 0 times; once would be right"
    assert said in capsys.readouterr().err
    assert files(checkout.root) == before


def test_a_page_without_the_section_is_named_and_nothing_is_written(checkout, capsys):
    checkout.edit(PAGE, "\n## A loss\n", "\n## Losses\n")
    before = files(checkout.root)
    assert main(["new", "loss", "closer"]) == 2
    assert f"{PAGE}: no section 'A loss' with a file to write" in capsys.readouterr().err
    assert files(checkout.root) == before


def test_a_disk_that_is_full_leaves_all_as_it_was(checkout, capsys, monkeypatch):
    before = files(checkout.root)
    written = []

    def full(path, text):
        written.append(path)
        if len(written) == 3:
            raise OSError(28, "No space left on device", str(path))
        path.write_text(text)

    monkeypatch.setattr("lookalike.app.command.new.write_text", full)
    assert main(["new", "loss", "closer"]) == 2
    assert "No space left" in capsys.readouterr().err
    assert files(checkout.root) == before
