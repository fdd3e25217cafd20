"""Pictures decoded once and kept as raw bytes, which all processes of a machine read from one mapped file.

Decoding anew in every epoch binds a training on a fast device; copying bytes does not. What a view does before anything
random happens is done once too: a picture is kept as the random crop finds it, and a test picture as the network does.
Bytes are those of decoding anew, so no result depends on whether they are kept.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lookalike.base.files import write_json
from lookalike.workflow.data.archives import workspace
from lookalike.workflow.data.pictures import read_picture
from lookalike.workflow.settings.recipes import TrainingView, View

LOG = logging.getLogger(__name__)
PIXELS, SIZES, ABOUT = "pixels.bin", "sizes.npy", "about.json"
GB = 10**9
SAMPLED = 64  # pictures that tell how large all of them are
SPARE_BYTES = 2**30  # that stay free on the disk
AHEAD = 64  # pictures decoded before the first of them is written

Prepare = Callable[[Image.Image], Image.Image]


def fixed_keys(view: View) -> dict[str, Any]:
    """The keys of a view for its steps before the first random one; all of it, where no step is random."""
    resized: dict[str, Any] = {"resize_px": view.resize_px}
    if view.resize_px and view.interpolation != "bilinear":
        resized["interpolation"] = view.interpolation
    return resized if isinstance(view, TrainingView) else resized | {"crop_px": view.crop_px}


class DecodedPictures:
    """Pictures in one file.

    Args:
        folder: folder that `decoded` wrote.
        paths: files of the pictures, in the order of writing.
    """

    def __init__(self, folder: Path, paths: Sequence[Path]) -> None:
        self.folder = folder
        self._rows = {path: row for row, path in enumerate(paths)}
        self._sizes: NDArray[np.int64] = np.load(folder / SIZES)
        self._ends = (3 * self._sizes.prod(axis=1)).cumsum()
        self._pixels: NDArray[np.uint8] | None = None

    def __contains__(self, path: Path) -> bool:
        return path in self._rows

    def __getitem__(self, path: Path) -> NDArray[np.uint8]:
        """Pixels ``(height, width, 3)`` of one picture, which stay in the file: to be read only."""
        if self._pixels is None:
            # As a plain array, whose slices take a fifth of the time.
            self._pixels = np.memmap(self.folder / PIXELS, dtype=np.uint8, mode="r").view(np.ndarray)
        row = self._rows[path]
        height, width = self._sizes[row].tolist()
        end = int(self._ends[row])
        return self._pixels[end - 3 * height * width : end].reshape(height, width, 3)

    def __getstate__(self) -> dict[str, Any]:
        """Without the mapping, which another process opens itself."""
        return {**self.__dict__, "_pixels": None}


def decoded(
    paths: Sequence[Path], folder: Path, prepare: Prepare, *, limit_bytes: int, threads: int = 1
) -> DecodedPictures | None:
    """Pictures as ``prepare`` leaves them, decoded by the first call that asks for this folder.

    It appears when it is whole; a second process waits for the first and finds it.

    Args:
        paths: files of the pictures.
        folder: folder to keep them in; its name must tell the pictures' contents and what ``prepare`` does.
        prepare: what is done to each, always with the same result.
        limit_bytes: what they may take.
        threads: number of pictures decoded at the same time.

    Returns:
        ``None`` where they would take more than ``limit_bytes``, or all but the last GiB of the disk: then pictures
        are decoded whenever they are read.

    Raises:
        ValueError: naming the first picture that cannot be read.
        OSError: naming the file, if it cannot be written.
    """
    if not _is_settled(folder, limit_bytes):
        with workspace(folder) as staging:
            if not _is_settled(folder, limit_bytes):
                shutil.rmtree(folder, ignore_errors=True)
                needed = _estimated_bytes(paths, prepare)
                kept = needed <= limit_bytes
                if kept and shutil.disk_usage(folder.parent).free < needed + SPARE_BYTES:
                    LOG.warning("%.1f GB of decoded pictures do not fit on the disk of %s", needed / 1e9, folder.parent)
                    return None
                if kept:
                    print(f"decoding {len(paths)} pictures once, {needed / 1e9:.2f} GB in {folder}", flush=True)
                    _write(paths, staging, prepare, threads)
                write_json(staging / ABOUT, {"kept": kept, "pictures": len(paths), "bytes": needed})
                staging.rename(folder)
    return DecodedPictures(folder, paths) if json.loads((folder / ABOUT).read_text())["kept"] else None


def sampled(paths: Sequence[Path]) -> Sequence[Path]:
    """Some pictures, spread over all, that tell how large all of them are."""
    return paths[:: max(1, len(paths) // SAMPLED)]


def _is_settled(folder: Path, limit_bytes: int) -> bool:
    """Whether pictures are there, or are known to be too large."""
    if not (folder / ABOUT).is_file():
        return False
    facts = json.loads((folder / ABOUT).read_text())
    return bool(facts["kept"] or facts["bytes"] > limit_bytes)


def _estimated_bytes(paths: Sequence[Path], prepare: Prepare) -> int:
    sizes = [prepare(read_picture(path)).size for path in sampled(paths)]
    return round(sum(3 * width * height for width, height in sizes) / len(sizes) * len(paths))


def _write(paths: Sequence[Path], folder: Path, prepare: Prepare, threads: int) -> None:
    """Write all pictures behind each other; Pillow decodes and resizes without holding Python's lock."""
    sizes = np.empty((len(paths), 2), dtype=np.int64)
    with (folder / PIXELS).open("wb") as stream, ThreadPoolExecutor(threads) as pool:
        rest = iter(paths)
        waiting = [pool.submit(lambda path: prepare(read_picture(path)), path) for path in islice(rest, AHEAD)]
        for row in range(len(paths)):
            picture = waiting.pop(0).result()
            waiting += [pool.submit(lambda path: prepare(read_picture(path)), path) for path in islice(rest, 1)]
            sizes[row] = picture.height, picture.width
            stream.write(picture.tobytes())
    np.save(folder / SIZES, sizes)
