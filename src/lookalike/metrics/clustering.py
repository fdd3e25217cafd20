"""Normalised mutual information (NMI): how well clusters of the embeddings agree with the labels.

The embeddings, as unit vectors, are grouped by k-means into as many clusters as there are labels. NMI is the mutual
information of clusters and labels over the arithmetic mean of their entropies: 1 where they are the same partition, 0
where one says nothing of the other. No ranking takes part: it is defined only where pictures are compared as vectors.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

ITERATIONS = 20  # of k-means, what papers that print NMI use


def nmi(embeddings: Tensor, labels: Tensor, *, seed: int = 0) -> float:
    """Normalised mutual information of labels and k-means clusters of the embeddings.

    The clusters start at embeddings drawn far from each other (k-means++), so that classes that lie apart are found
    whatever the seed; faiss then moves them.

    Args:
        embeddings: ``(N, D)`` float, of any length; they are compared as unit vectors.
        labels: ``(N,)`` int64, at least two different ones.
        seed: seed of the clusters that k-means starts from.

    Returns:
        A fraction in [0, 1].

    Raises:
        ValueError: if shapes do not belong together, an embedding is not finite, or there is one label only.
    """
    if embeddings.ndim != 2 or not embeddings.is_floating_point() or labels.shape != embeddings.shape[:1]:
        raise ValueError(
            f"embeddings must be (N, D) float with N labels, not {tuple(embeddings.shape)} {embeddings.dtype} "
            f"with labels {tuple(labels.shape)}"
        )
    if labels.is_floating_point():
        raise ValueError(f"labels must be int64, not {labels.dtype}")
    if not bool(embeddings.isfinite().all()):
        row = int((~embeddings.isfinite().all(dim=1)).nonzero()[0])
        raise ValueError(f"embedding {row} holds NaN or infinity; embeddings must be finite")
    if (classes := len(np.unique(labels.cpu().numpy()))) < 2:
        raise ValueError(f"NMI needs pictures of at least 2 labels, not of {classes}")

    from sklearn.metrics import normalized_mutual_info_score

    clusters = _clusters(embeddings, classes, seed)
    return float(normalized_mutual_info_score(labels.cpu().numpy(), clusters))


def _clusters(embeddings: Tensor, count: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    import faiss
    from sklearn.cluster import kmeans_plusplus

    unit = torch.nn.functional.normalize(embeddings.detach().double(), dim=1).float().cpu().contiguous().numpy()
    start, _ = kmeans_plusplus(unit, count, random_state=seed)
    means = faiss.Kmeans(
        unit.shape[1],
        count,
        niter=ITERATIONS,
        seed=seed,
        min_points_per_centroid=1,
        max_points_per_centroid=len(unit),  # all of them, no draw
    )
    means.train(unit, init_centroids=np.ascontiguousarray(start))
    _, nearest = means.index.search(unit, 1)
    assigned: np.ndarray[tuple[int], np.dtype[np.int64]] = nearest[:, 0]
    return assigned
