"""Where the attention of a model lies is measured on the same triplets for all models."""

import json
import math

import numpy as np
import pytest
import torch
from PIL import Image

from lookalike.data import read_manifest, write_manifest
from lookalike.files import write_tensors
from lookalike.learners.saved import load
from lookalike.methods.sam.head import trunk_and_head
from lookalike.methods.sam.masks import heat_map
from lookalike.methods.sam.model import SimilarityAttention
from lookalike.stages import attribute as stage
from lookalike.stages.attribute import attribute, described, draw_triplets
from lookalike.training.images import Images, batches
from lookalike.training.roles import read_role
from trainings import CROP, learner, section, write_dataset

LABELS = torch.tensor([4, 7, 4, 9, 7, 4, 4, 7])  # class 9 has one picture


def described_slowly(heat, objects):
    """Means over the pictures, pixel by pixel."""
    sums = dict.fromkeys(("coverage", "spread", "empty", "on_object", "object_area"), 0.0)
    for picture, mask in zip(heat.tolist(), objects.tolist(), strict=True):
        values = [value for row in picture for value in row]
        inside = [value for row in mask for value in row]
        mass = sum(values)
        sums["coverage"] += sum(value > 0.5 for value in values) / len(values)
        sums["object_area"] += sum(inside) / len(inside)
        sums["empty"] += mass == 0
        if mass > 0:
            entropy = -sum(value / mass * math.log(value / mass) for value in values if value > 0)
            sums["spread"] += math.exp(entropy) / len(values)
            sums["on_object"] += sum(value for value, own in zip(values, inside, strict=True) if own) / mass
    return {name: value / len(heat) for name, value in sums.items()}


def means(found):
    return {name: values.mean().item() for name, values in found.items()}


def test_the_description_is_that_of_a_slow_one():
    generator = torch.Generator().manual_seed(0)
    heat = torch.rand(6, 5, 7, generator=generator) ** 3
    heat[heat < 0.05] = 0
    heat[2] = 0
    objects = torch.rand(6, 5, 7, generator=generator) > 0.6
    assert means(described(heat, objects)) == pytest.approx(described_slowly(heat, objects), rel=1e-12)


def test_attention_planted_on_a_quarter_of_the_picture_covers_a_quarter():
    heat, objects = torch.zeros(1, 8, 8), torch.zeros(1, 8, 8, dtype=torch.bool)
    heat[0, :4, :4] = 1
    objects[0, :, :2] = True  # half of the attention, a quarter of the picture
    found = described(heat, objects)
    assert {name: values.tolist() for name, values in found.items()} == {
        "coverage": [0.25],
        "spread": [pytest.approx(0.25, rel=1e-12)],
        "empty": [0],
        "on_object": [0.5],
        "object_area": [0.25],
    }


def test_one_bright_pixel_is_the_least_spread_and_an_even_map_the_most():
    point, even = torch.zeros(1, 4, 4), torch.ones(1, 4, 4)
    point[0, 1, 2] = 1
    assert described(point)["spread"].item() == pytest.approx(1 / 16, rel=1e-12)
    assert described(even)["spread"].item() == pytest.approx(1, rel=1e-12)


def test_without_attention_nothing_is_covered():
    found = described(torch.zeros(2, 3, 3), torch.ones(2, 3, 3, dtype=torch.bool))
    expected = {"coverage": 0, "spread": 0, "empty": 1, "on_object": 0, "object_area": 1}
    assert means(found) == expected


def test_triplets_hold_a_partner_of_the_class_and_one_of_another():
    anchor, positive, negative = draw_triplets(LABELS, 100, seed=0)
    assert sorted(anchor.tolist()) == [0, 1, 2, 4, 5, 6, 7]  # each once, without the picture that is alone
    assert torch.equal(LABELS[anchor], LABELS[positive])
    assert (anchor != positive).all()
    assert (LABELS[anchor] != LABELS[negative]).all()


def test_triplets_depend_on_labels_and_seed_alone():
    first, again, other = (draw_triplets(LABELS, 5, seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.shape == (3, 5)


def test_every_partner_is_drawn_at_times():
    drawn = torch.cat([draw_triplets(LABELS, 7, seed) for seed in range(60)], dim=1)
    of_first = drawn[:, drawn[0] == 0]
    assert set(of_first[1].tolist()) == {2, 5, 6}
    assert set(of_first[2].tolist()) == {1, 3, 4, 7}


@pytest.mark.parametrize("labels", [[3, 3, 3], [1, 2, 3]])
def test_labels_without_any_triplet_are_refused(labels):
    with pytest.raises(ValueError, match=r"3 labels of \d classes make no triplet"):
        draw_triplets(torch.tensor(labels), 10, seed=0)


def prepared(folder, method="embedder", *, masks):
    """Pictures and a model; the upper half of every picture is the object."""
    manifest = write_dataset(folder / "pictures", {"train": 1, "test": 4})
    if masks:
        frame = read_manifest(manifest)
        Image.fromarray(np.repeat([255, 0], 15 * 34).reshape(30, 34).astype(np.uint8)).save(
            manifest.parent / "mask.png"
        )
        write_manifest(frame.assign(mask="mask.png"), manifest)
    states = {f"last/{name}": tensor for name, tensor in learner(method).state_dict().items()}
    about = {"settings": section(method), "best_epoch": 2, "epochs": 2, "seed": 5, "code": "c", "data": "d"}
    write_tensors(folder / "model", states, about)
    paths = {"model": str(folder / "model"), "manifest": str(manifest), "root": str(manifest.parent)}
    return {**paths, "attributions": str(folder / "attributions.json")}


def test_the_stage_describes_every_picture_of_every_triplet(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "BATCH", 5)  # the last batch is smaller
    paths = prepared(tmp_path, "sam", masks=True)
    attribute(**paths)
    found = json.loads((tmp_path / "attributions.json").read_text())

    rows = read_role(paths["manifest"], paths["root"], "test")
    images = Images(rows.paths, section("sam")["test_image"])
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
    del found["best"]
    about = {"best_epoch": 2, "epochs": 2, "seed": 5, "code": "c", "data": "d"}
    assert found == {**about, "triplets": 12, "triplet_seed": 0}


def test_without_masks_nothing_is_said_of_the_object(tmp_path):
    attribute(**prepared(tmp_path, masks=False))
    assert json.loads((tmp_path / "attributions.json").read_text())["best"].keys() == {"coverage", "spread", "empty"}


def test_a_model_without_this_attention_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds AVSL; attention is measured of an Embedder only"):
        attribute(**prepared(tmp_path, "avsl", masks=False))
