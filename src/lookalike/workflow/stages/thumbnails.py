"""Make small pictures of all that the page shows of a data set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lookalike.base.files import json_text, read_json, write_text
from lookalike.workflow.data.pictures import embedded, read_picture
from lookalike.workflow.report.page import view_key
from lookalike.workflow.settings.recipes import View
from lookalike.workflow.training.images import seen_part


def thumbnails(*, pairs: Sequence[str], root: str, side: int, pictures: str) -> None:
    """Write each picture that is shown, and the part of it that each run's model sees.

    Args:
        pairs: JSON files of the stage ``pairs``, all of one data set.
        root: folder of the pictures.
        side: longer side of a picture in pixels.
        pictures: JSON to write: ``pictures``, by path an address that holds the picture itself, and ``parts``, by
            `view_key` and path left, top, width and height as fractions of the picture's.
    """
    views: dict[str, View] = {}
    names: dict[str, set[str]] = {}
    for path in pairs:
        found = read_json(path)
        key = view_key(found["view"])
        views[key] = View.model_validate(found["view"])
        names.setdefault(key, set()).update(_shown(found["queries"]))
    addresses, sizes = {}, {}
    for name in sorted(set().union(*names.values())):
        picture = read_picture(Path(root) / name)
        addresses[name], sizes[name] = embedded(picture, side), (picture.height, picture.width)
    parts = {
        key: {name: [round(each, 4) for each in seen_part(views[key], sizes[name])] for name in sorted(of_view)}
        for key, of_view in names.items()
    }
    text = json_text({"pictures": addresses, "parts": parts}, where=pictures, sort_keys=True)
    write_text(pictures, text + "\n")


def _shown(queries: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for query in queries:
        yield query["picture"]
        yield from (match["picture"] for match in query["matches"])
