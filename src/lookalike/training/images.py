"""Pictures as batches of tensors, the same whatever the number of loading processes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import torch
import torchvision
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2
from torchvision.transforms.functional import pil_to_tensor

from lookalike.data.decoded import GB, DecodedPictures, decoded, fixed_keys
from lookalike.data.pictures import as_rgb, read_picture
from lookalike.settings.layers import canonical

# Mean and deviation of ImageNet's colours, which all pretrained networks here expect.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Images(Dataset[tuple[Tensor, int]]):
    """Pictures of one role, each asked for by ``(index, seed)`` and returned with its index.

    Args:
        paths: files of the pictures.
        view: ``crop_px``, ``resize_px`` (shorter side before the crop, ``None`` to leave it) and, for a random view,
            ``scale``, ``ratio`` and ``flip``; without these the centre is cropped. Either size may be a pair, height
            and width; resizing to a pair does not keep the proportions.
        decoded: pictures as `fixed_part` of the view leaves them; those that are in none of these are read from their
            files.

    A picture that cannot be read is a ``ValueError`` that names its file.
    """

    def __init__(self, paths: Sequence[Path], view: Mapping[str, Any], decoded: Sequence[DecodedPictures] = ()) -> None:
        self.paths = paths
        self._fixed = fixed_part(view)
        self._random = RandomView(view) if "scale" in view else None
        self._decoded = decoded

    @property
    def is_memory(self) -> bool:
        """Whether a picture is a copy of bytes that are there, which needs no process of its own."""
        return self._random is None and all(any(path in part for part in self._decoded) for path in self.paths)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, item: tuple[int, int]) -> tuple[Tensor, int]:
        index, seed = item
        pixels = self._prepared(self.paths[index])
        if self._random is None:
            return torch.from_numpy(pixels.copy()).permute(2, 0, 1), index
        # The crop depends on the seed of this picture alone, not on which process draws it or what came before.
        # Transforms draw from the CPU's default generator; `torch.manual_seed` would also keep a stack trace for CUDA.
        before = torch.default_generator.get_state()
        try:
            torch.default_generator.manual_seed(seed)
            return pil_to_tensor(self._random(pixels)), index
        finally:
            torch.default_generator.set_state(before)

    def _prepared(self, path: Path) -> NDArray[np.uint8]:
        for part in self._decoded:
            if path in part:
                return part[path]
        return np.asarray(self._fixed(read_picture(path)))


def fixed_part(view: Mapping[str, Any]) -> v2.Transform:
    """What a view does to a picture by its `fixed_keys`."""
    keys = fixed_keys(view)
    steps: list[v2.Transform] = [v2.Resize(keys["resize_px"])] if keys["resize_px"] else []
    if "crop_px" in keys:
        steps.append(v2.CenterCrop(keys["crop_px"]))
    return v2.Compose(steps) if steps else v2.Identity()


class RandomView:
    """A random part of a picture, resized, or without a ``scale`` its centre; perhaps mirrored.

    What ``v2.RandomResizedCrop`` and ``v2.RandomHorizontalFlip`` make of it, with the same draws, without the time that
    theirs take to find out what they were given, and copying only the part that is seen.
    """

    def __init__(self, view: Mapping[str, Any]) -> None:
        self._flip = view["flip"]
        self._centre = v2.CenterCrop(view["crop_px"])
        self._part: v2.RandomResizedCrop | None = None
        if view["scale"] is not None:
            self._part = v2.RandomResizedCrop(view["crop_px"], scale=tuple(view["scale"]), ratio=tuple(view["ratio"]))

    def __call__(self, pixels: NDArray[np.uint8]) -> Image.Image:
        """The view of a picture's pixels ``(height, width, 3)``, drawn from the CPU's default generator."""
        picture: Image.Image
        if self._part is None:
            picture = self._centre(Image.fromarray(pixels))
        else:
            # Only its size is asked for.
            part = self._part.make_params([torch.empty(3, *pixels.shape[:2], device="meta")])
            left, top, (height, width) = part["left"], part["top"], self._part.size
            seen = pixels[top : top + part["height"], left : left + part["width"]]
            picture = Image.fromarray(seen).resize((width, height), Image.Resampling.BILINEAR)
        if torch.rand(1) < self._flip:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return picture


class Loader:
    """Batches of pictures on a device, from loading processes that live as long as this object.

    Args:
        images: pictures and the view that makes images of them.
        device: device that the batches go to.
        workers: loading processes; none of them changes what is loaded.
    """

    def __init__(self, images: Images, *, device: torch.device, workers: int = 0) -> None:
        workers = 0 if images.is_memory else workers
        self.images = images
        self._device = device
        self._asked: list[list[tuple[int, int]]] = []
        self._loader = DataLoader(
            images,
            batch_sampler=_Asked(self._asked),
            num_workers=workers,
            persistent_workers=workers > 0,
            pin_memory=device.type == "cuda",
            generator=torch.Generator(),  # otherwise the loader draws from the global one
        )

    def batches(self, indices: Iterable[Sequence[int]], *, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Load some pictures.

        Args:
            indices: which pictures make each batch.
            seed: seed of all random crops in these batches.

        Yields:
            Pairs of images ``(B, 3, H, W)`` in torch's default dtype, normalised by ImageNet's mean and deviation, and
            their indices ``(B,)`` on the CPU.
        """
        self._asked[:] = [
            [(index, picture_seed(seed, batch, position)) for position, index in enumerate(rows)]
            for batch, rows in enumerate(indices)
        ]
        mean = torch.tensor(MEAN, device=self._device).view(1, 3, 1, 1) * 255
        deviation = torch.tensor(DEVIATION, device=self._device).view(1, 3, 1, 1) * 255
        for pictures, rows in self._loader:
            # As bytes: a copy that also converts would do so before, and send four times as much.
            images = pictures.to(self._device, non_blocking=True).to(mean.dtype)
            yield images.sub_(mean).div_(deviation), rows


