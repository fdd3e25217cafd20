"""A data set that is drawn may differ from its preset, as its file says."""

import shutil
import subprocess
import sys

import pytest
import yaml

from described import read_layout
from lookalike.workflow.settings.datasets import Generator
from lookalike.workflow.stages import download as stage
from lookalike.workflow.stages.download import STAGES, draw, of_dvc, stages
from own_pictures import write_pictures
from projects import ROOT


def test_a_data_set_is_drawn_with_the_classes_that_its_file_states(tmp_path):
    generator = Generator(preset="birds", seed=5, train_classes=3, test_classes=4, images_per_class=[2])
    draw(generator, tmp_path / "birds", processes=2)
    frame = read_layout({"layout": "cub", "classes": {"train": [1, 3], "test": [4, 7]}}, tmp_path / "birds")
    assert frame.groupby("role")["label"].nunique().to_dict() == {"train": 3, "test": 4}
    assert len(frame) == 7 * 2


def test_what_other_code_has_drawn_is_drawn_anew_and_nothing_else(tmp_path, monkeypatch):
    generator, root = (
        Generator(preset="birds", seed=5, train_classes=1, test_classes=1, images_per_class=[1]),
        tmp_path / "birds",
    )
    draw(generator, root)
    (root / "seen").touch()
    draw(generator, root)
    assert (root / "seen").exists()
    monkeypatch.setattr(stage, "code_digest", lambda entry_points: f"another of {entry_points}")
    draw(generator, root)
    assert not (root / "seen").exists()


def test_a_folder_that_was_not_drawn_is_left_alone(tmp_path):
    (tmp_path / "birds").mkdir()
    (tmp_path / "birds" / "mine.png").write_text("mine")
    with pytest.raises(FileExistsError, match="birds exists and is not an empty folder"):
        draw(Generator(preset="birds", seed=5, train_classes=3, test_classes=4), tmp_path / "birds")
    assert (tmp_path / "birds" / "mine.png").read_text() == "mine"


def test_an_unknown_preset_is_refused(tmp_path):
    with pytest.raises(ValueError, match="'bird' is unknown; known are birds, vehicles"):
        draw(Generator(preset="bird", seed=0), tmp_path / "birds")


def test_every_data_set_of_the_project_has_its_stages():
    assert (ROOT / STAGES).read_text() == stages()
    locked = yaml.safe_load((ROOT / "dvc.lock").read_text())["stages"]
    listed = yaml.safe_load(stages())
    known = {"draw": listed["drawn"], "download": listed["downloaded"], "split": listed["datasets"]}
    assert [name for name in locked if name.partition("@")[2] not in known[name.partition("@")[0]]] == []
    described = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    assert all((ROOT / code).exists() for each in described.values() for code in each["do"]["deps"] if "$" not in code)


def test_a_new_data_set_gets_stages_by_what_its_file_says(params):
    (params / "datasets" / "aviary.yaml").write_text("title: t\nlayout: cub\ngenerator: {preset: birds, seed: 7}\n")
    (params / "datasets" / "crates.yaml").write_text("title: t\nlayout: cub\narchives: []\n")
    (params / "datasets" / "either.yaml").write_text("title: t\none_of: [aviary, crates]\n")
    listed = yaml.safe_load(stages())
    assert "aviary" in listed["drawn"] and "crates" in listed["downloaded"]
    assert {*listed["drawn"], *listed["downloaded"]} == {*listed["datasets"]}
    assert "either" not in listed["datasets"]


@pytest.mark.slow
def test_what_a_person_has_put_into_a_data_sets_folder_stays_and_is_taken(params):
    root = params.parent
    shutil.copy(ROOT / "dvc.yaml", root)
    (root / "src" / "lookalike" / "workflow" / "data").mkdir(parents=True)
    (root / "src" / "lookalike" / "workflow" / "data" / "download.py").touch()  # on which the stage depends
    subprocess.run([sys.executable, "-m", "dvc", "init", "--no-scm", "--quiet"], cwd=root, check=True)
    (root / ".snakemake").mkdir()
    described = "title: a shelf\nlayout: folder\nmanual: put a folder for each product there\nlicence: mine\n"
    (params / "datasets" / "shelf.yaml").write_text(described)
    with pytest.raises(ValueError, match="By hand, into data/shelf: put a folder for each product there"):
        of_dvc("download", "shelf", ["data/shelf.json"], archives="")
    folder = root / "data" / "shelf"
    pictures = write_pictures(folder, 6)
    before = [path.read_bytes() for path in pictures]
    of_dvc("download", "shelf", ["data/shelf.json"], archives="")
    assert [path.read_bytes() for path in pictures] == before
    (params / "datasets" / "shelf.yaml").write_text(described.replace("a shelf", "my shelf"))
    of_dvc("download", "shelf", ["data/shelf.json"], archives="")
    assert [path.read_bytes() for path in pictures] == before
    assert "my shelf" in (root / "data" / "shelf.json").read_text()
