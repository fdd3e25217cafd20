"""What was made without a server is sent later, once, and the rows of a table are found."""

import json
import re
import shutil
from pathlib import Path

import pytest

from lookalike.app.command import main
from lookalike.base.files import write_json, write_tensors
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.files import read
from lookalike.workflow.stages.track import track
from lookalike.workflow.tracking.sync import SHOWN
from tracked import closed_port, make_runs, mlflow_server, result, runs_in

pytestmark = pytest.mark.slow

TABLE = """
{name}:
  title: Tried
  datasets: [cub]
  metrics: [R@1, MAP@R]
  rows:
    - {{label: Margin, recipe: margin}}
    - {{label: A | B, recipe: margin}}
    - {{label: Margin + DIML, recipe: margin_diml}}
"""


def sync(capsys, *arguments):
    capsys.readouterr()
    status = main(["track", "sync", *arguments])
    return status, capsys.readouterr()


def write_table(params, name="tried", **values):
    (params / "tables" / f"{name}.yaml").write_text(TABLE.format(name=name))
    return {**read("params/config.yaml", Configuration).dump(), "tables": [name], "seeds": [0], **values}


def write_scores(root, *recipes):
    for recipe in recipes:
        write_json(result(root, "metrics", recipe), {"best": {"R@1": 0.5}, "last": {"R@1": 0.25}})


def client_of(uri):
    import mlflow

    return mlflow.MlflowClient(uri)


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
    write_table(params)
    (root / "results" / "mini" / "tables").mkdir()
    (root / "results" / "mini" / "tables" / "tried.csv").touch()
    timings = root / "results" / "own" / "timings" / "train" / "margin-figurines_birds-seed0.tsv"
    timings.parent.mkdir(parents=True)
    timings.write_text("s\th:m:s\n7.5000\t0:00:07\n")
    # Of an overlay that is not at hand, and of older code, which left no records.
    shutil.copytree(
        root / "results" / "mini", root / "results" / "own", ignore=lambda *_: ["records"], dirs_exist_ok=True
    )
    monkeypatch.setattr("lookalike.workflow.tracking.sync.ANSWER_S", 60)  # beside other tests a real server is slow
    shutil.copy(empty_database, root / "server.db")  # where it makes its tables otherwise
    with mlflow_server(root) as address:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        status, told = sync(capsys)
        assert (status, told.err) == (0, "")
        mini, table, own = told.out.splitlines()
        assert mini == "mini: 2 runs: 2 sent; 1 table"
        assert re.fullmatch(
            rf"rows of tried, compared: {address}/#/experiments/\d+/runs\?{SHOWN}&viewStateShareKey=tried", table
        )
        assert own.startswith("own: 2 runs: 2 sent; its --configfile would tell")
        first = runs_in(address)
        training, sharing = first["margin"], first["margin_diml"]
        record = json.loads((root / "results/mini/records/models/margin/figurines_birds/seed0.csv.record").read_text())
        assert training.info.end_time - training.info.start_time == pytest.approx(1000 * record["seconds"], abs=2)
        assert training.data.metrics["seconds/train"] == record["seconds"]
        assert training.data.tags["hardware"] == record["device"]
        assert sharing.data.params["train.loss.name"] == "margin"
        assert sharing.data.params["evaluate.scoring.name"] == "structural_matching"
        assert sharing.data.params.keys() >= {"data", "code", "classes", "seed", "weights"}
        assert sharing.data.tags["table_tried"] == "| Margin + DIML |"
        scores = json.loads(Path(result(root, "metrics")).read_text())
        assert training.data.metrics["best/R_at_1"] == scores["best"]["R@1"]
        assert "epoch/loss" in training.data.metrics
        older = runs_in(address, "own")
        assert older.keys() == {"margin", "margin_diml"}
        assert older["margin"].info.end_time - older["margin"].info.start_time == 7500
        history = Path(result(root, "models", ending="csv"))
        assert older["margin"].info.end_time == pytest.approx(1000 * history.stat().st_mtime, abs=2)
        # Nothing is doubled by a second call, and only what changed is sent again.
        _, told = sync(capsys)
        assert told.out.splitlines()[0] == "mini: 2 runs: 2 there already; 1 table"
        assert {run.info.run_id for run in runs_in(address).values()} == {run.info.run_id for run in first.values()}
        changed = Path(result(root, "metrics", "margin_diml"))
        changed.write_text(changed.read_text() + "\n")
        _, told = sync(capsys)
        assert told.out.splitlines()[0] == "mini: 2 runs: 1 sent, 1 there already; 1 table"
        assert runs_in(address)["margin"].info.run_id == training.info.run_id