class _Asked:
    """What a loader is to load next: it keeps its processes, and each time other batches are asked of them."""

    def __init__(self, batches: list[list[tuple[int, int]]]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        return iter(list(self._batches))

    def __len__(self) -> int:
        return len(self._batches)


def batches(
    images: Images, indices: Iterable[Sequence[int]], *, seed: int, device: torch.device, workers: int = 0
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of pictures that are loaded once, as `Loader.batches` gives them."""
    return Loader(images, device=device, workers=workers).batches(indices, seed=seed)


def transform(view: Mapping[str, Any]) -> Callable[[Image.Image], Tensor]:
    """What `Images` and `batches` together make of one picture in a view without chance.

    Args:
        view: ``crop_px`` and ``resize_px`` as for `Images`.

    Returns:
        A transform of torchvision from a picture of any mode to an image ``(3, H, W)`` float32.
    """
    mean, deviation = ((torch.tensor(values) * 255).tolist() for values in (MEAN, DEVIATION))
    steps = [
        v2.Lambda(as_rgb, Image.Image),
        fixed_part({"resize_px": view.get("resize_px"), "crop_px": view["crop_px"]}),
        v2.PILToTensor(),
        v2.ToDtype(torch.float32),
        v2.Normalize(mean, deviation),
    ]
    whole: Callable[[Image.Image], Tensor] = v2.Compose(steps)
    return whole


def picture_seed(seed: int, batch: int, position: int) -> int:
    """Seed of the picture at one position of one batch; far apart for neighbouring positions."""
    return (((seed * 1_000_003 + batch) * 1_000_033) + position) * 2_654_435_761 % 2**63


def in_order(count: int, batch_size: int) -> list[list[int]]:
    """Indices ``0 .. count - 1`` in order, in batches."""
    return [list(range(start, min(start + batch_size, count))) for start in range(0, count, batch_size)]


@dataclass(frozen=True)
class Decoder:
    """Decodes pictures unless an earlier run did.

    Attributes:
        folder: folder of the decoded pictures; empty to decode pictures whenever they are read.
        limit_gb: what those of one split and view may take; beyond it they are decoded whenever they are read.
        threads: number of pictures decoded at the same time.
    """

    folder: str = ""
    limit_gb: float = 0.0
    threads: int = 1

    def pictures(
        self, paths: Sequence[Path], view: Mapping[str, Any], *, manifest: Path | str, root: Path | str
    ) -> list[DecodedPictures]:
        """Pictures of one split as the fixed part of a view leaves them.

        Args:
            paths: files of the pictures.
            view: how pictures become images, see `Images`.
            manifest: CSV with the split, whose contents tell whether pictures are still the same.
            root: folder of the pictures.

        Returns:
            What `Images` takes; nothing where pictures are not kept.

        Raises:
            ValueError: naming the first picture that cannot be read.
        """
        if not self.folder or not self.limit_gb:
            return []
        identity = {
            "manifest": hashlib.sha256(Path(manifest).read_bytes()).hexdigest(),
            "paths": [path.relative_to(root).as_posix() for path in paths],
            "view": fixed_keys(view),
            "read": "upright",  # as `read_picture` reads them
            "libraries": [PIL.__version__, torchvision.__version__],
        }
        digest = hashlib.sha256(canonical(identity).encode()).hexdigest()[:16]
        folder = Path(self.folder) / f"{Path(manifest).stem}-{digest}"
        limit = round(self.limit_gb * GB)
        kept = decoded(paths, folder, fixed_part(view), limit_bytes=limit, threads=self.threads)
        return [kept] if kept else []
