"""Key points, boxes and masks stay on what they mark when a view resizes and crops the picture.

What is known of pictures on disk is found where a model sees it.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from described import read_layout, read_layout_keypoints
from figurines import PRESETS, write_figurines
from lookalike.workflow.data import write_manifest
from lookalike.workflow.settings.recipes import TrainingView, View
from lookalike.workflow.training.annotations import (
    Parts,
    box_masks,
    read_annotations,
    seen_boxes,
    seen_mask,
    seen_points,
)
from lookalike.workflow.training.images import transform

VIEW = View(resize_px=28, crop_px=24)
VIEWS = [VIEW, View(resize_px=[40, 30], crop_px=24), View(resize_px=None, crop_px=20), View(crop_px=[30, 22])]
SHOWN = torch.ones(1, dtype=torch.bool)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("place", [(40.5, 33.5), (46.5, 26.5)])
def test_a_point_stays_on_the_spot_that_it_marks(view, place):
    picture = np.zeros((60, 90, 3), np.uint8)
    picture[int(place[1]) - 2 : int(place[1]) + 3, int(place[0]) - 2 : int(place[0]) + 3] = 255
    image = transform(view)(Image.fromarray(picture)).sum(dim=0)
    bright = (image - image.min()).double()
    (point,), (visible,) = seen_points(torch.tensor([place]), SHOWN, (60, 90), view)
    assert visible
    for axis, along in ((0, bright.sum(dim=0)), (1, bright.sum(dim=1))):
        centre = float((along * (torch.arange(len(along)) + 0.5)).sum() / along.sum())
        assert float(point[axis]) == pytest.approx(centre, abs=0.35)


def test_points_that_are_cut_off_or_hidden_are_not_visible():
    points = torch.tensor([[0.0, 15.0], [17.0, 15.0], [17.0, 15.0], [17.0, 0.0]])
    shown = torch.tensor([True, True, False, True])
    moved, visible = seen_points(points, shown, (30, 34), VIEW)
    assert visible.tolist() == [False, True, False, False]
    # Resized to 28 x 31 pixels, of which the middle 24 x 24 are left: four columns and two rows are gone.
    assert moved[1].tolist() == pytest.approx([17 * 31 / 34 - 4, 15 * 28 / 30 - 2])


def test_the_mask_of_a_box_is_the_box_of_the_mask():
    box = torch.tensor([[12.0, 18.0, 48.0, 42.0]])
    mask = box_masks(box, (60, 90))
    assert int(mask.sum()) == 36 * 24
    assert mask[0, 18:42, 12:48].all()
    view = View(resize_px=30, crop_px=30)
    assert torch.equal(seen_mask(mask[0], view), box_masks(seen_boxes(box, (60, 90), view), (30, 30))[0])


def test_a_box_holds_the_pixels_whose_centre_it_holds():
    mask = box_masks(torch.tensor([[12.4, 18.6, 47.6, 41.4]]), (60, 90))[0]
    assert mask[19:41, 12:48].all()
    assert int(mask.sum()) == 22 * 36


def test_a_box_is_cut_off_where_the_image_ends():
    assert seen_boxes(torch.tensor([[0.0, 3.0, 34.0, 15.0]]), (30, 34), VIEW)[0].tolist() == pytest.approx(
        [0, 3 * 28 / 30 - 2, 24, 15 * 28 / 30 - 2]
    )


def test_parts_of_figurines_lie_on_their_masks(tmp_path):
    preset = replace(PRESETS["birds"], train_classes=2, test_classes=2, images_per_class=(2,))
    write_figurines("birds", tmp_path / "birds", seed=3, parameters=preset)
    specification = {"layout": "cub", "classes": {"train": [1, 2], "test": [3, 4]}}
    pictures = read_layout(specification, tmp_path / "birds").set_index("path")
    keypoints = read_layout_keypoints(specification, tmp_path / "birds")
    view = View(resize_px=64, crop_px=56)
    on_object = kept = 0
    for path, rows in keypoints.groupby("path"):
        mask = torch.from_numpy(np.asarray(Image.open(tmp_path / "birds" / pictures.loc[path, "mask"])) > 127)
        points = torch.tensor(rows[["x", "y"]].to_numpy(copy=True))
        visible = torch.tensor(rows["visible"].to_numpy(copy=True))
        points, visible = seen_points(points, visible, tuple(mask.shape), view)
        seen = seen_mask(mask, view)
        assert seen.shape == (56, 56)
        for x, y in points[visible].long().tolist():
            on_object += bool(seen[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2].any())  # an edge may move by a pixel
            kept += 1
    assert len(keypoints) == 8 * 15
    assert kept > 8 * 5
    assert on_object == kept


def test_the_cell_of_a_part_holds_its_point():
    points = torch.rand(3, 5, 2, generator=torch.Generator().manual_seed(0)) * torch.tensor([40.0, 30.0])
    cells = Parts(points, torch.ones(3, 5, dtype=torch.bool), (30, 40)).cells((3, 4))
    for row in range(3):
        for part in range(5):
            x, y = points[row, part].tolist()
            assert int(cells[row, part]) == int(y // 10) * 4 + int(x // 10)


def test_views_of_chance_and_parts_outside_their_image_are_refused():
    random = TrainingView(**VIEW.dump(), scale=[0.5, 1.0], ratio=[1, 1], flip=0.5)
    with pytest.raises(ValueError, match=r"a view with scale=\[0.5, 1.0\] is random"):
        seen_points(torch.zeros(1, 2), SHOWN, (30, 34), random)
    with pytest.raises(ValueError, match=r"visible part lies outside its image of size=\(24, 24\)"):
        Parts(torch.tensor([[[3.0, 24.0]]]), SHOWN[None], (24, 24))
    with pytest.raises(ValueError, match=r"points must be \(N, K, 2\) and visible \(N, K\), not \(1, 2\)"):
        Parts(torch.zeros(1, 2), SHOWN, (24, 24))
    with pytest.raises(ValueError, match="points must hold finite numbers only"):
        Parts(torch.full((1, 1, 2), torch.nan), ~SHOWN[None], (24, 24))


VIEW_KNOWN = View(resize_px=56, crop_px=48)


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    """Folder, manifest and rows of a few drawn birds in CUB's layout."""
    root = tmp_path_factory.mktemp("drawn") / "birds"
    few = replace(PRESETS["birds"], train_classes=1, test_classes=2, images_per_class=(3,))
    write_figurines("birds", root, parameters=few)
    frame = read_layout({"layout": "cub", "classes": {"test": [1, 3]}}, root)
    write_manifest(frame, root / "manifest.csv")
    return root, root / "manifest.csv", frame


