"""Picture files of a folder, and the images that a model makes of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from lookalike.app.own.models import OpenModel
from lookalike.base.files import state_of
from lookalike.base.text import one_line, printable
from lookalike.workflow.data.junk import is_image, is_junk
from lookalike.workflow.data.pictures import read_picture

TOLD = 3  # pictures that are passed over, by name


class Stamp(NamedTuple):
    """A picture file as it was when it was listed; another size or time means another picture.

    Attributes:
        name: path below the folder.
        size: bytes.
        changed: time of the last change of its content in nanoseconds, which a copy sets back.
        renewed: time of the last change of the file in nanoseconds, which nothing sets back.
    """

    name: str
    size: int
    changed: int
    renewed: int


def pictures_in(folder: Path) -> list[Stamp]:
    """Pictures below a folder, at any depth, by name.

    Hidden files and folders, and what desktop systems leave behind, are passed over.

    Raises:
        ValueError: if it is no folder or holds no picture.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: {'not a folder' if folder.exists() else 'no such folder'}")
    found = sorted(_below(str(folder), "", frozenset({os.path.realpath(folder)})))
    if not found:
        raise ValueError(f"{folder} holds no picture by name, such as .jpg, .png, .tif, .webp, .avif or .heic")
    return found


def _below(folder: str, prefix: str, above: frozenset[str]) -> Iterator[Stamp]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or is_junk(entry.name):
                continue
            if entry.is_dir():  # or a link to one, but for those that lead back to where this began
                if (real := os.path.realpath(entry.path)) not in above:
                    yield from _below(entry.path, f"{prefix}{entry.name}/", above | {real})
            elif is_image(entry.name):
                state = state_of(entry.stat(follow_symlinks=os.path.exists(entry.path)))  # noqa: PTH110  (else a link to nothing)
                yield Stamp(f"{prefix}{entry.name}", *state)


def tell_passed_over(lines: Sequence[str]) -> None:
    """Print of pictures that are passed over the first few and the number of the others.

    Args:
        lines: name and reason of each.
    """
    more = [f"{len(lines) - TOLD:,} more"] if len(lines) > TOLD else []
    for line in [*lines[:TOLD], *more]:
        print(printable(one_line(f"lookalike: passed over {line}")), file=sys.stderr)


def read_image(model: OpenModel, path: Path) -> Tensor:
    """The image ``(3, H, W)`` that a model makes of a picture.

    Raises:
        ValueError: naming the file, if it is no readable picture, or so long and narrow that it shows nothing.
    """
    return model.transform(read_picture(path))


def image_batches(
    model: OpenModel, paths: Sequence[Path], *, batch_size: int, threads: int
) -> Iterator[tuple[list[int], Tensor, dict[int, str]]]:
    """Images of many pictures, decoded by several threads ahead of the network.

    Yields:
        Rows of the pictures that can be read, their images ``(B, 3, H, W)``, and by row why others cannot.
    """

    def attempt(path: Path) -> Tensor | str:
        try:
            return read_image(model, path)
        except ValueError as error:
            return str(error)

    parts = [range(start, min(start + batch_size, len(paths))) for start in range(0, len(paths), batch_size)]
    with ThreadPoolExecutor(threads) as pool:
        waiting = [[pool.submit(attempt, paths[row]) for row in part] for part in parts[:2]]
        for place, part in enumerate(parts):
            results = [future.result() for future in waiting.pop(0)]
            if place + 2 < len(parts):
                waiting.append([pool.submit(attempt, paths[row]) for row in parts[place + 2]])
            read = {row: result for row, result in zip(part, results, strict=True) if isinstance(result, Tensor)}
            faults = {row: result for row, result in zip(part, results, strict=True) if isinstance(result, str)}
            images = torch.stack(list(read.values())) if read else torch.empty(0)
            yield list(read), images, faults
