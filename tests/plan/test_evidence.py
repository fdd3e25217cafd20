"""Tables, figures, claims and fidelity name the runs that they rest on, and refuse results of older code."""

import json
from types import SimpleNamespace as Names

import pytest

from lookalike.plan.evidence import Evidence
from lookalike.plan.figures import Figures
from lookalike.plan.inputs import Inputs
from lookalike.plan.plan import Plan
from lookalike.reports.claims import Claims
from lookalike.reports.fidelity import Trials
from lookalike.settings.call import Configuration
from lookalike.settings.files import read


def evidence_of(recorded=lambda file: True, **config):
    config = {**read("params/config.yaml", Configuration).dump(), "scale": "mini", "tracking": False, **config}
    return Evidence(Inputs(Plan(config)), recorded)


@pytest.fixture(scope="module")
def evidence():
    return evidence_of(tables=["diml_1"])


def test_a_table_has_a_file_of_metrics_for_every_run(evidence):
    named = Names(table="diml_1")
    files = evidence.metrics_of_table(named)
    runs = evidence.runs_of_table(named, Names(metrics=files))
    assert len(files) == len(runs) == len(evidence.plan.runs_of("diml_1"))
    assert [run["metrics_file"] for run in runs] == files
    assert all(run["code_today"] for run in runs)
    assert evidence.table_files() == {"diml_1": "results/mini/tables/diml_1.csv"}


def test_an_unknown_table_or_figure_is_refused_with_the_nearest(evidence):
    with pytest.raises(ValueError, match=r"unknown 'dimel_1', did you mean 'diml_1'"):
        evidence.metrics_of_table(Names(table="dimel_1"))
    with pytest.raises(ValueError, match=r"figures with data at scale mini: unknown 'avsl_5', did you mean 'avsl_5"):
        Figures(evidence).files(Names(figure="avsl_5"))


def test_tables_of_a_family_are_those_of_its_sweeps(evidence):
    files = evidence.tables_of_family("ablations")(None)
    names = {name for name, sweep in evidence.plan.sweeps.items() if sweep.family == "ablations"}
    assert {file.removeprefix("results/mini/tables/").rpartition(".")[0] for file in files} == names
    assert len(files) == 3 * len(names)


def test_both_sides_of_claims_and_trials_stand_in_one_order(evidence):
    claims = Claims(evidence)
    changed, baseline = claims.files("changed")(None), claims.files("baseline")(None)
    runs = claims.runs(None, Names(changed=changed, baseline=baseline))
    assert len(runs) == len(changed) == len(baseline) > 0
    of_trials = Trials(evidence)
    tried, unchanged = (of_trials.metrics(side)(None) for side in ("recipe", "unchanged"))
    trials = of_trials.runs(None, Names(metrics=tried, metrics_unchanged=unchanged))
    assert len(trials) == len(tried) == len(unchanged) > 0
    assert all(f"/{run['dataset']}/seed{run['seed']}" in file for run, file in zip(trials, tried, strict=True))


def test_a_figure_reads_files_in_the_order_of_its_runs(evidence):
    named = Names(figure="contextual_15")
    figures = Figures(evidence)
    files = figures.files(named)
    assert len(figures.runs(named, files)) == len(files)
    assert all(file.endswith(".csv") for file in files)
    assert figures.threads(named) == 1
    assert figures.code(named) != figures.code(Names(figure="avsl_10"))


def test_metrics_of_older_code_without_a_record_are_refused(params, monkeypatch):
    monkeypatch.chdir(params.parent)
    named = Names(table="diml_1")
    evidence = evidence_of(recorded=lambda file: False, tables=["diml_1"])
    files = evidence.metrics_of_table(named)
    evidence.runs_of_table(named, Names(metrics=files))  # files that are not there yet are nobody's
    file = params.parent / files[0]
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"code": "of another day"}))
    with pytest.raises(ValueError, match=r"made by older code, of another day, not today's"):
        evidence.runs_of_table(named, Names(metrics=files))
    evidence_of(tables=["diml_1"]).runs_of_table(named, Names(metrics=files))
