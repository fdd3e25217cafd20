"""mini-iNaturalist-2021 as it lies on disk: a folder per species that states its taxa, and ``train_mini.json``."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from figurines.collection import Collection
from figurines.layouts import save, write_traits
from figurines.species import Species
from figurines.wild import REALMS

TOP = "train_mini"
RANKS = ("kingdom", "phylum", "class", "order", "family", "genus", "specific_epithet")


def write_inat(root: Path, collection: Collection) -> None:
    """Class ids count from 0. Names of pictures are hashes of their class and number, so they are in no order."""
    categories: list[dict[str, object]] = []
    images: list[dict[str, object]] = []
    annotations: list[dict[str, int]] = []
    for label, kind in enumerate(collection.species):
        taxa = _taxa(kind)
        folder = "_".join((f"{label:05d}", *taxa))
        ranks = dict(zip(RANKS, taxa, strict=True))
        categories.append(
            {"id": label, "name": kind.name, "supercategory": kind.group, "image_dir_name": folder, **ranks}
        )
        for number, picture in collection.pictures(label):
            path = f"{TOP}/{folder}/{uuid.uuid5(uuid.NAMESPACE_URL, f'{folder}/{number}')}.jpg"
            save(picture.image, root / path)
            width, height = picture.image.size
            annotations.append({"id": len(images), "image_id": len(images), "category_id": label})
            images.append({"id": len(images), "file_name": path, "width": width, "height": height, "license": 0})
    content = {
        "annotations": annotations,
        "categories": categories,
        "images": images,
        "licenses": [{"id": 0, "name": "CC0 1.0", "url": "https://creativecommons.org/publicdomain/zero/1.0/"}],
    }
    (root / f"{TOP}.json").write_text(json.dumps(content, sort_keys=True), encoding="utf-8", newline="\n")
    write_traits(root, dict(enumerate(collection.species)))


def _taxa(kind: Species) -> list[str]:
    """Seven taxa; the genus holds the confusable species. None has ``_`` or a space inside."""
    names = (kind.family, f"{kind.family}-{kind.complex}", kind.name)
    return [*REALMS[kind.group].taxa.split("_"), *(name.replace("_", "-").replace(" ", "-") for name in names)]
