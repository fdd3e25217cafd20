"""What ``lookalike explain`` prints and writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lookalike.explanations.choice import methods_of
from lookalike.explanations.explanation import ROLES
from lookalike.files import write_json
from lookalike.own.explained import explain_files
from lookalike.own.models import OpenModel
from lookalike.own.page import draw
from lookalike.own.told import as_data

PICTURE, DATA = "explanation.png", "explanation.json"


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
        draw(explained, out / PICTURE)
        write_json(out / DATA, {"model": model.name, "pictures": pictures, **as_data(explained.explanation)})
        print(f"{out / PICTURE}, {out / DATA}")
