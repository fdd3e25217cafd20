"""Archives of overlays are made from official downloads, here invented ones in the official layouts."""

import re
import tarfile

import numpy as np
import pytest
import yaml
from PIL import Image
from scipy.io import savemat

from lookalike.workflow.data.archives import extract
from lookalike.workflow.data.excerpts import EXCERPTS, write_excerpt
from lookalike.workflow.data.readers import cars, cub, pascal5i, sop
from lookalike.workflow.settings.datasets import Dataset
from projects import ROOT

LISTS = ROOT / "params" / "overlays"


def picture(path, width, height, seed=0):
    """A smooth picture, which JPEG keeps nearly as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    coarse = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC).save(path, quality=95)


def excerpt(name, root, tmp_path, reader):
    """Rows that the overlay's reader finds in the archive made of a download, and its folder."""
    about = yaml.safe_load((LISTS / "photographs.yaml").read_text())["datasets"]
    [stated] = [each for each in about.values() if each["archive"].endswith(f"/{name}.tar")]
    write_excerpt(name, root, tmp_path / f"{name}.tar")
    (tmp_path / "out").mkdir()
    extract(tmp_path / f"{name}.tar", tmp_path / "out")
    del stated["stands_for"]
    return reader.read(Dataset.model_validate(stated), tmp_path / "out"), tmp_path / "out"


def official_birds(root):
    """Two pictures of each of 200 species, of which 100 are the excerpt's, with boxes."""
    top = root / "CUB_200_2011"
    wanted = (LISTS / "birds_species.txt").read_text().split()
    # The official list is sorted, and writes capitals that the excerpt's does not.
    names = [name for each in wanted for name in (each.title(), f"Other_{each}")]
    images = [f"{n:03d}.{name}/{name}_{k}.jpg" for n, name in enumerate(names, start=1) for k in (1, 2)]
    for number, path in enumerate(images):
        picture(top / "images" / path, 60, 40, number)
    boxes = [f"{n} {10 + n % 3}.0 5.0 30.0 {20 + n % 5}.0" for n in range(1, len(images) + 1)]
    labels = [f"{n} {(n + 1) // 2}" for n in range(1, len(images) + 1)]
    for file, lines in {
        "images.txt": [f"{n} {path}" for n, path in enumerate(images, start=1)],
        "image_class_labels.txt": labels,
        "classes.txt": [f"{n} {n:03d}.{name}" for n, name in enumerate(names, start=1)],
        "bounding_boxes.txt": boxes,
    }.items():
        (top / file).write_text("".join(f"{line}\n" for line in lines))
    return top


def test_birds_are_the_listed_species_cut_to_their_boxes(tmp_path):
    top = official_birds(tmp_path / "official")
    frame, out = excerpt("cub100", tmp_path / "official", tmp_path, cub)
    species = (LISTS / "birds_species.txt").read_text().split()
    assert frame["label"].value_counts().to_dict() == dict.fromkeys(range(1, 101), 2)
    assert frame.drop_duplicates("label").sort_values("label")["class_name"].tolist() == species
    assert set(frame.loc[frame["label"] <= 50, "role"]) == {"train"}
    row = frame[frame["label"] == 2].iloc[0]  # the third class of the official list, whose first picture is the fifth
    [source] = [path for path in (top / "images").rglob("*.jpg") if path.name == row["path"].rpartition("/")[2]]
    with Image.open(source) as whole, Image.open(out / row["path"]) as made:
        expected = whole.crop((12, 5, 42, 25)).resize((227, 227), Image.Resampling.BILINEAR)
        assert made.size == (227, 227)
        assert np.abs(np.asarray(made, dtype=float) - np.asarray(expected, dtype=float)).mean() < 1


def test_birds_without_boxes_or_without_a_species_are_refused(tmp_path):
    top = official_birds(tmp_path)
    (top / "bounding_boxes.txt").unlink()
    with pytest.raises(ValueError, match=r"bounding_boxes.txt: there are no boxes, which pictures are cut to"):
        write_excerpt("cub100", tmp_path, tmp_path / "birds.tar")
    official_birds(tmp_path)
    classes = (top / "classes.txt").read_text()
    (top / "classes.txt").write_text(classes.replace("Bobolink", "Bobolinks", 1))
    with pytest.raises(ValueError, match=r"species: unknown 'Bobolink', did you mean 'Bobolinks'"):
        write_excerpt("cub100", tmp_path, tmp_path / "birds.tar")
    assert not (tmp_path / "birds.tar").exists()


def annotations(rows):
    """The struct array of Cars196's MATLAB files."""
    fields = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname")
    table = np.zeros((1, len(rows)), dtype=[(field, object) for field in fields])
    for place, row in enumerate(rows):
        for field, value in zip(fields, row, strict=True):
            table[field][0, place] = value
    return table


