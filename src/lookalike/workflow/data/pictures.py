"""Pictures from files, and copies of data sets with smaller ones that all runs share."""

from __future__ import annotations

import base64
import io
import logging
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from PIL import Image, UnidentifiedImageError

from lookalike.base.checks import require_known
from lookalike.base.files import read_json, state_of, write_json
from lookalike.base.text import counted
from lookalike.workflow.data.archives import workspace
from lookalike.workflow.data.junk import HEIF_SUFFIXES, UNREAD_SUFFIXES
from lookalike.workflow.data.manifest import altered_files, manifest_hash, read_manifest, write_manifest
from lookalike.workflow.data.rgb import BROKEN, as_rgb
from lookalike.workflow.data.roles import LEFT_OUT

LOG = logging.getLogger(__name__)
MANIFEST, RECORD = "manifest.csv", "record.json"
# png keeps every pixel; jpeg has Pillow's default quality, as the contextual paper's copy of mini-iNaturalist.
ENCODINGS: Mapping[str, Mapping[str, Any]] = {"png": {"format": "PNG", "compress_level": 1}, "jpeg": {"format": "JPEG"}}
Broken = Literal["stop", "skip"]
NEEDS_HEIF = "HEIC needs lookalike's extra `heic`; in the project's folder: uv pip install '.[heic]'"
_HEIF_BRANDS = (b"heic", b"heix", b"hevc", b"hevx", b"mif1", b"msf1")
PAGE_QUALITY = 85  # of JPEG inside a page
SENT = ("AVIF", "BMP", "GIF", "HEIF", "JPEG", "JPEG2000", "MPO", "PNG", "PPM", "TIFF", "WEBP")  # decoded from anybody
MOST_PIXELS = 64_000_000  # of a picture that somebody sends
LONGEST = 50  # times its shorter side that a picture may be long: a view that resizes the shorter fills the memory
_NAME = re.compile(r"_\d+px_[a-z]+_[0-9a-f]{12}")  # of a copy, behind its data set's name
_OF_ORIGINALS = frozenset({"box_x", "box_y", "box_width", "box_height", "mask", "mask_sha256", "bytes", "sha256"})


@dataclass(frozen=True)
class PictureCopy:
    """A data set's pictures in another size.

    Attributes:
        manifest: the original's rows without boxes, masks and pictures that were skipped.
        root: folder that the manifest's paths are relative to.
        skipped: paths of the pictures that cannot be read.
    """

    manifest: Path
    root: Path
    skipped: tuple[str, ...]


def read_picture(path: Path) -> Image.Image:
    """The picture of a file, in RGB whatever it is stored as, see `lookalike.workflow.data.rgb.as_rgb`.

    Raises:
        ValueError: naming the file, if it is missing, no picture or of a kind that is not read, cut short, larger than
            any photograph, or more than `LONGEST` times as long as it is wide, or the other way round.
    """
    if path.suffix.lower() in UNREAD_SUFFIXES:
        raise ValueError(f"{path}: no readable picture ({path.suffix} is not read; save it as JPEG or PNG)")
    if path.is_fifo() or path.is_socket():  # of which the first would be waited for without end
        raise ValueError(f"{path}: no readable picture (it is no file)")
    reads_heif = _heif_is_read()
    try:
        with Image.open(path) as stream:
            picture = as_rgb(stream)
    except UnidentifiedImageError as error:
        why = str(error) if reads_heif or not _is_heif(path) else NEEDS_HEIF
        raise ValueError(f"{path}: no readable picture ({why})") from None
    except BROKEN as error:
        raise ValueError(f"{path}: no readable picture ({error})") from None
    _check_proportions(f"{path}: ", picture)
    return picture


