"""What ``lookalike export`` prints."""

from __future__ import annotations

import sys
from pathlib import Path

from lookalike.own.export import USE, export_model
from lookalike.own.models import OpenModel
from lookalike.text import counted


def print_export(model: OpenModel, target: Path, *, folder: Path | None, store: Path) -> None:
    """Write a model as files that need nothing of this package, and say what they are.

    Args:
        model: that is written.
        target: new folder.
        folder: pictures of the index, or ``None`` for none.
        store: folder of the indexes of ``lookalike search``.

    Raises:
        ValueError: as `lookalike.own.export.export_model`.
    """
    done = export_model(model, target, folder=folder, store=store)
    if done.gallery is not None and done.gallery.unreadable:
        lines = done.gallery.unreadable
        print(f"lookalike: passed over {counted(len(lines), 'picture')}; the first: {lines[0]}", file=sys.stderr)
    for path in done.files:
        print(f"{path}  {path.stat().st_size:,} bytes")
    print(f"Vectors are compared by {done.vectors.measure}: {done.vectors.says}.")
    print(f"ONNX differs from torch by {done.difference:.1g} at most.")
    if done.vectors.certificate:
        error, count = done.vectors.certificate["relative_error"], done.vectors.certificate["pictures"]
        proven = "None is proven" if error is None else f"At most {error:.2g}"
        print(f"{proven} of a distance is what fixed weights can change between two of the {count:,} pictures.")
    print(f"Without lookalike: python {target / USE} PICTURE")
