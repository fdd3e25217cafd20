"""The split of one data set as stages read it: pictures and labels by role."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookalike.workflow.data import read_manifest
from lookalike.workflow.data.roles import EMBEDDED, LEFT_OUT
from lookalike.workflow.data.screening import COPY


@dataclass(frozen=True)
class Role:
    """Pictures of one role, ``train``, ``test``, ``query``, ``gallery`` or ``unlabelled``, in the manifest's order."""

    paths: list[Path]
    labels: Tensor  # (N,) int64, class ids as the data set numbers them, -1 of unlabelled pictures
    coarse: dict[str, Tensor]  # per level of a hierarchy (N,) int64
    cameras: Tensor | None = None  # (N,) int64, which camera took the picture, where the data set says
    names: tuple[str, ...] = ()  # of a manifest the originals' paths, also where the pictures are resized copies

    def numbered(self) -> tuple[Tensor, int]:
        """Labels counted from 0 in the order of the class ids, and how many classes there are."""
        classes, numbers = np.unique(self.labels.numpy(), return_inverse=True)
        return torch.from_numpy(numbers.astype(np.int64)), len(classes)

    def chosen(self, rows: Tensor) -> Role:
        """The pictures with these row numbers ``(n,)``."""
        return Role(
            [self.paths[row] for row in rows.tolist()],
            self.labels[rows],
            {level: labels[rows] for level, labels in self.coarse.items()},
            None if self.cameras is None else self.cameras[rows],
            tuple(self.names[row] for row in rows.tolist()) if self.names else (),
        )


def read_role(manifest: Path | str, root: Path | str, role: str) -> Role:
    """Pictures of one role of a manifest.

    Args:
        manifest: CSV with ``path`` (relative to ``root``), ``label`` and ``role``, where they are known also
            ``coarse_<level>`` and ``camera``; of copies ``name``, the original's path.
        root: folder of the data set.
        role: role of the rows that are read.

    Raises:
        ValueError: if the manifest has no such role.
    """
    frame = read_manifest(Path(manifest))
    rows = frame[frame["role"] == role]
    if rows.empty:
        raise ValueError(f"{manifest} has no role {role!r}; it has {', '.join(sorted(frame['role'].unique()))}")
    numbers = {
        str(column): torch.from_numpy(rows[column].to_numpy(np.int64, copy=True))
        for column in rows
        if column in ("label", "camera") or str(column).startswith("coarse_")
    }
    coarse = {name.removeprefix("coarse_"): labels for name, labels in numbers.items() if name.startswith("coarse_")}
    names = tuple(rows["name" if "name" in rows else "path"])
    return Role([Path(root) / path for path in rows["path"]], numbers["label"], coarse, numbers.get("camera"), names)


def pictures_of_super(manifest: Path | str, root: Path | str, number: int) -> list[Path]:
    """Pictures of one ``coarse_super`` of a manifest, whatever their role.

    Args:
        manifest: CSV as for `read_role`.
        root: folder of the data set.
        number: the coarse class.

    Raises:
        ValueError: if the manifest has no such coarse class.
    """
    frame = read_manifest(Path(manifest))
    known = sorted(frame["coarse_super"].unique()) if "coarse_super" in frame else []
    if number not in known:
        listed = ", ".join(str(each) for each in known) or "none"
        raise ValueError(f"{manifest} has no pictures of coarse_super {number} (strangers_super); it has {listed}")
    return [Path(root) / path for path in frame.loc[frame["coarse_super"] == number, "path"]]


def test_roles(manifest: Path | str) -> tuple[str, ...]:
    """Roles that are searched: ``query`` and ``gallery``, or ``test`` alone, whose pictures search each other."""
    roles = set(read_manifest(Path(manifest))["role"])
    return ("query", "gallery") if "query" in roles else ("test",)


def embedded_roles(manifest: Path | str) -> list[str]:
    """Roles that are there to search or to be found: those of `test_roles` and ``unlabelled``."""
    roles = set(read_manifest(Path(manifest))["role"])
    return [role for role in EMBEDDED if role in roles]


def split_facts(manifest: Path | str) -> dict[str, Any]:
    """Facts of a manifest: whose ``split`` it is, ``authors`` or ``own``, and the number of pictures ``left_out``.

    Of the number of pictures that were left out, ``copies`` of others of their class are told apart.
    """
    frame = read_manifest(Path(manifest))
    left_out = frame[frame["role"] == LEFT_OUT].drop_duplicates("path")
    whose = {"split": str(frame["split"].iloc[0])} if "split" in frame else {}
    copies = int(left_out["reason"].str.startswith(COPY).sum()) if len(left_out) else 0
    return whose | {name: number for name, number in (("left_out", len(left_out)), ("copies", copies)) if number}
