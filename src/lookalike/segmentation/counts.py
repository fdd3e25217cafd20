"""Intersection over union of predicted and true regions, from counts that may be summed over episodes first.

A class is a row ``(tp, fp, fn, tn)``. Sum the counts of all its episodes, then call ``mean_iou`` (published as mean IoU
of PASCAL-5i); with all classes as one foreground, ``binary_iou``. Averaging per episode gives a third number.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

Counts = tuple[int, int, int, int]


def iou_counts(prediction: Tensor, target: Tensor, ignore: int = 255) -> Counts:
    """Numbers of pixels by predicted and true label.

    Args:
        prediction: any shape, 0 or 1 (or bool); 1 is the class, 0 everything else.
        target: same shape, 0 or 1, or ``ignore``.
        ignore: value of the target at pixels that do not count, neither 0 nor 1; whatever was predicted there.

    Returns:
        ``(tp, fp, fn, tn)``, whole numbers that sum to the pixels that count; 0 each where none does.

    Raises:
        ValueError: for shapes that differ, another value, or an ``ignore`` of 0 or 1.
    """
    if prediction.shape != target.shape:
        raise ValueError(
            f"prediction has shape {tuple(prediction.shape)}, target {tuple(target.shape)}, they must agree"
        )
    if ignore in (0, 1):
        raise ValueError(f"ignore={ignore} must be neither 0 nor 1, which mean background and class")
    valid = target != ignore
    predicted = _regions("prediction", prediction[valid])
    true = _regions("target", target[valid])
    tp = int((predicted & true).sum())
    fp, fn = int(predicted.sum()) - tp, int(true.sum()) - tp
    return tp, fp, fn, int(valid.sum()) - tp - fp - fn


def region_counts(regions: Tensor, targets: Tensor, ignore: int = 255) -> Tensor:
    """As ``iou_counts`` for many whole masks at once.

    Args:
        regions: ``(..., H, W)`` bool, predicted.
        targets: uint8 of a shape that broadcasts to that, 0, 1 or ``ignore``.
        ignore: value of pixels that do not count.

    Returns:
        ``(..., 4)`` int64 of tp, fp, fn, tn.
    """
    true, false = targets == 1, (targets != 1) & (targets != ignore)
    pairs = (regions & true, regions & false, ~regions & true, ~regions & false)
    return torch.stack([pixels.sum(dim=(-2, -1)) for pixels in pairs], dim=-1)


def mean_iou(counts: Tensor | Sequence[Sequence[int]]) -> float:
    """Mean over the classes of ``tp / (tp + fp + fn)``.

    A class that neither occurs nor is predicted has no ratio and is left out.

    Args:
        counts: ``(classes, 4)`` of tp, fp, fn, tn, at least 0.

    Returns:
        Fraction in [0, 1].

    Raises:
        ValueError: for another shape, a negative count, or if no class occurs or is predicted.
    """
    table = torch.as_tensor(counts).double()
    if table.ndim != 2 or table.shape[1] != 4:
        raise ValueError(f"counts have shape {tuple(table.shape)}, (classes, 4) of tp, fp, fn, tn is needed")
    if not (table >= 0).all():
        raise ValueError(f"counts have the smallest value {table.min().item()}, all must be at least 0")
    hits, union = table[:, 0], table[:, :3].sum(dim=1)
    occurs = union > 0
    if not occurs.any():
        raise ValueError(f"none of the {len(table)} classes occurs or is predicted, so there is no ratio to average")
    return float((hits[occurs] / union[occurs]).mean())


def binary_iou(counts: Tensor | Sequence[int]) -> float:
    """Mean of the IoU of foreground and of background (FB-IoU), 20 points above ``mean_iou`` for the same model.

    Args:
        counts: ``(tp, fp, fn, tn)`` of the foreground; summed over all classes and episodes for a published number.

    Returns:
        Fraction in [0, 1]; that of one side where the other neither occurs nor is predicted.

    Raises:
        ValueError: for another length, a negative count, or no pixel at all.
    """
    table = torch.as_tensor(counts)
    if table.shape != (4,):
        raise ValueError(f"counts have shape {tuple(table.shape)}, (tp, fp, fn, tn) is needed")
    return mean_iou(torch.stack([table, table.flip(0)]))  # reversed they are the background's: tn, fn, fp, tp


def _regions(name: str, values: Tensor) -> Tensor:
    inside = values == 1
    if not (inside | (values == 0)).all():
        wrong = values[~(inside | (values == 0))][0].item()
        raise ValueError(f"{name} holds {wrong}, 0 and 1 are allowed")
    return inside
