from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from figurines import PRESETS, write_figurines
from figurines.builds import BUILDS
from figurines.figure import SUPERSAMPLING, Pose
from figurines.objects import CLASSES, draw
from figurines.preset import collect
from figurines.scenes import Scene, classes_shown, edges
from lookalike.workflow.data.readers.pascal5i import CLASSES as VOC_CLASSES

TEN = range(10)  # numbers of a class's pictures for validation


@pytest.fixture(scope="module")
def scenes() -> list[tuple[int, int, Scene]]:
    """Label, number and picture of every third scene of each class."""
    collection = collect("scenes", 0, PRESETS["scenes"])
    return [
        (label, number, collection.shoot(label - 1, number))
        for label in range(1, 21)
        for number in range(label % 3, 14, 3)
    ]


def test_classes_have_the_names_and_numbers_of_voc_and_a_silhouette_each():
    assert tuple(kind.name for kind in CLASSES) == VOC_CLASSES
    assert len({kind.family for kind in CLASSES}) == 20
    assert len({kind.complex for kind in CLASSES}) == 20  # none is confusable
    assert CLASSES[2].family in BUILDS  # a bird is a bird


def test_no_two_classes_have_the_same_two_colours():
    assert len({(kind.traits["colour"], kind.traits["second colour"]) for kind in CLASSES}) == 20


def test_more_than_twenty_classes_are_refused():
    with pytest.raises(ValueError, match="21 classes of scenes are too many, there are 20"):
        PRESETS["scenes"].species(1, 20, np.random.default_rng(0))


@pytest.mark.parametrize("kind", CLASSES, ids=[kind.name for kind in CLASSES])
def test_two_individuals_of_a_class_are_alike_in_colour_but_not_equal(kind):
    pose = Pose((40, 40), 60)
    drawings = [draw(kind, np.random.default_rng(seed)).draw(80, 80, pose) for seed in range(4)]
    pixels = [np.asarray(drawing.colour)[np.asarray(drawing.mask) > 0] for drawing in drawings]
    assert len({each.tobytes() for each in pixels}) > 1
    shared = set.intersection(*({tuple(row) for row in each.tolist()} for each in pixels))
    assert shared


def test_ten_scenes_of_each_class_show_every_pair_of_a_fold_twice():
    pairs = Counter(
        tuple(sorted(classes_shown(label, number)))
        for label in range(1, 21)
        for number in TEN
        if len(classes_shown(label, number)) == 2
    )
    within = {pair: count for pair, count in pairs.items() if (pair[0] - 1) // 5 == (pair[1] - 1) // 5}
    assert within == {(5 * fold + a, 5 * fold + b): 2 for fold in range(4) for a, b in combinations(range(1, 6), 2)}
    assert sum(pairs.values()) - sum(within.values()) == 20  # beside the class of another fold


def test_a_scene_shows_the_classes_it_should_and_no_other(scenes):
    for label, number, scene in scenes:
        wanted = classes_shown(label, number)
        assert label in wanted
        assert len(wanted) == 1 + (number % 2 == 0)
        assert set(np.unique(scene.classes)) == {0, *wanted}
        for each in wanted:
            assert ((scene.classes == each) & ~scene.edges).sum() >= 40, (label, number, each)


def test_scenes_are_of_a_hundred_to_a_hundred_and_thirty_pixels_and_vary_in_size_and_place(scenes):
    shares, centres = [], []
    for _, _, scene in scenes:
        assert 100 <= min(scene.image.size) <= 112 <= max(scene.image.size) <= 130
        assert scene.classes.shape == scene.edges.shape == scene.image.size[::-1]
        assert scene.mask.size == scene.image.size
        shares.append((scene.classes > 0).mean())
        centres.append(np.argwhere(scene.classes > 0).mean(axis=0) / scene.classes.shape)
    assert min(shares) > 0.01
    assert np.quantile(shares, 0.9) - np.quantile(shares, 0.1) > 0.05
    assert max(shares) < 0.6
    assert (np.std(centres, axis=0) > 0.03).all()


def test_mask_and_classes_agree_away_from_the_edges(scenes):
    for _, _, scene in scenes:
        inside = ~scene.edges
        assert np.array_equal((np.asarray(scene.mask) == 255)[inside], (scene.classes > 0)[inside])


def neighbourhood_has_two_classes(classes: np.ndarray, row: int, column: int) -> bool:
    seen = {
        int(classes[y, x])
        for y in range(row * SUPERSAMPLING - 1, (row + 1) * SUPERSAMPLING + 1)
        for x in range(column * SUPERSAMPLING - 1, (column + 1) * SUPERSAMPLING + 1)
        if 0 <= y < classes.shape[0] and 0 <= x < classes.shape[1]
    }
    return len(seen) > 1


def test_edges_are_where_a_pixel_or_its_rim_shows_two_classes():
    rng = np.random.default_rng(0)
    classes = np.zeros((7 * SUPERSAMPLING, 5 * SUPERSAMPLING), dtype=np.uint8)
    classes[4:13, 2:9] = 3
    classes[10:, 8:] = 7
    classes[tuple(rng.integers(0, 15, size=2))] = 1
    wanted = [[neighbourhood_has_two_classes(classes, row, column) for column in range(5)] for row in range(7)]
    assert edges(classes).tolist() == wanted


@pytest.mark.parametrize("column", range(6, 12))
def test_a_straight_edge_is_one_or_two_pixels_wide_wherever_it_lies(column):
    classes = np.zeros((9, 18), dtype=np.uint8)
    classes[:, column:] = 5
    found = edges(classes)
    assert (found == found[0]).all()
    assert 1 <= found[0].sum() <= 2


def test_a_picture_of_a_scene_depends_on_its_own_number_only():
    many, few = (collect("scenes", 0, replace(PRESETS["scenes"], images_per_class=(count,))) for count in (14, 3))
    assert many.shoot(4, 2).image.tobytes() == few.shoot(4, 2).image.tobytes()
    assert many.shoot(4, 2).image.tobytes() != collect("scenes", 1, PRESETS["scenes"]).shoot(4, 2).image.tobytes()


def test_pictures_that_are_no_scenes_have_no_class_for_each_pixel(tmp_path):
    photographs = replace(PRESETS["birds"], layout=PRESETS["scenes"].layout)
    with pytest.raises(ValueError, match="a Picture does not tell the class of each pixel, a Scene does"):
        write_figurines("birds", tmp_path / "birds", parameters=photographs)
    assert list(tmp_path.iterdir()) == []
