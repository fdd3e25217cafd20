"""Candidates among more pictures than every query can look at: faiss's inverted lists of coded vectors.

A flat search reads every vector: 2 GB of a million with 512 numbers. From there on a query reads codes of 64 bytes, and
takes the vectors of the best of these from the disk, whose cosines order them.
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from lookalike.app.own.index import Index
from lookalike.base.files import replacing

FLAT = 1_000_000  # pictures up to which a query reads every vector
CANDIDATES = 1000  # whose cosines are computed, and at least ten for each that is wanted
TRAINED_BY = 50  # pictures per cell
CODED = 64  # bytes of a vector, where they divide its numbers


def candidates(index: Index, query: Tensor, count: int) -> Tensor:
    """Places ``(K,)`` of the pictures among which those with the greatest cosine most likely are, in their order.

    Args:
        index: that keeps ``embedding``.
        query: ``(D,)`` unit vector.
        count: pictures wanted.
    """
    _, found = _cells(index).search(query[None].numpy(), max(CANDIDATES, 10 * count))
    return torch.from_numpy(found[0][found[0] >= 0]).sort().values


@lru_cache(maxsize=1)
def _cells(index: Index) -> Any:
    """The lists of an index, read from its folder or made there, which takes minutes for a million pictures."""
    import faiss

    path = index.folder / f"{hashlib.sha256(index.contents()).hexdigest()[:16]}.faiss"
    try:
        lists: Any = faiss.read_index(str(path))
    except RuntimeError:  # there is none, or it is broken
        lists = _made(index)
        for other in index.folder.glob("*.faiss"):
            other.unlink()
        with replacing(path) as new:
            faiss.write_index(lists, str(new))
    lists.nprobe = lists.nlist  # of all cells, as codes are read fast and cells left out are what is missed
    return lists


def _made(index: Index) -> Any:
    import faiss

    number = round(math.sqrt(len(index)))
    sample = torch.randperm(len(index), generator=torch.Generator().manual_seed(0))[: TRAINED_BY * number]
    seen = index.rows(sample.sort().values, "embedding")["embedding"]
    dim = seen.shape[1]
    lists = faiss.IndexIVFPQ(faiss.IndexFlatIP(dim), dim, number, math.gcd(dim, CODED), 8, faiss.METRIC_INNER_PRODUCT)
    lists.train(seen.numpy())
    for places, tensors in index.blocks():
        lists.add_with_ids(tensors["embedding"].numpy(), places.numpy())
    return lists
