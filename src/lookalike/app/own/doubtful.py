"""Pictures of a folder that deserve a look: copies, near copies, outliers, and those nearest to another class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lookalike.app.own.export import INNER_PRODUCT, vectors_of
from lookalike.app.own.search import Gallery
from lookalike.base.files import file_digest
from lookalike.workflow.data.pictures import read_picture
from lookalike.workflow.data.screening import BITS, NEAR, perceptual_hash

BLOCK = 512  # pictures that are compared with all others at once
PAIRS = 500  # most similar pairs whose hashes are compared
NEIGHBOURS = 5  # by which an outlier is told
MOST = 24  # that are listed of a kind


class Doubt(NamedTuple):
    """Pictures with the number that makes them doubtful.

    Attributes:
        pictures: paths below the folder: what is doubtful, and what it is held against.
        value: of its kind, see `doubtful`.
    """

    pictures: tuple[str, ...]
    value: float


def doubtful(gallery: Gallery) -> dict[str, list[Doubt]]:
    """Pictures that deserve a look, the clearest first, at most `MOST` of a kind.

    Similarity is the cosine, of an AVSL the negative of its distance at mean weights. Of copies the first takes part
    in what follows them.

    Returns:
        By kind: ``copies`` of equal bytes, with their number; ``near_copies``, pairs of the `PAIRS` most similar whose
        perceptual hashes nearly agree, with the bits that differ; ``outliers`` with the picture nearest to them, by the
        mean similarity to `NEIGHBOURS`; ``strays``, nearer to a picture of another folder than to any of their own,
        with both, by the difference of the two similarities.
    """
    copies = _copies(gallery)
    again = {name for group in copies for name in group.pictures[1:]}
    places = [place for place, stamp in enumerate(gallery.index.stamps) if stamp.name not in again]
    names = [gallery.index.stamps[place].name for place in places]
    found = {"copies": copies, "near_copies": list[Doubt](), "outliers": list[Doubt](), "strays": list[Doubt]()}
    if len(names) > 1:
        seen = gallery.index.rows(torch.tensor(places))
        how = vectors_of(gallery.model.network, seen)
        found |= _compared(gallery, names, how.kept(seen).float(), is_cosine=how.measure == INNER_PRODUCT)
    return {kind: each[:MOST] for kind, each in found.items()}


def _copies(gallery: Gallery) -> list[Doubt]:
    by_size, by_digest = defaultdict(list), defaultdict(list)
    for stamp in gallery.index.stamps:
        by_size[stamp.size].append(stamp.name)
    for size, names in by_size.items():
        for name in names if len(names) > 1 else ():
            if (path := gallery.folder / name).is_file():
                by_digest[size, file_digest(path)].append(name)
    groups = [Doubt(tuple(names), len(names)) for names in by_digest.values() if len(names) > 1]
    return sorted(groups, key=lambda group: (-group.value, group.pictures))


@torch.inference_mode()
def _compared(gallery: Gallery, names: Sequence[str], vectors: Tensor, *, is_cosine: bool) -> dict[str, list[Doubt]]:
    folders = [str(PurePosixPath(name).parent) for name in names]
    known = {folder: number for number, folder in enumerate(dict.fromkeys(folders))}
    classes = torch.tensor([known[folder] for folder in folders])
    outliers, strays, pairs = list[Doubt](), list[Doubt](), list[tuple[float, int, int]]()
    for start in range(0, len(names), BLOCK):
        some = vectors[start : start + BLOCK]
        similarity = some @ vectors.T if is_cosine else -torch.cdist(some, vectors).square()
        similarity[torch.arange(len(some)), torch.arange(start, start + len(some))] = -torch.inf
        nearest = similarity.topk(min(NEIGHBOURS, len(names) - 1), dim=1)
        own = classes[start : start + BLOCK, None] == classes  # (B, N)
        of_own, of_others = (similarity.masked_fill(hidden, -torch.inf).max(dim=1) for hidden in (~own, own))
        for row, name in enumerate(names[start : start + BLOCK]):
            first, mean = int(nearest.indices[row, 0]), float(nearest.values[row].mean())
            outliers.append(Doubt((name, names[first]), mean))
            pairs.append((float(nearest.values[row, 0]), min(start + row, first), max(start + row, first)))
            gap = float(of_others.values[row] - of_own.values[row])
            if 0 < gap < torch.inf:
                strays.append(Doubt((name, names[int(of_others.indices[row])], names[int(of_own.indices[row])]), gap))
    outliers.sort(key=lambda each: each.value)
    strays.sort(key=lambda each: -each.value)
    return {"near_copies": _near(gallery, names, pairs), "outliers": outliers, "strays": strays}


def _near(gallery: Gallery, names: Sequence[str], pairs: Sequence[tuple[float, int, int]]) -> list[Doubt]:
    nearest = list(dict.fromkeys((one, other) for _, one, other in sorted(pairs, reverse=True)))[:PAIRS]
    hashes = {place: _hash(gallery, names[place]) for place in {place for pair in nearest for place in pair}}
    found = []
    for one, other in nearest:
        first, second = hashes[one], hashes[other]
        bits = BITS if first is None or second is None else int(np.unpackbits(first ^ second).sum())
        if bits <= NEAR:
            found.append(Doubt((names[one], names[other]), bits))
    return sorted(found, key=lambda each: each.value)


def _hash(gallery: Gallery, name: str) -> np.ndarray[tuple[int], np.dtype[np.uint8]] | None:
    try:
        bits = perceptual_hash(read_picture(gallery.folder / name))
    except ValueError:  # it was readable when it was looked at
        return None
    return None if bits is None else np.frombuffer(bits, dtype=np.uint8)
