"""Make small pictures of all that the page shows of a data set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from lookalike.base.files import json_text, read_json, write_text
from lookalike.workflow.data.pictures import as_rgb, embedded, read_picture
from lookalike.workflow.report.page import view_key
from lookalike.workflow.settings.recipes import View
from lookalike.workflow.training.images import fixed_part


def thumbnails(*, pairs: Sequence[str], root: str, side: int, pictures: str) -> None:
    """Write what each run's model sees of each picture that is shown, as fine as the file has it.

    Args:
        pairs: JSON files of the stage ``pairs``, all of one data set.
        side: longer side of a picture in pixels.
        pictures: JSON to write: by `view_key` and path an address that holds the picture itself.
    """
    views: dict[str, View] = {}
    names: dict[str, set[str]] = {}
    for path in pairs:
        found = read_json(path)
        key = view_key(found["view"])
        views[key] = View.model_validate(found["view"])
        names.setdefault(key, set()).update(_shown(found["queries"]))
    drawn = {
        key: {name: embedded(seen(read_picture(Path(root) / name), views[key], side), side) for name in sorted(of_view)}
        for key, of_view in names.items()
    }
    write_text(pictures, json_text(drawn, where=pictures, sort_keys=True) + "\n")


def seen(picture: Image.Image, view: View, side: int) -> Image.Image:
    """The part of a picture that a model sees, as fine as the file has it up to about ``side`` pixels."""
    picture = as_rgb(picture)
    resize, crop = view.resize_px, view.crop_px
    if isinstance(resize, int) and isinstance(crop, int):
        finer = max(crop, min(side, crop * min(picture.size) // resize))
        resize, crop = round(resize * finer / crop), finer
    part: Image.Image = fixed_part(View(resize_px=resize, crop_px=crop))(picture)
    return part


def _shown(queries: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for query in queries:
        yield query["picture"]
        yield from (match["picture"] for match in query["matches"])
