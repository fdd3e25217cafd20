"""From the heat maps of a picture to regions: by GrabCut, everything above a height, or without looking at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookalike.base.checks import workflow_extra

Picture = NDArray[np.uint8]
# A cut turns a picture (H, W, 3) in RGB and heat maps (W, H, W) from 0 to 1 into candidates (T, W, H, W), bool.
Cut = Callable[..., Tensor]

THRESHOLDS = torch.arange(1, 20) / 20  # 0.05 to 0.95
SEED = 0  # of the k-means inside GrabCut


def grabcut(
    picture: Picture, heat: Tensor, *, sure: float, probable: float, background: float | None, iterations: int
) -> Tensor:
    """One candidate, grown from each heat map by GrabCut.

    Args:
        picture: ``(H, W, 3)`` uint8, RGB.
        heat: ``(W, H, W)`` in [0, 1].
        sure: pixels from this height on are foreground whatever their colour.
        probable: height from which on pixels are foreground to begin with, below it background to begin with.
        background: pixels below this height are background whatever their colour; ``None`` for no such pixel.
        iterations: number of GrabCut's iterations.

    Returns:
        ``(1, W, H, W)`` bool. Where GrabCut has nothing to tell apart (no pixel of either kind, or a picture of one
        colour, on which it may take hours) the region is ``heat >= probable``.

    Source: Visual Similarity Attention, section 4.3.
    Differs: the paper gives no seeds. Without sure background a region may grow over a whole object.
    """
    flat = bool((picture == picture[0, 0]).all())
    regions = []
    for values in heat.numpy():
        seeds = _seeds(values, sure, probable, background)
        foreground = seeds % 2 == 1  # OpenCV numbers background 0 and 2, foreground 1 and 3
        if not flat and foreground.any() and not foreground.all():
            foreground = _grown(picture, seeds, iterations)
        regions.append(torch.from_numpy(foreground))
    return torch.stack(regions)[None]


def threshold(picture: Picture, heat: Tensor) -> Tensor:
    """A candidate for each of `THRESHOLDS`, everything from that height on: ``(T, W, H, W)`` bool."""
    return heat >= THRESHOLDS[:, None, None, None]


def nothing(picture: Picture, heat: Tensor) -> Tensor:
    """One candidate ``(1, W, H, W)`` bool: no object anywhere."""
    return torch.zeros_like(heat, dtype=torch.bool)[None]


def everything(picture: Picture, heat: Tensor) -> Tensor:
    """One candidate ``(1, W, H, W)`` bool: each class takes the whole picture."""
    return torch.ones_like(heat, dtype=torch.bool)[None]


CUTS: dict[str, Cut] = {"grabcut": grabcut, "threshold": threshold, "nothing": nothing, "everything": everything}
TRIVIAL = {"nothing": "no object", "everything": "everything is the object"}  # answers that need no attention


def disjoint(regions: Tensor, heat: Tensor) -> Tensor:
    """Regions of which no two share a pixel: each pixel stays with the class of the largest heat, a tie with the first.

    Args:
        regions: ``(T, W, H, W)`` bool.
        heat: ``(W, H, W)`` in [0, 1].

    Returns:
        ``(T, W, H, W)`` bool.

    Differs: the paper does not say who gets a pixel that two regions claim.
    """
    claimed = torch.where(regions, heat, -1.0)
    winner = claimed.argmax(dim=1, keepdim=True)  # (T, 1, H, W)
    return regions & (winner == torch.arange(len(heat))[:, None, None])


def candidates(cut: dict[str, Any], picture: Picture, heat: Tensor) -> Tensor:
    """Candidates ``(T, W, H, W)`` by the cut that a recipe names, with its options; disjoint unless trivial."""
    options = {key: value for key, value in cut.items() if key != "name"}
    regions = CUTS[cut["name"]](picture, heat, **options)
    return regions if cut["name"] in TRIVIAL else disjoint(regions, heat)


def _seeds(heat: NDArray[np.float32], sure: float, probable: float, background: float | None) -> Picture:
    with workflow_extra():
        import cv2

    seeds = np.full(heat.shape, cv2.GC_PR_BGD, np.uint8)
    if background is not None:
        seeds[heat < background] = cv2.GC_BGD
    seeds[heat >= probable] = cv2.GC_PR_FGD
    seeds[heat >= sure] = cv2.GC_FGD
    return seeds


def _grown(picture: Picture, seeds: Picture, iterations: int) -> NDArray[np.bool_]:
    with workflow_extra():
        import cv2

    background, foreground = np.zeros((1, 65)), np.zeros((1, 65))  # colour models, filled by the call
    whole = (0, 0, 0, 0)  # not read where there are seeds
    cv2.setRNGSeed(SEED)  # of this thread: the result depends on nothing that ran before
    colours = np.ascontiguousarray(picture[:, :, ::-1])  # BGR, as OpenCV stores pictures
    cv2.grabCut(colours, seeds, whole, background, foreground, iterations, cv2.GC_INIT_WITH_MASK)
    grown: NDArray[np.bool_] = seeds % 2 == 1
    return grown
