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
from lookalike.explanations.picture import draw, overlays
from lookalike.explanations.serialisation import as_data
from lookalike.explanations.words import colours, sentence
from lookalike.workflow.data.pictures import read_picture
from lookalike.workflow.training.images import fixed_part

TOGETHER = 32  # pairs that are explained at once
PICTURE, DATA = "explanation.png", "explanation.json"


@dataclass(frozen=True)
class Explained:
    """A pair or triplet of pictures.

    Attributes:
        pictures: query, gallery image and perhaps a negative, as the model sees them: resized, their centre cropped.
        explanation: of one or several pairs.
        row: which of them this one is.
    """

    pictures: tuple[Image.Image, ...]
    explanation: Explanation
    row: int = 0

    @property
    def words(self) -> str:
        """What the explanation says of them."""
        return sentence(self.explanation, self.row)

    @property
    def colours(self) -> str:
        """What the colours of its overlays say."""
        return colours(self.explanation)

    def overlays(self) -> list[Image.Image]:
        """The pictures with their maps."""
        return overlays(self.explanation, self.pictures, self.row)

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
    seen = [_seen(model, on_disk(path)) for path in paths]
    explanation = explain(model.network, *(image for _, image in seen), method=method)
    return Explained(tuple(picture for picture, _ in seen), explanation)


def explain_hits(
    model: OpenModel, query: Path | Image.Image, others: Sequence[Path], *, method: str | None = None
) -> list[Explained]:
    """Explain what a query has in common with each of several pictures.

    Raises:
        ValueError: as `explain_files`.
    """
    (asked, image), found = _seen(model, query), list[Explained]()
    for start in range(0, len(others), TOGETHER):
        seen = [_seen(model, path) for path in others[start : start + TOGETHER]]
        gallery = torch.stack([each for _, each in seen])
        explanation = explain(model.network, image.expand(len(gallery), -1, -1, -1), gallery, method=method)
        found += [Explained((asked, picture), explanation, row) for row, (picture, _) in enumerate(seen)]
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
        draw(explained.explanation, explained.pictures, out / PICTURE)
        write_json(out / DATA, {"model": model.name, "pictures": pictures, **explained.data()})
        print(f"{out / PICTURE}, {out / DATA}")


def _seen(model: OpenModel, picture: Path | Image.Image) -> tuple[Image.Image, Tensor]:
    """A picture, or that of a file, as the model sees it, and its image."""
    whole = picture if isinstance(picture, Image.Image) else read_picture(picture)
    return fixed_part(model.view)(whole), model.transform(whole)
