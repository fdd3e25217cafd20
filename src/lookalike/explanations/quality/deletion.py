"""Deletion of the triplet margin: an anchor without its decisive patches must not be closer to its positive.

Symbols: ``m(a) = s(a, p) - s(a, n)``, the margin of an anchor; positive and negative stay as they are. Patches of the
anchor are replaced in the order of its map, most relevant first (MoRF) and least relevant first (LeRF). What merely
breaks the image lowers both curves alike, so the area between them counts:

    LeRF - MoRF = integral over q in [0, 1] of m(least relevant q replaced) - m(most relevant q replaced)

Source: RISE (Petsiuk et al., BMVC 2018) for deletion, SANE (Plummer et al., ECCV 2020) for similarities; the difference
of both orders and the margin in place of a similarity are our choice. ``s`` grows with likeness: a distance d enters as
``s = -d``, and its map with its sign changed (`lookalike.explanations.quality.measures.of_likeness`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F
from torchvision.transforms.v2 import functional as tv

from lookalike.explanations.quality.cells import GRID, cell_order, on_pixels, pooled

STEPS = 16
Margin = Callable[[Tensor], Tensor]  # of anchors (N, 3, H, W), which may be damaged, (N,)
Represented = TypeVar("Represented")
# Of an image of 224 pixels. Source: X-MIR (WACV 2022), a kernel of 51 pixels with a variance of 50.
DEVIATION, REACH, SIDE = 50**0.5, 25, 224


@dataclass(frozen=True)
class Deletion:
    """Margins while an anchor's patches are replaced.

    Attributes:
        shares: ``(K + 1,)`` float64, share of the patches that is replaced, from 0 to 1.
        most: ``(N, K + 1)`` float64, margins with the most relevant replaced first.
        least: ``(N, K + 1)`` float64, with the least relevant first. First and last are those of ``most``.
    """

    shares: Tensor
    most: Tensor
    least: Tensor

    @property
    def area(self) -> Tensor:
        """``(N,)``, LeRF - MoRF by the trapezium rule: above 0 where the map finds the decisive places."""
        return torch.trapezoid(self.least - self.most, self.shares, dim=1)

    @property
    def whole(self) -> Tensor:
        """``(N,)``, by how much replacing every patch lowers the margin."""
        return self.most[:, 0] - self.most[:, -1]


def margin_between(
    represent: Callable[[Tensor], Represented],
    similarity: Callable[[Represented, Represented], Tensor],
    positive: Tensor,
    negative: Tensor,
) -> Margin:
    """The margin of anchors to their positives and negatives, which are represented once.

    Args:
        represent: images ``(N, 3, H, W)`` to whatever ``similarity`` takes, such as embeddings ``(N, D)``.
        similarity: of N pairs, ``(N,)``, larger means closer: `cosines`, or a distance with its sign changed.
        positive: ``(N, 3, H, W)``.
        negative: ``(N, 3, H, W)``.
    """
    with torch.no_grad():
        near, far = represent(positive), represent(negative)

    def margin(anchors: Tensor) -> Tensor:
        seen = represent(anchors)
        return similarity(seen, near) - similarity(seen, far)

    return margin


def cosines(first: Tensor, second: Tensor) -> Tensor:
    """Cosine of each row ``(N, D)`` with that of the other, ``(N,)`` float64."""
    return F.cosine_similarity(first.double(), second.double(), dim=1)


@torch.no_grad()
def margin_deletion(
    margin: Margin,
    anchors: Tensor,
    substitute: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    side: int = GRID,
    steps: int = STEPS,
) -> Deletion:
    """Margins while more and more patches of the anchors are replaced; two forward passes for each step.

    Args:
        margin: of anchors; called with all N at once.
        anchors: ``(N, 3, H, W)``.
        substitute: ``(N, 3, H, W)``, what a patch is replaced by, as of `SUBSTITUTES`.
        maps: ``(N, h, w)`` of the anchors, larger where more speaks for the positive; their signs count.
        generator: on the CPU, orders equal cells.
        side: patches to a side.
        steps: in which all patches are replaced; where they do not divide the patches, steps differ by one patch, and
            the curve is kept with the true shares.

    Raises:
        ValueError: if shapes do not belong together, or for no step or more steps than patches.
    """
    if substitute.shape != anchors.shape or len(maps) != len(anchors):
        raise ValueError(
            f"anchors {tuple(anchors.shape)} need a substitute of their shape and as many maps, not "
            f"{tuple(substitute.shape)} and {tuple(maps.shape)}"
        )
    if not 1 <= steps <= side**2:
        raise ValueError(f"steps={steps} is outside [1, {side**2}], the number of patches")
    counts = [round(step * side**2 / steps) for step in range(steps + 1)]
    place = cell_order(pooled(maps, side), generator).argsort(dim=1).view(-1, side, side)  # 0 for the most relevant

    def left(replaced: Tensor) -> Tensor:
        pixels = on_pixels(replaced, (anchors.shape[2], anchors.shape[3]))
        found = margin(torch.where(pixels[:, None], substitute, anchors))
        if found.shape != anchors.shape[:1]:
            raise ValueError(f"margin must return ({len(anchors)},), a value for each anchor, not {tuple(found.shape)}")
        return found.double()

    whole, nothing = left(place < 0), left(place >= 0)
    most = [left(place < count) for count in counts[1:-1]]
    least = [left(place >= side**2 - count) for count in counts[1:-1]]
    most, least = ([whole, *curve, nothing] for curve in (most, least))
    shares = torch.tensor(counts, dtype=torch.float64, device=anchors.device) / side**2
    return Deletion(shares, torch.stack(most, dim=1), torch.stack(least, dim=1))


def normalised(area: Tensor, whole: Tensor) -> Tensor:
    """Areas in units of the margins' mean change when all is replaced, so that models of other scales can be compared.

    Args:
        area: ``(N,)``, `Deletion.area` of all triplets of a model.
        whole: ``(N,)``, `Deletion.whole` of the same.

    Returns:
        ``(N,)``: 0 for a map that knows nothing.

    Raises:
        ValueError: if no margin changes.

    Differs: a similarity is divided by its own ``s(x1, x2) - s(substitute, x2)``. What a margin has to lose is close to
    0 or below it for many triplets, as the nearest wrong picture is about as near as the nearest right one; so all are
    divided by its mean size over the triplets.
    """
    scale = whole.double().abs().mean()
    if not bool(scale > 0):
        raise ValueError(f"the margins change by {float(scale)} when all is replaced; it must be above 0")
    return area / scale


def blurred(images: Tensor) -> Tensor:
    """Each image out of focus: a Gaussian as wide in proportion to the shorter side as that of X-MIR.

    Args:
        images: ``(N, 3, H, W)`` float.
    """
    shorter = min(images.shape[-2:])
    reach = max(1, round(REACH * shorter / SIDE))
    result: Tensor = tv.gaussian_blur(images, [2 * reach + 1] * 2, [DEVIATION * shorter / SIDE] * 2)
    return result


def plain(images: Tensor, colour: Tensor) -> Tensor:
    """Images of one colour.

    Args:
        images: ``(N, 3, H, W)`` float, for their size.
        colour: ``(3,)``, such as the data set's mean, as the model takes it: of images normalised by that mean zero.

    Raises:
        ValueError: for another shape of the colour.
    """
    if colour.shape != images.shape[1:2]:
        raise ValueError(
            f"colour has shape {tuple(colour.shape)}, it must be ({images.shape[1]},), one value a channel"
        )
    return colour.to(images)[:, None, None].expand_as(images)


def mean_colour(images: Tensor) -> Tensor:
    """Images of the colour that normalisation takes for the mean: zero everywhere."""
    return plain(images, images.new_zeros(images.shape[1]))


SUBSTITUTES: dict[str, Callable[[Tensor], Tensor]] = {"blur": blurred, "mean": mean_colour}
