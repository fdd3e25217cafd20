from __future__ import annotations

import csv
import json
import uuid
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from described import read_layout
from figurines import PRESETS, wild
from figurines.preset import collect
from figurines.species import Species
from lookalike.workflow.data import load_specification
from lookalike.workflow.data.manifest import read_manifest, write_manifest
from lookalike.workflow.data.readers.inat import SUPER_CATEGORIES

FULL = load_specification("figurines_wild")


def full() -> list[Species]:
    preset = PRESETS["wild"]
    return preset.species(preset.train_classes, preset.test_classes, np.random.default_rng(0))


def records(root: Path) -> dict:
    return json.loads((root / "train_mini.json").read_text())


def test_its_reader_finds_every_species_in_its_super_category(written):
    root = written("wild")
    # two complexes of vehicles, of two species each, and two of three species of the other kinds
    sizes = {"Insects": 4, "Birds": 6, "Mammals": 6, "Plants": 6}
    frame = read_layout({"layout": "inat", "super_categories": sizes}, root)
    names = sorted(SUPER_CATEGORIES.values())
    by_label = frame.drop_duplicates("label").set_index("label")["coarse_super"]
    listed = {category["id"]: category["supercategory"] for category in records(root)["categories"]}
    assert {label: names[code] for label, code in by_label.items()} == listed
    assert frame.groupby("role")["label"].nunique().to_dict() == {"train": 11, "test": 11}


def test_the_manifest_says_that_the_split_is_our_own(written, tmp_path):
    path = tmp_path / "wild.csv"
    write_manifest(read_layout({"layout": "inat", "split_seed": 0}, written("wild")), path)
    assert set(read_manifest(path)["split"]) == {"own"}


def test_folders_state_an_id_and_seven_taxa_and_pictures_are_named_by_hashes(written):
    folders = sorted((written("wild") / "train_mini").iterdir())
    assert [int(folder.name[:5]) for folder in folders] == list(range(22))
    for folder in folders:
        assert len(folder.name.split("_")) == 8
        assert " " not in folder.name
        names = {path.stem for path in folder.iterdir()}
        assert names == {str(uuid.uuid5(uuid.NAMESPACE_URL, f"{folder.name}/{nth}")) for nth in range(len(names))}


def test_the_json_lists_every_picture_with_its_size_and_class(written):
    root = written("wild")
    content = records(root)
    folders = {category["id"]: category["image_dir_name"] for category in content["categories"]}
    classes = {annotation["image_id"]: annotation["category_id"] for annotation in content["annotations"]}
    on_disk = {path.relative_to(root).as_posix() for path in root.rglob("*.jpg")}
    assert {image["file_name"] for image in content["images"]} == on_disk
    for image in content["images"]:
        assert image["file_name"].split("/")[1] == folders[classes[image["id"]]]
        with Image.open(root / image["file_name"]) as picture:
            assert (picture.format, picture.mode) == ("JPEG", "RGB")
            assert picture.size == (image["width"], image["height"])


def test_traits_are_those_of_the_kind_and_others_are_empty(written):
    with (written("wild") / "traits.csv").open(newline="") as file:
        rows = {int(row["class_id"]): row for row in csv.DictReader(file)}
    for category in records(written("wild"))["categories"]:
        row = rows[category["id"]]
        assert bool(row["beak"]) == (category["supercategory"] == "Birds")
        assert bool(row["wheel"]) == (category["supercategory"] == "Insects")
        assert bool(row["sleeve"]) == (category["supercategory"] == "Mammals")
        assert bool(row["handle"]) == (category["supercategory"] == "Plants")


def test_super_categories_differ_in_size_and_hold_whole_complexes():
    species = full()
    sizes = {name: sum(kind.group == name for kind in species) for name in wild.REALMS}
    assert sizes == FULL.super_categories
    complexes: dict[int, list[Species]] = {}
    for kind in species:
        complexes.setdefault(kind.complex, []).append(kind)
    for members in complexes.values():
        assert len({kind.group for kind in members}) == 1
        assert len(members) == wild.REALMS[members[0].group].complex_size


def test_the_numbers_of_classes_follow_from_the_readers_rule():
    sizes, preset = FULL.super_categories.values(), PRESETS["wild"]
    assert preset.test_classes == sum(size // 2 for size in sizes) == FULL.counts.test.classes
    assert preset.train_classes == sum(size - size // 2 for size in sizes) == FULL.counts.train.classes
    assert all(
        {role["images"]} == {shots * role["classes"] for shots in preset.images_per_class}
        for role in FULL.counts.dump().values()
    )


@pytest.mark.parametrize("name", wild.REALMS)
def test_the_taxa_of_a_realm_lead_the_reader_to_its_super_category(name):
    taxa = wild.REALMS[name].taxa.split("_")
    assert len(taxa) == 4
    assert next(SUPER_CATEGORIES[taxon] for taxon in reversed(taxa[:3]) if taxon in SUPER_CATEGORIES) == name


@pytest.mark.slow
def test_raw_pixels_are_far_above_chance_and_far_from_enough():
    collection = collect("wild", 0, PRESETS["wild"])
    labels, pixels = [], []
    for place in range(len(collection.species)):
        for _, picture in collection.pictures(place):
            labels.append(place)
            pixels.append(np.asarray(ImageOps.fit(picture.image, (64, 64)), dtype=np.float32).ravel())
    vectors = np.stack(pixels) / np.linalg.norm(pixels, axis=1, keepdims=True)
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, -1)
    recall = np.mean(np.asarray(labels)[similarity.argmax(axis=1)] == np.asarray(labels))
    assert 2 / len(collection.species) < recall < 0.45