def test_what_a_job_sent_is_there_and_what_was_cut_short_is_mended(params, uri, capsys):
    make_runs(params.parent, tracked=True)
    assert sync(capsys)[1].out == "mini: 2 runs: 2 there already; 0 tables\n"
    client, runs = client_of(uri), runs_in(uri)
    client.delete_tag(runs["margin"].info.run_id, "scores")  # as if the server had gone before the evaluation
    client.delete_tag(runs["margin_diml"].info.run_id, "scores")
    client.set_terminated(runs["margin_diml"].info.run_id, "RUNNING")
    assert sync(capsys)[1].out == "mini: 2 runs: 1 sent, 1 completed; 0 tables\n"
    assert runs_in(uri)["margin"].info.run_id == runs["margin"].info.run_id
    assert sync(capsys)[1].out == "mini: 2 runs: 2 there already; 0 tables\n"


def test_each_of_two_people_at_one_server_has_runs_of_their_own(params, uri, capsys, monkeypatch):
    write_scores(params.parent, "margin", "margin_diml")
    assert sync(capsys)[1].out == "mini: 2 runs: 2 sent; 0 tables\n"
    mine = {run.info.run_id for run in runs_in(uri).values()}
    monkeypatch.setenv("LOGNAME", "somebody_else")
    assert sync(capsys)[1].out == "mini: 2 runs: 2 sent; 0 tables\n"
    assert sync(capsys)[1].out == "mini: 2 runs: 2 there already; 0 tables\n"
    client = client_of(uri)
    found = client.search_runs([client.get_experiment_by_name("lookalike-mini").experiment_id])
    assert {run.info.run_id for run in found if run.data.tags["mlflow.user"] != "somebody_else"} == mine
    assert len(found) == 4
    for run in found:  # those of older code name no user: whoever finds them takes them for their own
        client.delete_tag(run.info.run_id, "mlflow.user")
    assert sync(capsys)[1].out == "mini: 2 runs: 2 there already; 0 tables\n"
    assert runs_in(uri).keys() == {"margin", "margin_diml"}


def test_the_rows_of_a_table_are_found_by_its_saved_search_and_not_by_that_of_a_similar_name(params, uri, capsys):
    write_scores(params.parent, "margin", "margin_diml")
    sync(capsys)
    for name in ("tried", "tried_1"):
        track(name, write_table(params, name))
    client = client_of(uri)
    experiment = client.get_experiment_by_name("lookalike-mini")
    found = client.search_runs([experiment.experiment_id], "tags.table_tried LIKE '%'")
    rows = {run.data.tags["recipe"]: run.data.tags["table_tried"] for run in found}
    assert rows == {"margin": "| Margin | A / B |", "margin_diml": "| Margin + DIML |"}
    search = "tags.table_tried_1 LIKE '%| Margin |%' and tags.stands_for = 'cub'"
    [found] = client.search_runs([experiment.experiment_id], search)
    assert found.data.tags["recipe"] == "margin"
    file = "results/mini/metrics/margin/figurines_birds/seed0.json"
    assert found.data.tags["mlflow.note.content"] == f"Made by `snakemake --cores all {file}`"
    assert experiment.tags["mlflow.experimentKind"] == "custom_model_development"
    # MLflow's page opens each table by a link in the experiment's description, or by the address that is printed.
    printed = capsys.readouterr().out
    for table in ("tried", "tried_1"):
        place = f"#/experiments/{experiment.experiment_id}/runs?{SHOWN}&viewStateShareKey={table}"
        assert re.search(rf"^rows of {table}, compared: http://[\w.:]+/{re.escape(place)}$", printed, re.M)
        assert f"viewStateShareKey={table})" in experiment.tags["mlflow.note.content"]
        state = json.loads(experiment.tags[f"mlflow.sharedViewState.{table}"])
        assert state["searchFilter"] == f"tags.table_{table} LIKE '%'"
        assert state["orderByKey"] == "metrics.`last/R_at_1`"
        assert "metrics.`last/MAP_at_R`" in state["selectedColumns"]


