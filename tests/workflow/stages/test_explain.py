"""A method's explanations of a model are measured on the drawn triplets, as far as the data set allows."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from described import read_layout
from figurines import PRESETS, write_figurines
from lookalike.explanations.quality.measures import Triplets, explainer, measured, scores_of
from lookalike.explanations.quality.parts import Parts
from lookalike.workflow.data import read_manifest, read_picture, write_manifest
from lookalike.workflow.stages import explain as stage
from lookalike.workflow.stages.explain import explain
from lookalike.workflow.training.annotations import read_annotations
from lookalike.workflow.training.images import transform
from lookalike.workflow.training.model_file import load_model
from trainings import save, write_dataset

PROTOCOL = {"seed": 4, "grid": 6, "steps": 3, "substitutes": ["mean"]}
ROLES = ("anchor", "positive", "negative", "partner")


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    """What the stage is told of a few drawn birds, with triplets of them."""
    folder = tmp_path_factory.mktemp("explained")
    few = replace(PRESETS["birds"], train_classes=1, test_classes=3, images_per_class=(4,))
    write_figurines("birds", folder / "birds", parameters=few)
    frame = read_layout({"layout": "cub", "classes": {"test": [2, 4]}}, folder / "birds")
    write_manifest(frame, folder / "manifest.csv")
    return inputs(folder, folder / "manifest.csv", folder / "birds", "cub")


def inputs(folder, manifest, root, layout):
    paths = sorted(read_manifest(manifest)["path"])
    with (folder / "triplets.csv").open("w") as stream:
        writer = csv.writer(stream)
        writer.writerow(ROLES)
        writer.writerows([paths[row], paths[row + 1], paths[-1 - row], paths[row - 3]] for row in range(4))
    about = {"triplets": str(folder / "triplets.csv"), "manifest": str(manifest), "root": str(root)}
    return about | {"layout": layout, "protocol": PROTOCOL}


def found(told, folder, method, learner="embedder"):
    save(folder / "model", learner)
    explain(model=str(folder / "model"), method=method, measures=str(folder / "measures.json"), **told)
    return json.loads((folder / "measures.json").read_text())


def test_each_batch_is_measured_by_draws_of_its_own(birds, tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "BATCH", 3)  # the last batch is smaller
    measures = found(birds, tmp_path, "activation")
    network, trained = load_model(tmp_path / "model")
    view = trained.settings.test_image
    see = transform(view)
    known = read_annotations(birds["manifest"], birds["root"], view, "cub")
    with Path(birds["triplets"]).open() as stream:
        rows = list(csv.DictReader(stream))
    for start, end, seed in ((0, 3, 4), (3, 4, 7)):
        paths = [[row[role] for row in rows[start:end]] for role in ROLES]
        images = torch.stack(
            [torch.stack([see(read_picture(known.root / path)) for path in column]) for column in paths]
        )
        parts = tuple(known.parts(paths[role]) for role in (0, 1, 3))
        assert all(isinstance(each, Parts) for each in parts)
        reach = {alpha: alpha * known.longer_sides(paths[1]) for alpha in (0.1, 0.2)}
        expected = measured(
            explainer("activation", seed=4, side=6),
            network,
            scores_of(network, "activation"),
            Triplets(images, parts, known.objects(paths[0]), reach),
            seed=seed,
            side=6,
            steps=3,
            substitutes=["mean"],
        )
        assert expected.keys() == measures["values"].keys()
        for name in expected.keys() - {"milliseconds"}:
            values = [torch.nan if value is None else value for value in measures["values"][name][start:end]]
            assert values == pytest.approx(expected[name].tolist(), abs=1e-4, nan_ok=True), name
    assert (measures["object"], measures["method"], measures["reasons"]) == ("mask", "activation", {})
    assert measures["best_epoch"] == 1


@pytest.mark.parametrize(
    ("learner", "method", "lacking"),
    [
        ("avsl", "graph", {"pck@0.1", "pck@0.2"}),
        ("sam", "attention", {"pck@0.1", "pck@0.2", "gap"}),
        ("diml", "structure", set()),
        ("embedder", "centre", {"pck@0.1", "pck@0.2", "gap"}),
    ],
)
def test_what_a_method_does_not_have_is_said(birds, tmp_path, learner, method, lacking):
    measures = found(birds, tmp_path, method, learner)
    assert set(measures["reasons"]) == lacking
    assert not lacking & set(measures["values"])
    assert {"agreement", "inside", "planted", "deletion_mean"} <= set(measures["values"])
    if "gap" in lacking:
        assert measures["reasons"]["gap"] == "the method has no sum"


def test_of_a_data_set_without_parts_the_rest_is_measured(tmp_path):
    manifest = write_dataset(tmp_path / "pictures", {"test": 4})
    measures = found(inputs(tmp_path, manifest, manifest.parent, "folder"), tmp_path, "activation")
    assert measures["reasons"] == {
        **dict.fromkeys(("agreement", "pck@0.1", "pck@0.2"), "the data set names no parts"),
        "inside": "the data set has neither masks nor boxes",
    }
    assert {"planted", "deletion_mean", "partner", "gap"} <= set(measures["values"])
    assert measures["object"] is None


def test_a_method_that_does_not_explain_the_model_is_refused_in_one_line(birds, tmp_path):
    with pytest.raises(ValueError, match=r"model, method: unknown 'structure', did you mean 'graph'\? Known: graph$"):
        found(birds, tmp_path, "structure", "avsl")
