"""Regions of episodes, the pixels that they share, and the scores that tables print.

Regions are those that masks show and those that attention finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lookalike.segmentation.counts import binary_iou, mean_iou
from lookalike.segmentation.cuts import THRESHOLDS
from lookalike.segmentation.episodes import Episode


def class_counts(counts: Tensor, episodes: Sequence[Episode]) -> Tensor:
    """Counts summed over the episodes of each class.

    Args:
        counts: ``(E, W + 1, 4)`` of the classes of each episode and of their union.
        episodes: E of them.

    Returns:
        ``(classes, 4)``, classes in ascending order.
    """
    labels = torch.tensor([episode.labels for episode in episodes])  # (E, W)
    return torch.stack([counts[:, :-1][labels == label].sum(dim=0) for label in sorted(set(labels.flatten().tolist()))])


def best_threshold(counts: Tensor, episodes: Sequence[Episode], fold: int) -> int:
    """Index of the candidate with the best mean IoU on the episodes of all other folds; of equal ones the first.

    Args:
        counts: ``(E, T, W + 1, 4)``.
        episodes: E of them.
        fold: the one that must not be looked at.

    Raises:
        ValueError: if there is no other fold.
    """
    rows = [row for row, episode in enumerate(episodes) if episode.fold != fold]
    if not rows:
        raise ValueError(f"a threshold for fold {fold} is chosen on other folds, and there is none")
    others = [episodes[row] for row in rows]
    reached = [mean_iou(class_counts(counts[rows, candidate], others)) for candidate in range(counts.shape[1])]
    return int(torch.tensor(reached).argmax())


def fold_scores(counts: Tensor, episodes: Sequence[Episode]) -> dict[str, float]:
    """Mean IoU and binary IoU of each fold and of the mean fold, as means over the draws.

    In a draw the counts of a class are added up first; the mean IoU is that of the fold's classes. For the binary IoU
    the classes of an episode are one foreground, and all its counts are added up.

    Args:
        counts: ``(E, W + 1, 4)`` of the classes of each episode and of their union.
        episodes: E of them.

    Returns:
        Fractions ``mean_iou_fold<i>``, ``mean_iou_mean``, ``binary_iou_fold<i>`` and ``binary_iou_mean``; each also
        with ``_std``, the deviation over draws, where there are at least two.
    """
    folds, draws = (sorted({getattr(episode, name) for episode in episodes}) for name in ("fold", "draw"))
    table = torch.zeros(2, len(folds) + 1, len(draws), dtype=torch.float64)
    for i, fold in enumerate(folds):
        for j, draw in enumerate(draws):
            rows = [row for row, episode in enumerate(episodes) if (episode.fold, episode.draw) == (fold, draw)]
            table[0, i, j] = mean_iou(class_counts(counts[rows], [episodes[row] for row in rows]))
            table[1, i, j] = binary_iou(counts[rows, -1].sum(dim=0))
    table[:, -1] = table[:, :-1].mean(dim=1)
    scores = {}
    for metric, of_metric in zip(("mean_iou", "binary_iou"), table, strict=True):
        for name, values in zip([*(f"fold{fold}" for fold in folds), "mean"], of_metric, strict=True):
            scores[f"{metric}_{name}"] = values.mean().item()
            if len(draws) > 1:
                scores[f"{metric}_{name}_std"] = values.std().item()
    return scores


def scored(counts: Tensor, episodes: Sequence[Episode], cut: str) -> dict[str, Any]:
    """Scores of counts ``(E, T, W + 1, 4)``; where there are many candidates, with the height chosen for each fold."""
    if cut != "threshold":
        return dict(fold_scores(counts[:, 0], episodes))
    candidate_of = {
        fold: best_threshold(counts, episodes, fold) for fold in sorted({episode.fold for episode in episodes})
    }
    candidates = torch.tensor([candidate_of[episode.fold] for episode in episodes])
    heights = {
        f"threshold_fold{fold}": round(THRESHOLDS[candidate].item(), 2) for fold, candidate in candidate_of.items()
    }
    return {**fold_scores(counts[torch.arange(len(counts)), candidates], episodes), **heights}
