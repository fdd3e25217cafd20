"""Where the attention of a model lies is measured on the same triplets for all models."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from lookalike.base.files import write_tensors
from lookalike.methods.sam.head import trunk_and_head
from lookalike.methods.sam.masks import heat_map
from lookalike.methods.sam.model import SimilarityAttention
from lookalike.sampling.miners.tuples import draw_triplets
from lookalike.workflow.data import read_manifest, write_manifest
from lookalike.workflow.stages import attribute as stage
from lookalike.workflow.stages.attribute import attribute
from lookalike.workflow.training.images import Images, batches
from lookalike.workflow.training.model_file import load
from lookalike.workflow.training.roles import read_role
from slow_attention import described_slowly
from trainings import CROP, learner, section, write_dataset


def prepared(folder, method="embedder", *, masks, best_epoch=2):
    """Pictures and a model; the upper half of every picture is the object."""
    manifest = write_dataset(folder / "pictures", {"train": 1, "test": 4})
    if masks:
        frame = read_manifest(manifest)
        Image.fromarray(np.repeat([255, 0], 15 * 34).reshape(30, 34).astype(np.uint8)).save(
            manifest.parent / "mask.png"
        )
        write_manifest(frame.assign(mask="mask.png"), manifest)
    states = {f"last/{name}": tensor for name, tensor in learner(method).state_dict().items()}
    if best_epoch == 1:
        states |= {name.replace("last/", "best/"): 1.5 * tensor for name, tensor in states.items()}
    about = {
        "settings": section(method).dump(),
        "best_epoch": best_epoch,
        "epochs": 2,
        "seed": 5,
        "code": "c",
        "data": "d",
    }
    write_tensors(folder / "model", states, about)
    paths = {"model": str(folder / "model"), "manifest": str(manifest), "root": str(manifest.parent)}
    return {**paths, "attributions": str(folder / "attributions.json")}


def test_the_stage_describes_every_picture_of_every_triplet(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "BATCH", 5)  # the last batch is smaller
    paths = prepared(tmp_path, "sam", masks=True)
    attribute(**paths)
    found = json.loads((tmp_path / "attributions.json").read_text())

    rows = read_role(paths["manifest"], paths["root"], "test")
    images = Images(rows.paths, section("sam").test_image)
    attention = SimilarityAttention(*trunk_and_head(load(paths["model"])))
    heats = []
    for triplet in draw_triplets(rows.labels, 500, seed=0).T.tolist():
        [(pictures, _)] = batches(images, [triplet], seed=0, device=torch.device("cpu"))
        heats.append(heat_map(attention.maps(pictures[:, None], "triplet"), (CROP, CROP))[:, 0])
    objects = torch.zeros(3 * len(heats), CROP, CROP, dtype=torch.bool)
    objects[:, : CROP // 2] = True
    expected = described_slowly(torch.cat(heats), objects)
    assert found["best"] == pytest.approx(expected, abs=1e-5)
    assert found["best"]["object_area"] == 0.5
    assert found["best"]["empty"] < 1
    assert found.pop("last") == found.pop("best")
    about = {"best_epoch": 2, "epochs": 2, "seed": 5}
    assert found == {**about, "triplets": 12, "triplet_seed": 0}


def test_the_best_and_the_last_epoch_are_described_each_by_its_own_weights(tmp_path):
    described = {}
    for best_epoch in (1, 2):
        folder = tmp_path / str(best_epoch)
        folder.mkdir()
        attribute(**prepared(folder, masks=False, best_epoch=best_epoch))
        described[best_epoch] = json.loads((folder / "attributions.json").read_text())
    assert described[1]["last"] == described[2]["last"] == described[2]["best"]
    assert described[1]["best"] != described[1]["last"]


def test_without_masks_nothing_is_said_of_the_object(tmp_path):
    attribute(**prepared(tmp_path, masks=False))
    assert json.loads((tmp_path / "attributions.json").read_text())["best"].keys() == {"coverage", "spread", "empty"}


def test_a_model_without_this_attention_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds AVSL; attention is measured of an Embedder only"):
        attribute(**prepared(tmp_path, "avsl", masks=False))
