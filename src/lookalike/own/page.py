"""What a search found as one HTML page that needs no other file, and an explanation as one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lookalike.data.embedded import embedded
from lookalike.explanations.explanation import ROLES
from lookalike.files import replacing
from lookalike.own.explained import Explained
from lookalike.own.ranking import WAYS
from lookalike.own.search import Gallery, Hit

TEMPLATE = Path(__file__).with_name("page.html")
MOST_QUERIES = 50  # on a page
SIDE = 224  # of its pictures, in pixels


def page(gallery: Gallery, found: Mapping[Path, Sequence[tuple[Hit, Explained]]]) -> str:
    """The page.

    Args:
        gallery: that was searched.
        found: by query its hits, each explained.
    """
    from jinja2 import Environment

    shown = list(found.items())[:MOST_QUERIES]
    queries = [
        {
            "name": str(query),
            "picture": embedded(hits[0][1].pictures[0], SIDE),
            "hits": [_hit(gallery, *each) for each in hits],
        }
        for query, hits in shown
        if hits
    ]
    colours = {explained.colours for _, hits in shown for _, explained in hits}
    way = WAYS[gallery.way]
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        names=shown[0][0].name if len(found) == 1 else f"{len(found)} pictures",
        folder=gallery.folder,
        pictures=len(gallery.index),
        measure=way.measure,
        smaller=", smallest first," if way.measure == "distance" else "",
        model=gallery.model.name,
        colours=" ".join(sorted(colours)),
        unreadable=gallery.unreadable,
        left_out=len(found) - len(shown),
        queries=queries,
    )


def draw(explained: Explained, path: Path) -> None:
    """Write an explanation as a PNG: the pictures, below them the same with their maps, and what it says.

    Raises:
        OSError: if it cannot be written.
    """
    from matplotlib.figure import Figure

    count = len(explained.pictures)
    figure = Figure(figsize=(3.2 * count, 7.2), layout="constrained", dpi=120)
    panels = figure.subplots(2, count)
    for column, (picture, overlay) in enumerate(zip(explained.pictures, explained.overlays(), strict=True)):
        for panel, shown in zip(panels[:, column], (picture, overlay), strict=True):
            panel.imshow(shown)
            panel.axis("off")
        panels[0, column].set_title(ROLES[column])
    figure.supxlabel(f"{explained.words}\n{explained.colours}", fontsize=9, wrap=True)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png")


def _hit(gallery: Gallery, hit: Hit, explained: Explained) -> dict[str, str]:
    of_query, of_match = explained.overlays()
    return {
        "name": hit.path.relative_to(gallery.folder).as_posix(),
        "score": f"{hit.score:.3f}",
        "words": explained.words,
        "picture": embedded(explained.pictures[1], SIDE),
        "of_query": embedded(of_query, SIDE),
        "of_match": embedded(of_match, SIDE),
    }
