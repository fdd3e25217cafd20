"""Index of a folder's pictures: their tensors, kept on disk, so that only new files are looked at again.

An index is a folder with a folder for each model and way of comparing, in which a few thousand pictures share a file.
A call that is killed loses at most the pictures of one file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from lookalike.app.own.picture_files import Stamp
from lookalike.base.files import mapped_tensors, packed_names, require_finite, unpacked_names, write_tensors

TOGETHER = 4096  # pictures of a file
STAMPS = ("sizes", "changed", "renewed")  # of the files that are named, in the order of a `Stamp`
Tensors = Mapping[str, Tensor]  # with a row per picture, by name


@dataclass(frozen=True)
class Part:
    """Pictures of one file.

    Attributes:
        path: of the file.
        stamps: of all its pictures.
        tensors: what is kept of them, mapped from the disk.
    """

    path: Path
    stamps: list[Stamp]
    tensors: Tensors


class Index:
    """Tensors kept of the pictures of a folder.

    Args:
        listed: pictures of the folder, by name.
        parts: what the disk holds, of these or of others.

    Attributes:
        stamps: pictures that something is kept of, in the order of the list.
    """

    def __init__(self, listed: Sequence[Stamp], parts: Sequence[Part]) -> None:
        held: dict[Stamp, tuple[int, int]] = {}
        for place, part in enumerate(parts):
            for row, stamp in enumerate(part.stamps):
                held.setdefault(stamp, (place, row))
        self.stamps = [stamp for stamp in listed if stamp in held]
        self._parts = parts
        self._where = torch.tensor([held[stamp] for stamp in self.stamps], dtype=torch.int64).view(-1, 2)

    def __len__(self) -> int:
        """Number of pictures."""
        return len(self.stamps)

    def scored(self, score: Callable[[Tensors], Tensor]) -> Tensor:
        """A number per picture ``(N,)``.

        Args:
            score: of tensors with n rows to ``(n,)``.

        Raises:
            ValueError: naming the file and the tensor of a score that is not finite.
        """
        scores = torch.empty(len(self))
        for places, tensors in self.blocks():
            scores[places] = score(tensors)
        self._refuse_unless_finite({"score": scores})
        return scores

    def blocks(self) -> Iterator[tuple[Tensor, Tensors]]:
        """Places ``(n,)`` of the pictures that share a file, and their tensors."""
        for places, rows, part in self._used():
            whole = torch.equal(rows, torch.arange(len(part.stamps)))  # mapped tensors are not copied then
            yield places, {name: each if whole else each[rows] for name, each in part.tensors.items()}

    def rows(self, places: Tensor, *names: str) -> Tensors:
        """Tensors of the pictures at some places ``(K,)``, in their order: all, or those that are named.

        Raises:
            ValueError: naming the file and the tensor of a row that is not finite.
        """
        held, found = self._where[places], dict[str, Tensor]()
        for name in names or self._parts[int(held[0, 0])].tensors:
            found[name] = torch.stack([self._parts[part].tensors[name][row] for part, row in held.tolist()])
        self._refuse_unless_finite(found)
        return found

    @property
    def folder(self) -> Path:
        """Folder of its files."""
        return self._parts[0].path.parent

    def contents(self) -> bytes:
        """Bytes that are the same for the same pictures at the same places of the same files."""
        return "".join(part.path.name for part in self._parts).encode() + self._where.numpy().tobytes()

    def below(self, folder: str) -> Index:
        """The pictures of a folder below this one."""
        return Index([stamp for stamp in self.stamps if stamp.name.startswith(f"{folder}/")], self._parts)

    def used(self) -> dict[Path, int]:
        """By file, how many of its pictures belong to the index."""
        return {part.path: len(rows) for _, rows, part in self._used()}

    def _refuse_unless_finite(self, used: Tensors) -> None:
        """Name the file that is at fault. What nobody uses is not read for it: it was looked at when it was written."""
        try:
            require_finite("the index", used)
        except ValueError:
            for part in self._parts:
                require_finite(f"{part.path} (remove it, and its pictures are looked at again)", part.tensors)
            raise

    def _used(self) -> Iterator[tuple[Tensor, Tensor, Part]]:
        for number, part in enumerate(self._parts):
            places = (self._where[:, 0] == number).nonzero().flatten()
            if len(places):
                yield places, self._where[places, 1], part


def read_parts(folder: Path, model: str) -> list[Part]:
    """All files of an index; one that is broken is removed, and its pictures are looked at again.

    Args:
        folder: of one model and way of comparing.
        model: digest of both.

    Raises:
        ValueError: for a file that was made by another model.
    """
    parts = []
    for path in sorted(folder.glob("*.safetensors")):
        path.open("rb").close()  # safetensors calls a file that may not be read one that is not there
        try:
            tensors, about = mapped_tensors(path)
            if about["model"] != model:
                raise LookupError(about["model"])
            columns = [tensors[name].tolist() for name in STAMPS]
            stamps = list(map(Stamp, unpacked_names(tensors["names"]), *columns))
        except LookupError as error:
            raise ValueError(f"{path} was made by another model ({error}); remove it") from None
        except ValueError:
            path.unlink()
            continue
        of_files = {"names", *STAMPS}
        parts.append(Part(path, stamps, {name: each for name, each in tensors.items() if name not in of_files}))
    return parts


def write_part(folder: Path, model: str, stamps: Sequence[Stamp], tensors: Tensors) -> Part:
    """Write the tensors of some pictures as a file of an index.

    Args:
        folder: of one model and way of comparing.
        model: digest of both.
        stamps: of N pictures, at least one.
        tensors: with N rows.

    Raises:
        OSError: if it cannot be written.
    """
    name = hashlib.sha256("".join(map(repr, stamps)).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    path = folder / f"{name}.safetensors"
    names, *columns = zip(*stamps, strict=True)
    of_files = {name: torch.tensor(column) for name, column in zip(STAMPS, columns, strict=True)}
    of_files["names"] = packed_names(names)
    write_tensors(path, {**of_files, **tensors}, {"model": model})
    return Part(path, list(stamps), tensors)


def tidied(folder: Path, model: str, listed: Sequence[Stamp], parts: Sequence[Part]) -> Index:
    """The index of these files, after those that hold none of its pictures went, and small ones became one."""
    index = Index(listed, parts)
    used = index.used()
    small = [part for part in parts if 0 < used.get(part.path, 0) <= TOGETHER // 2]
    if len(small) > 1:
        merged = Index(listed, small)
        kept = merged.rows(torch.arange(len(merged)))
        for start in range(0, len(merged), TOGETHER):
            rows = slice(start, start + TOGETHER)
            part = write_part(folder, model, merged.stamps[rows], {name: each[rows] for name, each in kept.items()})
            parts = [part, *parts]
        index = Index(listed, parts)
        used = index.used()
    for part in parts:
        if part.path not in used:
            part.path.unlink(missing_ok=True)
    return index
