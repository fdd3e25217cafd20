"""Archives of params/overlays, made from the official downloads of the data sets.

    python -m lookalike.workflow.data.excerpts cub100 FOLDER data/archives/cub100.tar

``FOLDER`` holds the official download, unpacked. Pictures, cuts and sizes are those of the archives that results were
measured on. Bytes differ: some names, the JPEG encoder, and for all but birds the filter of resizing are not known.
That of the birds was found from 233 pictures of four species whose originals are at hand: cut to the box, 227 x 227 px
by Pillow's bilinear filter, JPEG of quality 75. The two are 0.55 of 255 apart on average, 2.2 at most; R@1 among them
is 97.9 in place of 97.4 under EfficientNet-Lite0 and the same under SqueezeNet, both untrained.
"""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from PIL import Image
from scipy.io import savemat

from lookalike.base.checks import require_known
from lookalike.base.files import replacing
from lookalike.base.paths import project_root
from lookalike.workflow.data.hierarchy import matched
from lookalike.workflow.data.pictures import read_picture
from lookalike.workflow.data.readers import cars, cub
from lookalike.workflow.data.readers.annotations import read_comma_rows, read_rows, required
from lookalike.workflow.data.readers.pascal5i import SBD, VOC, read_mask
from lookalike.workflow.settings.datasets import Dataset

BIRD_PX = 227  # height and width, whatever the proportions
CAR_PX, GROCERY_PX, SCENE_PX = 138, 144, 208  # shorter side at most
BIRD_QUALITY, QUALITY = 75, 90  # of JPEG
GROCERIES = 28  # pictures of each product
CARS = "car_data/car_data"
SHOP = "Stanford_Online_Products"
BOX = ["box_x", "box_y", "box_width", "box_height"]


class Member(NamedTuple):
    """A file of an archive."""

    name: str
    content: bytes


def cub100(root: Path) -> Iterator[Member]:
    """CUB's 100 species of birds_species.txt, cut to their boxes; classes numbered in its order.

    Args:
        root: folder with ``CUB_200_2011``.

    Raises:
        ValueError: for a species that is not there, or pictures without boxes.
    """
    frame = cub.read(_all_classes("cub", 200), root)
    _require_boxes(frame, root / cub.TOP / "bounding_boxes.txt")
    species = (project_root() / "params" / "overlays" / "birds_species.txt").read_text(encoding="utf-8").split()
    of_class = {str(name): own for name, own in frame.groupby("class_name")}
    meant = matched(species, of_class, loosened=True)
    images, labels = [], []
    for number, name in enumerate(species, start=1):
        require_known(f"{root}, species", meant.get(name, name), of_class)
        for row in of_class[meant[name]].to_dict("records"):
            images.append(f"{number:03d}.{name}/{Path(row['path']).name}")
            labels.append(number)
            picture = read_picture(root / row["path"]).crop(_box(row))
            resized = picture.resize((BIRD_PX, BIRD_PX), Image.Resampling.BILINEAR)
            yield Member(f"{cub.TOP}/images/{images[-1]}", _jpeg(resized, BIRD_QUALITY))
    yield Member(f"{cub.TOP}/images.txt", _numbered(images))
    yield Member(f"{cub.TOP}/image_class_labels.txt", _numbered(labels))
    yield Member(f"{cub.TOP}/classes.txt", _numbered(f"{n:03d}.{name}" for n, name in enumerate(species, start=1)))


