"""CUHK03 under the new protocol as it lies on disk, detected boxes: ``<person>_c<camera>_<number>.png``."""

from __future__ import annotations

from pathlib import Path

from figurines.cameras import camera_of
from figurines.collection import Collection
from figurines.layouts import save, write_traits


def write_cuhk03(root: Path, collection: Collection) -> None:
    """Of each test person, the first picture of each camera is a query, the others are the gallery."""
    home = root / "detected"
    for index in range(len(collection.species)):
        searched: set[int] = set()  # cameras that have a query of this person
        for number, picture in collection.pictures(index):
            camera = camera_of(number)
            if index < collection.train_classes:
                folder = "bounding_box_train"
            elif camera not in searched:
                folder = "query"
                searched.add(camera)
            else:
                folder = "bounding_box_test"
            save(picture.image, home / folder / f"{index + 1:04d}_c{camera}_{number + 1}.png")
    write_traits(root, dict(enumerate(collection.species, start=1)))
