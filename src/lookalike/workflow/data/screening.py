"""Screening of own pictures: none takes part that cannot be read, is a copy, or lies in two classes."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from lookalike.base.checks import workflow_extra
from lookalike.base.text import counted
from lookalike.workflow.data.manifest import with_file_hashes
from lookalike.workflow.data.pictures import read_picture
from lookalike.workflow.data.roles import LEFT_OUT, NO_LABEL
from lookalike.workflow.settings.datasets import Dataset

LOG = logging.getLogger(__name__)
CHUNK = 32  # pictures that a process takes at once
REPORTS = 20  # lines of progress
DARK = round(4095 / 257)  # the brightest value of a picture of 12 bits in a file of 16
COPY = "copy of "  # how the reason of a copy that is left out begins
# The role whose picture stays: what is searched for, before what is found, before what is learned from.
_STAYS = ("query", "test", "gallery", "train")
SIDE = 16  # of the square of frequencies that a perceptual hash has a bit for
BITS = SIDE**2
# Of 14,053 photographs of CUB, Cars196, Grocery Store and PASCAL VOC five pairs are within 20 bits; the next has 28. Of
# copies (half and double size, JPEG of quality 30 and 75, WebP of quality 50, half size as JPEG of quality 60) all of
# CUB, Grocery Store and VOC are within 20, and at least 99.6 % of the small pictures of Cars196.
NEAR = 20
_PLAIN = BITS // 4  # a picture of which fewer bits are set shows one colour, and all such pictures have one hash


class Look(NamedTuple):
    """A picture at a look.

    Attributes:
        fault: why it cannot be read, empty if it can.
        dark: whether it uses at most a sixteenth of the range of its values.
        hash: its perceptual hash, if it has one.
    """

    fault: str = ""
    dark: bool = False
    hash: bytes | None = None


Looks = Mapping[Path, Look]


def screened(frame: pd.DataFrame, specification: Dataset, root: Path, *, processes: int = 1) -> pd.DataFrame:
    """The table of a split with file hashes, each picture read once.

    Of pictures with equal bytes in one class one takes part: that of the query, or the first. Pictures that nearly
    equal another one, and those that are nearly black, take part and are told by their number.

    Args:
        frame: rows of the split, from ``read_layout``.
        specification: with ``broken``, ``stop`` or ``skip``; ``duplicates``, ``stop`` or ``drop``; and ``copies``,
            ``keep_one`` or ``stop``. To stop is the default of the first two, to keep one that of the third.
        root: folder of the pictures.
        processes: number of pictures decoded at the same time.

    Returns:
        The rows with ``bytes`` and ``sha256``. What was left out by choice has the role ``left_out``, and why in the
        column ``reason``, which is there only then.

    Raises:
        ValueError: naming the first picture that cannot be read, that lies in two classes, or that is a copy, and how
            many more there are.
    """
    looks = _looks(frame, root, processes)
    frame = _without_unreadable(frame, root, specification.broken, looks)
    frame = with_file_hashes(frame, root)
    if doubtful := equal_in_other_classes(frame):
        remedy = "remove what is wrong, or leave all of them out with the data set's key `duplicates: drop`"
        stops = specification.duplicates == "stop"
        frame = _left_out(frame, doubtful, ", which is in another class", remedy if stops else "")
    if copies := equal_in_class(frame):
        remedy = "remove it, or leave all copies out with the data set's key `copies: keep_one`"
        frame = _left_out(frame, copies, "", remedy if specification.copies == "stop" else "")
    _tell_near_copies(frame, root, looks)
    return frame


def check_readable(frame: pd.DataFrame, root: Path, broken: str, *, processes: int = 1) -> None:
    """Decode each picture of a split once; as `screened` for data sets whose split is not made here.

    With ``broken`` ``skip`` those that cannot be read are printed only. Equal pictures are printed only, too.
    """
    _without_unreadable(frame, root, broken, _looks(frame, root, processes))
    if "sha256" in frame:
        for copies, of in ((equal_in_class(frame), "their class"), (equal_in_other_classes(frame), "another class")):
            if copies:
                first, reason = next(iter(copies.items()))
                print(
                    f"{counted(len(copies), 'picture')} with the bytes of one of {of}, which all take part, as in the "
                    f"papers; the first is {first}: {reason}"
                )


def _looks(frame: pd.DataFrame, root: Path, processes: int) -> Looks:
    """A look at each picture; nearly black ones are told by their number."""
    looks = looked_at([root / path for path in frame["path"].unique()], processes=processes)
    if dark := [path for path, look in looks.items() if look.dark]:
        LOG.warning(
            "%s of %s nearly black, with values in a sixteenth of their range, as of 12 bits in a file of 16; "
            "the first is %s",
            *(counted(len(dark), "picture"), f"{len(looks):,}", dark[0]),
        )
    return looks


def _without_unreadable(frame: pd.DataFrame, root: Path, broken: str, looks: Looks) -> pd.DataFrame:
    faults = {path: look.fault for path, look in looks.items() if look.fault}
    if not faults:
        return frame
    for path, fault in faults.items():
        print(f"{path}: {fault}")
    if broken == "stop":
        first = next(iter(faults))
        raise ValueError(
            f"{first}: {faults[first]}{_more(len(faults) - 1)}; mend or remove {_them(len(faults))}, or leave "
            f"{_them(len(faults))} out with `broken: skip` (data set, or picture_cache)"
        )
    return _marked(frame, {path.relative_to(root).as_posix(): fault for path, fault in faults.items()})


def _left_out(frame: pd.DataFrame, reasons: Mapping[str, str], why: str, remedy: str) -> pd.DataFrame:
    """The rows without some pictures of equal bytes; refused where there is a remedy to name."""
    for path, reason in reasons.items():
        print(f"{path}: {reason}")
    if remedy:
        first = next(iter(reasons))
        raise ValueError(f"{first}: {reasons[first]}{why}{_more(len(reasons) - 1)}; {remedy}")
    return _marked(frame, reasons)


def _marked(frame: pd.DataFrame, reasons: Mapping[str, str]) -> pd.DataFrame:
    first, reason = next(iter(reasons.items()))
    LOG.warning("%s left out, the first is %s: %s", counted(len(reasons), "picture"), first, reason)
    new_reasons, before = frame["path"].map(reasons), frame.get("reason", "")
    return frame.assign(role=frame["role"].where(new_reasons.isna(), LEFT_OUT), reason=new_reasons.fillna(before))


def _tell_near_copies(frame: pd.DataFrame, root: Path, looks: Looks) -> None:
    """Tell the number of pictures that nearly equal another one: some sets intend such, so that all take part."""
    paths = frame.loc[frame["role"] != LEFT_OUT, "path"].unique()
    hashes = {path: known for path in paths if (known := looks[root / path].hash) is not None}
    if not hashes:
        return
    listed = list(hashes)
    earliest = near_copies(np.frombuffer(b"".join(hashes.values()), dtype=np.uint8).reshape(-1, BITS // 8))
    if len(near := np.flatnonzero(earliest != np.arange(len(listed)))):
        LOG.warning(
            "%s nearly like another, as saved or resized anew; all take part; the first is %s, like %s",
            *(counted(len(near), "picture"), listed[near[0]], listed[earliest[near[0]]]),
        )


def _more(number: int) -> str:
    return f" (and {number} more, all in the log)" if number else ""


def _them(number: int) -> str:
    return "it" if number == 1 else "them"


def looked_at(paths: Sequence[Path], *, processes: int = 1) -> dict[Path, Look]:
    """A look at each picture, in the order given; progress is printed.

    Args:
        paths: picture files.
        processes: number of pictures decoded at the same time.
    """
    looks: dict[Path, Look] = {}
    step, faults = max(CHUNK, len(paths) // REPORTS), 0
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("fork")) as pool:
        seen = pool.map(_look, paths, chunksize=CHUNK)
        for done, (path, look) in enumerate(zip(paths, seen, strict=True), start=1):
            looks[path] = look
            faults += bool(look.fault)
            if done % step == 0 or done == len(paths):
                print(f"{done:,} of {len(paths):,} pictures decoded, {faults} cannot be read", flush=True)
    return looks


def _look(path: Path) -> Look:
    try:
        picture = read_picture(path)
    except ValueError as error:
        return Look(fault=str(error).removeprefix(f"{path}: "))
    return Look(dark=int(np.asarray(picture).max()) <= DARK, hash=perceptual_hash(picture))


def equal_in_class(frame: pd.DataFrame) -> dict[str, str]:
    """Pictures that have the bytes of another one of their class, which stays, each with a reason to leave it out.

    Args:
        frame: rows of a split with ``sha256``, in their order; of equal pictures of one role the first stays.
    """
    labelled = frame[(frame["label"] != NO_LABEL) & frame["role"].isin(_STAYS)]
    ordered = labelled.sort_values("role", key=lambda roles: roles.map(_STAYS.index), kind="stable")
    distinct = ordered.drop_duplicates(["path", "label"])
    first = distinct.groupby(["sha256", "label"])["path"].transform("first")
    copies = distinct.assign(first=first)[distinct["path"] != first].sort_index()
    return {path: f"{COPY}{stays}" for path, stays in zip(copies["path"], copies["first"], strict=True)}


def equal_in_other_classes(frame: pd.DataFrame) -> dict[str, str]:
    """Pictures whose bytes lie in two classes, each with a reason to leave it out: nobody knows which is right.

    Unlabelled ones that equal a labelled one would count as wrong answers. Of these the labelled one stays.
    """
    taking_part = frame[frame["role"] != LEFT_OUT].drop_duplicates("path")
    reasons: dict[str, str] = {}
    for _, equal in taking_part[taking_part.duplicated("sha256", keep=False)].groupby("sha256", sort=False):
        if len(set(equal["label"])) > 1:
            of_classes = set(equal["label"]) - {NO_LABEL}
            doubtful = equal if len(of_classes) > 1 else equal[equal["label"] == NO_LABEL]
            for path in doubtful["path"]:
                others = [other for other in equal["path"] if other != path]
                reasons[path] = f"same bytes as {', '.join(others)}"
    return reasons


def perceptual_hash(picture: Image.Image) -> bytes | None:
    """`BITS` bits of which copies of a picture share most; ``None`` of one that shows a single colour.

    Source: the hash of the lowest frequencies of the cosine transform, as ImageHash's ``phash`` makes it.
    """
    with workflow_extra():
        import imagehash
    bits = imagehash.phash(picture, hash_size=SIDE).hash
    return np.packbits(bits).tobytes() if bits.sum() >= _PLAIN else None


def near_copies(hashes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """For each picture the earliest one that its hash differs from by at most `NEAR` bits; its own place if none.

    Args:
        hashes: ``(N, BITS / 8)``.

    Returns:
        ``(N,)``.
    """
    import faiss

    distinct, first, place = np.unique(hashes, axis=0, return_index=True, return_inverse=True)
    index = faiss.IndexBinaryFlat(BITS)
    index.add(distinct)
    limits, _, found = index.range_search(distinct, NEAR + 1)  # a radius, which is left out
    earliest = np.minimum.reduceat(first[found], limits[:-1].astype(np.int64))  # each one finds itself
    return np.asarray(earliest[place.reshape(-1)], dtype=np.int64)
