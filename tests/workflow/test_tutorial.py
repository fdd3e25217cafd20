"""The tutorial, typed line by line as it is printed."""

import csv
import re
import shlex

import pytest

from lookalike.app.command import main
from lookalike.app.command.new import BLOCK, changed
from projects import ROOT, make_project

PAGE = (ROOT / "docs" / "tutorial.md").read_text()
ROWS = ("Margin", "Margin + DIML")  # for the sake of time


@pytest.fixture
def project(tmp_path):
    """A project with the photographs that come with the package, and few rows in its table."""
    made = make_project(tmp_path)
    (made.root / "src").symlink_to(ROOT / "src")
    table = made.root / "params/tables/comparison.yaml"
    lines = table.read_text().splitlines()
    kept = [line for line in lines if "- {label" not in line or any(f"label: {row}," in line for row in ROWS)]
    table.write_text("\n".join(kept) + "\n")
    return made


def planned(told):
    """Jobs of a dry run by stage."""
    counted = (line.split() for line in told.splitlines())
    return {words[0]: int(words[1]) for words in counted if len(words) == 2 and words[1].isdigit()}


@pytest.mark.slow
def test_the_tutorial_works_as_it_is_printed(project, monkeypatch, capsys):
    monkeypatch.chdir(project.root)
    overlay, plans = project.root / "shelf.yaml", []
    for kind, text in BLOCK.findall(PAGE):
        if kind == "yaml":
            overlay.write_text(text)
        elif kind == "diff":
            overlay.write_text(changed(overlay.read_text(), text, "shelf.yaml"))
        for line in text.splitlines() if kind == "sh" else []:
            program, _, rest = line.partition(" ")
            if program == "snakemake":
                untracked = "--configfile shelf.yaml --config tracking=False"
                typed = rest.replace("--cores all", "--cores 2").replace("--configfile shelf.yaml", untracked)
                done = project.run(typed)
                assert done.returncode == 0, done.stderr
                plans += [planned(done.stdout + done.stderr)] if "-n" in rest.split() else []
            else:
                assert program == "lookalike" and main(shlex.split(rest)) == 0, line
    first, second = plans
    assert first["train"] == 2 and first["evaluate"] > 2  # the margin loss, and the network that nothing trains
    (log,) = re.findall(r"`(logs/\S+)`", PAGE)
    assert "epoch 2/2" in (project.root / log).read_text()
    assert "train" not in second and second["evaluate"] == first["evaluate"]
    with (project.root / "results/shelf/tables/comparison.csv").open() as stream:
        metrics = {cell["metric"] for cell in csv.DictReader(stream)}
    assert {"R@1", "NMI"} <= metrics
    assert "name: embedder  # params/defaults.yaml" in capsys.readouterr().out
    assert (project.root / "lemons.html").is_file()
