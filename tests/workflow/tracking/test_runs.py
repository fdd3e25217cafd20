"""MLflow gets a copy of every run from its files, and can fail without failing the run."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from lookalike.base.files import write_json
from lookalike.workflow.tracking import send_finished
from lookalike.workflow.tracking.runs import identity_of, metric_name
from tracked import IDENTITY, closed_port, finish, make_runs, result, runs_in, silent_server

# One process imports, and forks one that sends a run for each recipe, as a call's parent does for its jobs.
SEND = """
import importlib, os, sys
from lookalike.workflow.running.jobs import PRELOADED_TO_TRACK
from lookalike.workflow.tracking import send_finished
for name in ("torch", *PRELOADED_TO_TRACK):
    importlib.import_module(name)
children = {}
for scores in sys.argv[1:]:
    children[scores] = os.fork()
    if children[scores] == 0:
        send_finished("evaluate", scores, model="", settings={"scoring": {"name": "cosine"}})
        sys.exit()
status = {scores: os.waitpid(child, 0)[1] for scores, child in children.items()}
assert not any(status.values()), status
"""
SETTINGS = {"scoring": {"name": "cosine"}}


def client(uri):
    import mlflow

    return mlflow.MlflowClient(uri)


def scores(root, recipe):
    return json.loads(Path(result(root, "metrics", recipe)).read_text())


def write_scores(root, recipe="margin", recall=0.5):
    write_json(path := result(root, "metrics", recipe), {"best": {"R@1": recall}, "last": {"R@1": 0.25}})
    return path


@pytest.fixture(scope="module")
def untracked(tmp_path_factory):
    """Scores by recipe of runs that MLflow is told nothing of."""
    root = tmp_path_factory.mktemp("untracked")
    make_runs(root, tracked=False)
    return {recipe: scores(root, recipe) for recipe in ("margin", "margin_diml")}


@pytest.mark.slow
def test_a_training_and_the_evaluations_that_share_it_are_described_alike(uri, params):
    make_runs(params.parent, tracked=True)
    runs = runs_in(uri)
    training, sharing = runs["margin"], runs["margin_diml"]
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    # The run that shares a training says all that the training says, and whose it is.
    assert training.data.params == sharing.data.params
    assert training.data.params.keys() >= {"train.loss.name", "data", "code", "classes", "seed", "weights"}
    assert training.data.params["evaluate.scoring.name"] == "cosine"
    assert sharing.data.tags["training"] == "margin/figurines_birds/seed0"
    assert {"commit", "hardware", "torch"} <= training.data.tags.keys() & sharing.data.tags.keys()
    # Both have the split as their data set.
    for run, context in ((training, "training"), (sharing, "evaluation")):
        [data] = run.inputs.dataset_inputs
        assert data.dataset.name == "figurines_birds"
        assert run.data.params["data"].startswith(data.dataset.digest)
        assert [(tag.key, tag.value) for tag in data.tags] == [("mlflow.data.context", context)]
    # Every number is the file's: fractions.
    for recipe, run in runs.items():
        for checkpoint in ("best", "last"):
            for name, value in scores(params.parent, recipe)[checkpoint].items():
                assert run.data.metrics[f"{checkpoint}/{metric_name(name)}"] == value
    history = pd.read_csv(result(params.parent, "models", ending="csv"))
    points = client(uri).get_metric_history(training.info.run_id, "epoch/R_at_1")
    assert [(point.step, point.value) for point in points] == list(zip(history["epoch"], history["R@1"], strict=True))
    assert all(0 <= point.value <= 1 for point in points)
    files = [file.path for file in client(uri).list_artifacts(training.info.run_id)]
    assert files == ["seed0.csv", "seed0.json"]
    # Durations are those of the records: of the training, or of the evaluation where it shares one.
    for run, stage in ((training, "train"), (sharing, "evaluate")):
        took = 1000 * run.data.metrics[f"seconds/{stage}"]
        assert run.info.end_time - run.info.start_time == pytest.approx(took, abs=2)
    assert "seconds/evaluate" in training.data.metrics


@pytest.mark.slow
def test_a_run_that_is_made_again_replaces_its_older_self_and_one_with_the_same_files_stays(uri, params):
    path = write_scores(params.parent)
    found = []
    for recall in (0.5, 0.5, 0.75):
        write_scores(params.parent, recall=recall)
        send_finished("evaluate", path, model="", settings=SETTINGS)
        found.append(runs_in(uri)["margin"])  # the only one
    assert found[0].info.run_id == found[1].info.run_id != found[2].info.run_id
    assert found[2].data.metrics["best/R_at_1"] == 0.75
    copied = client(uri).create_run(found[2].info.experiment_id, tags=IDENTITY)  # by two that were sent at once
    send_finished("evaluate", path, model="", settings=SETTINGS)
    assert runs_in(uri)["margin"].info.run_id == found[2].info.run_id != copied.info.run_id


@pytest.mark.slow
def test_a_segmentation_has_the_scores_of_both_checkpoints_and_the_list_of_episodes_as_data(uri, params):
    path = params.parent / "results" / "mini" / "segmentations" / "r" / "d" / "seed5.json"
    write_json(path, {"best": {"mean_iou_mean": 0.5}, "last": {"empty": 0.25}, "episodes_sha256": "0123456789abcdef"})
    send_finished("segment", str(path), model="", settings={"cut": {"name": "grabcut"}})
    [run] = runs_in(uri).values()
    assert (run.data.metrics["best/mean_iou_mean"], run.data.metrics["last/empty"]) == (0.5, 0.25)
    assert (run.data.tags["seed"], run.info.status) == ("5", "FINISHED")
    assert run.data.params["segment.cut.name"] == "grabcut"
    [data] = run.inputs.dataset_inputs
    assert (data.dataset.name, data.dataset.digest) == ("d", "0123456789ab")


@pytest.mark.slow
def test_processes_that_meet_an_empty_database_lose_no_run(params, monkeypatch):
    uri = f"sqlite:///{params.parent / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    paths = [write_scores(params.parent, f"recipe{number}") for number in range(6)]
    sent = subprocess.run([sys.executable, "-c", SEND, *paths], cwd=params.parent, capture_output=True, text=True)
    assert sent.returncode == 0, sent.stderr
    assert "MLflow" not in sent.stdout
    found = runs_in(uri)
    assert sorted(found) == [f"recipe{number}" for number in range(6)]
    assert all(run.data.metrics["best/R_at_1"] == 0.5 for run in found.values())


@pytest.mark.parametrize("place", [closed_port, silent_server])
def test_without_a_server_results_are_complete_and_time_is_lost_once(place, params, untracked, monkeypatch):
    with place() as uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        said = make_runs(params.parent, tracked=True)
    told = [line for line in said.splitlines() if "MLflow" in line]
    assert len(told) == 3  # a training and two evaluations, each in the log of its job
    assert all(f"MLflow: {uri} is away" in line for line in told)
    assert {recipe: scores(params.parent, recipe) for recipe in untracked} == untracked


def test_switching_tracking_off_asks_no_server_and_changes_no_result(params, monkeypatch):
    with closed_port() as uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        make_runs(params.parent, tracked=False)
        assert not (params.parent / ".snakemake" / "mlflow_away.json").exists()
        without = Path(result(params.parent, "metrics")).read_bytes()
        make_runs(params.parent, tracked=True)
    assert Path(result(params.parent, "metrics")).read_bytes() == without


@pytest.mark.slow
def test_a_server_that_goes_away_in_mid_call_costs_a_job_a_few_seconds(params, uri, capsys):
    path = write_scores(params.parent)
    send_finished("evaluate", path, model="", settings=SETTINGS)
    assert capsys.readouterr().out == ""
    database = params.parent / "mlflow.db"
    database.chmod(0o600)
    database.write_text("no database " * 1000)
    began = time.monotonic()
    send_finished("evaluate", path, model="", settings=SETTINGS)
    assert time.monotonic() - began < 30
    assert capsys.readouterr().out.count("MLflow:") == 1


def test_a_job_that_is_told_to_end_while_its_run_is_sent_has_ended_well(params, uri, monkeypatch, capsys):
    def told(*arguments, **named):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)

    monkeypatch.setattr("lookalike.workflow.tracking.runs.send", told)
    path = write_scores(params.parent)
    monkeypatch.setattr("lookalike.workflow.stages.evaluate.evaluate", lambda settings, model: None)
    said = finish(params.parent, "evaluate", [path], True, settings=SETTINGS, model="")
    assert said == "MLflow: told to end; this run is not tracked, `lookalike track sync` sends it\n"


def test_a_run_is_named_by_where_its_results_lie():
    assert identity_of("results/mini/models/margin/figurines_birds/seed0.safetensors") == IDENTITY
    assert identity_of("/there/results/own_held_out/metrics/r/d/seed12.json") == {
        "scale": "own_held_out",
        "recipe": "r",
        "dataset": "d",
        "seed": "12",
    }
