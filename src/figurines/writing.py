"""Write a data set of figurines, whole or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from figurines.preset import Preset, collect, preset_named


def write_figurines(preset: str, root: Path, *, seed: int = 0, parameters: Preset | None = None) -> None:
    """Write a data set under ``root``; it is made beside it and moved there at the end.

    Args:
        preset: a key of ``PRESETS``.
        root: folder to make; it may exist if it is empty.
        seed: seed of everything that is drawn at random, at least 0.
        parameters: what is drawn in place of the preset, for instance fewer classes.

    Raises:
        ValueError: if the preset is unknown.
        FileExistsError: if ``root`` exists and is not an empty folder.
    """
    settings = preset_named(preset)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise FileExistsError(f"{root} exists and is not an empty folder")
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent, prefix=f".{root.name}-") as scratch:
        draft = Path(scratch) / root.name
        draft.mkdir()
        settings = parameters or settings
        settings.layout(draft, collect(preset, seed, settings))
        (draft / "README.txt").write_text(_notes(preset, seed), encoding="utf-8", newline="\n")
        draft.replace(root)


def _notes(preset: str, seed: int) -> str:
    return (
        f"Figurines, preset {preset}, seed {seed}, drawn by figurines.\n"
        "traits.csv: what the classes look like; classes of one complex differ in one or two traits.\n"
        "Nothing in these pictures exists. They are free of rights: CC0 1.0,\n"
        "https://creativecommons.org/publicdomain/zero/1.0/\n"
    )
