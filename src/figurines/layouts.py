"""The official on-disk layouts of the data sets that the figurines stand in for.

Each writer fills an existing folder, always in the same order, and adds ``traits.csv``: what tells the classes apart.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

from figurines.birds import PARTS
from figurines.collection import Collection
from figurines.garments import VIEWS
from figurines.picture import Picture
from figurines.products import KINDS
from figurines.species import Species

LISTING = 110_000_000_000  # of Stanford Online Products: names of files are twelve digits
MAT_HEADER = 116  # bytes of text that scipy fills with the platform and the time of day


def write_cub(root: Path, collection: Collection) -> None:
    """CUB-200-2011: ``CUB_200_2011/`` with boxes and parts, ``segmentations/`` and a hierarchy beside it."""
    home, species = root / "CUB_200_2011", collection.species
    folders = [f"{label:03d}.{kind.name}" for label, kind in enumerate(species, start=1)]
    images: list[str] = []
    labels: list[str] = []
    boxes: list[str] = []
    halves: list[str] = []
    parts: list[str] = []
    for index, kind in enumerate(species):
        for number, picture in collection.pictures(index):
            image = len(images) + 1
            stem = f"{folders[index]}/{kind.name}_{number + 1:04d}_{image}"
            save(picture.image, home / "images" / f"{stem}.jpg")
            save(picture.mask, root / "segmentations" / f"{stem}.png")
            left, top, right, bottom = picture.box
            images.append(f"{image} {stem}.jpg")
            labels.append(f"{image} {index + 1}")
            boxes.append(f"{image} {left:.1f} {top:.1f} {right - left:.1f} {bottom - top:.1f}")
            halves.append(f"{image} {(number + 1) % 2}")
            for part, name in enumerate(PARTS, start=1):
                x, y, visible = _part(picture, name)
                parts.append(f"{image} {part} {x:.1f} {y:.1f} {visible:d}")
    write_lines(home / "images.txt", images)
    write_lines(home / "image_class_labels.txt", labels)
    write_lines(home / "bounding_boxes.txt", boxes)
    write_lines(home / "train_test_split.txt", halves)
    write_lines(home / "classes.txt", (f"{label} {folder}" for label, folder in enumerate(folders, start=1)))
    write_lines(home / "parts" / "parts.txt", (f"{part} {name}" for part, name in enumerate(PARTS, start=1)))
    write_lines(home / "parts" / "part_locs.txt", parts)
    rows = ((label, kind.name, kind.family, kind.group) for label, kind in enumerate(species, start=1))
    _write_table(root / "hierarchy.csv", ("class_id", "species", "family", "order"), rows)
    write_traits(root, dict(enumerate(species, start=1)))


def _part(picture: Picture, name: str) -> tuple[int, int, bool]:
    """Pixel and visibility of one of the fifteen parts; the eye and the wing of the far side are hidden."""
    side, _, part = name.rpartition(" ")
    is_near = side == ("left" if picture.mirrored else "right")
    landmark = f"{'near' if is_near else 'far'} leg" if part == "leg" else part
    pixel = picture.seen(landmark) if is_near or part not in ("eye", "wing") else None
    return (0, 0, False) if pixel is None else (*pixel, True)


def write_cars(root: Path, collection: Collection) -> None:
    """Cars196 in the combined packaging: ``car_ims/`` and ``cars_annos.mat``, and a hierarchy."""
    rows: list[tuple[object, ...]] = []
    for index in range(len(collection.species)):
        for number, picture in collection.pictures(index):
            path = f"car_ims/{len(rows) + 1:06d}.jpg"
            save(picture.image, root / path)
            left, top, right, bottom = picture.box
            corners = (np.uint16(value) for value in (left + 1, top + 1, right, bottom))  # from 1, both included
            rows.append((path, *corners, np.uint16(index + 1), np.uint8(number % 2)))
    fields = ("relative_im_path", "bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "test")
    annotations = np.array(rows, dtype=[(field, object) for field in fields])
    names = np.array([kind.name for kind in collection.species], dtype=object)
    write_mat(root / "cars_annos.mat", {"annotations": annotations[None], "class_names": names[None]})
    classes = dict(enumerate(collection.species, start=1))
    models = ((label, kind.name, kind.group, kind.family) for label, kind in classes.items())
    _write_table(root / "hierarchy.csv", ("class_id", "model", "make", "body_type"), models)
    write_traits(root, classes)


def write_products(root: Path, collection: Collection) -> None:
    """Stanford Online Products: the three lists, and a folder for each super-class."""
    home, header = root / "Stanford_Online_Products", "image_id class_id super_class_id path"
    train: list[str] = []
    test: list[str] = []
    for index, kind in enumerate(collection.species):
        rows = train if index < collection.train_classes else test
        for number, picture in collection.pictures(index):
            path = f"{kind.family}_final/{LISTING + index + 1}_{number}.JPG"
            save(picture.image, home / path)
            rows.append(f"{len(train) + len(test) + 1} {index + 1} {list(KINDS).index(kind.family) + 1} {path}")
    write_lines(home / "Ebay_train.txt", [header, *train])
    write_lines(home / "Ebay_test.txt", [header, *test])
    write_lines(home / "Ebay_info.txt", [header, *train, *test])
    write_traits(root, dict(enumerate(collection.species, start=1)))


def write_shop(root: Path, collection: Collection) -> None:
    """In-Shop: the partition and the pictures; training and test items take turns.

    Of a test item's pictures the second, the fifth and so on are queries, the others the gallery.
    """
    train, rows = collection.train_classes, []
    order = sorted(range(len(collection.species)), key=lambda index: (index % train if train else index, index))
    for item, index in enumerate(order, start=1):
        for number, picture in collection.pictures(index):
            colour, view = divmod(number, len(VIEWS))
            folder = f"img/WOMEN/{collection.species[index].family}/id_{item:08d}"
            path = f"{folder}/{colour + 1:02d}_{view + 1}_{VIEWS[view]}.jpg"
            save(picture.image, root / "Img" / path)
            role = "train" if index < train else "query" if number % 3 == 1 else "gallery"
            rows.append(f"{path:<60} id_{item:08d} {role}")
    write_lines(
        root / "Eval" / "list_eval_partition.txt", [str(len(rows)), "image_name item_id evaluation_status", *rows]
    )
    write_traits(root, {item: collection.species[index] for item, index in enumerate(order, start=1)})


def save(image: Image.Image, path: Path) -> None:
    """Write a picture, PNG without loss, JPEG so that small parts keep their colour."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".png":
        image.save(path, format="PNG")
    else:
        image.save(path, format="JPEG", quality=92, subsampling=0)


def write_traits(root: Path, classes: Mapping[int, Species]) -> None:
    """Write ``traits.csv``, a row for each class; a trait that a class does not have is empty."""
    traits = tuple(dict.fromkeys(trait for kind in classes.values() for trait in kind.traits))
    rows = ((label, kind.complex, *(kind.traits.get(trait, "") for trait in traits)) for label, kind in classes.items())
    _write_table(root / "traits.csv", ("class_id", "complex", *traits), rows)


def write_mat(path: Path, content: Mapping[str, object]) -> None:
    """Write a MATLAB file that holds neither time nor platform."""
    stream = io.BytesIO()
    savemat(stream, dict(content), do_compression=True)
    header = b"MATLAB 5.0 MAT-file, lookalike figurines".ljust(MAT_HEADER)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header + stream.getvalue()[MAT_HEADER:])


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text file with these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)
