"""What of own pictures takes part: not what cannot be read, no copy, and no picture that lies in two classes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lookalike.data.copies import BITS, equal_in_class, equal_in_other_classes, near_copies
from lookalike.data.manifest import with_file_hashes
from lookalike.data.readable import Look, looked_at
from lookalike.data.roles import LEFT_OUT
from lookalike.text import counted

LOG = logging.getLogger(__name__)
Specification = Mapping[str, Any]
Looks = Mapping[Path, Look]


def screened(frame: pd.DataFrame, specification: Specification, root: Path, *, processes: int = 1) -> pd.DataFrame:
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
    frame = _without_unreadable(frame, root, specification.get("broken", "stop"), looks)
    frame = with_file_hashes(frame, root)
    if doubtful := equal_in_other_classes(frame):
        remedy = "remove what is wrong, or leave all of them out with the data set's key `duplicates: drop`"
        stops = specification.get("duplicates", "stop") == "stop"
        frame = _left_out(frame, doubtful, ", which is in another class", remedy if stops else "")
    if copies := equal_in_class(frame):
        remedy = "remove it, or leave all copies out with the data set's key `copies: keep_one`"
        frame = _left_out(frame, copies, "", remedy if specification.get("copies") == "stop" else "")
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
    """A look at each picture; what is nearly black is told by its number."""
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
    """How many pictures nearly equal another one: some sets have such by intention, so that all take part."""
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
