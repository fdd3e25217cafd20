"""What was made without a server is sent later, once."""

import json
import shutil
from pathlib import Path

import pytest

from lookalike.command import main
from lookalike.settings.call import Configuration
from lookalike.settings.files import read
from lookalike.stages.track import track
from lookalike.tracking import Tracked
from lookalike.tracking.client import is_own
from tracked import closed_port, make_runs, mlflow_server, result, runs_in

pytestmark = pytest.mark.slow

TABLE = """
tried:
  title: Tried
  datasets: [cub]
  metrics: [R@1]
  rows:
    - {label: Margin, recipe: margin}
    - {label: Margin + DIML, recipe: margin_diml}
"""


def sync(capsys, *arguments):
    capsys.readouterr()
    status = main(["track", "sync", *arguments])
    return status, capsys.readouterr()


def test_runs_made_without_a_server_are_sent_to_a_real_one_later_and_not_twice(
    params, empty_database, monkeypatch, capsys
):
    root = params.parent
    with closed_port() as away:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", away)
        make_runs(root, tracked=True)
        status, told = sync(capsys)
    assert status == 2
    assert told.err.startswith(f"lookalike: MLflow: {away} is away")
    assert told.err.count("\n") == 1
    (params / "tables" / "tried.yaml").write_text(TABLE)
    (root / "results" / "mini" / "tables").mkdir()
    (root / "results" / "mini" / "tables" / "tried.csv").touch()
    timings = root / "results" / "mini" / "timings" / "train" / "margin-figurines_birds-seed0.tsv"
    timings.parent.mkdir(parents=True)
    timings.write_text("s\th:m:s\n7.5000\t0:00:07\n")
    shutil.copytree(root / "results" / "mini", root / "results" / "own")  # of an overlay that is not at hand
    monkeypatch.setattr("lookalike.tracking.sync.ANSWER_S", 60)  # beside other tests a real server is slow
    shutil.copy(empty_database, root / "server.db")  # where it makes its tables otherwise
    with mlflow_server(root) as address:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        status, told = sync(capsys)
        assert (status, told.err) == (0, "")
        mini, own = told.out.splitlines()
        assert mini == "mini: 2 runs: 2 sent; 1 table"
        assert own.startswith("own: 2 runs: 2 sent; 0 tables; its --configfile would tell")
        first = runs_in(address)
        training, sharing = first["margin"], first["margin_diml"]
        assert training.info.end_time - training.info.start_time == 7500
        history = Path(result(root, "models", ending="csv"))
        assert training.info.end_time == pytest.approx(1000 * history.stat().st_mtime, abs=2)
        assert sharing.data.params["train.loss.name"] == "margin"
        assert sharing.data.params["evaluate.scoring.name"] == "structural_matching"
        assert sharing.data.params.keys() >= {"data", "code", "classes", "seed", "weights"}
        assert sharing.data.tags["rows"] == "| tried: Margin + DIML |"
        scores = json.loads(Path(result(root, "metrics")).read_text())
        assert training.data.metrics["best/R_at_1"] == scores["best"]["R@1"]
        assert training.data.metrics["seconds/train"] == 7.5
        assert "epoch/loss" in training.data.metrics
        assert runs_in(address, "own").keys() == {"margin", "margin_diml"}
        # Nothing is doubled by a second call, and only what changed is sent again.
        _, told = sync(capsys)
        assert told.out.splitlines()[0] == "mini: 2 runs: 2 there already; 1 table"
        assert {run.info.run_id for run in runs_in(address).values()} == {run.info.run_id for run in first.values()}
        changed = Path(result(root, "metrics", "margin_diml"))
        changed.write_text(changed.read_text() + "\n")
        _, told = sync(capsys)
        assert told.out.splitlines()[0] == "mini: 2 runs: 1 sent, 1 there already; 1 table"
        assert runs_in(address)["margin"].info.run_id == training.info.run_id


def test_what_was_tracked_while_it_was_made_is_there_and_what_was_cut_short_is_mended(params, uri, capsys):
    make_runs(params.parent, tracked=True)
    assert sync(capsys)[1].out == "mini: 2 runs: 2 there already; 0 tables\n"
    import mlflow

    client, runs = mlflow.MlflowClient(uri), runs_in(uri)
    client.delete_tag(runs["margin"].info.run_id, "scores")  # as if the server had gone before the evaluation
    client.delete_tag(runs["margin_diml"].info.run_id, "scores")
    client.set_terminated(runs["margin_diml"].info.run_id, "RUNNING")
    assert sync(capsys)[1].out == "mini: 2 runs: 1 sent, 1 completed; 0 tables\n"
    assert runs_in(uri)["margin"].info.run_id == runs["margin"].info.run_id
    assert sync(capsys)[1].out == "mini: 2 runs: 2 there already; 0 tables\n"


def test_a_training_at_work_is_left_alone_though_older_scores_of_it_lie_here(params, uri, capsys):
    make_runs(params.parent, tracked=True)
    model, history = (Path(result(params.parent, "models", ending=ending)) for ending in ("safetensors", "csv"))
    kept = history.read_bytes()
    model.unlink()  # as Snakemake does before it trains again
    history.unlink()
    with Tracked(str(model), {}):
        at_work = runs_in(uri)["margin"].info
        assert at_work.status == "RUNNING"
        assert sync(capsys)[1].out == "mini: 2 runs: 1 there already, 1 at work; 0 tables\n"
        assert runs_in(uri)["margin"].info.run_id == at_work.run_id
    import mlflow

    # It has left its files, but MLflow was not told that it has ended.
    history.write_bytes(kept)
    metrics = Path(result(params.parent, "metrics"))
    metrics.write_bytes(metrics.read_bytes())
    mlflow.MlflowClient(uri).set_terminated(at_work.run_id, "RUNNING")
    assert sync(capsys)[1].out == "mini: 2 runs: 1 sent, 1 there already; 0 tables\n"


def test_each_of_two_people_at_one_server_has_runs_of_their_own(params, uri, capsys, monkeypatch):
    make_runs(params.parent, tracked=True)
    mine = {run.info.run_id for run in runs_in(uri).values()}
    monkeypatch.setenv("LOGNAME", "somebody_else")
    assert sync(capsys)[1].out == "mini: 2 runs: 2 sent; 0 tables\n"
    assert sync(capsys)[1].out == "mini: 2 runs: 2 there already; 0 tables\n"
    make_runs(params.parent, tracked=True)
    import mlflow

    client = mlflow.MlflowClient(uri)
    found = client.search_runs([client.get_experiment_by_name("lookalike-mini").experiment_id])
    assert {run.info.run_id for run in found if run.data.tags["mlflow.user"] != "somebody_else"} == mine
    assert len(found) == 4
    client.delete_tag(found[0].info.run_id, "mlflow.user")  # of older code: whoever finds it replaces it
    assert is_own(client.get_run(found[0].info.run_id))


def test_a_table_tags_only_the_runs_that_fill_it_with_its_rows(params, uri):
    make_runs(params.parent, tracked=True)
    (params / "tables" / "tried.yaml").write_text(TABLE)
    track("tried", {**read("params/config.yaml", Configuration).dump(), "tables": ["tried"]})
    rows = {recipe: run.data.tags["rows"] for recipe, run in runs_in(uri).items()}
    assert rows == {"margin": "| tried: Margin |", "margin_diml": "| tried: Margin + DIML |"}
