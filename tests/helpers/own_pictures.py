"""A folder of pictures as people have one, and models to see them with."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from lookalike.app.own.models import OpenModel
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.diml.model import DIML
from lookalike.models.embedder import Embedder
from lookalike.workflow.settings.recipes import View
from trainings import learner

VIEW = View(resize_px=28, crop_px=24)


def write_pictures(folder: Path, count: int = 12, seed: int = 0) -> list[Path]:
    """Pictures of four colours, of any size, in two folders: pictures of a colour look alike."""
    generator = np.random.default_rng(seed)
    colours = generator.integers(30, 225, (4, 3))
    paths = []
    for number in range(count):
        height, width = generator.integers(24, 60, 2)
        pixels = colours[number % 4] + generator.integers(-25, 26, (height, width, 3))
        path = folder / ("even" if number % 2 == 0 else "odd") / f"{number:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path)
        paths.append(path)
    return paths


def opened(kind: str = "embedder", digest: str = "a") -> OpenModel:
    """An untrained model: ``embedder``, ``diml``, ``avsl`` or ``parts``."""
    torch.manual_seed(0)
    name = {"parts": "sam_parts"}.get(kind, kind)
    learning = learner(name)
    network = learning.model.eval()
    assert isinstance(network, Embedder | DIML | AVSL)
    return OpenModel(f"untrained {kind}", network, VIEW, digest)
