"""What of own pictures takes part: not what cannot be read, and no picture that lies in two classes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from lookalike.data.manifest import with_file_hashes
from lookalike.data.readable import unreadable
from lookalike.data.roles import LEFT_OUT, NO_LABEL
from lookalike.text import counted

LOG = logging.getLogger(__name__)
Specification = Mapping[str, Any]


def screened(frame: pd.DataFrame, specification: Specification, root: Path, *, processes: int = 1) -> pd.DataFrame:
    """The table of a split with file hashes, each picture read once.

    Args:
        frame: rows of the split, from ``read_layout``.
        specification: with ``broken``, ``stop`` or ``skip``, and ``duplicates``, ``stop`` or ``drop``; to stop is the
            default of both.
        root: folder of the pictures.
        processes: number of pictures decoded at the same time.

    Returns:
        The rows with ``bytes`` and ``sha256``. What was left out by choice has the role ``left_out``, and why in the
        column ``reason``, which is there only then.

    Raises:
        ValueError: naming the first picture that cannot be read, or that lies in two classes, and how many more do.
    """
    frame = _without_unreadable(frame, root, specification.get("broken", "stop"), processes)
    return _without_duplicates(with_file_hashes(frame, root), specification.get("duplicates", "stop"))


def check_readable(frame: pd.DataFrame, root: Path, broken: str, *, processes: int = 1) -> None:
    """Decode each picture of a split once; as `screened` for data sets whose split is not made here.

    With ``broken`` ``skip`` those that cannot be read are printed only.
    """
    _without_unreadable(frame, root, broken, processes)


def _without_unreadable(frame: pd.DataFrame, root: Path, broken: str, processes: int) -> pd.DataFrame:
    faults = unreadable([root / path for path in frame["path"].unique()], processes=processes)
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
    return _left_out(frame, {path.relative_to(root).as_posix(): fault for path, fault in faults.items()})


def _without_duplicates(frame: pd.DataFrame, duplicates: str) -> pd.DataFrame:
    """Pictures with equal bytes have one class, or none takes part: nobody knows which is right.

    Unlabelled ones that equal a labelled one would count as wrong answers. Of these the labelled one stays.
    """
    taking_part = frame[frame["role"] != LEFT_OUT].drop_duplicates("path")
    reasons: dict[str, str] = {}
    for _, equal in taking_part.groupby("sha256", sort=False):
        if len(set(equal["label"])) > 1:
            of_classes = set(equal["label"]) - {NO_LABEL}
            doubtful = equal if len(of_classes) > 1 else equal[equal["label"] == NO_LABEL]
            for path in doubtful["path"]:
                others = [other for other in equal["path"] if other != path]
                reasons[path] = f"same bytes as {', '.join(others)}"
    if not reasons:
        return frame
    for path, reason in reasons.items():
        print(f"{path}: {reason}")
    if duplicates == "stop":
        first = next(iter(reasons))
        raise ValueError(
            f"{first}: {reasons[first]}, which is in another class{_more(len(reasons) - 1)}; remove what is wrong, or "
            "leave all of them out with the data set's key `duplicates: drop`"
        )
    return _left_out(frame, reasons)


def _left_out(frame: pd.DataFrame, reasons: Mapping[str, str]) -> pd.DataFrame:
    LOG.warning("%s left out, the first is %s", counted(len(reasons), "picture"), next(iter(reasons)))
    new_reasons, before = frame["path"].map(reasons), frame.get("reason", "")
    return frame.assign(role=frame["role"].where(new_reasons.isna(), LEFT_OUT), reason=new_reasons.fillna(before))


def _more(number: int) -> str:
    return f" (and {number} more, all in the log)" if number else ""


def _them(number: int) -> str:
    return "it" if number == 1 else "them"
