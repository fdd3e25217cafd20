"""The target `rates` tries every pair on held-out training classes, writes what it chose, and trainings follow it."""

import json

import pandas as pd
import pytest

from projects import make_project

pytestmark = pytest.mark.slow

RATES = """
rates:
  grid: [{trunk: 2.0e-3, head: 1.0e-3}, {trunk: 1.0e-2, head: 1.0e-3}]
  seeds: [100, 101]
  train: {budget: {epochs: 1, batches_per_epoch: 1}}
"""
ONE_ROW = """
own_methods:
  title: One method
  datasets: own
  metrics: [R@1]
  rows: [{label: Margin, recipe: compared_margin}, {label: Margin + DIML, recipe: compared_margin_diml}]
"""
UNCHOSEN = (
    "the overlay, rates: params/rates/own.csv does not exist, and without it rows are not at equal terms; "
    "`snakemake --cores all rates --configfile own.yaml` makes it"
)
LINE = "--cores 2 rates --configfile own.yaml"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("rates") / "project")
    project.edit("own.yaml", "tables: [comparison]", f"tables: [own_methods]{RATES}")
    (project.root / "params" / "tables" / "own.yaml").write_text(ONE_ROW)
    refused = project.typed("-n tables --configfile own.yaml")
    assert (refused.stdout + refused.stderr).strip().splitlines()[-1] == UNCHOSEN
    done = project.run(LINE)
    assert done.returncode == 0, done.stderr
    return project


def test_all_trials_of_the_one_kind_are_listed_with_the_mean_of_their_seeds(project):
    found = pd.read_csv(project.root / "params/rates/own.csv", keep_default_na=False)
    assert list(found["recipe"]) == ["compared_margin"] * 2
    assert sorted(found["chosen"]) == ["", "yes"]
    folder = project.root / "results/own/rates/compared_margin/pictures"
    for trial, score in enumerate(found["MAP@R"]):
        reached = [pd.read_csv(folder / f"trial{trial}-seed{seed}.csv")["MAP@R"].max() for seed in (100, 101)]
        assert score == pytest.approx(sum(reached) / 2, rel=1e-5)
    assert found.loc[found["MAP@R"].idxmax(), "chosen"] == "yes"


def test_trials_see_the_last_training_classes_as_test_and_no_test_class(project):
    split = pd.read_csv(project.root / "data/own/splits/pictures.csv")
    tried = pd.read_csv(project.root / "results/own/rates/pictures.csv")
    training = sorted(split[split["role"] == "train"]["label"].unique())
    assert sorted(tried["label"].unique()) == training
    assert sorted(tried[tried["role"] == "test"]["label"].unique()) == training[-2:]


def test_no_model_of_a_trial_stays_and_nothing_is_tried_twice(project):
    assert not list((project.root / "results/own/rates").rglob("*.safetensors"))
    again = project.run(f"-n {LINE}")
    assert "Nothing to be done" in again.stdout + again.stderr


def test_trainings_take_what_was_chosen(project):
    found = pd.read_csv(project.root / "params/rates/own.csv", keep_default_na=False)
    chosen = found[found["chosen"] == "yes"].iloc[0]
    made = "results/own/metrics/compared_margin/pictures/seed0.json"
    done = project.run(f"--cores 2 {made} --configfile own.yaml")
    assert done.returncode == 0, done.stderr
    metrics = json.loads((project.root / made).read_text())
    model = project.root / "results/own/models/compared_margin/pictures/seed0.safetensors"
    header = model.read_bytes()[8 : 8 + int.from_bytes(model.read_bytes()[:8], "little")]
    about = json.loads(json.loads(header)["__metadata__"]["about"])
    assert about["settings"]["optimiser"]["lr"]["trunk"] == chosen["trunk"]  # no trial has the overlay's own
    assert metrics


def test_a_committed_choice_does_not_stand_for_trials(project):
    for history in (project.root / "results/own/rates").rglob("trial*.csv"):
        history.unlink()
    again = project.run(f"-n {LINE}")
    assert again.returncode == 0, again.stderr
    assert "Try rates 0 for compared_margin on pictures, seed 100" in again.stdout + again.stderr


def test_a_scale_without_a_grid_is_refused_in_a_line(project):
    done = project.typed("-n --cores 2 rates --config scale=paper")
    assert done.returncode != 0
    assert "params/scales/paper.yaml: has no key rates" in (done.stdout + done.stderr).strip().splitlines()[-1]
