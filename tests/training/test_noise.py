"""Errors are put into the training pictures as a recipe says, once per run."""

from collections import Counter
from pathlib import Path

import pytest
import torch

from figurines.preset import collect, preset_named
from figurines.species import difference
from lookalike.settings.datasets import Dataset
from lookalike.settings.files import read
from lookalike.training.noise import disturbed
from lookalike.training.roles import Role

NONE = {"labels": 0.0, "images": 0.0, "classes": 1.0}
CLASS_IDS = torch.tensor([3, 5, 8, 13, 21])
LABELS = CLASS_IDS.repeat_interleave(20)[torch.randperm(100, generator=torch.Generator().manual_seed(4))]
TRAINING = Role([Path(f"{number:03}.png") for number in range(100)], LABELS, {"super": LABELS % 3})
STRANGERS = [Path(f"strange/{number}.png") for number in range(30)]


def noisy(seed=0, strangers=STRANGERS, **noise):
    return disturbed(TRAINING, {**NONE, **noise}, strangers, seed=seed)


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
