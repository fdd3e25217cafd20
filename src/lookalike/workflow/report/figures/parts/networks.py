"""Trained models and embeddings as figures read them, with the pictures that they are tried on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from lookalike.base.files import read_tensors
from lookalike.metrics.attention import OBJECT
from lookalike.metrics.names import REPORTED
from lookalike.workflow.data import read_manifest
from lookalike.workflow.data.pictures import read_picture
from lookalike.workflow.data.readers.cub import BOX
from lookalike.workflow.report.figures.parts.form import Run
from lookalike.workflow.running.machine import job_device
from lookalike.workflow.settings.recipes import View
from lookalike.workflow.training.annotations import box_masks, seen_boxes, seen_points
from lookalike.workflow.training.images import Images, batches
from lookalike.workflow.training.model_file import load_model
from lookalike.workflow.training.roles import test_roles

BATCH = 128


@dataclass(frozen=True)
class Pictures:
    """Pictures of a split, and how a model sees them.

    Attributes:
        rows: of the manifest.
        root: folder of the paths.
        view: how they become images.
    """

    rows: pd.DataFrame
    root: Path
    view: View

    @property
    def labels(self) -> Tensor:
        """``(N,)`` int64."""
        return torch.from_numpy(self.rows["label"].to_numpy("int64", copy=True))

    @property
    def side(self) -> int:
        """Of the images, which are square."""
        return cast(int, self.view.crop_px)

    def path(self, row: int) -> str:
        """Of one picture."""
        return str(self.root / self.rows["path"].iloc[row])

    def tensors(self, rows: Sequence[int], device: torch.device) -> Iterable[tuple[Tensor, Tensor]]:
        """Images ``(B, 3, H, W)`` of some rows and their places ``(B,)`` in ``rows``, batch by batch."""
        images = Images([Path(self.path(row)) for row in rows], self.view)
        places = [list(range(first, min(first + BATCH, len(rows)))) for first in range(0, len(rows), BATCH)]
        return batches(images, places, seed=0, device=device)

    def shown(self, row: int) -> dict[str, Any]:
        """Columns for drawing one picture: its ``picture``, ``resize_px`` and ``crop_px``."""
        return {"picture": self.path(row), "resize_px": self.view.resize_px, "crop_px": self.view.crop_px}

    def objects(self, rows: Sequence[int]) -> Tensor | None:
        """Region of the object in cropped pictures, ``(n, H, W)`` bool: its mask, else its box; ``None`` without."""
        if "mask" in self.rows:
            paths = [self.root / self.rows["mask"].iloc[row] for row in rows]
            images = Images(paths, self.view)
            return torch.from_numpy(np.stack([images[place, 0][0][..., 0] > OBJECT for place in range(len(paths))]))
        if "box_x" not in self.rows:
            return None
        return torch.stack([self._box(row) for row in rows])

    def points(self, row: int, points: Tensor) -> Tensor:
        """Points ``(n, 2)`` of the picture, upright, x and y, as they lie in its crop."""
        return seen_points(points, torch.ones(len(points), dtype=torch.bool), self._size(row), self.view)[0]

    def _box(self, row: int) -> Tensor:
        left, top, width, height = (float(self.rows[column].iloc[row]) for column in BOX)
        box = torch.tensor([[left, top, left + width, top + height]])
        return box_masks(seen_boxes(box, self._size(row), self.view), (self.side, self.side))[0]

    def _size(self, row: int) -> tuple[int, int]:
        """Height and width of a picture, upright as the model sees it."""
        picture = read_picture(Path(self.path(row)))
        return picture.height, picture.width


def read_pictures(run: Run, view: View, roles: Sequence[str] = ()) -> Pictures:
    """Pictures of some roles, by default of all that are searched.

    Raises:
        ValueError: if the view is not square, which these figures do not draw.
    """
    if not isinstance(view.crop_px, int) or not isinstance(view.resize_px or 1, int):
        raise ValueError(
            f"test_image of {run.recipe} on {run.dataset} is {view.dump()}; figures draw square crops only"
        )
    frame = read_manifest(Path(run.manifest))
    wanted = roles or test_roles(run.manifest)
    rows = pd.concat([frame[frame["role"] == role] for role in wanted], ignore_index=True)
    return Pictures(rows, Path(run.root), view)


def read_trained(run: Run, kind: type[nn.Module]) -> tuple[nn.Module, View, torch.device]:
    """Model of the last epoch in evaluation mode on its device, how it sees test pictures, and the device.

    Raises:
        ValueError: if the file holds another kind of model.
    """
    device = job_device()
    model, trained = load_model(run.path)
    if not isinstance(model, kind):
        raise ValueError(f"{run.path} holds {type(model).__name__}, this figure needs {kind.__name__}")
    return model.to(device), trained.settings.test_image, device


@torch.no_grad()
def of_each(
    compute: Callable[[Tensor], Tensor], pictures: Pictures, rows: Sequence[int], device: torch.device
) -> Tensor:
    """Results of ``compute`` on images ``(B, 3, H, W)`` of some rows, on the CPU."""
    return torch.cat([compute(images).cpu() for images, _ in pictures.tensors(rows, device)])


def share_on(heat: Tensor, objects: Tensor) -> Tensor:
    """Share of the attention that lies on the objects.

    Args:
        heat: ``(N, H, W)``, not negative.
        objects: ``(N, H, W)`` bool.

    Returns:
        ``(N,)`` in [0, 1]; NaN for a map of zeros, which lies nowhere.
    """
    pixels = heat.flatten(1).double()
    return (pixels * objects.flatten(1)).sum(dim=1) / pixels.sum(dim=1)


def read_embeddings(run: Run, role: str) -> tuple[Tensor, Tensor]:
    """Embeddings ``(N, D)`` of the last epoch, not normalised, and labels ``(N,)`` of one role.

    Raises:
        ValueError: if the run has not embedded that role, naming the file and what it holds.
    """
    tensors, _ = read_tensors(run.path)
    name = f"{REPORTED}/{role}/embedding"
    if name not in tensors:
        hint = "; embed.training_pictures of its recipe must be true" if role == "train" else ""
        raise ValueError(f"{run.path} holds no {name}{hint}; it holds {', '.join(sorted(tensors))}")
    return tensors[name], tensors[f"labels/{role}"]
