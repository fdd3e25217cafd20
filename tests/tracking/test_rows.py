"""The rows of a table are found in MLflow."""

import json

import pytest

from lookalike.settings.files import read_entries
from lookalike.settings.tables import Table
from lookalike.tracking import Tracked, Uses, View, tag_runs
from lookalike.tracking.client import LONGEST_TAG
from lookalike.tracking.rows import with_entries
from projects import ROOT
from tracked import IDENTITY, closed_port, runs_in


def uses(recipe="margin", rows=("Margin",), **parameters):
    return Uses(IDENTITY | {"recipe": recipe}, list(rows), parameters, {"paper": "diml"}, "snakemake some/file.json")


def tracked(recipe="margin", epochs=4):
    with Tracked(f"results/mini/models/{recipe}/figurines_birds/seed0.safetensors", {"settings": {"epochs": epochs}}):
        pass


def view(table):
    return View(table, ["R@1", "MAP@R"])


@pytest.mark.slow
def test_the_rows_of_a_table_are_found_by_its_saved_search_and_not_by_that_of_a_similar_name(uri):
    import mlflow

    for recipe in ("margin", "proxy_anchor"):
        tracked(recipe)
    tag_runs("mini", view("avsl_1"), [uses(rows=["Margin", "Again"]), uses("unknown")])
    tag_runs("mini", view("avsl_10"), [uses("proxy_anchor", rows=["ProxyAnchor"])])
    tag_runs("mini", view("avsl_1"), [uses(rows=["Margin"])])
    client = mlflow.MlflowClient(uri)
    experiment = client.get_experiment_by_name("lookalike-mini")
    [found] = client.search_runs([experiment.experiment_id], view("avsl_1").filter)
    assert (found.data.tags["recipe"], found.data.tags["rows"]) == ("margin", "| avsl_1: Margin |")
    [found] = client.search_runs([experiment.experiment_id], "tags.rows LIKE '%| avsl_10: ProxyAnchor |%'")
    assert found.data.tags["tables"] == "| avsl_10 |"
    assert "snakemake some/file.json" in found.data.tags["mlflow.note.content"]
    # MLflow's page opens each table by a link in the experiment's description.
    for table in ("avsl_1", "avsl_10"):
        assert f"viewStateShareKey={table})" in experiment.tags["mlflow.note.content"]
        state = json.loads(experiment.tags[f"mlflow.sharedViewState.{table}"])
        assert state["searchFilter"] == f"tags.tables LIKE '%| {table} |%'"
        assert state["orderByKey"] == "metrics.`best/R_at_1`"


@pytest.mark.slow
def test_parameters_are_completed_and_those_that_cannot_be_changed_are_named(uri):
    tracked()
    tag_runs("mini", view("one"), [uses(**{"train.epochs": "4", "evaluate.scoring.name": "cosine"})])
    run = runs_in(uri)["margin"]
    assert run.data.params == {"train.epochs": "4", "evaluate.scoring.name": "cosine"}
    assert "outdated" not in run.data.tags
    for scoring, outdated in (("graph", "evaluate.scoring.name"), ("cosine", "")):
        tag_runs("mini", view("one"), [uses(**{"train.epochs": "4", "evaluate.scoring.name": scoring})])
        assert runs_in(uri)["margin"].data.tags["outdated"] == outdated


def test_tags_that_cannot_be_written_fail_nothing(params, monkeypatch, capsys):
    with closed_port() as away:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", away)
        tag_runs("mini", view("one"), [uses()])
    assert f"MLflow: {away} is away" in capsys.readouterr().out


def test_tables_add_up_and_replace_only_what_they_said_themselves():
    tag = with_entries("", "two", ["two: Margin, k = 2: once"])
    tag = with_entries(tag, "one", ["one: Old"])
    assert with_entries(tag, "one", ["one: A | B"]) == "| one: A / B | two: Margin, k = 2: once |"


def test_of_the_longest_tables_only_the_number_of_rows_is_left_where_a_tag_is_too_long():
    long = [f"long: a rather long label number {number}" for number in range(200)]
    tag = with_entries(with_entries("", "short", ["short: Margin"]), "long", long)
    assert tag == "| long: 200 rows | short: Margin |"
    assert with_entries(tag, "long", ["long: Margin"]) == "| long: Margin | short: Margin |"
    many = ""
    for number in range(1000):
        many = with_entries(many, f"table_{number}", [f"table_{number}: Margin"])
        assert len(many) <= LONGEST_TAG


def test_the_docs_hold_the_search_of_every_table():
    page = (ROOT / "docs" / "mlflow.md").read_text()
    entries = [read_entries(path, Table) for path in sorted((ROOT / "params" / "tables").glob("*.yaml"))]
    names = [name for entry in entries for name in entry]
    assert [name for name in names if f" {view(name).filter}\n" not in page] == []
    assert page.count("tags.tables LIKE") == len(names) + 1  # and a sweep
