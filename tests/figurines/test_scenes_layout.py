from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import loadmat

from described import read_layout
from figurines import write_figurines
from lookalike.workflow.data import load_specification
from lookalike.workflow.data.readers.pascal5i import read_mask

FULL = load_specification("figurines_scenes").dump()
VOC, SBD = Path("VOCdevkit/VOC2012"), Path("benchmark_RELEASE/dataset")


@pytest.fixture
def root(written) -> Path:
    """Four classes of fold 0 and their fourteen pictures each."""
    return written("scenes")


@pytest.fixture(scope="module")
def full(tmp_path_factory) -> Path:
    """The data set of the project."""
    root = tmp_path_factory.mktemp("full") / "scenes"
    write_figurines("scenes", root, seed=FULL["generator"]["seed"])
    return root


def listed(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_the_committed_counts_hold(full):
    frame = read_layout(FULL, full)
    test = frame[frame["role"] == "test"]
    assert test.groupby("fold")["path"].nunique().ge(50).all()
    assert test.groupby("label")["path"].nunique().ge(10).all()
    assert frame[frame["role"] == "train"].groupby("label")["path"].nunique().ge(4).all()
    both = test.groupby(["fold", "path"]).size()
    assert (both == 2).groupby("fold").sum().ge(20).all()  # queries of two ways
    with pytest.raises(ValueError, match="figurines like PASCAL-5i, test: 20 classes and 199 images expected"):
        counts = {**FULL["counts"], "test": {"classes": 20, "images": 199}}
        read_layout({**FULL, "counts": counts}, full)


def test_lists_overlap_as_the_official_ones_do(root):
    train, val = (listed(root / VOC / "ImageSets" / "Segmentation" / f"{name}.txt") for name in ("train", "val"))
    extra = {*listed(root / SBD / "train.txt"), *listed(root / SBD / "val.txt")}
    assert (len(train), len(val), len(extra)) == (8, 40, 20)
    assert not set(train) & set(val)
    assert extra & set(train)
    assert extra & set(val)
    frame = read_layout({"title": "few", "layout": "pascal5i"}, root)
    roles = {path.split("/")[-1][:-4]: role for path, role in zip(frame["path"], frame["role"], strict=True)}
    assert roles == {**dict.fromkeys(extra | set(train), "train"), **dict.fromkeys(val, "test")}


def test_palette_masks_have_the_colours_of_voc_and_void_along_every_edge(root):
    paths = sorted((root / VOC / "SegmentationClass").iterdir())
    assert len(paths) == 48
    for path in paths:
        with Image.open(path) as mask, Image.open(root / VOC / "JPEGImages" / f"{path.stem}.jpg") as image:
            assert (mask.format, mask.mode, mask.size) == ("PNG", "P", image.size)
            palette = np.reshape(mask.getpalette(), (-1, 3)).tolist()
            assert palette[:5] == [[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0], [0, 0, 128]]
            assert palette[20] == [0, 64, 128]
            assert palette[255] == [224, 224, 192]
            labels = np.asarray(mask).astype(int)
        for one, other in ((labels[:, 1:], labels[:, :-1]), (labels[1:], labels[:-1])):
            assert ((one == other) | (one == 255) | (other == 255)).all()
        assert 0.005 < (labels == 255).mean() < 0.15


def test_matlab_masks_have_no_void_and_agree_with_the_palette_masks_elsewhere(root):
    paths = sorted((root / SBD / "cls").iterdir())
    assert len(paths) == 20
    compared = 0
    for path in paths:
        labels = read_mask(path)
        present = loadmat(path, squeeze_me=True, struct_as_record=False)["GTcls"].CategoriesPresent
        assert {0, *np.atleast_1d(present).tolist()} == set(np.unique(labels).tolist())
        assert labels.max() <= 20
        with Image.open(root / SBD / "img" / f"{path.stem}.jpg") as image:
            assert image.size == labels.shape[::-1]
        twin = root / VOC / "SegmentationClass" / f"{path.stem}.png"
        if twin.is_file():
            compared += 1
            official = read_mask(twin)
            assert np.array_equal(official[official != 255], labels[official != 255])
    assert compared == 12


def test_a_bottles_mask_lies_on_its_colours(full):
    """A mask that was shifted or mirrored would miss the mug, which is forest green and lemon."""
    with Image.open(full / VOC / "JPEGImages" / "2012_050001.jpg") as image:
        pixels = np.asarray(image).astype(int)
    labels = read_mask(full / VOC / "SegmentationClass" / "2012_050001.png")
    green = pixels[..., 1] - pixels[..., [0, 2]].max(axis=2)
    lemon = pixels[..., :2].min(axis=2) - pixels[..., 2]
    coloured = np.maximum(green, lemon) > 15
    assert coloured[labels == 5].mean() > 0.8
    assert coloured[labels == 0].mean() < 0.1


def test_matlab_files_hold_neither_time_nor_platform(root):
    for path in (root / SBD / "cls").iterdir():
        assert path.read_bytes()[:116].rstrip() == b"MATLAB 5.0 MAT-file, lookalike figurines"


def test_traits_say_which_figurine_plays_which_class(root):
    header, *rows = listed(root / "traits.csv")
    assert header == "class_id,complex,figurine,colour,second colour"
    assert rows[1] == "2,1,bicycle,cobalt,black"
    assert len(rows) == 4
