"""Errors are put into the training pictures as a recipe says, once per run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch

from draws import generator
from figurines.preset import collect, preset_named
from figurines.species import difference
from lookalike.workflow.settings.datasets import Dataset
from lookalike.workflow.settings.files import read
from lookalike.workflow.settings.recipes import Noise
from lookalike.workflow.training.noise import disturbed, images_to_replace, noisy_labels, of_first_classes
from lookalike.workflow.training.roles import Role

NONE = {"labels": 0.0, "images": 0.0, "classes": 1.0}
CLASS_IDS = torch.tensor([3, 5, 8, 13, 21])
LABELS = CLASS_IDS.repeat_interleave(20)[torch.randperm(100, generator=torch.Generator().manual_seed(4))]
TRAINING = Role([Path(f"{number:03}.png") for number in range(100)], LABELS, {"super": LABELS % 3})
STRANGERS = [Path(f"strange/{number}.png") for number in range(30)]


def noisy(seed=0, strangers=STRANGERS, **noise):
    return disturbed(TRAINING, Noise(**{**NONE, **noise}), strangers, seed=seed)


def same(left, right):
    return left.paths == right.paths and torch.equal(left.labels, right.labels)


def test_a_recipe_without_noise_trains_on_the_pictures_as_they_are():
    assert same(noisy(strangers=[]), TRAINING)


@pytest.mark.parametrize("noise", [{"labels": 0.4}, {"images": 0.2}, {"labels": 0.3, "images": 0.1, "classes": 0.6}])
def test_the_noise_is_that_of_the_run(noise):
    assert same(noisy(seed=1, **noise), noisy(seed=1, **noise))
    assert not same(noisy(seed=1, **noise), noisy(seed=2, **noise))


def test_a_share_of_the_labels_is_drawn_among_the_classes():
    labels = LABELS.clone()
    found = noisy(labels=0.5)
    assert torch.equal(TRAINING.labels, labels)
    assert found.paths == TRAINING.paths
    assert set(found.labels.tolist()) <= set(CLASS_IDS.tolist())
    # 50 drawn, a fifth of which is the true label again: 40 expected, standard deviation 2.8
    assert 28 <= (found.labels != labels).sum() <= 50


@pytest.mark.parametrize(("share", "count"), [(0.05, 5), (0.126, 13), (0.3, 30)])
def test_a_share_of_the_pictures_is_replaced_and_keeps_its_labels(share, count):
    found = noisy(images=share)
    assert torch.equal(found.labels, LABELS)
    assert torch.equal(found.coarse["super"], LABELS % 3)
    strange = [(old, new) for old, new in zip(TRAINING.paths, found.paths, strict=True) if old != new]
    assert len(strange) == count
    assert {new for _, new in strange} <= set(STRANGERS)


def test_no_stranger_comes_twice_while_others_wait():
    assert len({path for path in noisy(images=0.3).paths if path in STRANGERS}) == 30
    times = Counter(path for path in noisy(images=0.7).paths if path in STRANGERS)
    assert sorted(times.values()) == [2] * 20 + [3] * 10


def test_which_pictures_are_replaced_and_by_which_depends_on_the_run():
    runs = [noisy(seed=seed, images=0.1).paths for seed in (0, 1)]
    places = [[place for place, path in enumerate(paths) if path in STRANGERS] for paths in runs]
    assert places[0] != places[1]
    assert {runs[0][place] for place in places[0]} != {runs[1][place] for place in places[1]}


def test_the_first_classes_stay_before_anything_else_is_drawn():
    found = noisy(classes=0.4)
    kept = [(path, int(label)) for path, label in zip(TRAINING.paths, LABELS, strict=True) if label in (3, 5)]
    assert list(zip(found.paths, found.labels.tolist(), strict=True)) == kept
    assert torch.equal(found.coarse["super"], found.labels % 3)
    all_noise = noisy(classes=0.4, labels=1.0, images=0.25)
    assert len(all_noise.paths) == 40
    assert set(all_noise.labels.tolist()) == {3, 5}  # none of the classes that are gone
    assert sum(path in STRANGERS for path in all_noise.paths) == 10


def test_image_noise_without_strangers_is_refused():
    with pytest.raises(ValueError, match=r"noise\.images=0\.2 needs strangers"):
        noisy(strangers=[], images=0.2)


def test_strangers_of_the_embedded_birds_show_none_of_their_species():
    generators = [
        read(f"params/datasets/{name}.yaml", Dataset).dump()["generator"]
        for name in ("figurines_birds", "figurines_strangers")
    ]
    assert {generator["preset"] for generator in generators} == {"birds"}
    known, strange = (collect("birds", generator["seed"], preset_named("birds")).species for generator in generators)
    alike = [(one, other) for one in known for other in strange if one.family == other.family]
    assert len(alike) > 0
    # names are drawn and may come twice; a species is its traits, and confusable ones differ in one or two
    assert min(len(difference(one.traits, other.traits)) for one, other in alike) >= 3


def test_only_a_share_of_the_labels_is_drawn_anew():
    labels = torch.arange(10).repeat(200) * 3  # labels with gaps
    before = labels.clone()
    noisy = noisy_labels(labels, 0.2, generator())
    assert torch.equal(labels, before)
    assert noisy.dtype == labels.dtype
    assert set(noisy.tolist()) <= set(labels.tolist())
    # 400 drawn, a tenth of which is the true label again: 360 expected, standard deviation 6
    assert 330 <= (noisy != labels).sum() <= 390


def test_new_labels_are_uniform_over_the_classes():
    noisy = noisy_labels(torch.zeros(5000, dtype=torch.int64), 1.0, generator(), classes=torch.tensor([4, 7, 9, 30]))
    counts = [int((noisy == label).sum()) for label in (4, 7, 9, 30)]
    assert sum(counts) == 5000
    assert all(abs(count - 1250) < 6 * 31 for count in counts)


def test_no_noise_changes_nothing_and_a_seed_fixes_the_noise():
    labels = torch.arange(50) // 5
    assert torch.equal(noisy_labels(labels, 0.0, generator()), labels)
    assert torch.equal(noisy_labels(labels, 0.3, generator(1)), noisy_labels(labels, 0.3, generator(1)))
    assert not torch.equal(noisy_labels(labels, 0.3, generator(1)), noisy_labels(labels, 0.3, generator(2)))


@pytest.mark.parametrize(("images", "share", "expected"), [(100, 0.05, 5), (5864, 0.2, 1173), (7, 1.0, 7), (0, 0.5, 0)])
def test_images_to_replace_are_distinct_and_ascending(images, share, expected):
    chosen = images_to_replace(images, share, generator())
    assert len(chosen) == expected
    assert torch.equal(chosen, chosen.unique())
    assert torch.equal(chosen, images_to_replace(images, share, generator()))
    assert ((chosen >= 0) & (chosen < images)).all()


def test_the_first_classes_are_those_of_the_lowest_labels():
    labels = torch.tensor([9, 2, 5, 2, 11, 9])
    assert of_first_classes(labels, 2).tolist() == [False, True, True, True, False, False]
    assert of_first_classes(labels, 4).all()


def test_values_outside_their_range_are_rejected():
    labels = torch.arange(6) // 2
    for share in (-0.1, 1.1):
        with pytest.raises(ValueError, match=f"share={share}"):
            noisy_labels(labels, share, generator())
        with pytest.raises(ValueError, match=f"share={share}"):
            images_to_replace(6, share, generator())
    for count in (0, 4):
        with pytest.raises(ValueError, match=rf"count={count} is outside \[1, 3\]"):
            of_first_classes(labels, count)
    with pytest.raises(ValueError, match="images=-1"):
        images_to_replace(-1, 0.5, generator())
    for function in (lambda x: noisy_labels(x, 0.1, generator()), lambda x: of_first_classes(x, 1)):
        with pytest.raises(ValueError, match=r"\(3, 2\)"):
            function(labels.view(3, 2))
