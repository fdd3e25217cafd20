"""The target `rates` searches rates on held-out training classes, writes what it chose, and trainings follow it."""

import json

import pandas as pd
import pytest

from lookalike.workflow.plan.rates import read_scores
from projects import make_project

pytestmark = pytest.mark.slow

RATES = """
rates:
  trunk: [2.0e-3, 1.0e-2]
  head: [1.1e-3]
  epochs: 2
  batches_per_epoch: 1
  rungs:
    - {seeds: [100], survivors: 1}
    - {seeds: [100, 101]}
"""
TABLE = """
own_methods:
  title: Two kinds
  datasets: own
  metrics: [R@1]
  rows:
    - {label: Triplet, recipe: compared_triplet}
    - {label: Triplet + SAM, recipe: compared_triplet_sam}
"""
UNCHOSEN = (
    "the overlay, rates: params/rates/own.csv does not exist, and without it rows are not at equal terms; "
    "`snakemake --cores all rates --configfile own.yaml` makes it"
)
LINE = "--cores 2 rates --configfile own.yaml"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("rates") / "project")
    project.edit("own.yaml", "tables: [comparison]", f"tables: [own_methods]\nhalves: crossed{RATES}")
    (project.root / "params" / "tables" / "own.yaml").write_text(TABLE)
    refused = project.typed("-n tables --configfile own.yaml")
    assert (refused.stdout + refused.stderr).strip().splitlines()[-1] == UNCHOSEN
    done = project.run(LINE)
    assert done.returncode == 0, done.stderr
    return project


def listed(dataset, half):
    """Name of the list of a data set's pictures for a half of the classes."""
    return f"{dataset}.{half}" if half else dataset


def chosen_of(project):
    found = pd.read_csv(project.root / "params/rates/own.csv", keep_default_na=False)
    return found, found[found["chosen"] != ""]


def test_all_trials_of_each_kind_are_listed_with_what_each_seed_reached(project):
    found, chosen = chosen_of(project)
    assert [*chosen["rung"]] == [1, 1, 1, 1]
    assert [*chosen["recipe"]] == ["compared_triplet", "compared_triplet_sam"] * 2
    assert [*chosen["half"]] == ["", "", "second", "second"]
    for (recipe, half), trials in found.groupby(["recipe", "half"]):
        assert {*trials.loc[trials["rung"] == 0, "trunk"]} >= {2e-3, 1e-2}
        reached = read_scores(project.root / f"results/own/rates/{recipe}/{listed('pictures', half)}.csv")
        assert [*trials["MAP@R"]] == pytest.approx([sum(each) / len(each) for each in reached.values()], rel=1e-5)
        assert [*trials["seeds"]] == [1 + rung for rung in trials["rung"]]


def test_trials_see_the_last_training_classes_as_test_and_no_test_class(project):
    split = pd.read_csv(project.root / "data/own/splits/pictures.csv")
    tried = pd.read_csv(project.root / "results/own/held_out_last/pictures.csv")
    training = sorted(split[split["role"] == "train"]["label"].unique())
    assert sorted(tried["label"].unique()) == training
    assert sorted(tried[tried["role"] == "test"]["label"].unique()) == training[-2:]


def test_no_class_of_a_trial_is_a_test_class_of_a_run_that_uses_it(project):
    found, _ = chosen_of(project)
    for dataset, half in found[["dataset", "half"]].drop_duplicates().itertuples(index=False):
        split = pd.read_csv(project.root / f"data/own/splits/{listed(dataset, half)}.csv")
        tried = pd.read_csv(project.root / f"results/own/held_out_last/{listed(dataset, half)}.csv")
        assert not {*tried["label"]} & {*split.loc[split["role"] != "train", "label"]}


def test_no_model_of_a_trial_stays_and_nothing_is_tried_twice(project):
    made = [path.name for path in (project.root / "results/own/rates").rglob("*") if path.is_file()]
    of_half = ["pictures.csv"] * 2  # trials of two kinds
    assert sorted(made) == [*of_half, *(file.replace(".", ".second.") for file in of_half)]
    again = project.run(f"-n {LINE}")
    assert "Nothing to be done" in again.stdout + again.stderr


def test_the_log_tells_each_trial_and_what_it_reached(project):
    lines = (project.root / "logs/own/rates/compared_triplet-pictures.log").read_text().splitlines()
    assert "rung 0, trial 1 of 2, seed 100: trunk 0.002, head 0.0011" in lines
    assert sum(line.startswith("rung ") for line in lines) == sum(line.startswith("  MAP@R ") for line in lines)


def test_trainings_take_what_was_chosen(project):
    chosen = chosen_of(project)[1].iloc[0]
    made = "results/own/metrics/compared_triplet/pictures/seed0.json"
    done = project.run(f"--cores 2 {made} --configfile own.yaml")
    assert done.returncode == 0, done.stderr
    model = project.root / "results/own/models/compared_triplet/pictures/seed0.safetensors"
    header = model.read_bytes()[8 : 8 + int.from_bytes(model.read_bytes()[:8], "little")]
    lr = json.loads(json.loads(header)["__metadata__"]["about"])["settings"]["optimiser"]["lr"]
    assert (lr["trunk"], lr["head"]) == (chosen["trunk"], chosen["head"])  # no trial has the overlay's own


def test_a_committed_choice_does_not_stand_for_trials(project):
    (project.root / "results/own/rates/compared_triplet/pictures.csv").unlink()
    again = project.run(f"-n {LINE}")
    assert again.returncode == 0, again.stderr
    assert "Try rates for compared_triplet on pictures" in again.stdout + again.stderr


def test_trials_that_are_committed_are_not_made_again(project):
    made = project.root / "results/own/rates/compared_triplet_sam/pictures.csv"
    committed = project.root / "results/reference/own/rates/compared_triplet_sam/pictures.csv"
    committed.parent.mkdir(parents=True)
    scores = made.read_bytes()
    made.rename(committed)
    done = project.run(f"--cores 2 {made.relative_to(project.root)} --configfile own.yaml")
    assert done.returncode == 0, done.stderr
    assert made.read_bytes() == scores
    log = (project.root / "logs/own/rates/compared_triplet_sam-pictures.log").read_text()
    assert "  MAP@R " in log and "epoch 1/" not in log


def test_a_scale_that_does_not_say_how_to_search_is_refused_in_a_line(project):
    done = project.typed("-n --cores 2 rates --config scale=paper")
    assert done.returncode != 0
    assert "params/scales/paper.yaml: has no key rates" in (done.stdout + done.stderr).strip().splitlines()[-1]