def cars98(root: Path) -> Iterator[Member]:
    """The models with odd ids of Cars196's training half, cut to their boxes.

    Args:
        root: folder with a packaging that `lookalike.workflow.data.readers.cars` reads, with boxes.

    Raises:
        ValueError: for a packaging without boxes, or one that does not part its halves.
    """
    frame = cars.read(_all_classes("cars", 196), root)
    if frame.attrs["packaging"] == "combined":
        raise ValueError(f"{root / 'cars_annos.mat'}: this packaging's halves are not read; devkit/ or train/ is right")
    _require_boxes(frame, root)
    halves = frame["path"].str.contains(r"(?:^|/)(?:cars_train|train)/")
    chosen = frame[halves & (frame["label"] % 2 == 1)].sort_values(["label", "path"])
    names = chosen.drop_duplicates("label")["class_name"]
    yield Member(f"{CARS}/names.csv", "".join(f'"{name}"\n' for name in names).encode())
    for row in chosen.to_dict("records"):
        picture = _at_most(read_picture(root / row["path"]).crop(_box(row)), CAR_PX)
        folder = row["class_name"].replace("/", "-")
        yield Member(f"{CARS}/train/{folder}/{Path(row['path']).name}", _jpeg(picture, QUALITY))


def grocery81(root: Path) -> Iterator[Member]:
    """28 pictures of each product, evenly over its files by part and name; even ids are trained on, odd ones tested.

    Args:
        root: folder ``dataset`` of the repository marcusklasson/GroceryStoreDataset.

    Raises:
        ValueError: if a list is missing or broken, or a product has too few pictures.
    """
    classes = pd.read_csv(required(root / "classes.csv"), usecols=range(4), header=0)
    classes.columns = pd.Index(["name", "label", "coarse", "group"])
    listed = [
        read_comma_rows(root / f"{part}.txt", {"path": str, "label": int, "group": int}).assign(part=part)
        for part in ("test", "train", "val")
    ]
    frame = pd.concat(listed, ignore_index=True)
    groups = dict(zip(classes["group"], classes["coarse"].str.strip(), strict=True))
    rows: dict[str, list[str]] = {"train": [], "test": []}
    first = (len(classes) + 1) // 2  # classes that are trained on
    for role, labels in (("train", range(0, len(classes), 2)), ("test", range(1, len(classes), 2))):
        for number, label in enumerate(labels, start=1 if role == "train" else first + 1):
            files = frame[frame["label"] == label].sort_values(["part", "path"]).reset_index(drop=True)
            if len(files) < GROCERIES:
                raise ValueError(f"{root}: class {label} has {len(files)} pictures, {GROCERIES} are taken of each")
            for place in range(GROCERIES):
                row = files.loc[place * len(files) // GROCERIES]
                path = Path(row["path"].strip())
                name = f"{groups[row['group']]}_final/{path.stem}_{row['part']}.JPG"
                count = len(rows["train"]) + len(rows["test"]) + 1
                rows[role].append(f"{count} {number} {row['group'] + 1} {name}")
                yield Member(f"{SHOP}/{name}", _jpeg(_at_most(read_picture(root / path), GROCERY_PX), QUALITY))
    for role, lines in rows.items():
        text = "\n".join(["image_id class_id super_class_id path", *lines]) + "\n"
        yield Member(f"{SHOP}/Ebay_{role}.txt", text.encode())


def voc1232(root: Path) -> Iterator[Member]:
    """The pictures of scenes_pictures.txt with their masks; rarer classes are tested on pictures of SBD, too.

    Args:
        root: folder with ``VOCdevkit/VOC2012`` and ``benchmark_RELEASE``.

    Raises:
        ValueError: for a picture or mask that is not there.
    """
    listed = read_rows(project_root() / "params" / "overlays" / "scenes_pictures.txt", {"role": str, "stem": str})
    for row in listed.to_dict("records"):
        of_sbd = row["role"].startswith("sbd")
        picture = _at_most(read_picture(required(root / VOC / "JPEGImages" / f"{row['stem']}.jpg")), SCENE_PX)
        source = f"{SBD}/cls/{row['stem']}.mat" if of_sbd else f"{VOC}/SegmentationClass/{row['stem']}.png"
        mask = Image.fromarray(read_mask(root / source)).resize(picture.size, Image.Resampling.NEAREST)
        if row["role"] == "sbd_train":
            yield Member(f"{SBD}/img/{row['stem']}.jpg", _jpeg(picture, QUALITY))
            yield Member(f"{SBD}/cls/{row['stem']}.mat", _matlab(mask))
        else:
            yield Member(f"{VOC}/JPEGImages/{row['stem']}.jpg", _jpeg(picture, QUALITY))
            yield Member(f"{VOC}/SegmentationClass/{row['stem']}.png", _palette(mask))
    for name, roles in {"train": ["train"], "val": ["val", "sbd_val"]}.items():
        stems = listed.loc[listed["role"].isin(roles), "stem"]
        yield Member(f"{VOC}/ImageSets/Segmentation/{name}.txt", _lines(stems))
    yield Member(f"{SBD}/train.txt", _lines(listed.loc[listed["role"] == "sbd_train", "stem"]))
    yield Member(f"{SBD}/val.txt", b"")


EXCERPTS: dict[str, Callable[[Path], Iterator[Member]]] = {
    "cub100": cub100,
    "cars98": cars98,
    "grocery81": grocery81,
    "voc1232": voc1232,
}


def write_excerpt(name: str, root: Path, target: Path) -> int:
    """Write an archive, the same bytes each time.

    Args:
        name: key of `EXCERPTS`.
        root: folder with the official download, unpacked.
        target: tar to write.

    Returns:
        Number of its files.

    Raises:
        ValueError: for an unknown name, and as the excerpt.
    """
    require_known("excerpt", name, EXCERPTS)
    count = 0
    with replacing(target) as part, tarfile.open(part, "w", format=tarfile.USTAR_FORMAT) as archive:
        for member in EXCERPTS[name](root):
            about = tarfile.TarInfo(member.name)
            about.size = len(member.content)
            archive.addfile(about, BytesIO(member.content))
            count += 1
    return count


def _all_classes(layout: str, count: int) -> Dataset:
    return Dataset.model_validate({"title": layout, "layout": layout, "classes": {"train": [1, count]}})


def _require_boxes(frame: pd.DataFrame, place: Path) -> None:
    if not {*BOX} <= {*frame.columns}:
        raise ValueError(f"{place}: there are no boxes, which pictures are cut to")


def _box(row: dict[Any, Any]) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of a box whose numbers may be fractions."""
    return (
        *(int(row["box_x"]), int(row["box_y"])),
        *(int(row["box_x"] + row["box_width"]), int(row["box_y"] + row["box_height"])),
    )


def _at_most(picture: Image.Image, shorter_px: int) -> Image.Image:
    """The picture itself, or smaller at the same proportions."""
    shorter = min(picture.size)
    if shorter <= shorter_px:
        return picture
    width, height = (round(side * shorter_px / shorter) for side in picture.size)
    return picture.resize((width, height), Image.Resampling.BILINEAR)


def _jpeg(picture: Image.Image, quality: int) -> bytes:
    stream = BytesIO()
    picture.save(stream, "JPEG", quality=quality)
    return stream.getvalue()


def _palette(mask: Image.Image) -> bytes:
    stream = BytesIO()
    numbers = mask.convert("P")
    numbers.save(stream, "PNG")
    return stream.getvalue()


def _matlab(mask: Image.Image) -> bytes:
    stream = BytesIO()
    savemat(stream, {"GTcls": {"Segmentation": np.asarray(mask)}}, do_compression=True)
    return stream.getvalue()


def _numbered(values: Iterable[object]) -> bytes:
    return _lines(f"{number} {value}" for number, value in enumerate(values, start=1))


def _lines(values: Iterable[str]) -> bytes:
    return "".join(f"{value}\n" for value in values).encode()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(f"usage: python -m {__spec__.name} {{{','.join(EXCERPTS)}}} FOLDER TARGET")
    try:
        print(f"{sys.argv[3]}: {write_excerpt(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])):,} files")
    except (OSError, ValueError) as error:
        sys.exit(str(error))
