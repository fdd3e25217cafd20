"""MLflow gets a copy of every run, and can fail without failing the run."""

import os
import subprocess
import sys

import pytest

from lookalike.tracking import (
    IDENTITY,
    LONGEST_TAG,
    Tracked,
    Uses,
    copies_of,
    copy_of,
    metric_name,
    tag_runs,
    with_cells,
)

TAGS = {"scale": "mini", "recipe": "margin", "dataset": "birds", "seed": "0", "experiment": "diml"}
LOG = """
import sys
from lookalike.tracking import Tracked
tags = {"scale": "mini", "recipe": sys.argv[1], "dataset": "birds", "seed": "0", "experiment": "diml"}
with Tracked(tags, {"loss": {"name": "margin"}}) as tracked:
    for epoch in range(5):
        tracked.epoch({"epoch": epoch + 1, "loss": 1.0 / (epoch + 1), "R@1": 0.5})
"""


@pytest.fixture
def client(tmp_path, monkeypatch):
    import mlflow

    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    (tmp_path / "params").mkdir()
    (tmp_path / "Snakefile").touch()
    monkeypatch.chdir(tmp_path)
    yield lambda: mlflow.MlflowClient(uri)


def runs(client):
    known = client().get_experiment_by_name("diml")
    return client().search_runs([known.experiment_id]) if known else []


@pytest.mark.slow
def test_a_run_has_its_settings_history_and_tags(client, tmp_path):
    with Tracked(TAGS, {"loss": {"name": "margin", "margin": 0.2}}) as tracked:
        tracked.epoch({"epoch": 1, "loss": 2.0})
        tracked.epoch({"epoch": 2, "loss": 1.0, "R@1": 0.25})
        (tmp_path / "history.csv").write_text("epoch,loss\n")
        tracked.artifact(str(tmp_path / "history.csv"))
    (run,) = runs(client)
    assert run.info.status == "FINISHED"
    assert run.data.params == {"loss.name": "margin", "loss.margin": "0.2"}
    assert run.data.metrics == {"loss": 1.0, "R_at_1": 0.25}
    history = client().get_metric_history(run.info.run_id, "loss")
    assert [(point.step, point.value) for point in history] == [(1, 2.0), (2, 1.0)]
    assert TAGS.items() <= run.data.tags.items()
    assert {"commit", "hardware", "torch"} <= run.data.tags.keys()
    assert [file.path for file in client().list_artifacts(run.info.run_id)] == ["history.csv"]


@pytest.mark.slow
def test_a_repeated_run_replaces_its_older_self_and_a_later_stage_goes_on_with_it(client):
    for value in (1.0, 2.0):
        with Tracked(TAGS, {}) as tracked:
            tracked.metrics({"loss": value})
    with Tracked(TAGS, {}, existing=True) as tracked:
        tracked.metrics({"best/R@1": 0.5})
    (run,) = runs(client)
    assert run.data.metrics == {"loss": 2.0, "best/R_at_1": 0.5}


@pytest.mark.slow
def test_processes_that_meet_an_empty_database_lose_no_run(client):
    command = [sys.executable, "-c", LOG]
    names = [f"recipe{number}" for number in range(8)]
    jobs = [subprocess.Popen([*command, name], env=os.environ, stdout=subprocess.PIPE) for name in names]
    assert all("MLflow" not in job.communicate()[0].decode() for job in jobs)
    found = runs(client)
    assert sorted(run.data.tags["recipe"] for run in found) == names
    assert all(len(client().get_metric_history(run.info.run_id, "loss")) == 5 for run in found)


@pytest.mark.slow
def test_a_failing_server_is_reported_and_changes_nothing(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'file' / 'mlflow.db'}")
    reached = False
    with Tracked(TAGS, {}) as tracked:
        tracked.epoch({"epoch": 1, "loss": 2.0})
        reached = True
    assert reached
    assert "this run is tracked no further" in capsys.readouterr().out


def test_a_failing_run_is_not_hidden():
    with pytest.raises(ValueError, match="its own"), Tracked({}, {}):
        raise ValueError("its own")


def test_metric_names_are_spelt_as_mlflow_allows():
    assert metric_name("MAP@R") == "MAP_at_R"


def uses(recipe="margin", cells=("Margin/cub",), **parameters):
    identity = {key: TAGS[key] for key in IDENTITY} | {"recipe": recipe}
    return Uses(identity, [recipe], list(cells), parameters, {"settings": "0123456789ab", "code": "abc"})


@pytest.mark.slow
def test_tables_add_up_on_the_tags_of_a_run_and_replace_only_what_they_said_themselves(client):
    with Tracked(TAGS, {"train": {"epochs": 4}}):
        pass
    tag_runs("one", [uses(cells=["Margin/cub", "Old/cub"])])
    tag_runs("two", [uses(cells=["Again/cub"]), uses("unknown")])
    tag_runs("one", [uses(cells=["Margin/cub"])])
    (run,) = runs(client)
    assert run.data.tags["tables"] == "one/Margin/cub; two/Again/cub"
    assert (run.data.tags["recipes"], run.data.tags["settings"]) == ("margin", "0123456789ab")
    assert "outdated" not in run.data.tags


@pytest.mark.slow
def test_parameters_are_completed_and_those_that_cannot_be_changed_are_named(client):
    with Tracked(TAGS, {"train": {"epochs": 4}}):
        pass
    tag_runs("one", [uses(**{"train.epochs": "4", "evaluate.scoring.name": "cosine"})])
    (run,) = runs(client)
    assert run.data.params == {"train.epochs": "4", "evaluate.scoring.name": "cosine"}
    tag_runs("one", [uses(**{"train.epochs": "4", "evaluate.scoring.name": "graph"})])
    (run,) = runs(client)
    assert run.data.tags["outdated"] == "evaluate.scoring.name"
    tag_runs("one", [uses(**{"train.epochs": "4", "evaluate.scoring.name": "cosine"})])
    assert runs(client)[0].data.tags["outdated"] == ""


@pytest.mark.slow
def test_a_run_is_read_back_by_its_id_and_by_its_tags(client):
    with Tracked(TAGS, {"train": {"epochs": 4}}) as tracked:
        tracked.metrics({"best/R@1": 0.5})
    (run,) = runs(client)
    copy = copy_of(run.info.run_id)
    assert (copy.parameters, copy.metrics) == ({"train.epochs": "4"}, {"best/R_at_1": 0.5})
    assert copy.tags.keys() >= TAGS.keys()
    identity = {key: TAGS[key] for key in IDENTITY}
    assert copies_of([identity, identity | {"seed": "1"}]) == [copy, None]
    with pytest.raises(ValueError, match="0000 not found"):
        copy_of("0" * 32)


@pytest.mark.slow
def test_tags_that_cannot_be_written_fail_nothing(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'file' / 'mlflow.db'}")
    tag_runs("one", [uses()])
    assert "the runs of one are not all tagged" in capsys.readouterr().out


def test_of_the_longest_tables_only_the_number_of_cells_is_left_where_a_tag_is_too_long():
    short, long = ["Margin/cub"], [f"a rather long label number {number}/cub" for number in range(200)]
    tag = with_cells(with_cells("", "short", short), "long", long)
    assert tag == "long/200 cells; short/Margin/cub"
    assert with_cells(tag, "long", ["Margin/cub"]) == "long/Margin/cub; short/Margin/cub"
    many = ""
    for number in range(1000):
        many = with_cells(many, f"table_{number}", short)
        assert len(many) <= LONGEST_TAG
