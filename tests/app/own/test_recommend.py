"""``lookalike recommend``, as a person with a folder of classes calls it: one small run, and what is refused."""

import json
import os
import re
import shlex
import shutil
from dataclasses import replace

import pytest
import torch
from PIL import Image

from figurines import PRESETS, write_figurines
from lookalike.app.command import main
from lookalike.app.own.recommend import schedule, training
from lookalike.app.own.recommend.classes import read_classes
from lookalike.app.own.recommend.schedule import Budget, Candidate
from lookalike.app.own.recommend.training import Network, works_of

FEW = {"train_classes": 9, "test_classes": 9, "images_per_class": (6,), "images_per_test_class": (6,)}


@pytest.fixture
def run(project, tmp_path, monkeypatch):
    """Call in a project of its own; the exit status is returned."""
    monkeypatch.chdir(project.root)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "no hub"))
    return lambda line: main(shlex.split(line))


@pytest.mark.slow
def test_a_folder_becomes_a_page_with_a_recommendation_whose_next_lines_run(
    project, run, capsys, monkeypatch, tmp_path
):
    drawn = tmp_path / "drawn"
    write_figurines("birds", drawn, seed=0, parameters=replace(PRESETS["birds"], **FEW))
    for place, folder in enumerate(sorted(folder for folder in drawn.rglob("images/*") if folder.is_dir())):
        target = project.root / "my birds" / f"{place:02} {folder.name}"
        target.mkdir(parents=True)
        for picture in sorted(folder.iterdir())[:6]:
            picture.rename(target / picture.name)
    # Seconds of steps are the machine's: here as many as let one method fit.
    monkeypatch.setattr(schedule, "BUDGETS", (Budget(5, 2, 1),))
    monkeypatch.setattr(training, "measured", lambda work: [
        Candidate("ProxyAnchor", 0.1, 1.0), Candidate("Margin", 900.0, 1.0)
    ])  # fmt: skip
    line = "recommend 'my birds' --hours 0.5 --pictures-per-class 5 --cores 2 --out answer.html"
    line += " --weights tiny=params/starts/tiny.safetensors --size 64"
    assert run(line) == 0
    told = capsys.readouterr().out
    assert told.startswith("Take ")
    assert re.search(r"^\*? ?ProxyAnchor \+ DIML +tiny +\d+\.\d +[+-]\d+\.\d \(", told, re.MULTILINE)
    assert re.search(r"^Not tried: Margin: takes .* for 2 seeds of 5 batches\.$", told, re.MULTILINE)
    page, data = (project.root / "answer.html").read_text(), json.loads((project.root / "answer.json").read_text())
    assert "9 classes are held out and decide, 9 classes train; half of the 18" in page
    assert "at most 5 pictures take part" in page
    assert "Rates are the comparison&#39;s own, not tuned to these pictures" in page
    labels = {each["label"]: each for each in data["rows"]}
    untrained = {"untrained", "whitened", "RCA", "untrained + structural matching"}
    assert labels.keys() == untrained | {"ProxyAnchor", "ProxyAnchor + DIML"}
    assert labels["ProxyAnchor"]["seeds"] == 2
    assert labels["ProxyAnchor"]["training_s"] > 0 and labels["untrained"]["training_s"] is None

    models = {path: path.stat().st_mtime_ns for path in project.root.rglob("models/**/*.safetensors")}
    assert len(models) == 4
    assert run(line) == 0  # again: nothing is done twice
    assert capsys.readouterr().out == told
    assert {path: path.stat().st_mtime_ns for path in project.root.rglob("models/**/*.safetensors")} == models

    for next_line in data["next"]:
        if not next_line.startswith("lookalike recommend"):
            assert run(next_line.removeprefix("lookalike ")) == 0, next_line
    (overlay,) = (project.root / "results").rglob("own_*_tiny_*.yaml")
    query = next((project.root / "my birds").rglob("*.jpg"))
    trained = f"search 'compared_proxy_anchor@pictures#1' '{query}' --in 'my birds' --configfile '{overlay}' --top 2"
    assert run(trained) == 0

    (other,) = (project.root / "results").rglob("own_*_squeezenet1_1_*.yaml")
    results = project.root / "results" / other.stem
    shutil.rmtree(results)
    results.write_text("a file where this network's results belong")
    capsys.readouterr()
    assert run(line) == 1
    told_again = capsys.readouterr().out
    assert re.search(r"^Not tried: squeezenet1_1: the workflow has failed, as said above;", told_again, re.MULTILINE)
    assert told_again.startswith("Take ")  # of the network that is left


def test_swapped_pictures_of_equal_size_and_time_are_other_work(project, tmp_path, monkeypatch):
    monkeypatch.chdir(project.root)
    for place in range(12):
        (tmp_path / "own" / f"class{place}").mkdir(parents=True)
        for number in range(4):
            path = tmp_path / "own" / f"class{place}" / f"{number}.bmp"
            Image.new("RGB", (8, 8), (place, number, 0)).save(path)
            os.utime(path, ns=(10**18, 10**18))

    def name():
        network = Network("tiny", {}, {})
        return works_of(read_classes(tmp_path / "own"), [network], size_px=24)[0].folder

    before = name()
    assert name() == before
    one, other = tmp_path / "own" / "class0" / "0.bmp", tmp_path / "own" / "class1" / "0.bmp"
    spare = one.with_suffix(".part")
    one.rename(spare)
    other.rename(one)
    spare.rename(other)
    assert name() != before
