"""The cosine of two embeddings, taken apart into what each pair of locations adds to it.

Where pooling is linear in the locations once the place of each maximum is known, and the head is a linear layer, an
embedding is a sum of one vector per location: ``e = sum_i v_i``. So the cosine of two is a sum over pairs of
locations ::

    cos(e, e') = sum_ij  v_i . v'_j / (|e| |e'|),

exactly. Source: Stylianou, Souvenir and Pless, "Visualizing Deep Similarity Networks" (WACV 2019), for mean pooling;
Zhu et al., "Visual Explanation for Deep Metric Learning" (TIP 2021), with a linear layer. Differs: the bias is spread
evenly over the locations, and each maximum lies where it was found.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lookalike.explanations.explanation import Explanation
from lookalike.explanations.images import on_grid
from lookalike.models.embedder import Embedder

METHOD = "activation"
LINEAR = ("average", "max", "average_max")  # poolings that are a sum over locations


def decomposes(embedder: Embedder) -> bool:
    """Whether an embedding is a sum over locations."""
    return embedder.pooling in LINEAR and isinstance(embedder.head, nn.Linear | nn.Identity)


@torch.no_grad()
def by_activation(embedder: Embedder, images: Tensor) -> Explanation:
    """What pairs of locations add to the cosine, in float64.

    Args:
        embedder: pooling by mean, maximum or both, and a linear head or none.
        images: ``(R, N, 3, H, W)`` of two or three roles.

    Raises:
        ValueError: for another pooling or head.
    """
    if not decomposes(embedder):
        head = type(embedder.head).__name__
        raise ValueError(
            f"method {METHOD!r} needs pooling {', '.join(LINEAR)} and a linear head, not {embedder.pooling!r} and "
            f"{head}; 'attention' and 'gradient' explain any embedder"
        )
    feature_maps = embedder.trunk(images.flatten(0, 1))[-1]
    grid = (feature_maps.shape[2], feature_maps.shape[3])
    vectors = location_vectors(embedder, feature_maps)  # (R N, h w, D)
    whole = vectors.sum(dim=1)
    vectors = vectors / whole.norm(dim=1).clamp(min=1e-12)[:, None, None]
    query, gallery, *negative = vectors.view(len(images), -1, *vectors.shape[1:])
    pairs = query @ gallery.transpose(1, 2)  # (N, h w, h w)
    value = pairs.sum(dim=(1, 2))
    maps = [pairs.sum(dim=2), pairs.sum(dim=1)]
    if negative:
        against = query @ negative[0].transpose(1, 2)
        maps = [maps[0] - against.sum(dim=2), maps[1], against.sum(dim=1)]
    return Explanation(
        METHOD,
        "cosine",
        torch.nn.functional.cosine_similarity(*(part.sum(dim=1) for part in (query, gallery))),
        tuple(on_grid(each, grid) for each in maps),
        explained=value,
        pairs=pairs,
        grid=grid,
    )


def location_vectors(embedder: Embedder, feature_maps: Tensor) -> Tensor:
    """What each location adds to the embedding, ``(N, h w, D)`` float64, of maps ``(N, C, h, w)``."""
    flat = feature_maps.flatten(2).double()  # (N, C, h w)
    shares = torch.zeros_like(flat)
    if embedder.pooling in ("average", "average_max"):
        shares += flat / flat.shape[2]
    if embedder.pooling in ("max", "average_max"):
        places = flat.argmax(dim=2, keepdim=True)
        shares.scatter_add_(2, places, flat.gather(2, places))
    located = shares.transpose(1, 2)  # (N, h w, C)
    if isinstance(embedder.head, nn.Identity):
        return located
    head = embedder.head
    if not isinstance(head, nn.Linear):
        raise ValueError(f"a head of type {type(head).__name__} is no linear layer")
    vectors = located @ head.weight.double().T
    return vectors if head.bias is None else vectors + head.bias.double() / flat.shape[2]
