"""What is known of pictures on disk is found where a model sees it."""

from dataclasses import replace

import pandas as pd
import pytest
import torch
from PIL import Image

from figurines import PRESETS, write_figurines
from lookalike.data import read_layout, write_manifest
from lookalike.explanations.quality.known import read_annotations
from lookalike.training.images import transform

VIEW = {"resize_px": 56, "crop_px": 48}


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
    return read_annotations(manifest, root, VIEW, layout), list(frame["path"])


def test_visible_parts_lie_on_the_object_and_the_object_in_its_box(birds):
    known, paths = read(birds)
    parts, objects = known.parts(paths), known.objects(paths)
    assert known.object_of == "mask"
    assert parts.size == objects.shape[1:] == transform(VIEW)(Image.new("RGB", (80, 60))).shape[1:]
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
        scale = VIEW["resize_px"] / min(picture.size)
    expected = scale * max(float(row["box_width"]), float(row["box_height"]))
    assert float(known.longer_sides(paths)[0]) == pytest.approx(expected, rel=0.02)


def test_what_is_not_on_disk_is_not_known(birds):
    known, paths = read(birds, "folder", drop=("mask", "box_x"))
    assert (known.points, known.object_of, known.has_boxes) == (None, None, False)
    assert (known.parts(paths), known.objects(paths), known.longer_sides(paths)) == (None, None, None)
    (birds[0] / "lists").mkdir()
    frame = pd.DataFrame({"path": ["a.png"], "label": [0], "role": ["test"]})
    write_manifest(frame, birds[0] / "lists" / "manifest.csv")
    assert read_annotations(birds[0] / "lists" / "manifest.csv", birds[0] / "lists", VIEW, "cub").points is None