def read_sent(data: bytes) -> Image.Image:
    """The picture that somebody sends, in RGB: of the formats `SENT`, measured before a pixel of it is decoded.

    Raises:
        ValueError: if it is no picture of these, cut short, or larger or longer than is decoded.
    """
    _heif_is_read()
    Image.init()
    try:
        with Image.open(io.BytesIO(data), formats=[kind for kind in SENT if kind in Image.OPEN]) as stream:
            if stream.width * stream.height > MOST_PIXELS:
                raise ValueError(f"{stream.width} x {stream.height} pixels; at most {MOST_PIXELS:,} are decoded")
            _check_proportions("", stream)
            return as_rgb(stream)
    except UnidentifiedImageError:
        raise ValueError(f"no readable picture: none of {', '.join(SENT)}") from None
    except BROKEN as error:
        raise ValueError(f"no readable picture ({error})") from None


def _check_proportions(where: str, picture: Image.Image) -> None:
    short, long = sorted(picture.size)
    if long > LONGEST * short:
        raise ValueError(
            f"{where}{picture.width} x {picture.height} pixels; one side may be {LONGEST} times as long as the other"
        )


@cache
def _heif_is_read() -> bool:
    """Whether Pillow reads HEIC, which it is taught here if the library is installed."""
    try:
        import pillow_heif
    except ModuleNotFoundError:
        return False
    pillow_heif.register_heif_opener()
    return True


def _is_heif(path: Path) -> bool:
    """Whether a file is HEIC by its name or its first bytes: telephones call some of them ``.jpg``."""
    with path.open("rb") as stream:
        start = stream.read(12)
    return path.suffix.lower() in HEIF_SUFFIXES or (start[4:8] == b"ftyp" and start[8:12] in _HEIF_BRANDS)


def embedded(picture: Image.Image, side: int) -> str:
    """A picture as an address that holds the picture itself, its longer side at most ``side`` pixels, for a page."""
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg(picture, side)).decode()}"


def jpeg(picture: Image.Image, side: int) -> bytes:
    """A picture as JPEG, its longer side at most ``side`` pixels."""
    shown = picture.copy()
    shown.thumbnail((side, side))
    stream = io.BytesIO()
    shown.save(stream, "JPEG", quality=PAGE_QUALITY)
    return stream.getvalue()


def resized_copy(
    manifest: Path,
    root: Path,
    folder: Path,
    *,
    shorter_side_px: int,
    encoding: str = "png",
    broken: Broken = "stop",
    threads: int = 8,
) -> PictureCopy:
    """A copy of a data set's pictures with a given shorter side, written by the first call that asks for it.

    A copy belongs to the bytes of its originals, its size and its encoding: changed originals get another copy. It
    appears when it is whole; a second process waits for the first and finds it. With ``png``, a view that resizes to
    the same side gives the same pixels as from the originals. Files keep their names, also where ``png`` is inside.

    Args:
        manifest: manifest of the data set, with the columns ``bytes`` and ``sha256``.
        root: folder of the original pictures.
        folder: where copies are kept, a folder each.
        shorter_side_px: smaller pictures are enlarged, as a view would.
        encoding: a key of :data:`ENCODINGS`.
        broken: what to do about a picture that cannot be read: ``stop``, or ``skip`` it with a count as a warning.
        threads: number of pictures resized at the same time.

    Returns:
        The copy; each of its files has the size that was written.

    Raises:
        ValueError: if a setting is not allowed or the manifest has no hashes; naming the first picture that cannot be
            read, unless those are skipped; naming the first file of the copy that is missing or has another size.
        OSError: if the disk is full.
    """
    _check_settings(shorter_side_px, encoding, broken)
    frame = read_manifest(manifest)
    frame = frame[frame["role"] != LEFT_OUT]
    if "sha256" not in frame:
        raise ValueError(f"{manifest} has no column sha256, which tells whether a copy belongs to these pictures")
    target = folder / f"{manifest.stem}_{shorter_side_px}px_{encoding}_{manifest_hash(frame)[:12]}"
    with workspace(target) as staging:
        if not target.exists():
            skipped = _write_all(frame["path"], root, staging, shorter_side_px, ENCODINGS[encoding], broken, threads)
            kept = frame[~frame["path"].isin(skipped)]
            kept = kept[[column for column in kept if column not in _OF_ORIGINALS]]
            write_json(
                staging / RECORD, {"manifest": write_manifest(kept, staging / MANIFEST, staging)} | {"skipped": skipped}
            )
            staging.rename(target)
    if faults := copy_faults(target, sizes_only=True):
        raise ValueError(f"{faults[0]} ({len(faults)} faults); remove {target} to have it written anew")
    copy = PictureCopy(target / MANIFEST, target, tuple(read_json(target / RECORD)["skipped"]))
    if copy.skipped and broken == "stop":
        raise ValueError(
            f"{root / copy.skipped[0]}: no readable picture, one of {len(copy.skipped)} that {target} lacks"
        )
    if copy.skipped:
        LOG.warning("%s: %s skipped, the first is %s", target, counted(len(copy.skipped), "picture"), copy.skipped[0])
    return copy


