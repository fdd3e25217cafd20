"""The gate of regression knows its traces and its references."""

import pytest

from lookalike.plan.gate import Gate
from lookalike.plan.inputs import Inputs
from lookalike.plan.plan import Plan
from lookalike.settings.call import Configuration
from lookalike.settings.files import read


@pytest.fixture
def gate():
    return Gate(Inputs(Plan({**read("params/config.yaml", Configuration).dump(), "scale": "ci", "tracking": False})))


def test_every_recipe_of_the_tables_has_a_trace_that_is_compared_where_one_is_committed(gate):
    assert gate.traces()["margin@figurines_few_birds"] == "results/ci/traces/margin/figurines_few_birds.json"
    assert gate.compared_traces() == gate.traces()
    assert (gate.reference, gate.reference_traces) == (
        "results/reference/ci.json",
        "results/reference/ci_traces.json",
    )


def test_without_committed_traces_none_is_compared(gate, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert gate.compared_traces() == {}
    assert gate.traces()


def test_other_committed_numbers_or_traces_are_another_comparison(gate, tmp_path, monkeypatch):
    assert gate.committed().keys() == {gate.reference, gate.reference_traces}
    monkeypatch.chdir(tmp_path)
    assert gate.committed() == {}
    (tmp_path / "results" / "reference").mkdir(parents=True)
    (tmp_path / gate.reference).write_text("[]")
    before = gate.committed()
    (tmp_path / gate.reference).write_text("[1]")
    assert before.keys() == gate.committed().keys() == {gate.reference}
    assert before != gate.committed()


def test_settings_that_were_measured_are_found_by_their_folders(gate, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert gate.measured_files() == []
    (tmp_path / "results" / "ci_torch2.13_avx2_1").mkdir(parents=True)
    (files,) = gate.measured_settings().values()
    assert files.keys() == set(gate.plan.table_names)
    assert gate.measured_files() == list(files.values())
