"""Hits of a search, each explained: as lines, as JSON, and as one HTML page that needs no other file."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lookalike.app.own.arguments import as_typed
from lookalike.app.own.cells import CANDIDATES
from lookalike.app.own.explanation import Explained, check_method, explain_hits
from lookalike.app.own.models import OpenModel
from lookalike.app.own.picture_files import pictures_in, tell_passed_over
from lookalike.app.own.search import WAYS, Gallery, Hit, open_gallery, ways_of
from lookalike.base.files import json_text, write_text
from lookalike.base.text import counted, printable
from lookalike.workflow.data.pictures import embedded

TEMPLATE = Path(__file__).with_name("hits.html")
MOST_QUERIES = 50  # on a page
SIDE = 224  # of its pictures, in pixels
Found = Mapping[Path, Sequence[tuple[Hit, Explained]]]


def page(gallery: Gallery, found: Found) -> str:
    """The page.

    Args:
        gallery: that was searched.
        found: by query its hits, each explained.
    """
    from jinja2 import Environment

    shown = list(found.items())[:MOST_QUERIES]
    queries = [
        {
            "name": as_typed(query),
            "picture": embedded(hits[0][1].pictures[0], SIDE),
            "hits": [_hit(gallery, *each) for each in hits],
        }
        for query, hits in shown
        if hits
    ]
    legend = dict.fromkeys(sentence for _, hits in shown for _, explained in hits for sentence in explained.legend)
    way = WAYS[gallery.way]
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        names=shown[0][0].name if len(found) == 1 else f"{len(found)} pictures",
        folder=as_typed(gallery.folder),
        pictures=len(gallery.index),
        measure=way.measure,
        smaller=", smallest first," if way.measure == "distance" else "",
        model=gallery.model.name,
        legend=" ".join(legend),
        unreadable=gallery.unreadable,
        left_out=len(found) - len(shown),
        queries=queries,
    )


def print_search(
    model: OpenModel,
    query: Path,
    *,
    folder: Path | None,
    top: int,
    way: str | None,
    method: str | None,
    store: Path,
    out: Path | None,
    as_json: bool,
) -> int:
    """Search, and print the hits of each query.

    Args:
        model: that sees the pictures.
        query: a picture, or a folder of them.
        folder: that is searched; by default the query's own.
        top: pictures per query.
        way: a key of `lookalike.app.own.search.WAYS`, or ``None`` for the model's own.
        method: that explains, or ``None`` for that of the way.
        store: folder of the index.
        out: HTML page to write.
        as_json: print JSON in place of a table.

    Returns:
        How many of several queries cannot be read.

    Raises:
        ValueError: for pictures or folders that cannot be read, or a way or method that is not the model's.
    """
    if way is not None and way not in ways_of(model.network):
        known = " or ".join(ways_of(model.network))
        raise ValueError(f"--by {way}: not of this model, whose pictures are compared by {known}")
    check_method(model, method)
    queries = [query / stamp.name for stamp in pictures_in(query)] if query.is_dir() else [query]
    gallery = open_gallery(model, folder or (query if query.is_dir() else query.parent), store=store, way=way)
    tell_passed_over(gallery.unreadable)
    method = method or WAYS[gallery.way].explained_by
    found: dict[Path, list[tuple[Hit, Explained]]] = {}
    for each in queries:
        try:
            hits = gallery.search(each, top)
        except ValueError as error:
            if len(queries) == 1:
                raise
            print(f"lookalike: {error}", file=sys.stderr)
            continue
        found[each] = list(zip(hits, explain_hits(model, each, [hit.path for hit in hits], method=method), strict=True))
    if as_json:
        print(json_text(_as_data(gallery, found), where="--json", indent=1))
    else:
        print(printable(_as_text(gallery, found)))
    if out is not None:
        write_text(out, printable(page(gallery, found)))
        shown = f", with {MOST_QUERIES} of {len(found)} queries" if len(found) > MOST_QUERIES else ""
        print(f"{out}: the pictures{shown}", file=sys.stderr)
    return len(queries) - len(found)


def _as_text(gallery: Gallery, found: Found) -> str:
    measure, new = WAYS[gallery.way].measure, f", {gallery.new:,} of them new" if gallery.new else ""
    some = "" if gallery.is_exact else f", of {CANDIDATES:,} candidates or more by IVF-PQ: one may be missed"
    lines = [f"{counted(len(gallery.index), 'picture')} in {as_typed(gallery.folder)}{new}; by {measure}{some}"]
    for query, hits in found.items():
        lines += ["", as_typed(query)]
        width = max((len(_name(gallery, hit)) for hit, _ in hits), default=0)
        for rank, (hit, explained) in enumerate(hits, start=1):
            lines.append(f"{rank:>4}  {hit.score:7.3f}  {_name(gallery, hit):<{width}}  {explained.words}")
    return "\n".join(lines)


def _as_data(gallery: Gallery, found: Found) -> dict[str, Any]:
    return {
        "model": gallery.model.name,
        "folder": str(gallery.folder),
        "pictures": len(gallery.index),
        "unreadable": gallery.unreadable,
        "measure": WAYS[gallery.way].measure,
        "exact": gallery.is_exact,
        "queries": [
            {
                "query": str(query),
                "hits": [
                    {
                        "picture": _name(gallery, hit),
                        "score": hit.score,
                        "explanation": explained.data(),
                    }
                    for hit, explained in hits
                ],
            }
            for query, hits in found.items()
        ],
    }


def _name(gallery: Gallery, hit: Hit) -> str:
    return os.path.relpath(hit.path, gallery.folder)


def _hit(gallery: Gallery, hit: Hit, explained: Explained) -> dict[str, str]:
    of_query, of_match = explained.overlays()
    return {
        "name": hit.path.relative_to(gallery.folder).as_posix(),
        "address": hit.path.resolve().as_uri(),
        "score": f"{hit.score:.3f}",
        "words": explained.words,
        "picture": embedded(explained.pictures[1], SIDE),
        "of_query": embedded(of_query, SIDE),
        "of_match": embedded(of_match, SIDE),
    }