def copies_of(dataset: str, folder: Path) -> list[Path]:
    """The copies of a data set below a folder, whatever their size and encoding."""
    return sorted(path for path in folder.glob(f"{dataset}_*") if _NAME.fullmatch(path.name.removeprefix(dataset)))


def copy_faults(copy: Path, *, sizes_only: bool = False) -> list[str]:
    """Faults of a copy on disk: one line for each file that is missing or is not as it was written.

    Args:
        copy: a folder that ``resized_copy`` made.
        sizes_only: compare sizes, and bytes of files alone that were changed since, in seconds instead of minutes.
    """
    try:
        frame, record = read_manifest(copy / MANIFEST), read_json(copy / RECORD)
    except (OSError, ValueError) as error:
        return [f"{copy} is no whole copy: {error}"]
    if manifest_hash(frame) != record["manifest"]:
        return [f"{copy / MANIFEST} has other rows than were written"]
    return _other_sizes(frame, copy) if sizes_only else altered_files(frame, copy)


def _write_all(
    paths: pd.Series, root: Path, folder: Path, side: int, options: Mapping[str, Any], broken: Broken, threads: int
) -> list[str]:
    """Write every picture, and return the paths of those that were skipped."""

    def is_written(path: str) -> bool:
        try:
            picture = read_picture(root / path)
        except ValueError:
            if broken == "stop":
                raise
            return False
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        _resized(picture, side).save(folder / path, **options)
        return True

    unique = sorted(set(paths))
    with ThreadPoolExecutor(threads) as pool:
        return [path for path, written in zip(unique, pool.map(is_written, unique), strict=True) if not written]


def _resized(picture: Image.Image, side: int) -> Image.Image:
    """To a shorter side, as torchvision's ``Resize`` does it: the longer side is rounded down."""
    short, long = sorted(picture.size)
    longer = int(side * long / short)
    return picture.resize(
        (side, longer) if picture.width <= picture.height else (longer, side), Image.Resampling.BILINEAR
    )


def _other_sizes(frame: pd.DataFrame, copy: Path) -> list[str]:
    """As `altered_files`, but of files that were last changed before the copy was recorded the size alone."""
    faults, later, recorded = [], [], state_of((copy / RECORD).stat())[-1]
    for path, size in zip(frame["path"], frame["bytes"], strict=True):
        copied = copy / path
        actual, _, changed = state_of(copied.stat()) if copied.is_file() else (None, 0, 0)
        if actual != size:
            faults.append(
                f"{copied} does not exist" if actual is None else f"{copied} has {actual} bytes instead of {size}"
            )
        elif changed > recorded:
            later.append(path)
    return faults + altered_files(frame[frame["path"].isin(later)], copy)


def _check_settings(side: int, encoding: str, broken: str) -> None:
    if side < 1:
        raise ValueError(f"shorter_side_px={side} is not allowed; it must be at least 1")
    require_known("encoding", encoding, ENCODINGS)
    if broken not in ("stop", "skip"):
        raise ValueError(f"broken={broken!r} is not allowed; allowed: stop, skip")
