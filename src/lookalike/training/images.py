"""Pictures as batches of tensors, the same whatever the number of loading processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2
from torchvision.transforms.functional import pil_to_tensor

from lookalike.data.pictures import read_picture

# Mean and deviation of ImageNet's colours, which all pretrained networks here expect.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CACHED_BYTES = 2**30  # decoded pictures kept in memory by one process


class Images(Dataset[tuple[Tensor, int]]):
    """Pictures of one role, each asked for by ``(index, seed)`` and returned with its index.

    Args:
        paths: of the pictures.
        view: ``crop_px``, ``resize_px`` (shorter side before the crop, ``None`` to leave it) and, for a random view,
            ``scale``, ``ratio`` and ``flip``; without these the centre is cropped. Either size may be a pair, height
            and width; resizing to a pair does not keep the proportions.

    A picture that cannot be read is a ``ValueError`` that names its file.
    """

    def __init__(self, paths: Sequence[Path], view: Mapping[str, Any]) -> None:
        self.paths = paths
        self._resize = v2.Resize(view["resize_px"]) if view.get("resize_px") else v2.Identity()
        self._crop = random_view(view) if "scale" in view else v2.CenterCrop(view["crop_px"])
        self._decoded: dict[int, Image.Image] = {}
        self._decoded_bytes = 0

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, item: tuple[int, int]) -> tuple[Tensor, int]:
        index, seed = item
        picture = self._decoded.get(index) or self._decode(index)
        # The crop depends on the seed of this picture alone, not on which process draws it or what came before.
        # Transforms draw from the CPU's default generator; `torch.manual_seed` would also keep a stack trace for CUDA.
        before = torch.default_generator.get_state()
        try:
            torch.default_generator.manual_seed(seed)
            return pil_to_tensor(self._crop(picture)), index
        finally:
            torch.default_generator.set_state(before)

    def _decode(self, index: int) -> Image.Image:
        picture: Image.Image = self._resize(read_picture(self.paths[index]))
        size = 3 * picture.width * picture.height
        if self._decoded_bytes + size <= CACHED_BYTES:
            self._decoded[index] = picture
            self._decoded_bytes += size
        return picture


def random_view(view: Mapping[str, Any]) -> v2.Transform:
    """A random part of a picture, resized, or without a ``scale`` its centre; perhaps mirrored."""
    crop: v2.Transform = v2.CenterCrop(view["crop_px"])
    if view["scale"] is not None:
        crop = v2.RandomResizedCrop(view["crop_px"], scale=tuple(view["scale"]), ratio=tuple(view["ratio"]))
    return v2.Compose([crop, v2.RandomHorizontalFlip(view["flip"])])


def batches(
    images: Images, indices: Iterable[Sequence[int]], *, seed: int, device: torch.device, workers: int = 0
) -> Iterable[tuple[Tensor, Tensor]]:
    """Batches of pictures on a device.

    Args:
        images: the pictures.
        indices: which pictures make each batch.
        seed: of all random crops in these batches.
        device: where the batches go.
        workers: loading processes; none of them changes what is loaded.

    Returns:
        Pairs of images ``(B, 3, H, W)`` in torch's default dtype, normalised by ImageNet's mean and deviation, and
        their indices ``(B,)`` on the CPU.
    """
    numbered = [
        [(index, picture_seed(seed, batch, place)) for place, index in enumerate(chosen)]
        for batch, chosen in enumerate(indices)
    ]
    own = torch.Generator().manual_seed(seed)  # otherwise the loader draws from the global one
    pinned = device.type == "cuda"
    loader = DataLoader(images, batch_sampler=numbered, num_workers=workers, pin_memory=pinned, generator=own)
    mean = torch.tensor(MEAN, device=device).view(1, 3, 1, 1) * 255
    deviation = torch.tensor(DEVIATION, device=device).view(1, 3, 1, 1) * 255
    for pictures, chosen in loader:
        yield (pictures.to(device, mean.dtype, non_blocking=True) - mean) / deviation, chosen


def transform(view: Mapping[str, Any]) -> Callable[[Image.Image], Tensor]:
    """What `Images` and `batches` together make of one picture in a view without chance.

    Args:
        view: ``crop_px`` and ``resize_px`` as for `Images`.

    Returns:
        A transform of torchvision from a picture of any mode to an image ``(3, H, W)`` float32.
    """
    mean, deviation = ((torch.tensor(values) * 255).tolist() for values in (MEAN, DEVIATION))
    steps = [
        v2.RGB(),
        v2.Resize(view["resize_px"]) if view.get("resize_px") else v2.Identity(),
        v2.CenterCrop(view["crop_px"]),
        v2.PILToTensor(),
        v2.ToDtype(torch.float32),
        v2.Normalize(mean, deviation),
    ]
    whole: Callable[[Image.Image], Tensor] = v2.Compose(steps)
    return whole


def picture_seed(seed: int, batch: int, place: int) -> int:
    """Seed of the picture at one place of one batch; far apart for neighbouring places."""
    return (((seed * 1_000_003 + batch) * 1_000_033) + place) * 2_654_435_761 % 2**63


def in_order(count: int, batch_size: int) -> list[list[int]]:
    """Indices ``0 .. count - 1`` in order, in batches."""
    return [list(range(start, min(start + batch_size, count))) for start in range(0, count, batch_size)]
