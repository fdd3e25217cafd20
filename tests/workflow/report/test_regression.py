"""The gate closes on a loss, on a mistake in the code and on a trace that differs, and on nothing else."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lookalike.losses.pairwise import MarginLoss
from lookalike.metrics.search import SearchOfClasses
from lookalike.workflow.plan.inputs import Inputs
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.report.regression import (
    Gate,
    compare,
    compare_printed,
    lost,
    record,
    regression,
    trace_difference,
    trace_differences,
    traces_text,
    unbroken,
)
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.files import read
from lookalike.workflow.settings.layers import merge
from lookalike.workflow.settings.recipes import Embed, Evaluate
from lookalike.workflow.stages.evaluate import evaluate
from lookalike.workflow.stages.train import train
from trainings import section

CELL = {"table": "t", "dataset": "cub", "metric": "R@1", "tolerance": 3.0}
REFERENCE = [
    {**CELL, "label": "Margin", "value": 60.0},
    {**CELL, "label": "Steady", "value": 50.0, "tolerance": 0.4},
    {**CELL, "label": "Usual", "value": 40.0},
]
TRACE = {"loss": [2.0, 1.0, 0.5], "metrics/R@1": [0.25], "gradient/proxies": [0.0, 0.0]}
BUDGET = {"epochs": 1, "batches_per_epoch": 10}
OVER = {
    "batch_size": 24,
    "sampler": {"per_class": 4},
    "image": {"scale": [0.8, 1.0], "flip": 0.0},
    "optimiser": {"lr": {"trunk": 2e-3, "head": 2e-3}},
    "budget": BUDGET,
}
METRICS = ("R@1", "MAP@R")


def tables(**means):
    rows = [{"label": label, "mean": mean} for label, mean in means.items()]
    return {"t": pd.DataFrame(rows).assign(dataset="cub", metric="R@1", std=0.5, n=3, queries=500)}


def verdicts(**means):
    return dict(compare(tables(**means), REFERENCE)[["label", "verdict"]].itertuples(index=False))


def test_a_cell_may_move_by_its_own_tolerance():
    inside = {"Margin": 57.1, "Steady": 49.7, "Usual": 42.9}
    assert set(verdicts(**inside).values()) == {"pass"}
    assert set(verdicts(Margin=56.9, Steady=49.5, Usual=36.9).values()) == {"worse"}
    assert set(verdicts(Margin=63.1, Steady=50.5, Usual=43.1).values()) == {"better"}


def test_what_a_method_adds_is_held_against_a_tolerance_of_its_own():
    frame = tables(Margin=60.0, Method=61.0)["t"].assign(against=[None, "Margin"], against_difference=[np.nan, 1.0])
    gain = {**CELL, "label": "Method", "metric": "R@1 over Margin", "value": 5.0, "tolerance": 0.5}
    reference = [REFERENCE[0], {**CELL, "label": "Method", "value": 61.0}, gain]
    closed = lost(compare({"t": frame}, reference))
    assert list(closed[["label", "metric"]].itertuples(index=False)) == [("Method", "R@1 over Margin")]


def test_a_missing_cell_closes_the_gate_and_a_new_or_better_one_does_not():
    comparison = compare(tables(Margin=64.0, Usual=40.0, Fresh=10.0), REFERENCE)
    assert dict(comparison[["label", "verdict"]].itertuples(index=False)) == {
        "Margin": "better",
        "Usual": "pass",
        "Steady": "missing",
        "Fresh": "new",
    }
    assert list(lost(comparison)["label"]) == ["Steady"]


def test_a_cell_that_is_too_good_closes_the_gate():
    comparison = compare(tables(Margin=65.0, Usual=40.0, Steady=50.0), REFERENCE)
    assert list(lost(comparison)[["label", "verdict"]].itertuples(index=False)) == [("Margin", "suspicious")]


def printed(difference, std=None, published_std=None):
    cells = tables(Margin=60.0)["t"].assign(std=std, published_std=published_std, difference=difference)
    return list(compare_printed({"t": cells.assign(published=cells["mean"] - (difference or 0))})["verdict"])


def test_a_printed_number_is_held_against_the_larger_deviation_of_both_sides():
    assert printed(-2.9, std=1.0, published_std=0.1) == printed(-2.9, std=0.1, published_std=1.0) == ["pass"]
    assert printed(-3.1, std=1.0) == ["worse"]
    assert printed(3.1, published_std=1.0) == ["better"]


def test_a_printed_number_without_any_deviation_is_undecided_and_one_of_another_set_up_left_out():
    assert printed(-30.0) == ["undecided"]
    assert printed(None, std=1.0) == []


@pytest.fixture
def gate():
    return Gate(Inputs(Plan({**read("params/config.yaml", Configuration).dump(), "scale": "ci", "tracking": False})))


def test_every_recipe_of_the_tables_has_a_trace_that_is_compared_where_one_is_committed(gate):
    assert gate.traces()["margin@figurines_few_birds"] == "results/ci/traces/margin/figurines_few_birds.json"
    assert gate.compared_traces() == gate.traces()
    assert (gate.reference, gate.reference_traces) == (
        "results/reference/ci/numbers.json",
        "results/reference/ci/traces.json",
    )


def test_without_committed_traces_none_is_compared(gate, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert gate.compared_traces() == {}
    assert gate.traces()


def test_other_committed_numbers_or_traces_are_another_comparison(gate, tmp_path, monkeypatch):
    assert gate.committed().keys() == {gate.reference, gate.reference_traces}
    monkeypatch.chdir(tmp_path)
    assert gate.committed() == {}
    (tmp_path / gate.reference).parent.mkdir(parents=True)
    (tmp_path / gate.reference).write_text("[]")
    before = gate.committed()
    (tmp_path / gate.reference).write_text("[1]")
    assert before.keys() == gate.committed().keys() == {gate.reference}
    assert before != gate.committed()


def test_committed_claims_are_made_anew_and_a_scale_without_anything_committed_is_refused(gate, tmp_path, monkeypatch):
    assert (gate.claims(), gate.tables().keys()) == ([], set(gate.plan.table_names))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ValueError, match=r"^ci: no row has the printed set-up, and .*/ci/claims\.csv is not there, .*`adopt`"
    ):
        gate.tables()
    held = tmp_path / gate.reference_claims
    held.parent.mkdir(parents=True)
    held.write_text("claim,difference,seeds_error,seeds_freedom\n")
    assert (gate.claims(), gate.tables()) == ("results/ci/held/claims.csv", {})
    assert gate.committed().keys() == {gate.reference_claims}
    held.write_text("claim,difference\n")
    with pytest.raises(ValueError, match=r"older code: it lacks seeds_error and seeds_freedom, .* make it anew$"):
        gate.claims()


def test_claims_are_held_on_birds_alone_unless_a_call_takes_all_or_there_are_none():
    mini = {**read("params/config.yaml", Configuration).dump(), "scale": "mini", "tracking": False}
    gates = [Gate(Inputs(Plan({**mini, **each}))) for each in ({}, {"held": "all"}, {"only": ["figurines_products"]})]
    assert [gate.held for gate in gates] == [
        ["figurines_birds"],
        *([*each.plan.datasets] for each in gates[1:]),
    ]


def test_a_report_says_which_claims_it_left_out(tmp_path):
    file, report = tmp_path / "claims.csv", tmp_path / "report.md"
    row = {"claim": "raises", "changed": "a", "baseline": "b", "metric": "R@1", "queries": 2000, "difference": 4.0}
    row |= {"seeds": 3, "seeds_error": 0.5, "seeds_freedom": 9.0, "rp_difference": None}
    row |= {f"rp_{name}": None for name in ("seeds", "seeds_error", "seeds_freedom")}
    pd.DataFrame([{**row, "dataset": name} for name in ("birds", "cars")]).to_csv(file, index=False)
    regression({}, report=str(report), claims=str(file), reference_claims=str(file), held=["birds", "cars"])
    assert "## Gains against the committed ones on birds, cars\n" in report.read_text()
    regression({}, report=str(report), claims=str(file), reference_claims=str(file), held=["birds"])
    assert "## Gains against the committed ones on birds, without cars\n" in report.read_text()


def test_a_scale_with_the_papers_set_up_is_held_against_print():
    plan = Plan({**read("params/config.yaml", Configuration).dump(), "scale": "paper", "tracking": False})
    assert Gate(Inputs(plan)).tables().keys() == set(plan.table_names)


def test_nothing_compared_is_no_open_gate(tmp_path):
    file = tmp_path / "t.csv"
    frame = tables(Margin=60.0)["t"].assign(published=None, published_std=None, difference=None)
    frame.to_csv(file, index=False)
    with pytest.raises(ValueError, match=r"nothing was compared$"):
        regression({"t": str(file)}, report=str(tmp_path / "report.md"))


def test_settings_that_were_measured_are_found_by_their_folders(gate, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert gate.measured_files() == []
    (tmp_path / "results" / "ci_torch2.13_avx2_1").mkdir(parents=True)
    (files,) = gate.measured_settings().values()
    assert files.keys() == set(gate.plan.table_names)
    assert gate.measured_files() == list(files.values())


def test_a_ten_millionth_of_the_largest_number_is_no_difference():
    assert trace_difference({**TRACE, "loss": [2.0, 1.0, 0.5 + 1e-7]}, TRACE) == ""


@pytest.mark.parametrize("off", [1e-5, float("nan"), float("inf")])
def test_a_difference_names_quantity_place_reference_and_found(off):
    line = trace_difference({**TRACE, "loss": [2.0, 1.0 + off, 0.5]}, TRACE)
    assert line == f"loss[1]: reference 1, found {1 + off:.9g}"


def test_a_zero_may_be_what_rounding_left_of_it():
    assert trace_difference({**TRACE, "gradient/proxies": [1e-15, 0.0]}, TRACE) == ""
    assert trace_difference({**TRACE, "gradient/proxies": [1e-9, 0.0]}, TRACE)


def test_a_missing_quantity_and_another_number_of_steps_differ():
    assert "loss: the reference has it" in trace_difference({"metrics/R@1": [0.25]}, TRACE)
    assert trace_difference({**TRACE, "loss": [2.0]}, TRACE) == "loss: reference of 3 numbers, found 1"


def test_a_trace_that_is_gone_differs_and_a_new_one_does_not():
    found = {"margin@cub": TRACE, "new@cub": TRACE}
    assert trace_differences(found, {"margin@cub": TRACE}) == {}
    assert list(trace_differences(found, {"gone@cub": TRACE})) == ["gone@cub"]


def test_the_text_reads_back_as_the_same_traces():
    traces = {"margin@cub": {"loss": [1 / 3, 2e-20]}, "triplet@cub": TRACE}
    assert trace_differences(json.loads(traces_text(traces)), traces) == {}


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    """Waves: a class is their direction, half of the directions are for testing."""
    folder = tmp_path_factory.mktemp("waves")
    generator, (y, x) = np.random.default_rng(0), np.mgrid[:30, :30]
    lines = ["path,label,role"]
    for label in range(24):
        across = x * np.cos(np.pi * label / 24) + y * np.sin(np.pi * label / 24)
        for number in range(8):
            wave = np.sin(generator.uniform(0.7, 1.0) * across + generator.uniform(0, 2 * np.pi))
            pixels = 128 + wave[..., None] * generator.uniform(40, 110, 3) + generator.normal(0, 25, (30, 30, 3))
            Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(folder / f"{label}-{number}.png")
            lines.append(f"{label}-{number}.png,{label},{'test' if label % 2 else 'train'}")
    path = folder / "manifest.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def table(folder, manifest, nudge=0.0):
    """The cells of a table with one row, measured by the stages, as a file.

    A learning rate that is off by a millionth stands for a machine that rounds differently.
    """
    folder.mkdir()
    model, metrics = str(folder / "model"), str(folder / "metrics")
    data = {"manifest": str(manifest), "root": str(manifest.parent)}
    kept = {"history": str(folder / "history.csv"), "resume": str(folder / ".unfinished")}
    nudged = merge(OVER, {"optimiser": {"lr": {"head": 2e-3 * (1 + nudge)}}})
    train(section("embedder", nudged), seed=0, code="c", **data, model=model, **kept)
    embedded = Embed(batch_size=64, representation={"name": "own"}, training_pictures=False)
    settings = {"count_query_in_r": False, "nmi": False, "scoring": {"name": "cosine"}}
    evaluate(Evaluate(**settings), embedded=embedded, recall_at=[1], model=model, **data, metrics=metrics)
    found = json.loads((folder / "metrics").read_text())
    rows = [
        {"label": "Margin", "dataset": "cub", "metric": metric, "n": 1, "queries": found["queries"]}
        | {"mean": 100 * found["last"][metric], "std": None}
        for metric in METRICS
    ]
    path = folder / "table.csv"
    pd.DataFrame(rows).assign(difference=None, published=None, published_std=None).to_csv(path, index=False)
    return {"table": str(path)}


@pytest.fixture(scope="module")
def settings(tmp_path_factory, manifest):
    """Tables of five settings that round differently."""
    folder = tmp_path_factory.mktemp("settings")
    return {f"s{number}": table(folder / str(number), manifest, number * 1e-6) for number in range(5)}


@pytest.fixture(scope="module")
def four(settings):
    return {name: settings[name] for name in sorted(settings)[:4]}


@pytest.fixture(scope="module")
def reference(tmp_path_factory, four):
    path = str(tmp_path_factory.mktemp("reference") / "reference.json")
    record(four, reference=path)
    return path


def test_without_a_mistake_another_rounding_passes(tmp_path, manifest, reference):
    regression(table(tmp_path / "runs", manifest, 7e-6), reference=reference, report=str(tmp_path / "report.md"))
    assert "2 pass." in (tmp_path / "report.md").read_text()


def test_a_margin_with_the_wrong_sign_closes_the_gate(tmp_path, manifest, reference, monkeypatch, capsys):
    right = MarginLoss.forward
    monkeypatch.setattr(MarginLoss, "forward", lambda self, *batch: -right(self, *batch))
    tables = table(tmp_path / "runs", manifest)
    with pytest.raises(ValueError, match="2 of 2 numbers are worse, too good or missing"):
        regression(tables, reference=reference, report=str(tmp_path / "report.md"))
    assert "worse" in capsys.readouterr().out
    assert not (tmp_path / "report.md").exists()


def test_self_matches_counted_close_the_gate_though_every_number_rises(
    tmp_path, manifest, reference, monkeypatch, capsys
):
    monkeypatch.setattr("lookalike.workflow.stages.evaluate.SearchOfClasses", _with_self_matches)
    tables = table(tmp_path / "runs", manifest)
    with pytest.raises(ValueError, match="numbers are worse, too good or missing"):
        regression(tables, reference=reference, report=str(tmp_path / "report.md"))
    assert "suspicious" in capsys.readouterr().out


def test_a_trace_that_differs_closes_the_gate_with_one_line_that_says_where(tmp_path, manifest, reference):
    tables = table(tmp_path / "runs", manifest, 7e-6)
    (tmp_path / "committed.json").write_text('{"margin@cub": {"loss": [0.5, 0.25], "scores": [1.0]}}')
    (tmp_path / "trace.json").write_text('{"loss": [0.5, 0.250001], "scores": [1.0]}')
    traces = {
        "traces": {"margin@cub": str(tmp_path / "trace.json")},
        "reference_traces": str(tmp_path / "committed.json"),
    }
    line = r"^trace of margin@cub differs: loss\[1\]: reference 0.25, found 0.250001$"
    with pytest.raises(ValueError, match=line):
        regression(tables, reference=reference, report=str(tmp_path / "report.md"), **traces)


def test_unbroken_runs_are_held_against_each_other(tmp_path, settings, capsys):
    unbroken(settings, report=str(tmp_path / "unbroken.md"))
    assert "| s4" in (tmp_path / "unbroken.md").read_text()
    broken = pd.read_csv(settings["s4"]["table"])
    broken.assign(mean=broken["mean"] / 2).to_csv(tmp_path / "broken.csv", index=False)
    capsys.readouterr()
    with pytest.raises(ValueError, match=r"closes on unbroken runs: .*s4, see the log$"):
        unbroken({**settings, "s4": {"table": str(tmp_path / "broken.csv")}}, report=str(tmp_path / "broken.md"))
    assert not (tmp_path / "broken.md").exists()
    assert "| s4" in capsys.readouterr().out


def test_unbroken_runs_need_settings_to_be_held_against(tmp_path, four):
    for few in ({}, four):
        with pytest.raises(ValueError, match=rf"at least 4 others, found {len(few)} in all: run \.ci/reference$"):
            unbroken(few, report=str(tmp_path / "unbroken.md"))


def _with_self_matches(*arguments, **options):
    return SearchOfClasses(*arguments, **{**options, "self_match": False})
