"""Key points, boxes and masks of a picture, followed through a test view's resize and crop.

Positions are x and y in pixels, counted from the picture's left and upper edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from lookalike.training.images import fixed_part


@dataclass(frozen=True)
class Parts:
    """Where the parts of N images of one size are seen.

    Attributes:
        points: ``(N, K, 2)`` float, x and y in pixels of the image.
        visible: ``(N, K)`` bool.
        size: height and width of the images.
    """

    points: Tensor
    visible: Tensor
    size: tuple[int, int]

    def __post_init__(self) -> None:
        if self.points.ndim != 3 or self.points.shape[2] != 2 or self.visible.shape != self.points.shape[:2]:
            raise ValueError(
                f"points must be (N, K, 2) and visible (N, K), not {tuple(self.points.shape)} and "
                f"{tuple(self.visible.shape)}"
            )
        if not bool(self.points.isfinite().all()):
            raise ValueError("points must hold finite numbers only, those of hidden parts too")
        if not bool(within(self.points, self.size)[self.visible].all()):
            raise ValueError(f"a visible part lies outside its image of size={self.size}; follow it with seen_points")

    def cells(self, grid: tuple[int, int]) -> Tensor:
        """Number ``(N, K)`` int64 of the cell that holds each part, row by row of a grid; of hidden ones any."""
        (height, width), (rows, columns) = self.size, grid
        across = (self.points[..., 0] * columns / width).floor().clamp(0, columns - 1)
        down = (self.points[..., 1] * rows / height).floor().clamp(0, rows - 1)
        return (down * columns + across).long()


def seen_points(
    points: Tensor, visible: Tensor, size: tuple[int, int], view: Mapping[str, Any]
) -> tuple[Tensor, Tensor]:
    """Key points in the image that a view makes of a picture.

    Args:
        points: ``(K, 2)`` in pixels of the picture; those of hidden parts are not read.
        visible: ``(K,)`` bool.
        size: height and width of the picture.
        view: a recipe's ``test_image``.

    Returns:
        ``(K, 2)`` float32 in pixels of the image, and ``(K,)`` bool: a part that was cut off is not visible.

    Raises:
        ValueError: for a random view.
    """
    seen = _fixed(view)(tv_tensors.KeyPoints(points.float(), canvas_size=size))
    moved = seen.as_subclass(Tensor)
    return moved, visible & within(moved, seen.canvas_size)


def seen_boxes(boxes: Tensor, size: tuple[int, int], view: Mapping[str, Any]) -> Tensor:
    """Boxes in the image that a view makes of a picture, cut off at its edges.

    Args:
        boxes: ``(B, 4)``, left, top, right and bottom in pixels of the picture.
        size: height and width of the picture.
        view: a recipe's ``test_image``.

    Returns:
        ``(B, 4)`` float32, the same in pixels of the image.

    Raises:
        ValueError: for a random view.
    """
    given = tv_tensors.BoundingBoxes(boxes.float(), format="XYXY", canvas_size=size)
    seen: Tensor = _fixed(view)(given).as_subclass(Tensor)
    return seen


def seen_mask(mask: Tensor, view: Mapping[str, Any]) -> Tensor:
    """The object's pixels ``(h, w)`` bool in the image that a view makes of a picture with those of ``mask (H, W)``.

    Raises:
        ValueError: for a random view.
    """
    seen: Tensor = _fixed(view)(tv_tensors.Mask(mask)).as_subclass(Tensor)
    return seen


def box_masks(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    """Pixels whose centre lies in a box, ``(N, H, W)`` bool, for a data set without masks.

    Args:
        boxes: ``(N, 4)``, left, top, right and bottom.
        size: height and width of the images.
    """
    left, top, right, bottom = (edge[:, None] for edge in boxes.unbind(1))  # (N, 1)
    rows, columns = (torch.arange(length, device=boxes.device) + 0.5 for length in size)
    inside_rows, inside_columns = (rows >= top) & (rows < bottom), (columns >= left) & (columns < right)
    return inside_rows[:, :, None] & inside_columns[:, None, :]


def within(points: Tensor, size: tuple[int, int]) -> Tensor:
    """Whether points ``(..., 2)`` lie in an image of this height and width, ``(...)`` bool."""
    x, y = points.unbind(-1)
    return (x >= 0) & (x < size[1]) & (y >= 0) & (y < size[0])


def _fixed(view: Mapping[str, Any]) -> v2.Transform:
    if "scale" in view:
        raise ValueError(f"a view with scale={view['scale']} is random; annotations follow a test view, without scale")
    return fixed_part(view)
