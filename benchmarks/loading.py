"""Pictures a second of a training that loads its pictures, beside the same batches held in memory.

Run ``python benchmarks/loading.py``, with ``--pictures FOLDER`` for JPEGs of one's own below that folder. One epoch of
SqueezeNet 1.1 at 144 px with a contrastive loss, one thread, no loading process: what loading takes is taken from the
steps. All run in turns, a batch each. The plain path decodes each picture again, as a loader without kept
pictures does in every epoch. The last line counts what a second search of all pictures decodes.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from measure import Finding, conclude, parser
from PIL import Image
from torch import Tensor, nn
from torchvision.models import squeezenet1_1

from lookalike.workflow.data import decoded as kept_pictures
from lookalike.workflow.data.decoded import DecodedPictures, decoded
from lookalike.workflow.running.jobs import ALLOCATION
from lookalike.workflow.training.evaluation import represent_images
from lookalike.workflow.training.images import Images, Loader, fixed_part, in_order

VIEW = {"resize_px": None, "crop_px": 144, "scale": [0.16, 1.0], "ratio": [0.75, 1.333], "flip": 0.5}
TEST_VIEW = {"resize_px": 164, "crop_px": 144}
BATCH, LIMIT = 32, 0.05
CPU = torch.device("cpu")


def drawn(folder: Path, count: int) -> None:
    """Smooth pictures of the size of CUB's, whose JPEGs are as large as photographs'."""
    generator = np.random.default_rng(0)
    for number in range(count):
        coarse = Image.fromarray(generator.integers(0, 255, (24, 32, 3), dtype=np.uint8))
        pixels = np.asarray(coarse.resize((500, 375), Image.Resampling.BICUBIC), dtype=np.int16)
        grain = generator.integers(-12, 12, pixels.shape, dtype=np.int16)
        Image.fromarray((pixels + grain).clip(0, 255).astype(np.uint8)).save(folder / f"{number:05}.jpg", quality=92)


def stepper() -> Callable[[Tensor], None]:
    """One optimisation step on a batch of images."""
    torch.manual_seed(0)
    network = nn.Sequential(squeezenet1_1(weights=None).features, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-4)

    def step(images: Tensor) -> None:
        optimiser.zero_grad()
        embeddings = nn.functional.normalize(network(images))
        (embeddings @ embeddings.T).triu(1).relu().mean().backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def in_turns(sources: dict[str, Iterator[Tensor]], step: Callable[[Tensor], None], batches: int) -> dict[str, float]:
    """Processor seconds of loading and steps of each source, a batch at a time."""
    seconds = dict.fromkeys(sources, 0.0)
    for _ in range(batches):
        for name, source in sources.items():
            before = time.process_time()
            step(next(source))
            seconds[name] += time.process_time() - before
    return seconds


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pictures", type=Path, metavar="FOLDER")
    options.add_argument("--count", type=int, default=512, help="of drawn pictures")
    arguments = options.parse_args()
    if not ALLOCATION.keys() <= os.environ.keys():  # memory as jobs have it, which a process can only start with
        os.execve(sys.executable, [sys.executable, *sys.argv], {**ALLOCATION, **os.environ})
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if arguments.pictures is None:
            drawn(folder, arguments.count)
        paths = sorted((arguments.pictures or folder).glob("**/*.jpg"))
        keep = {"limit_bytes": 10**11, "threads": 1}
        before = time.process_time()
        training = _kept(decoded(paths, folder / "training", fixed_part(VIEW), **keep))
        test = _kept(decoded(paths, folder / "test", fixed_part(TEST_VIEW), **keep))
        once = time.process_time() - before

        order = in_order(len(paths), BATCH)
        loader = Loader(Images(paths, VIEW, [training]), device=CPU)
        held = [images for images, _ in loader.batches(order, seed=1)]
        sources = {
            "loaded": (images for images, _ in loader.batches(order, seed=1)),
            "held": iter(held),
            "decoded": (images for images, _ in Loader(Images(paths, VIEW), device=CPU).batches(order, seed=1)),
        }
        step = stepper()
        for images in held[:2]:
            step(images)  # allocates
        seconds = in_turns(sources, step, len(order))
        pictures = sum(map(len, order))
        for name, value in seconds.items():
            print(f"{name:8s}{pictures / value:8.1f} pictures a second")
        print(f"{len(paths)} pictures decoded once for both views: {once:.1f} s")
        missing = 1 - seconds["held"] / seconds["loaded"]
        plain = 1 - seconds["held"] / seconds["decoded"]

        again = _reads(lambda: decoded(paths, folder / "test", fixed_part(TEST_VIEW), **keep))
        search = Loader(Images(paths, TEST_VIEW, [test]), device=CPU)
        again += _reads(
            lambda: represent_images(lambda model, x: {"mean": x.mean((2, 3))}, nn.Identity(), search, batch_size=BATCH)
        )
        conclude(
            [
                Finding(f"share of an epoch of {pictures} pictures spent on loading", "", missing, LIMIT, plain=plain),
                Finding("pictures that a second search decodes", "", again, 0),
            ],
            arguments.json,
        )


def _kept(found: DecodedPictures | None) -> DecodedPictures:
    if found is None:
        raise SystemExit("no room for decoded pictures")
    return found


def _reads(action: Callable[[], object]) -> int:
    """How many pictures an action reads from their files."""
    count, read = 0, kept_pictures.read_picture

    def counted(path: Path) -> Image.Image:
        nonlocal count
        count += 1
        return read(path)

    from lookalike.workflow.training import images

    kept_pictures.read_picture = images.read_picture = counted
    try:
        action()
    finally:
        kept_pictures.read_picture = images.read_picture = read
    return count


if __name__ == "__main__":
    main()
