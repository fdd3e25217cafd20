"""The gate closes when a mistake is planted in the code, and stays open without one."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lookalike.losses.margin import MarginLoss
from lookalike.metrics.search import Search
from lookalike.stages.embed import embed
from lookalike.stages.evaluate import evaluate
from lookalike.stages.regression import record, regression
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


def table(folder, manifest, seeds):
    """The cells of a table with one row, measured by the stages, as a file."""
    folder.mkdir()
    model, embeddings, metrics = (str(folder / name) for name in ("model", "embeddings", "metrics"))
    data = {"manifest": str(manifest), "root": str(manifest.parent)}
    kept = {"history": str(folder / "history.csv"), "resume": str(folder / ".unfinished")}
    found = []
    for seed in seeds:
        train(section("embedder", OVER), seed=seed, code="c", **data, model=model, **kept)
        settings = {"batch_size": 64, "representation": {"name": "own"}, "training_pictures": False}
        embed(settings, model=model, **data, embeddings=embeddings)
        settings = {"count_query_in_r": False, "scoring": {"name": "cosine"}}
        evaluate(settings, recall_at=[1], model=model, embeddings=embeddings, metrics=metrics)
        found.append(json.loads((folder / "metrics").read_text()))
    rows = [
        {"label": "Margin", "dataset": "cub", "metric": metric, "n": len(seeds), "queries": found[0]["queries"]}
        | {"mean": 100 * np.mean(values), "std": 100 * np.std(values, ddof=1) if len(seeds) > 1 else None}
        for metric in METRICS
        for values in [[each["best"][metric] for each in found]]
    ]
    path = folder / "table.csv"
    pd.DataFrame(rows).assign(difference=None, published=None, published_std=None).to_csv(path, index=False)
    return {"table": str(path)}


@pytest.fixture(scope="module")
def reference(tmp_path_factory, manifest):
    folder = tmp_path_factory.mktemp("reference")
    record(table(folder / "right", manifest, seeds=[0, 1, 2]), reference=str(folder / "reference.json"))
    return str(folder / "reference.json")


def test_without_a_mistake_another_seed_passes(tmp_path, manifest, reference):
    regression(table(tmp_path / "runs", manifest, [3]), reference=reference, report=str(tmp_path / "report.md"))
    assert "2 pass." in (tmp_path / "report.md").read_text()


def test_a_margin_with_the_wrong_sign_closes_the_gate(tmp_path, manifest, reference, monkeypatch, capsys):
    right = MarginLoss.forward
    monkeypatch.setattr(MarginLoss, "forward", lambda self, *batch: -right(self, *batch))
    tables = table(tmp_path / "runs", manifest, seeds=[0])
    with pytest.raises(ValueError, match="2 of 2 numbers are worse, too good or missing"):
        regression(tables, reference=reference, report=str(tmp_path / "report.md"))
    assert "worse" in capsys.readouterr().out
    assert not (tmp_path / "report.md").exists()


def test_self_matches_counted_close_the_gate_though_every_number_rises(
    tmp_path, manifest, reference, monkeypatch, capsys
):
    monkeypatch.setattr("lookalike.stages.evaluate.Search", _with_self_matches)
    tables = table(tmp_path / "runs", manifest, seeds=[0])
    with pytest.raises(ValueError, match="numbers are worse, too good or missing"):
        regression(tables, reference=reference, report=str(tmp_path / "report.md"))
    assert "suspicious" in capsys.readouterr().out


def _with_self_matches(*arguments, **options):
    return Search(*arguments, **{**options, "self_match": False})