def read(birds, layout="cub", drop=()):
    root, manifest, frame = birds
    if drop:
        manifest = root / f"without-{'-'.join(drop)}.csv"
        write_manifest(frame.drop(columns=list(drop)), manifest)
    return read_annotations(manifest, root, VIEW_KNOWN, layout), list(frame["path"])


def test_visible_parts_lie_on_the_object_and_the_object_in_its_box(birds):
    known, paths = read(birds)
    parts, objects = known.parts(paths), known.objects(paths)
    assert known.object_of == "mask"
    assert parts.size == objects.shape[1:] == transform(VIEW_KNOWN)(Image.new("RGB", (80, 60))).shape[1:]
    on = torch.tensor(
        [
            bool(seen[max(int(y) - 2, 0) : int(y) + 3, max(int(x) - 2, 0) : int(x) + 3].any())
            for seen, points, visible in zip(objects, parts.points, parts.visible, strict=True)
            for (x, y), shown in zip(points.tolist(), visible.tolist(), strict=True)
            if shown
        ]
    )
    assert len(on) > 5 * len(paths)
    assert on.double().mean() > 0.9
    boxed, _ = read(birds, drop=("mask",))
    assert boxed.object_of == "box"
    assert (boxed.objects(paths) | ~objects).double().mean() > 0.99


def test_a_box_is_as_long_as_it_would_be_without_the_crop(birds):
    known, paths = read(birds)
    row = known.rows.loc[paths[0]]
    with Image.open(birds[0] / paths[0]) as picture:
        scale = VIEW_KNOWN.resize_px / min(picture.size)
    expected = scale * max(float(row["box_width"]), float(row["box_height"]))
    assert float(known.longer_sides(paths)[0]) == pytest.approx(expected, rel=0.02)


def test_what_is_not_on_disk_is_not_known(birds):
    known, paths = read(birds, "folder", drop=("mask", "box_x"))
    assert (known.points, known.object_of, known.has_boxes) == (None, None, False)
    assert (known.parts(paths), known.objects(paths), known.longer_sides(paths)) == (None, None, None)
    (birds[0] / "lists").mkdir()
    frame = pd.DataFrame({"path": ["a.png"], "label": [0], "role": ["test"]})
    write_manifest(frame, birds[0] / "lists" / "manifest.csv")
    assert read_annotations(birds[0] / "lists" / "manifest.csv", birds[0] / "lists", VIEW_KNOWN, "cub").points is None
