"""Pictures as batches of tensors, the same whatever the number of loading processes."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import PIL
import torch
import torchvision
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision import tv_tensors
from torchvision.transforms import v2

from lookalike.models.backbones import DEVIATION, MEAN
from lookalike.workflow.data.decoded import GB, DecodedPictures, decoded, fixed_keys
from lookalike.workflow.data.pictures import read_picture
from lookalike.workflow.data.rgb import as_rgb
from lookalike.workflow.settings.layers import canonical
from lookalike.workflow.settings.recipes import TrainingView, View

AHEAD = 2  # batches that a thread copies before they are asked for


class Images(Dataset[tuple[NDArray[np.uint8], int]]):
    """Pictures of one role, each asked for by ``(index, seed)`` and returned as bytes ``(H, W, 3)`` with its index.

    Args:
        paths: files of the pictures.
        view: how they become images, at random by a `TrainingView`; by another the centre is cropped. Resizing to a
            pair does not keep the proportions.
        decoded: pictures as `fixed_part` of the view leaves them; those that are in none of these are read from their
            files.

    A picture that cannot be read is a ``ValueError`` that names its file.
    """

    def __init__(self, paths: Sequence[Path], view: View, decoded: Sequence[DecodedPictures] = ()) -> None:
        self.paths = paths
        self._fixed = fixed_part(view)
        self._random = RandomView(view) if isinstance(view, TrainingView) else None
        self._decoded = decoded

    @property
    def is_memory(self) -> bool:
        """Whether a picture is a copy of bytes that are there, which needs no process of its own."""
        return self._random is None and all(any(path in part for part in self._decoded) for path in self.paths)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, item: tuple[int, int]) -> tuple[NDArray[np.uint8], int]:
        index, seed = item
        pixels = self._prepared(self.paths[index])
        if self._random is None:
            return pixels, index
        # The crop depends on the seed of this picture alone, not on which process draws it or what came before.
        # Transforms draw from the CPU's default generator; `torch.manual_seed` would also keep a stack trace for CUDA.
        before = torch.default_generator.get_state()
        try:
            torch.default_generator.manual_seed(seed)
            return np.asarray(self._random(pixels)), index
        finally:
            torch.default_generator.set_state(before)

    def _prepared(self, path: Path) -> NDArray[np.uint8]:
        for part in self._decoded:
            if path in part:
                return part[path]
        return np.asarray(self._fixed(read_picture(path)))


def fixed_part(view: View) -> v2.Transform:
    """Transform of a picture by the `fixed_keys` of a view: resizing and the centre crop."""
    keys = fixed_keys(view)
    filtered = v2.InterpolationMode(keys.get("interpolation", "bilinear"))
    steps: list[v2.Transform] = [v2.Resize(keys["resize_px"], filtered)] if keys["resize_px"] else []
    if "crop_px" in keys:
        steps.append(v2.CenterCrop(keys["crop_px"]))
    return v2.Compose(steps) if steps else v2.Identity()


def seen_part(view: View, size: tuple[int, int]) -> tuple[float, float, float, float]:
    """The part of a picture that a view without chance sees, perhaps with padding beyond its edges.

    Args:
        view: a recipe's ``test_image``.
        size: height and width of the picture.

    Returns:
        Left, top, width and height as fractions of the picture's width and height.
    """
    height, width = size
    corners = tv_tensors.KeyPoints([[0.0, 0.0], [float(width), float(height)]], canvas_size=size)
    moved = fixed_part(view)(corners)
    (left, top), (right, bottom) = moved.tolist()
    across, down = right - left, bottom - top
    rows, columns = moved.canvas_size
    return -left / across, -top / down, columns / across, rows / down


class RandomView:
    """A random part of a picture, resized, or without a ``scale`` its centre; perhaps mirrored.

    What ``v2.RandomResizedCrop`` and ``v2.RandomHorizontalFlip`` make of it, with the same draws, without the time that
    theirs take to find out what they were given, and copying only the part that is seen.
    """

    def __init__(self, view: TrainingView) -> None:
        self._flip, self._filter = view.flip, Image.Resampling[view.interpolation.upper()]
        self._centre = v2.CenterCrop(view.crop_px)
        self._part: v2.RandomResizedCrop | None = None
        if view.scale is not None and view.ratio is not None:
            self._part = v2.RandomResizedCrop(view.crop_px, scale=tuple(view.scale), ratio=tuple(view.ratio))

    def __call__(self, pixels: NDArray[np.uint8]) -> Image.Image:
        """The view of a picture's pixels ``(height, width, 3)``, drawn from the CPU's default generator."""
        picture: Image.Image
        if self._part is None:
            picture = self._centre(Image.fromarray(pixels))
        else:
            # Only its size is asked for.
            part = self._part.make_params([torch.empty(3, *pixels.shape[:2], device="meta")])
            left, top, (height, width) = part["left"], part["top"], self._part.size
            # Read by its stride where it lies, without a copy of the part.
            seen = pixels[top : top + part["height"]].reshape(-1)[3 * left :]
            shown, stride = (part["width"], part["height"]), 3 * pixels.shape[1]
            picture = Image.frombuffer("RGB", shown, seen, "raw", "RGB", stride, 1)
            picture = picture.resize((width, height), self._filter)
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
            collate_fn=_stacked,
            num_workers=workers,
            persistent_workers=workers > 0,
            pin_memory=device.type == "cuda",
            generator=torch.Generator(),  # otherwise the loader draws from the global one
        )

    def batches(self, indices: Iterable[Sequence[int]], *, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Load some pictures; loading processes begin at once, before the first batch is asked for.

        Args:
            indices: which pictures make each batch.
            seed: seed of all random crops in these batches.

        Returns:
            Pairs of images ``(B, 3, H, W)`` in torch's default dtype, normalised by ImageNet's mean and deviation, and
            their indices ``(B,)`` on the CPU.
        """
        self._asked[:] = [
            [(index, picture_seed(seed, batch, position)) for position, index in enumerate(rows)]
            for batch, rows in enumerate(indices)
        ]
        loaded = iter(self._loader)
        return self._normalised(_ahead(loaded) if self.images.is_memory else _while_alive(loaded))

    def _normalised(self, loaded: Iterable[tuple[Tensor, Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
        mean = torch.tensor(MEAN, device=self._device).view(1, 3, 1, 1) * 255
        deviation = torch.tensor(DEVIATION, device=self._device).view(1, 3, 1, 1) * 255
        for pictures, rows in loaded:
            # As bytes: a copy that also converts would do so before, and send four times as much. They arrive as they
            # are stacked fastest, (B, H, W, 3); the conversion also brings the colours to the front.
            sent = pictures.to(self._device, non_blocking=True).permute(0, 3, 1, 2)
            images = sent.to(mean.dtype, memory_format=torch.contiguous_format)
            yield images.sub_(mean).div_(deviation), rows


def _stacked(pictures: Sequence[tuple[NDArray[np.uint8], int]]) -> tuple[Tensor, Tensor]:
    pixels, rows = zip(*pictures, strict=True)
    return torch.from_numpy(np.stack(pixels)), torch.tensor(rows)


def _ahead(batches: Iterator[tuple[Tensor, Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
    """The same batches, of which a thread has the next `AHEAD` ready."""
    with ThreadPoolExecutor(1) as thread:
        waiting = deque(thread.submit(next, batches, None) for _ in range(AHEAD))
        while (batch := waiting.popleft().result()) is not None:
            waiting.append(thread.submit(next, batches, None))
            yield batch


def _while_alive(loaded: Iterator[tuple[Tensor, Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
    """The same batches; one error tells that a loading process died, be its end or its broken connection seen first."""
    try:
        yield from loaded
    except (RuntimeError, ConnectionError, EOFError) as error:
        of_a_picture = str(error).startswith("Caught ")  # in a process that lives
        if of_a_picture or (isinstance(error, RuntimeError) and not str(error).startswith("DataLoader worker")):
            raise
        raise RuntimeError("a process that loads pictures was killed (out of memory?)") from error


class _Asked:
    """Batches that a loader is to load next: it keeps its processes, and each time others are asked of them."""

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


def transform(view: View) -> Callable[[Image.Image], Tensor]:
    """Transform of one picture in a view without chance, the same as `Images` and `batches` together.

    Returns:
        A transform of torchvision from a picture of any mode to an image ``(3, H, W)`` float32.
    """
    mean, deviation = ((torch.tensor(values) * 255).tolist() for values in (MEAN, DEVIATION))
    steps = [
        v2.Lambda(as_rgb, Image.Image),
        fixed_part(view),
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
        self, paths: Sequence[Path], view: View, *, manifest: Path | str, root: Path | str
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
