"""Why pictures of files look alike: the pictures as a model sees them, with their explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from lookalike.app.own.arguments import on_disk
from lookalike.app.own.models import OpenModel
from lookalike.base.files import write_json
from lookalike.explanations.choice import explain, methods_of
from lookalike.explanations.explanation import ROLES, Explanation
from lookalike.explanations.picture import Part, draw, legend, overlays
from lookalike.explanations.serialisation import as_data
from lookalike.explanations.words import sentence
from lookalike.workflow.data.pictures import read_picture
from lookalike.workflow.training.images import seen_part

TOGETHER = 32  # pairs that are explained at once
SIDE = 640  # of pictures that are shown, in pixels
PICTURE, DATA = "explanation.png", "explanation.json"


@dataclass(frozen=True)
class Explained:
    """A pair or triplet of pictures.

    Attributes:
        pictures: query, gallery image and perhaps a negative, their longer side at most `SIDE`.
        parts: of them that the model sees, left, top, width and height as fractions of a picture's.
        explanation: of one or several pairs.
        row: which of them this one is.
    """

    pictures: tuple[Image.Image, ...]
    parts: tuple[Part, ...]
    explanation: Explanation
    row: int = 0

    @property
    def words(self) -> str:
        """The explanation of the two pictures in words."""
        return sentence(self.explanation, self.row)

    @property
    def legend(self) -> list[str]:
        """Meaning of the colours and frames of its overlays, a sentence each."""
        return legend(self.explanation, self.parts)

    def overlays(self) -> list[Image.Image]:
        """The pictures with their maps, and a frame around the part that the model sees."""
        return overlays(self.explanation, self.pictures, self.parts, self.row)

    def data(self) -> dict[str, Any]:
        """The explanation as `lookalike.explanations.serialisation.as_data`."""
        return as_data(self.explanation, self.row)


def explain_files(model: OpenModel, paths: Sequence[Path | str], *, method: str | None = None) -> Explained:
    """Explain a pair or triplet.

    Args:
        model: that sees them.
        paths: query, gallery image and perhaps a negative.
        method: of `lookalike.explain`.

    Raises:
        ValueError: as `lookalike.explain`, and naming a file that cannot be read.
    """
    pictures, parts, images = zip(*(_seen(model, on_disk(path)) for path in paths), strict=True)
    return Explained(pictures, parts, explain(model.network, *images, method=method))


def explain_hits(
    model: OpenModel, query: Path | Image.Image, others: Sequence[Path], *, method: str | None = None
) -> list[Explained]:
    """Explain the similarity of a query to each of several pictures.

    Raises:
        ValueError: as `explain_files`.
    """
    (asked, framed, image), found = _seen(model, query), list[Explained]()
    for start in range(0, len(others), TOGETHER):
        pictures, parts, images = zip(*(_seen(model, path) for path in others[start : start + TOGETHER]), strict=True)
        explanation = explain(model.network, image.expand(len(images), -1, -1, -1), torch.stack(images), method=method)
        found += [
            Explained((asked, picture), (framed, part), explanation, row)
            for row, (picture, part) in enumerate(zip(pictures, parts, strict=True))
        ]
    return found


def check_method(model: OpenModel, name: str | None) -> None:
    """Refuse a method of `lookalike.explain` that is another kind of model's.

    Raises:
        ValueError: naming those that explain this one.
    """
    if name is not None and name not in (known := methods_of(model.network)):
        raise ValueError(f"--method {name}: does not explain this model; {', '.join(known)} can")


def print_explanation(model: OpenModel, paths: Sequence[Path], *, method: str | None, out: Path | None) -> None:
    """Explain a pair or triplet of pictures in a sentence, and write it as picture and JSON.

    Args:
        model: that sees them.
        paths: query, gallery image and perhaps a negative.
        method: of `lookalike.explain`, or ``None`` for the model's own.
        out: folder to write `PICTURE` and `DATA` to.

    Raises:
        ValueError: for pictures that cannot be read, or a method that does not explain the model.
    """
    check_method(model, method)
    explained = explain_files(model, paths, method=method)
    print(explained.words)
    if out is not None:
        pictures = {role: str(path) for role, path in zip(ROLES, paths, strict=False)}
        draw(explained.explanation, explained.pictures, explained.parts, out / PICTURE)
        write_json(out / DATA, {"model": model.name, "pictures": pictures, **explained.data()})
        print(f"{out / PICTURE}, {out / DATA}")


def _seen(model: OpenModel, picture: Path | Image.Image) -> tuple[Image.Image, Part, Tensor]:
    """A picture, or that of a file, as it is shown, the part of it that the model sees, and its image."""
    whole = picture if isinstance(picture, Image.Image) else read_picture(picture)
    shown = whole.copy()
    shown.thumbnail((SIDE, SIDE))
    return shown, seen_part(model.view, (whole.height, whole.width)), model.transform(whole)
