"""Copies of a picture: of equal bytes, or nearly equal to look at, as after saving or resizing it anew."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from lookalike.checks import workflow_extra
from lookalike.data.roles import LEFT_OUT, NO_LABEL

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
