"""Pairs and triplets that every row of a table shares."""

from __future__ import annotations

import torch
from torch import Tensor

from lookalike.metrics.similarity import score_blocks

BLOCK = 256  # anchors at once


def nearest_triplets(embeddings: Tensor, labels: Tensor, count: int, seed: int) -> Tensor:
    """Anchors drawn evenly, none twice, each with its nearest picture of its class and its nearest of another.

    Args:
        embeddings: ``(N, D)`` float of a model that no row of the table is about; compared by exact cosine.
        labels: ``(N,)`` int64.
        count: number of triplets; fewer are drawn where fewer pictures can be anchors.
        seed: of the draw.

    Returns:
        ``(3, T)`` int64 row numbers: anchors in random order, positives, negatives; of equally near pictures the first.

    Raises:
        ValueError: if labels and embeddings differ in number, the count is below 1, or no picture has both a partner of
            its class and one of another.
    """
    if len(labels) != len(embeddings):
        raise ValueError(f"{len(embeddings)} embeddings need as many labels, not {len(labels)}")
    if count < 1:
        raise ValueError(f"count={count} must be at least 1")
    _, numbers, sizes = torch.unique(labels, return_inverse=True, return_counts=True)
    able = (sizes[numbers] > 1).nonzero().squeeze(1)
    if not len(able) or len(sizes) < 2:
        raise ValueError(
            f"{len(labels)} labels of {len(sizes)} classes make no triplet; it takes two pictures of one class and one "
            "of another"
        )
    generator = torch.Generator().manual_seed(seed)
    anchors = able[torch.randperm(len(able), generator=generator)[:count].to(able.device)]
    scores_of = score_blocks(embeddings[anchors], embeddings, "cosine")
    partners = []
    for start in range(0, len(anchors), BLOCK):
        some = anchors[start : start + BLOCK]
        scores = scores_of(start, start + len(some)).scatter(1, some[:, None], -torch.inf)  # not the anchor itself
        same = labels[some, None] == labels
        partners.append(torch.stack([scores.masked_fill(other, -torch.inf).argmax(dim=1) for other in (~same, same)]))
    return torch.cat([anchors[None], torch.cat(partners, dim=1)])


def random_partners(taken: Tensor, pictures: int, seed: int) -> Tensor:
    """For each pair or triplet another picture, drawn evenly from all that it does not hold.

    Args:
        taken: ``(R, T)`` int64 row numbers, different ones in each column.
        pictures: number N of pictures.
        seed: of the draw.

    Returns:
        ``(T,)`` int64 row numbers.

    Raises:
        ValueError: if a column holds a number twice or one outside [0, N), or all pictures.
    """
    ordered = taken.sort(dim=0).values  # (R, T)
    if not len(taken) < pictures:
        raise ValueError(f"tuples of {len(taken)} leave no other of {pictures} pictures")
    if taken.numel() and (not 0 <= int(ordered[0].min()) <= int(ordered[-1].max()) < pictures):
        raise ValueError(
            f"taken holds {int(ordered.min())} to {int(ordered.max())}, it must stay in [0, {pictures - 1}]"
        )
    if bool((ordered[1:] == ordered[:-1]).any()):
        raise ValueError("a column of taken holds a picture twice, its pictures must differ")
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(pictures - len(taken), (taken.shape[1],), generator=generator).to(taken.device)
    for each in ordered:  # numbered among those that are left; step over the taken ones
        drawn = drawn + (drawn >= each)
    return drawn