def test_cars_are_the_odd_models_of_the_training_half_cut_to_their_boxes(tmp_path):
    root, names = tmp_path / "official", [f"Model {n} C/V" if n == 3 else f"Model {n}" for n in range(1, 197)]
    train = [(20, 10, 320, 210, n, f"{n:05d}.jpg") for n in range(1, 197)]
    for row in train:
        picture(root / "cars_train" / row[-1], 340, 230, row[4])
        picture(root / "cars_test" / row[-1], 40, 30)
    devkit = root / "devkit"
    devkit.mkdir()
    savemat(devkit / "cars_train_annos.mat", {"annotations": annotations(train)})
    savemat(
        root / "cars_test_annos_withlabels.mat", {"annotations": annotations([(1, 1, 9, 9, *row[4:]) for row in train])}
    )
    savemat(devkit / "cars_meta.mat", {"class_names": np.array([names], dtype=object)})
    frame, out = excerpt("cars98", root, tmp_path, cars)
    frame = frame.sort_values("label").reset_index(drop=True)
    assert frame["label"].tolist() == list(range(1, 99))
    assert frame["class_name"].tolist() == names[::2]
    assert set(frame.loc[frame["label"] <= 49, "role"]) == {"train"}
    with Image.open(out / frame["path"][1]) as made:
        assert made.size == (207, 138)  # of a box of 300 x 200
    with tarfile.open(tmp_path / "cars98.tar") as archive:
        assert "car_data/car_data/train/Model 3 C-V/00003.jpg" in archive.getnames()


def test_groceries_are_28_of_each_product_evenly_over_its_files(tmp_path):
    root = tmp_path / "official"
    root.mkdir()
    lines = {part: [] for part in ("train", "val", "test")}
    header = "Class Name (str),Class ID (int),Coarse Class Name (str),Coarse Class ID (int),Iconic Image Path (str)\n"
    table = [f"Product-{label},{label},Group-{label // 2},{label // 2},icon.jpg\n" for label in range(81)]
    (root / "classes.csv").write_text(header + "".join(table))
    for label in range(81):
        for part, count in {"train": 20, "val": 2, "test": 20 + label}.items():
            for number in range(1, count + 1):
                path = f"{part}/Fruit/Group-{label // 2}/Product-{label}/Product-{label}_{number:03d}.jpg"
                lines[part].append(f"{path}, {label}, {label // 2}\n")
                if label < 2:
                    picture(root / path, 300, 200, number)
                else:
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    (root / path).hardlink_to(root / "train/Fruit/Group-0/Product-0/Product-0_001.jpg")
    for part, rows in lines.items():
        (root / f"{part}.txt").write_text("".join(rows))
    frame, out = excerpt("grocery81", root, tmp_path, sop)
    assert frame["label"].value_counts().to_dict() == dict.fromkeys(range(1, 82), 28)
    assert set(frame.loc[frame["label"] <= 41, "role"]) == {"train"}
    first = [path.rpartition("/")[2] for path in frame.loc[frame["label"] == 1, "path"]]
    assert first[:3] == ["Product-0_001_test.JPG", "Product-0_002_test.JPG", "Product-0_004_test.JPG"]
    assert sum("train" in name for name in first) == 13 and sum("val" in name for name in first) == 1
    assert frame.loc[frame["label"] == 42, "path"].iloc[0].endswith("Group-0_final/Product-1_001_test.JPG")
    with Image.open(out / frame["path"][0]) as made:
        assert made.size == (216, 144)


def test_scenes_are_the_listed_pictures_with_masks_as_small(tmp_path):
    root = tmp_path / "official"
    voc, sbd = root / "VOCdevkit/VOC2012", root / "benchmark_RELEASE/dataset"
    (sbd / "cls").mkdir(parents=True)
    (voc / "SegmentationClass").mkdir(parents=True)
    listed = [line.split() for line in (LISTS / "scenes_pictures.txt").read_text().splitlines()]
    mask = np.zeros((40, 60), dtype=np.uint8)
    mask[10:30, 20:50], mask[9, 20:50] = 8, 255
    for role, stem in listed:
        picture(voc / "JPEGImages" / f"{stem}.jpg", 60, 40)
        if role.startswith("sbd"):
            savemat(sbd / "cls" / f"{stem}.mat", {"GTcls": {"Segmentation": mask}})
        else:
            Image.fromarray(mask).convert("P").save(voc / "SegmentationClass" / f"{stem}.png")
    frame, out = excerpt("voc1232", root, tmp_path, pascal5i)
    assert frame["role"].value_counts().to_dict() == {"test": 648, "train": 584}
    assert set(frame["label"]) == {8}
    for suffix in (".png", ".mat"):
        [path, *_] = [path for path in frame["mask"] if path.endswith(suffix)]
        assert np.array_equal(pascal5i.read_mask(out / path), mask)


def test_an_excerpt_has_the_same_bytes_each_time(tmp_path):
    official_birds(tmp_path)
    for name in ("one", "other"):
        write_excerpt("cub100", tmp_path, tmp_path / f"{name}.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "other.tar").read_bytes()


def test_an_unknown_excerpt_is_refused(tmp_path):
    with pytest.raises(ValueError, match=f"unknown 'cub10'.*{re.escape(', '.join(sorted(EXCERPTS)))}"):
        write_excerpt("cub10", tmp_path, tmp_path / "birds.tar")