def test_parameters_are_completed_and_those_that_cannot_be_changed_are_named(params, uri, capsys):
    write_scores(params.parent, "margin")
    config = write_table(params)
    sync(capsys)
    client, run = client_of(uri), runs_in(uri)["margin"]
    assert "train.loss.name" not in run.data.params  # which no file says here
    client.log_param(run.info.run_id, "train.batch_size", "7")
    track("tried", config)
    run = runs_in(uri)["margin"]
    assert run.data.params["train.loss.name"] == "margin"
    assert run.data.tags["outdated"] == "train.batch_size"


def test_tracking_that_is_off_or_fails_leaves_a_table_alone(params, monkeypatch, capsys):
    config = write_table(params)
    with closed_port() as away:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", away)
        track("tried", {**config, "tracking": "False"})
        assert capsys.readouterr().out == ""
        track("tried", config)
    assert f"MLflow: {away} is away" in capsys.readouterr().out
    assert not (params.parent / "mlflow.db").exists()


def mini_and_small(params):
    for scale in ("mini", "small"):
        for recipe in ("margin", "margin_diml"):
            path = params.parent / "results" / scale / "metrics" / recipe / "figurines_birds" / "seed0.json"
            write_json(path, {"best": {"R@1": 0.5}, "last": {"R@1": 0.25}})
    return params.parent / "results" / "mini" / "metrics" / "margin" / "figurines_birds" / "seed0.json"


@pytest.mark.parametrize("content", ["{", '{"best": {}}', '{"best": {"R@1": "x"}, "last": {}}', "[]"])
def test_scores_that_cannot_be_read_are_named_and_all_others_sent(params, uri, capsys, content):
    broken = mini_and_small(params)
    broken.write_text(content)
    status, told = sync(capsys)
    assert status == 1
    assert told.err.startswith(f"mini: margin@figurines_birds#0 is not sent: {broken} ")
    assert told.err.count("\n") == 1 and "Remove it, and the next call makes it again" in told.err
    assert told.out.splitlines() == ["mini: 2 runs: 1 sent; 0 tables", "small: 2 runs: 2 sent; 0 tables"]
    assert runs_in(uri).keys() == {"margin_diml"}
    write_json(broken, {"best": {"R@1": 0.5}, "last": {"R@1": 0.25}})
    assert sync(capsys)[0] == 0
    assert runs_in(uri).keys() == {"margin", "margin_diml"}


def test_a_history_and_a_copy_beside_a_result_end_one_run_each(params, uri, capsys):
    scores = mini_and_small(params)
    shutil.copy(scores, scores.with_name("seed0 (copy).json"))
    history = Path(result(params.parent, "models", "margin_diml", "csv"))
    history.parent.mkdir(parents=True)
    write_tensors(history.with_suffix(".safetensors"), {}, {})
    history.write_text("epoch,loss\n1,a\n")
    status, told = sync(capsys)
    assert status == 1
    first, second = told.err.splitlines()
    assert first.startswith("mini: margin@figurines_birds#0 (copy) is not sent: ") and "names no seed" in first
    assert second.startswith(f"mini: margin_diml@figurines_birds#0 is not sent: {history} does not hold the numbers")
    assert told.out.splitlines() == ["mini: 2 runs: 1 sent; 0 tables", "small: 2 runs: 2 sent; 0 tables"]


@pytest.mark.parametrize("content", ["name: own\n  x: [", "name: own\nname: b\n", "name: small\nrecipee: {}\n"])
def test_a_broken_overlay_ends_its_own_scale_alone(params, uri, capsys, content):
    mini_and_small(params)
    overlay = params / "own.yaml"
    overlay.write_text(content)
    status, told = sync(capsys, "--configfile", str(overlay))
    assert status == 1
    assert str(overlay) in told.err.splitlines()[0] or "recipee" in told.err
    assert told.err.count("\n") == 1
    assert "mini: 2 runs: 2 sent; 0 tables" in told.out


def test_a_broken_scale_ends_itself_alone(params, uri, capsys):
    mini_and_small(params)
    (params / "scales" / "small.yaml").write_text("title: [")
    status, told = sync(capsys)
    assert status == 1
    assert told.err.startswith("small: 2 runs not sent: ") and "small.yaml, line 2: is no valid YAML" in told.err
    assert told.out == "mini: 2 runs: 2 sent; 0 tables\n"
