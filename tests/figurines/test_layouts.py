from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import loadmat

from described import read_layout, read_layout_keypoints
from figurines import PRESETS, write_figurines

LAYOUTS = {"birds": "cub", "vehicles": "cars", "products": "sop", "shop": "inshop"}
CUB_PARTS = (
    "back beak belly breast crown forehead left_eye left_leg left_wing nape right_eye right_leg right_wing tail throat"
)


def lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    assert "\r" not in text
    return text.splitlines()


def fields(path: Path) -> list[list[str]]:
    return [line.split() for line in lines(path)]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def seen_pixels(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path)) > 127


@pytest.mark.parametrize("preset", LAYOUTS)
def test_the_projects_own_readers_read_it(preset, written, shrunk):
    classes = {"train": [1, 6], "test": [7, 12]} if preset in ("birds", "vehicles") else None
    specification = {"layout": LAYOUTS[preset], **({"classes": classes} if classes else {})}
    frame = read_layout(specification, written(preset))
    assert {role: set(group["label"]) for role, group in frame.groupby("role")}.keys() == (
        {"train", "query", "gallery"} if preset == "shop" else {"train", "test"}
    )
    held_out = frame[frame["role"] != "train"]["label"]
    assert not set(held_out) & set(frame[frame["role"] == "train"]["label"])
    assert frame["label"].nunique() == shrunk(preset).train_classes + shrunk(preset).test_classes


@pytest.mark.parametrize("preset", LAYOUTS)
def test_pictures_are_small_rgb_jpegs_that_are_not_square(preset, written):
    pictures = [path for path in written(preset).rglob("*") if path.suffix.lower() == ".jpg"]
    assert pictures
    for path in pictures:
        with Image.open(path) as image:
            assert (image.format, image.mode) == ("JPEG", "RGB")
            assert 64 <= min(image.size) <= 72 < max(image.size) <= 96


@pytest.mark.parametrize("preset", LAYOUTS)
def test_traits_of_all_classes_are_listed(preset, written, shrunk):
    table = rows(written(preset) / "traits.csv")
    assert [int(row["class_id"]) for row in table] == list(
        range(1, shrunk(preset).train_classes + shrunk(preset).test_classes + 1)
    )
    for row in table:
        twins = [other for other in table if other["complex"] == row["complex"] and other is not row]
        assert twins
        for twin in twins:
            assert 1 <= sum(row[trait] != twin[trait] for trait in row if trait not in ("class_id", "complex")) <= 2


def test_cub_lists_agree_on_images_and_classes(written):
    home = written("birds") / "CUB_200_2011"
    images, classes = fields(home / "images.txt"), fields(home / "classes.txt")
    ids = [str(number) for number in range(1, len(images) + 1)]
    for name in ("images", "image_class_labels", "bounding_boxes", "train_test_split"):
        assert [row[0] for row in fields(home / f"{name}.txt")] == ids
    assert [row[0] for row in classes] == [str(label) for label in range(1, 13)]
    for (_, path), (_, label) in zip(images, fields(home / "image_class_labels.txt"), strict=True):
        folder = classes[int(label) - 1][1]
        assert re.fullmatch(rf"{int(label):03d}\.\w+", folder)
        assert re.fullmatch(rf"{re.escape(folder)}/{folder[4:]}_\d{{4}}_\d+\.jpg", path)
        assert (home / "images" / path).is_file()
    assert {row[1] for row in fields(home / "train_test_split.txt")} == {"0", "1"}
    assert {label for _, label in fields(home / "image_class_labels.txt")} == {row[0] for row in classes}


def test_cub_masks_fit_their_pictures_and_boxes_fit_the_masks(written):
    root = written("birds")
    home = root / "CUB_200_2011"
    for (_, path), (_, *box) in zip(fields(home / "images.txt"), fields(home / "bounding_boxes.txt"), strict=True):
        assert all(re.fullmatch(r"\d+\.0", value) for value in box)
        x, y, width, height = map(float, box)
        with Image.open(root / "segmentations" / Path(path).with_suffix(".png")) as mask:
            assert (mask.format, mask.mode) == ("PNG", "L")
            assert mask.size == Image.open(home / "images" / path).size
            seen = np.asarray(mask) > 127
        assert 0.03 < seen.mean() < 0.75
        across, down = np.flatnonzero(seen.any(axis=0)), np.flatnonzero(seen.any(axis=1))
        assert (x, y) == (across[0], down[0])
        assert (x + width, y + height) == (across[-1] + 1, down[-1] + 1)


