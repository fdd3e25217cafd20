"""Tables, figures, claims and fidelity name the runs that they rest on, and refuse results of older code."""

from types import SimpleNamespace as Names

import pytest

from lookalike.workflow.plan.claims import Claims
from lookalike.workflow.plan.evidence import Evidence
from lookalike.workflow.plan.figures import Figures
from lookalike.workflow.plan.inputs import Inputs
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.report.fidelity import Trials
from lookalike.workflow.running.records import record_of
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.files import read
from recorded import leave


def evidence_of(recorded=lambda file: True, **config):
    config = {**read("params/config.yaml", Configuration).dump(), "scale": "mini", "tracking": False, **config}
    return Evidence(Inputs(Plan(config)), recorded)


@pytest.fixture(scope="module")
def evidence():
    return evidence_of(tables=["diml_1"])


def test_a_table_has_a_file_of_metrics_for_every_run(evidence):
    named = Names(table="diml_1")
    files = evidence.metrics_of_table(named)
    runs = evidence.runs_of_table(named)
    assert len(files) == len(runs) == len(evidence.plan.runs_of("diml_1"))
    assert [run["metrics_file"] for run in runs] == files
    assert all(run["today"]["code"] for run in runs)
    assert evidence.table_files() == {"diml_1": "results/mini/tables/diml_1.csv"}


def test_a_table_of_a_call_that_trains_nothing_has_what_is_there_and_names_the_other_rows(params):
    evidence, named = evidence_of(tables=["diml_3"], missing="say"), Names(table="diml_3")
    assert {run["trivial"] for run in evidence.runs_of_table(named)} == {True}
    assert evidence.entry_of_table(named)["remarks"][-1].startswith("Not run: Margin, ")
    model = params.parent / evidence.inputs.made("model", "margin", "figurines_birds", 0)
    model.parent.mkdir(parents=True)
    model.touch()
    assert {run["label"] for run in evidence.runs_of_table(named) if not run["trivial"]} == {
        "Margin",
        "Margin + DIML, test",
    }
    assert evidence_of(tables=["diml_3"]).entry_of_table(named)["remarks"] == evidence.plan.table("diml_3").remarks


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
    sides = {side: claims.files(side)(None) for side in ("changed", "baseline", "learned", "started", "mapped")}
    runs = claims.runs(None, Names(**sides))
    assert len(runs) == len(sides["changed"]) == len(sides["baseline"]) > 0
    learners = [(run["dataset"], run["seed"]) for run in runs for _ in run["learners"]]
    for side in ("learned", "started"):
        for (dataset, seed), file in zip(learners, sides[side], strict=True):
            assert f"/{dataset}/seed{seed}." in file
    assert len(sides["mapped"]) == 2 * sum(run["has_rca"] for run in runs)
    of_trials = Trials(evidence)
    tried, unchanged = (of_trials.metrics(side)(None) for side in ("recipe", "unchanged"))
    trials = of_trials.runs(None, Names(metrics=tried, metrics_unchanged=unchanged))
    assert len(trials) == len(tried) == len(unchanged) > 0
    assert all(f"/{run['dataset']}/seed{run['seed']}" in file for run, file in zip(trials, tried, strict=True))


def test_claims_on_one_data_set_are_those_of_all_that_are_about_it(evidence):
    claims = Claims(evidence)
    files = claims.files("changed")(None)
    narrowed = claims.on(["figurines_birds"])
    of_birds = narrowed.files("changed")(None)
    assert of_birds == [file for file in files if "/figurines_birds/" in file]
    assert 0 < len(of_birds) < len(files)
    assert (narrowed.datasets, narrowed.stated) == (["figurines_birds"], claims.stated)


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
    evidence.runs_of_table(named)  # files that are not there yet are nobody's
    today = evidence.inputs.today(*files[0].split("/")[3:5], 0)
    for file in files[:2]:
        leave(file, {}, code="of another day")
    message = rf"made by older code, of another day, not today's {today['code']}.*`snakemake {files[0]} {files[1]} --co"
    with pytest.raises(ValueError, match=rf"^{files[0]} \(and 1 more\): {message}"):
        evidence.runs_of_table(named)
    evidence_of(tables=["diml_1"]).runs_of_table(named)
    for file in files[:2]:
        leave(file, {}, code=evidence.inputs.today(*file.split("/")[3:5], 0)["code"])
    evidence.runs_of_table(named)  # what they do not say is no reason
    leave(files[0], {}, code=today["code"], settings="other")
    with pytest.raises(ValueError, match=r"made by other settings, other, not today's .*, and Snakemake"):
        evidence.runs_of_table(named)
    record_of(files[0]).unlink()
    with pytest.raises(ValueError, match=r"made by older code, without a digest, not today's"):
        evidence.runs_of_table(named)
