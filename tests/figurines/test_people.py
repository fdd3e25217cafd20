from __future__ import annotations

import csv
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageOps

from described import read_layout
from figurines import PRESETS, people
from figurines.cameras import CAMERAS, camera_of, film
from figurines.preset import collect
from figurines.walkers import CUTS, walker
from lookalike.workflow.data import load_specification

CALM = replace(PRESETS["people"].nuisance, extent=(0.9, 0.9), shift=0, rotation=0, squeeze=1, light=0, cast=0, noise=0)


def someone(**traits: str) -> dict[str, str]:
    return {trait: values[0] for trait, values in people.TRAITS.items()} | traits


def filmed(camera: int, stranger: bool = False, **traits: str):
    rng = np.random.default_rng(0)
    view = CAMERAS[camera].view
    figure = walker("Trousers", someone(**traits), view, np.random.default_rng(1))
    other = walker("Skirt", someone(), view, np.random.default_rng(2)) if stranger else None
    return film(figure, other, CAMERAS[camera], CALM, rng)


def test_its_reader_finds_two_cameras_and_one_query_for_each_of_them(written):
    frame = read_layout({"layout": "cuhk03", "subset": "detected", "self_match": False}, written("people"))
    train, query, gallery = (frame[frame["role"] == role] for role in ("train", "query", "gallery"))
    assert set(train["label"]) == set(range(1, 7))
    assert set(query["label"]) == set(gallery["label"]) == set(range(7, 13))
    assert (query.groupby(["label", "camera"]).size() == 1).all()
    assert len(query) == 12
    pairs = gallery.groupby("label")["camera"].agg(set)
    assert (pairs == {1, 2}).all()  # so that every query has something to be found by the other camera
    assert (frame.groupby("label").size() >= 4).all()


def test_names_are_those_of_market_1501_and_pictures_are_upright_png(written):
    paths = sorted((written("people") / "detected").rglob("*.png"))
    assert {path.parent.name for path in paths} == {"bounding_box_train", "query", "bounding_box_test"}
    for path in paths:
        assert re.fullmatch(r"\d{4}_c[12]_\d+\.png", path.name)
        with Image.open(path) as image:
            assert (image.format, image.mode) == ("PNG", "RGB")
            assert 2.6 <= image.height / image.width <= 3.3
            assert 90 <= image.height <= 102


def test_traits_are_listed_by_person_and_twins_differ_in_two(written):
    with (written("people") / "traits.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["class_id"]) for row in rows] == list(range(1, 13))
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        assert first["complex"] == second["complex"]
        assert sum(first[trait] != second[trait] for trait in people.TRAITS) == 2


def test_cameras_take_turns_and_see_two_sides_of_a_person():
    assert [camera_of(nth) for nth in range(4)] == [1, 2, 1, 2]
    assert {camera.view for camera in CAMERAS.values()} == {"front", "back"}
    assert [filmed(camera).mirrored for camera in (1, 2)] == [False, True]


def test_a_tote_is_at_opposite_sides_of_the_pictures_of_the_two_cameras():
    for camera, side in ((1, 1), (2, -1)):
        bare, laden = (np.asarray(filmed(camera, **{"bag kind": kind}).mask) > 127 for kind in ("none", "tote"))
        columns = np.flatnonzero((laden & ~bare).any(axis=0)) - bare.shape[1] / 2
        assert len(columns)
        assert (np.sign(columns) == side).all()


def test_the_light_of_the_two_cameras_differs_in_colour():
    warm, cool = (
        np.asarray(filmed(camera, **{"top colour": "slate"}).image)[36:44, 12:20].mean(axis=(0, 1)) for camera in (1, 2)
    )
    assert warm[0] / warm[2] > 1.2 * cool[0] / cool[2]


def test_a_stranger_in_front_hides_part_of_the_person_and_not_all():
    alone, passed = (np.asarray(filmed(1, stranger).mask) > 127 for stranger in (False, True))
    assert not (passed & ~alone).any()
    assert 0.4 < passed.sum() / alone.sum() < 0.97


@pytest.mark.parametrize("nth", [0, 1])
@pytest.mark.parametrize("cut", CUTS)
def test_every_trait_that_tells_twins_apart_is_seen_by_both_cameras(cut, nth):
    for trait in (*people.TELLING[0], *people.TELLING[1]):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            traits = {name: str(rng.choice(values)) for name, values in people.TRAITS.items()}
            first, second = (str(value) for value in rng.permutation(np.asarray(people.TRAITS[trait]))[:2])
            views = []
            for value in (first, second):
                figure = walker(cut, traits | {trait: value}, CAMERAS[camera_of(nth)].view, np.random.default_rng(seed))
                picture = film(figure, None, CAMERAS[camera_of(nth)], CALM, np.random.default_rng(seed))
                views.append(np.asarray(picture.image, dtype=np.int64))
            changed = (np.abs(views[0] - views[1]).max(axis=2) > 30).sum()
            assert changed >= 10, f"{trait}: {first} and {second} look alike with {traits}"


def test_the_specification_states_what_the_full_preset_has():
    specification, collection = load_specification("figurines_people"), collect("people", 0, PRESETS["people"])
    counts, border = specification.counts.dump(), collection.train_classes
    assert counts["train"] == {"classes": border, "images": sum(collection.shots[:border])}
    tested = len(collection.species) - border
    assert counts["query"] == {"classes": tested, "images": 2 * tested}
    assert counts["gallery"] == {"classes": tested, "images": sum(collection.shots[border:]) - 2 * tested}
    for half in (collection.species[:border], collection.species[border:]):
        assert {kind.family for kind in half} == set(CUTS)


@pytest.mark.slow
def test_raw_pixels_find_a_person_by_the_other_camera_above_chance_and_mostly_find_the_camera():
    collection = collect("people", 0, PRESETS["people"])
    labels, cameras, pixels = [], [], []
    for place in range(collection.train_classes, len(collection.species)):
        for number, picture in collection.pictures(place):
            labels.append(place)
            cameras.append(camera_of(number))
            pixels.append(np.asarray(ImageOps.fit(picture.image, (24, 72)), dtype=np.float32).ravel())
    vectors = np.stack(pixels) / np.linalg.norm(pixels, axis=1, keepdims=True)
    persons, views = np.asarray(labels), np.asarray(cameras)
    same_camera = views[:, None] == views

    def found(hidden: np.ndarray) -> float:
        nearest = np.where(hidden, -1, vectors @ vectors.T).argmax(axis=1)
        return float(np.mean(persons[nearest] == persons))

    by_protocol = found(same_camera & (persons[:, None] == persons))
    assert by_protocol < 0.2
    assert 2 / 30 < found(same_camera) < 0.75
