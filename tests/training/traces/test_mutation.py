"""Mutations fit the code as it is, and are seen."""

import shutil

import pytest

from lookalike.files import read_json
from lookalike.paths import PACKAGE, project_root
from lookalike.plan.plan import Plan
from lookalike.plan.traces import mutation_requests, read_mutations, trace_name, traced
from lookalike.settings.call import Configuration
from lookalike.settings.files import read
from lookalike.stages.mutation import mutation, overview
from lookalike.training.traces.mutation import edit_once, mutated_traces

REFERENCE = project_root() / "results" / "reference" / "ci_traces.json"


@pytest.fixture(scope="module")
def plan():
    return Plan({**read("params/config.yaml", Configuration).dump(), "scale": "ci"})


def test_there_are_twenty_and_each_text_stands_once_in_the_package(tmp_path):
    entries = read_mutations()
    assert len(entries) == 20
    for name, entry in entries.items():
        copy = tmp_path / name
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.html"))
        edit_once(copy, entry["find"], entry["replace"])


def test_every_recipe_of_the_tables_has_a_committed_trace(plan):
    assert set(read_json(REFERENCE)) == {trace_name(*run) for run in traced(plan)}


def test_every_mutation_is_looked_for_in_recipes_of_the_tables(plan):
    for name in read_mutations():
        assert mutation_requests(plan, name)


@pytest.mark.parametrize(("find", "count"), [("no such text anywhere", 0), ("import annotations", 2)])
def test_a_text_that_does_not_stand_once_is_refused(tmp_path, find, count):
    (tmp_path / "one.py").write_text("from __future__ import annotations\n")
    (tmp_path / "two.py").write_text("from __future__ import annotations\n")
    with pytest.raises(ValueError, match=rf"no longer applies: '.*' stands {count} times in the package"):
        edit_once(tmp_path, find, "")


def test_an_unknown_mutation_is_refused_with_the_nearest_name(plan):
    with pytest.raises(ValueError, match="margin_sign"):
        mutation_requests(plan, "margin_sing")


@pytest.mark.parametrize(
    ("python", "message"),
    [("false", "does not run: ended with status 1"), ("true", "ran '' in place of the changed copy")],
)
def test_a_process_that_ends_without_a_word_is_told(plan, monkeypatch, python, message):
    monkeypatch.setattr("sys.executable", shutil.which(python))
    entry = read_mutations()["margin_sign"]
    with pytest.raises(ValueError, match=message):
        mutated_traces(entry["find"], entry["replace"], mutation_requests(plan, "margin_sign"))


@pytest.mark.slow
def test_a_planted_mistake_closes_the_gate_and_a_harmless_edit_does_not(plan, tmp_path):
    requests = mutation_requests(plan, "margin_sign")
    request = {trace: requests[trace] for trace in list(requests)[:1]}
    entry, verdict = read_mutations()["margin_sign"], tmp_path / "verdict.json"
    plant = {"requests": request, "reference": str(REFERENCE), "verdict": str(verdict)}
    mutation(name="margin_sign", entry=entry, **plant)
    overview([str(verdict)], report=str(tmp_path / "report.md"))
    assert "closes on 1 of 1" in (tmp_path / "report.md").read_text()
    with pytest.raises(ValueError, match="mutation harmless passes the gate: the traces of margin@figurines_few_birds"):
        mutation(name="harmless", entry={**entry, "replace": entry["find"]}, **plant)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("replace", "failure"),
    [
        ("- boundary + )", "SyntaxError"),  # before anything is trained
        pytest.param("- boundary + self.no_such_margin)", "no_such_margin", marks=pytest.mark.nightly),
    ],
)
def test_a_mutation_that_does_not_run_is_no_closed_gate(plan, replace, failure):
    request = mutation_requests(plan, "margin_sign")
    with pytest.raises(ValueError, match=rf"does not run: .*{failure}"):
        mutated_traces("- boundary + self.margin)", replace, request)