def test_cub_parts_that_are_visible_lie_in_mask_and_box(written):
    root = written("birds")
    home = root / "CUB_200_2011"
    images = dict(fields(home / "images.txt"))
    boxes = {row[0]: [float(value) for value in row[1:]] for row in fields(home / "bounding_boxes.txt")}
    names = [" ".join(row[1:]) for row in fields(home / "parts" / "parts.txt")]
    assert names == [name.replace("_", " ") for name in CUB_PARTS.split()]
    locations = lines(home / "parts" / "part_locs.txt")
    assert len(locations) == 15 * len(images)
    masks = {
        number: seen_pixels(root / "segmentations" / Path(path).with_suffix(".png")) for number, path in images.items()
    }
    visible = 0
    for nth, line in enumerate(locations):
        assert re.fullmatch(r"\d+ \d+ \d+\.0 \d+\.0 [01]", line)
        image, part, x, y, is_seen = line.split()
        assert (int(image), int(part)) == (nth // 15 + 1, nth % 15 + 1)
        if is_seen == "0":
            assert (x, y) == ("0.0", "0.0")
            continue
        visible += 1
        left, top, width, height = boxes[image]
        assert left <= float(x) < left + width
        assert top <= float(y) < top + height
        assert masks[image][int(float(y)), int(float(x))]
    assert visible > 0.6 * len(locations)


def test_a_bird_shows_one_eye_and_one_wing_and_they_are_on_the_same_side(written):
    points = read_layout_keypoints({"layout": "cub"}, written("birds"))
    visible = points[points["visible"]].groupby("path")["part"].agg(set)
    assert visible.map(lambda parts: not {"left eye", "right eye"} <= parts).all()
    assert visible.map(
        lambda parts: not {"left wing", "right eye"} <= parts and not {"right wing", "left eye"} <= parts
    ).all()
    assert visible.map(lambda parts: bool({"left eye", "right eye"} & parts)).mean() > 0.8


def test_the_beak_is_in_front_of_the_tail_on_the_side_that_the_bird_shows(written):
    points = read_layout_keypoints({"layout": "cub"}, written("birds"))
    table = points[points["visible"]].pivot(index="path", columns="part", values="x")
    right = table.dropna(subset=["beak", "tail", "right eye"])
    left = table.dropna(subset=["beak", "tail", "left eye"])
    assert len(right)
    assert len(left)
    assert (right["beak"] > right["tail"]).all()
    assert (left["beak"] < left["tail"]).all()


def test_hierarchies_have_the_columns_of_the_official_ones(written):
    birds, cars = rows(written("birds") / "hierarchy.csv"), rows(written("vehicles") / "hierarchy.csv")
    assert list(birds[0]) == ["class_id", "species", "family", "order"]
    assert list(cars[0]) == ["class_id", "model", "make", "body_type"]
    for row in birds:
        assert row["species"].endswith(f"_{row['family']}")
    for row in cars:
        assert row["model"].startswith(f"{row['make']} ")
        assert re.fullmatch(rf"\w+ \w+ {row['body_type']} (2007|2012)", row["model"])
    orders = {row["family"]: row["order"] for row in birds}
    assert all(orders[row["family"]] == row["order"] for row in birds)


def test_cars_are_annotated_as_in_the_combined_packaging(written):
    root = written("vehicles")
    content = loadmat(root / "cars_annos.mat", squeeze_me=True)
    annotations, names = content["annotations"], content["class_names"]
    assert annotations.dtype.names == ("relative_im_path", "bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "test")
    assert [str(row["relative_im_path"]) for row in annotations] == [
        f"car_ims/{number:06d}.jpg" for number in range(1, len(annotations) + 1)
    ]
    assert len(list((root / "car_ims").iterdir())) == len(annotations)
    labels = [int(row["class"]) for row in annotations]
    assert labels == sorted(labels)
    assert set(labels) == set(range(1, len(names) + 1))
    assert list(names) == sorted(names)
    for row in annotations:
        x1, y1, x2, y2 = (int(row[f"bbox_{corner}"]) for corner in ("x1", "y1", "x2", "y2"))
        with Image.open(root / str(row["relative_im_path"])) as image:
            assert 1 <= x1 < x2 <= image.width
            assert 1 <= y1 < y2 <= image.height


def test_products_have_three_lists_with_headers_and_shared_super_classes(written):
    home = written("products") / "Stanford_Online_Products"
    train, test, info = (fields(home / f"Ebay_{name}.txt") for name in ("train", "test", "info"))
    header = ["image_id", "class_id", "super_class_id", "path"]
    assert train[0] == test[0] == info[0] == header
    assert train[1:] + test[1:] == info[1:]
    assert [int(row[0]) for row in info[1:]] == list(range(1, len(info)))
    assert {int(row[1]) for row in train[1:]} == set(range(1, 13))
    assert {int(row[1]) for row in test[1:]} == set(range(13, 25))
    assert {row[2] for row in train[1:]} == {row[2] for row in test[1:]}
    for _, label, super_label, path in info[1:]:
        kind = re.fullmatch(rf"(\w+)_final/{110_000_000_000 + int(label)}_\d+\.JPG", path)
        assert kind
        assert 1 <= int(super_label) <= 12
        assert (home / path).is_file()


def test_products_of_the_full_preset_cover_the_twelve_super_classes_in_both_halves():
    preset = PRESETS["products"]
    species = preset.species(preset.train_classes, preset.test_classes, np.random.default_rng(0))
    halves = species[: preset.train_classes], species[preset.train_classes :]
    assert len(species) == preset.train_classes + preset.test_classes
    assert all(len({kind.family for kind in half}) == 12 for half in halves)
    assert set(preset.images_per_class) <= set(range(2, 13))


def test_the_shop_keeps_query_and_gallery_apart_and_both_for_every_test_item(written):
    root = written("shop")
    count, header, *table = lines(root / "Eval" / "list_eval_partition.txt")
    assert int(count) == len(table)
    assert header.split() == ["image_name", "item_id", "evaluation_status"]
    split = [line.split() for line in table]
    assert len({path for path, _, _ in split}) == len(split)
    items = {role: [item for _, item, status in split if status == role] for role in ("train", "query", "gallery")}
    assert set(items["query"]) == set(items["gallery"])
    assert not set(items["train"]) & set(items["query"])
    assert all(1 <= items["query"].count(item) <= 3 for item in set(items["query"]))
    assert all(3 <= items["gallery"].count(item) <= 5 for item in set(items["gallery"]))
    roles = [status == "train" for _, _, status in split]
    assert roles != sorted(roles)  # nothing may rely on the order of the rows
    assert roles != sorted(roles, reverse=True)
    for path, item, _ in split:
        assert re.fullmatch(rf"img/WOMEN/\w+/{item}/0[12]_[1-4]_(front|side|back|full)\.jpg", path)
        assert (root / "Img" / path).is_file()


@pytest.mark.parametrize("images", PRESETS["shop"].images_per_class)
def test_every_number_of_pictures_of_an_item_gives_queries_and_a_gallery(images, tmp_path):
    one_item = replace(PRESETS["shop"], train_classes=1, test_classes=1, images_per_class=(images,))
    write_figurines("shop", tmp_path / "shop", parameters=one_item)
    _, _, *table = lines(tmp_path / "shop" / "Eval" / "list_eval_partition.txt")
    roles = [line.split()[2] for line in table]
    assert roles.count("query") + roles.count("gallery") == roles.count("train") == images
    assert 1 <= roles.count("query") <= 3
    assert 3 <= roles.count("gallery") <= 5
