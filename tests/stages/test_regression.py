"""The gate closes when a mistake is planted in the code, and stays open without one."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lookalike.losses.pairwise import MarginLoss
from lookalike.metrics.search import SearchOfClasses
from lookalike.settings.layers import merge
from lookalike.stages.embed import embed
from lookalike.stages.evaluate import evaluate
from lookalike.stages.regression import record, regression, unbroken
from lookalike.stages.train import train
from trainings import section

BUDGET = {"epochs": 1, "batches_per_epoch": 10}
OVER = {
    "batch_size": 24,
    "sampler": {"per_class": 4},
    "image": {"scale": [0.8, 1.0], "flip": 0.0},
    "optimiser": {"lr": {"trunk": 2e-3, "head": 2e-3}},
    "budget": BUDGET,
}
METRICS = ("R@1", "MAP@R")


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
    model, embeddings, metrics = (str(folder / name) for name in ("model", "embeddings", "metrics"))
    data = {"manifest": str(manifest), "root": str(manifest.parent)}
    kept = {"history": str(folder / "history.csv"), "resume": str(folder / ".unfinished")}
    nudged = merge(OVER, {"optimiser": {"lr": {"head": 2e-3 * (1 + nudge)}}})
    train(section("embedder", nudged), seed=0, code="c", **data, model=model, **kept)
    settings = {"batch_size": 64, "representation": {"name": "own"}, "training_pictures": False}
    embed(settings, model=model, **data, embeddings=embeddings)
    settings = {"count_query_in_r": False, "scoring": {"name": "cosine"}}
    evaluate(settings, recall_at=[1], model=model, embeddings=embeddings, metrics=metrics)
    found = json.loads((folder / "metrics").read_text())
    rows = [
        {"label": "Margin", "dataset": "cub", "metric": metric, "n": 1, "queries": found["queries"]}
        | {"mean": 100 * found["best"][metric], "std": None}
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
    monkeypatch.setattr("lookalike.stages.evaluate.SearchOfClasses", _with_self_matches)
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
