"""MLflow gets a copy of every run while it is made, and can fail without failing the run."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from lookalike.files import write_json
from lookalike.tracking import Tracked, copies_of, copy_of, identity_of, log_scores, metric_name
from lookalike.tracking.runs import attempt
from tracked import IDENTITY, closed_port, make_runs, result, runs_in, silent_server

ABOUT = {"settings": {"loss": {"name": "margin", "margin": 0.2}}, "seed": 0, "data": "0123456789abcdef"}
# One process imports, and forks one that logs for each recipe, as a call's parent does for its jobs.
LOG = """
import importlib, os, sys
from lookalike.running.jobs import PRELOADED_TO_TRACK
from lookalike.tracking import Tracked
for name in ("torch", *PRELOADED_TO_TRACK):
    importlib.import_module(name)
children = {}
for recipe in sys.argv[1:]:
    children[recipe] = os.fork()
    if children[recipe] == 0:
        model = f"results/mini/models/{recipe}/figurines_birds/seed0.safetensors"
        with Tracked(model, {"settings": {"loss": {"name": "margin"}}}) as tracked:
            for epoch in range(5):
                tracked.epoch({"epoch": epoch + 1, "loss": 1.0 / (epoch + 1), "R@1": 0.5})
        sys.exit()
status = {recipe: os.waitpid(child, 0)[1] for recipe, child in children.items()}
assert not any(status.values()), status
"""
MODEL = "results/mini/models/margin/figurines_birds/seed0.safetensors"


def client(uri):
    import mlflow

    return mlflow.MlflowClient(uri)


def scores(root, recipe):
    return json.loads(Path(result(root, "metrics", recipe)).read_text())


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
    assert training.data.params.keys() >= {"train.loss.name", "data", "code", "classes", "device", "seed", "weights"}
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


@pytest.mark.slow
def test_a_run_lasts_as_long_as_its_training_however_long_after_that_it_is_evaluated(uri, params):
    began = time.monotonic()
    with Tracked(MODEL, ABOUT) as tracked:
        time.sleep(0.5)
        tracked.epoch({"epoch": 1, "loss": 2.0})
    longest = 1000 * (time.monotonic() - began)
    before = runs_in(uri)["margin"].info
    assert 500 <= before.end_time - before.start_time <= min(longest + 1, 2000)
    write_json(path := result(params.parent, "metrics"), {"best": {"R@1": 0.5}, "last": {"R@1": 0.25}})
    settings = {"evaluate": {"scoring": {"name": "cosine"}}}
    log_scores(path, model=MODEL, settings=settings, device="cpu", seconds=12.5)
    run = runs_in(uri)["margin"]
    assert (run.info.start_time, run.info.end_time) == (before.start_time, before.end_time)
    assert run.data.metrics["seconds/evaluate"] == 12.5
    # An evaluation that shares a training has the evaluation's duration.
    write_json(path := result(params.parent, "metrics", "margin_diml"), {"best": {"R@1": 0.5}, "last": {"R@1": 0.25}})
    log_scores(path, model=MODEL, settings=settings, device="cpu", seconds=12.5)
    alone = runs_in(uri)["margin_diml"].info
    assert alone.end_time - alone.start_time == pytest.approx(12500, abs=2)


@pytest.mark.slow
def test_a_repeated_run_replaces_its_older_self_and_a_resumed_one_has_its_whole_history(uri, tmp_path):
    (tmp_path / "history.csv").write_text("epoch,loss,R@1\n1,3.0,\n2,2.0,0.5\n")
    for loss in (9.0, 2.0):
        with Tracked(MODEL, ABOUT) as tracked:
            tracked.epoch({"epoch": 2, "loss": loss, "R@1": 0.5})  # goes on after the first epoch
            tracked.history(str(tmp_path / "history.csv"))
    run = runs_in(uri)["margin"]
    points = client(uri).get_metric_history(run.info.run_id, "epoch/loss")
    assert sorted((point.step, point.value) for point in points) == [(1, 3.0), (2, 2.0)]
    assert len(client(uri).get_metric_history(run.info.run_id, "epoch/R_at_1")) == 1


@pytest.mark.slow
def test_processes_that_meet_an_empty_database_lose_no_run(params, monkeypatch):
    uri = f"sqlite:///{params.parent / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    names = [f"recipe{number}" for number in range(6)]
    logged = subprocess.run([sys.executable, "-c", LOG, *names], capture_output=True, text=True, check=False)
    assert logged.returncode == 0, logged.stderr
    assert "MLflow" not in logged.stdout
    found = runs_in(uri)
    assert sorted(found) == names
    assert all(len(client(uri).get_metric_history(run.info.run_id, "epoch/loss")) == 5 for run in found.values())


@pytest.mark.parametrize("place", [closed_port, silent_server])
def test_without_a_server_results_are_complete_and_time_is_lost_once(place, params, untracked, monkeypatch, capsys):
    with place() as uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        make_runs(params.parent, tracked=True)
    told = [line for line in capsys.readouterr().out.splitlines() if "MLflow" in line]
    assert len(told) == 3  # a training and two evaluations, each in the log of its job
    assert all(f"MLflow: {uri} is away" in line for line in told)
    assert {recipe: scores(params.parent, recipe) for recipe in untracked} == untracked


def test_switching_tracking_off_asks_no_server_and_changes_no_result(params, monkeypatch, tmp_path):
    with closed_port() as uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        make_runs(params.parent, tracked=False)
        assert not (params.parent / ".snakemake" / "mlflow_away.json").exists()
        without = Path(result(params.parent, "metrics")).read_bytes()
        make_runs(params.parent, tracked=True)
    assert Path(result(params.parent, "metrics")).read_bytes() == without


@pytest.mark.slow
def test_a_server_that_goes_away_in_mid_run_costs_a_job_a_few_seconds(params, uri, monkeypatch, capsys):
    with Tracked(MODEL, ABOUT) as tracked:
        tracked.epoch({"epoch": 1, "loss": 2.0})
        database = params.parent / "mlflow.db"
        database.chmod(0o600)
        database.write_text("no database " * 1000)
        began = time.monotonic()
        for epoch in range(2, 30):
            tracked.epoch({"epoch": epoch, "loss": 2.0})
    assert time.monotonic() - began < 30
    assert capsys.readouterr().out.count("MLflow:") == 1


def test_a_failing_run_is_not_hidden():
    with pytest.raises(ValueError, match="its own"), Tracked("", {}):
        raise ValueError("its own")


@pytest.mark.slow
def test_a_run_that_fails_is_marked_so(uri):
    with pytest.raises(ValueError, match="its own"), Tracked(MODEL, ABOUT):
        raise ValueError("its own")
    assert runs_in(uri)["margin"].info.status == "FAILED"


def test_a_run_is_named_by_where_its_results_lie():
    assert identity_of(MODEL) == IDENTITY
    assert identity_of("/there/results/own_held_out/metrics/r/d/seed12.json") == {
        "scale": "own_held_out",
        "recipe": "r",
        "dataset": "d",
        "seed": "12",
    }


def test_metric_names_are_spelt_as_mlflow_allows():
    assert metric_name("MAP@R") == "MAP_at_R"


@pytest.mark.slow
def test_a_run_is_read_back_by_its_id_and_by_its_tags(uri):
    with Tracked(MODEL, ABOUT):
        pass
    copy = copy_of(runs_in(uri)["margin"].info.run_id)
    assert copy.parameters["train.loss.margin"] == "0.2"
    assert copy.tags.items() >= IDENTITY.items()
    assert copies_of([IDENTITY, IDENTITY | {"seed": "1"}, IDENTITY | {"scale": "ci"}]) == [copy, None, None]
    with pytest.raises(ValueError, match="0000 not found"):
        copy_of("0" * 32)


def test_an_error_of_mlflow_is_one_line_in_the_log_of_a_job_and_shows_no_password(params, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://ann:secret@host:5000")
    monkeypatch.setattr("lookalike.tracking.runs.ask_server", lambda: "")

    def fail():
        raise RuntimeError("http://ann:secret@host:5000/api answers nonsense\nmore of it")

    assert not attempt(fail, "this run is tracked no further")
    said = "MLflow: RuntimeError: http://host:5000/api answers nonsense; this run is tracked no further\n"
    assert capsys.readouterr().out == said
