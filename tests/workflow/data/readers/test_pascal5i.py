import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from described import read_layout
from lookalike.workflow.data.readers.pascal5i import CLASSES, read_mask

SPECIFICATION = {"title": "few objects", "layout": "pascal5i"}
VOC, SBD = "VOCdevkit/VOC2012", "benchmark_RELEASE/dataset"


def voc_mask(path, labels):
    path.parent.mkdir(parents=True, exist_ok=True)
    mask = Image.fromarray(np.array([[0, 255, *labels]], dtype=np.uint8))
    mask.putpalette([value for n in range(256) for value in (n, 255 - n, n // 2)])
    mask.save(path)


def sbd_mask(path, labels):
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, {"GTcls": {"Segmentation": np.array([[0, *labels]], dtype=np.uint8), "CategoriesPresent": labels}})


@pytest.fixture
def root(tmp_path, touch, write_lines):
    """SBD lists every VOC image too, those of VOC's val list among its training images."""
    masks = {"a": [1, 15], "b": [6]}
    touch(tmp_path / VOC / "JPEGImages", [f"{name}.jpg" for name in "abv"])
    touch(tmp_path / SBD / "img", [f"{name}.jpg" for name in "abvxyz"])
    for name, labels in {**masks, "v": [1, 6]}.items():
        voc_mask(tmp_path / VOC / "SegmentationClass" / f"{name}.png", labels)
    for name, labels in {"a": [1, 15], "b": [7], "v": [1], "x": [20], "y": [5, 11], "z": []}.items():
        sbd_mask(tmp_path / SBD / "cls" / f"{name}.mat", labels)
    write_lines(tmp_path / VOC / "ImageSets" / "Segmentation" / "train.txt", "ab")
    write_lines(tmp_path / VOC / "ImageSets" / "Segmentation" / "val.txt", "v")
    write_lines(tmp_path / SBD / "train.txt", "avx")
    write_lines(tmp_path / SBD / "val.txt", "byz")
    return tmp_path


def test_training_images_are_those_of_both_sets_without_the_validation_images(root):
    frame = read_layout(SPECIFICATION, root)
    rows = [
        (path.split("/")[-1][0], label, role, fold)
        for path, label, role, fold in frame[["path", "label", "role", "fold"]].to_numpy()
    ]
    assert rows == [
        ("a", 1, "train", 0),
        ("a", 15, "train", 2),
        ("b", 6, "train", 1),  # VOC's mask, not SBD's
        ("v", 1, "test", 0),
        ("v", 6, "test", 1),
        ("x", 20, "train", 3),
        ("y", 5, "train", 0),
        ("y", 11, "train", 2),
    ]
    assert frame["mask"][0] == f"{VOC}/SegmentationClass/a.png"
    assert frame["mask"][5] == f"{SBD}/cls/x.mat"


def test_counts_are_of_images_not_of_rows(root):
    counts = {"train": {"classes": 6, "images": 4}, "test": {"classes": 2, "images": 1}}
    assert len(read_layout({**SPECIFICATION, "counts": counts}, root)) == 8


def test_both_kinds_of_masks_keep_their_numbers(root):
    assert read_mask(root / VOC / "SegmentationClass" / "a.png").tolist() == [[0, 255, 1, 15]]
    assert read_mask(root / SBD / "cls" / "y.mat").tolist() == [[0, 5, 11]]


def test_twenty_classes_make_four_folds_of_five():
    assert len(set(CLASSES)) == 20
    assert [CLASSES[5 * fold] for fold in range(4)] == ["aeroplane", "bus", "diningtable", "pottedplant"]


def test_masks_that_are_none_are_refused(root):
    path = root / VOC / "SegmentationClass" / "a.png"
    voc_mask(path, [21])
    with pytest.raises(ValueError, match=r"a\.png shows class 21; allowed are 0 to 20 and 255"):
        read_layout(SPECIFICATION, root)
    Image.new("RGB", (2, 2)).save(path)
    with pytest.raises(ValueError, match=r"a\.png is no mask: mode RGB"):
        read_layout(SPECIFICATION, root)
    path.write_bytes(b"<html>")
    with pytest.raises(ValueError, match=r"a\.png is no mask"):
        read_layout(SPECIFICATION, root)
    path.unlink()
    with pytest.raises(ValueError, match=r"a\.png does not exist"):
        read_layout(SPECIFICATION, root)
