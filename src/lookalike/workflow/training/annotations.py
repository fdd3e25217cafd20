"""Key points, boxes and masks of a data set's images, followed through a test view's resize and crop.

Positions are x and y in pixels, counted from the image's left and upper edge. Only what is on disk is known: a data set
without parts or without boxes has none of that, and measures that need it are empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.functional import pil_to_tensor

from lookalike.explanations.quality.parts import Parts, within
from lookalike.metrics.attention import OBJECT
from lookalike.workflow.data import read_manifest
from lookalike.workflow.data.pictures import read_picture
from lookalike.workflow.data.readers.cub import BOX, TOP, read_keypoints
from lookalike.workflow.settings.recipes import TrainingView, View
from lookalike.workflow.training.images import fixed_part


def seen_points(points: Tensor, visible: Tensor, size: tuple[int, int], view: View) -> tuple[Tensor, Tensor]:
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


def seen_boxes(boxes: Tensor, size: tuple[int, int], view: View) -> Tensor:
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


def seen_mask(mask: Tensor, view: View) -> Tensor:
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


def _fixed(view: View) -> v2.Transform:
    if isinstance(view, TrainingView):
        raise ValueError(f"a view with scale={view.scale} is random; annotations follow a test view, without scale")
    return fixed_part(view)


@dataclass(frozen=True)
class Annotations:
    """Annotations of the pictures of a data set: boxes, masks and parts.

    Attributes:
        root: folder of the data set.
        view: a recipe's ``test_image``.
        rows: of the manifest, by the picture's path.
        points: by path ``(K, 3)``, x, y and whether it is visible, in pixels of the picture; ``None`` without parts.
    """

    root: Path
    view: View
    rows: pd.DataFrame
    points: dict[str, Tensor] | None

    @property
    def has_boxes(self) -> bool:
        """Whether the object's box is known."""
        return set(BOX) <= set(self.rows)

    @property
    def object_of(self) -> str | None:
        """Source of the object's pixels: ``mask``, else ``box``, ``None`` where neither is known."""
        return "mask" if "mask" in self.rows else "box" if self.has_boxes else None

    def parts(self, paths: Sequence[str], device: torch.device | None = None) -> Parts | None:
        """Parts that the images of some pictures show, on a device of choice."""
        if self.points is None:
            return None
        found = [self._points(self.points[path][:, :2], self.points[path][:, 2] > 0, path) for path in paths]
        points, visible = (torch.stack(each) for each in zip(*((one[0], one[1]) for one in found), strict=True))
        return Parts(points.masked_fill(~visible[..., None], 0).to(device), visible.to(device), found[0][2])

    def objects(self, paths: Sequence[str]) -> Tensor | None:
        """Pixels of the object in each image, ``(N, H, W)`` bool."""
        if self.object_of is None:
            return None
        return torch.cat([self._object(path) for path in paths])

    def longer_sides(self, paths: Sequence[str]) -> Tensor | None:
        """Longer side ``(N,)`` of the object's box in pixels of the image, with the part that the view cuts off."""
        if not self.has_boxes:
            return None
        corners = [self._points(self._box(path).view(2, 2), torch.ones(2, dtype=torch.bool), path)[0] for path in paths]
        return torch.stack([(two[1] - two[0]).amax() for two in corners])

    def _points(self, points: Tensor, visible: Tensor, path: str) -> tuple[Tensor, Tensor, tuple[int, int]]:
        size = self._size(path)
        moved, seen = seen_points(points, visible, size, self.view)
        return moved, seen, _image_size(size, self.view)

    def _object(self, path: str) -> Tensor:
        if self.object_of == "mask":
            mask = pil_to_tensor(read_picture(self.root / str(self.rows.loc[path, "mask"])))[0] > OBJECT
            return seen_mask(mask, self.view)[None]
        size = self._size(path)
        return box_masks(seen_boxes(self._box(path)[None], size, self.view), _image_size(size, self.view))

    def _box(self, path: str) -> Tensor:
        left, top, width, height = self.rows.loc[path, list(BOX)].to_numpy(dtype="float64").tolist()
        return torch.tensor([left, top, left + width, top + height])

    def _size(self, path: str) -> tuple[int, int]:
        return _size_of(self.root / path)


def read_annotations(manifest: Path | str, root: Path | str, view: View, layout: str) -> Annotations:
    """Read the annotations of the pictures of a split.

    Args:
        manifest: CSV of the split; boxes and masks where it has their columns.
        root: folder of the data set.
        view: a recipe's ``test_image``.
        layout: of the data set; parts are those of ``cub``, where their list is on disk.

    Raises:
        ValueError: if a list is broken.
    """
    rows = read_manifest(Path(manifest)).drop_duplicates("path").set_index("path")
    points: dict[str, Tensor] | None = None
    if layout == "cub" and (Path(root) / TOP / "parts" / "part_locs.txt").is_file():
        listed = read_keypoints(Path(root))
        points = {
            str(path): torch.tensor(own[["x", "y", "visible"]].to_numpy("float32"))
            for path, own in listed.groupby("path", sort=False)
        }
    return Annotations(Path(root), view, rows, points)


@cache
def _size_of(path: Path) -> tuple[int, int]:
    """Height and width of a picture."""
    picture = read_picture(path)
    return picture.height, picture.width


def _image_size(size: tuple[int, int], view: View) -> tuple[int, int]:
    """Height and width of the image that a view makes of a picture."""
    seen = seen_mask(torch.zeros(size, dtype=torch.bool), view)
    return seen.shape[0], seen.shape[1]
