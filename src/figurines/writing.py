"""Write a data set of figurines, whole or not at all."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from figurines.collection import Collection
from figurines.picture import Picture
from figurines.preset import Preset, collect, preset_named

_drawn: list[Collection] = []  # in a process that draws for another one: what its first call gave it


def write_figurines(
    preset: str, root: Path, *, seed: int = 0, parameters: Preset | None = None, processes: int = 1
) -> None:
    """Write a data set under ``root``; it is made beside it and moved there at the end.

    Args:
        preset: a key of ``PRESETS``.
        root: folder to make; it may exist if it is empty.
        seed: seed of everything that is drawn at random, at least 0.
        parameters: what is drawn in place of the preset, for instance fewer classes.
        processes: that draw at the same time; the files are the same bytes for any number.

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
        with _drawing(collect(preset, seed, settings), processes) as collection:
            settings.layout(draft, collection)
        (draft / "README.txt").write_text(_notes(preset, seed), encoding="utf-8", newline="\n")
        draft.replace(root)


@contextmanager
def _drawing(collection: Collection, processes: int) -> Iterator[Collection]:
    """The collection with pictures that several processes take, species by species, each ahead of the layout."""
    if processes == 1:
        yield collection
        return
    # Forked with the collection, as nothing of it could be sent to a new process: its pictures are made by functions.
    forked = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(processes, mp_context=forked, initializer=_drawn.append, initargs=(collection,))
    try:
        taken = {index: pool.submit(_take, index) for index in range(len(collection.species))}
        yield replace(collection, taken=lambda index: taken.pop(index).result())  # kept until it is written only
    finally:
        pool.shutdown(cancel_futures=True)


def _take(index: int) -> list[Picture]:
    return list(_drawn[0].of_species(index))


def _notes(preset: str, seed: int) -> str:
    return (
        f"Figurines, preset {preset}, seed {seed}, drawn by figurines.\n"
        "traits.csv: what the classes look like; classes of one complex differ in one or two traits.\n"
        "Nothing in these pictures exists. They are free of rights: CC0 1.0,\n"
        "https://creativecommons.org/publicdomain/zero/1.0/\n"
    )
