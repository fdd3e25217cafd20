"""From a figure to a photograph: place it, light it, and keep its ground truth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from figurines.figure import SUPERSAMPLING, Figure, Pose
from figurines.obstacles import occlude
from figurines.perches import branch, shadow, trunk, water
from figurines.scenery import BACKDROPS

Rng = np.random.Generator


@dataclass(frozen=True)
class Nuisance:
    """How much the pictures of one species vary; sizes relative to the shorter side, angles in degrees.

    Attributes:
        extent: smallest and largest size of the figure.
        shift: largest shift of its centre, either way.
        rotation: either way.
        squeeze: smallest width relative to height, for a figure that turns away.
        light: strength of the light's gradient and of its change from picture to picture.
        cast: change of each colour channel, either way.
        noise: largest change of a value in [0, 255], either way.
        occlusion: share of pictures with an obstacle in front.
    """

    extent: tuple[float, float] = (0.8, 1.04)
    shift: float = 0.07
    rotation: float = 8.0
    squeeze: float = 0.88
    light: float = 0.12
    cast: float = 0.04
    noise: int = 8
    occlusion: float = 0.25


@dataclass(frozen=True)
class Picture:
    """A picture with its ground truth.

    Attributes:
        image: RGB.
        mask: ``L``, 255 where the figure is seen.
        landmarks: points of the figure in pixels of the image, hidden ones too.
        mirrored: whether the figure faces left.
    """

    image: Image.Image
    mask: Image.Image
    landmarks: dict[str, tuple[float, float]]
    mirrored: bool

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right and bottom, the last two excluded, of the mask; the whole image where nothing is seen."""
        return self.mask.point([0] * 128 + [255] * 128).getbbox() or (0, 0, *self.image.size)

    def seen(self, landmark: str) -> tuple[int, int] | None:
        """The pixel of a landmark, if it lies in the mask."""
        x, y = (math.floor(value) for value in self.landmarks[landmark])
        is_inside = 0 <= x < self.mask.width and 0 <= y < self.mask.height
        return (x, y) if is_inside and np.asarray(self.mask)[y, x] > 127 else None


def photograph(
    figure: Figure, scene: str, nuisance: Nuisance, rng: Rng, *, upright: float, obstacles: tuple[str, ...]
) -> Picture:
    """The figure in a scene, under conditions drawn at random.

    Args:
        figure: facing right; a landmark ``foot`` says where it touches its perch.
        scene: name of a backdrop.
        nuisance: how far the conditions vary.
        rng: generator of this picture.
        upright: share of pictures that are higher than wide.
        obstacles: kinds of obstacles that may stand in front.
    """
    short, long = int(rng.integers(64, 73)), int(rng.integers(76, 97))
    width, height = (short, long) if rng.random() < upright else (long, short)
    pose = _pose(width, height, nuisance, rng)
    drawing = figure.draw(width, height, pose)
    backdrop = BACKDROPS[scene](width, height, rng).resize(drawing.colour.size, Image.Resampling.BILINEAR)
    canvas, mask, foot = backdrop.copy(), drawing.mask, drawing.landmarks["foot"]
    if scene == "branch":
        branch(canvas, foot, rng)
    elif scene == "trunk":
        trunk(canvas, foot, rng, to_the_right=not pose.mirrored)
    elif scene != "pond":
        shadow(canvas, mask.getbbox() or (0, 0, *mask.size))
    canvas.paste(drawing.colour, mask=mask)
    if scene == "pond":
        water(canvas, mask, backdrop, foot[1] - 0.04 * canvas.height, rng)
    if rng.random() < nuisance.occlusion:
        occlude(canvas, mask, str(rng.choice(obstacles)), rng)
    seen = mask.reduce(SUPERSAMPLING)
    landmarks = {name: (x / SUPERSAMPLING, y / SUPERSAMPLING) for name, (x, y) in drawing.landmarks.items()}
    return Picture(exposed(canvas.reduce(SUPERSAMPLING), seen, nuisance, rng), seen, landmarks, pose.mirrored)


def _pose(width: int, height: int, nuisance: Nuisance, rng: Rng) -> Pose:
    short = min(width, height)
    drift_x, drift_y = (rng.uniform(-nuisance.shift, nuisance.shift, size=2) * short).tolist()
    return Pose(
        centre=(width / 2 + drift_x, height / 2 + drift_y),
        extent=short * float(rng.uniform(*nuisance.extent)),
        mirrored=bool(rng.random() < 0.5),
        rotation=float(rng.uniform(-nuisance.rotation, nuisance.rotation)),
        squeeze=float(rng.uniform(nuisance.squeeze, 1.0)),
    )


def exposed(image: Image.Image, mask: Image.Image, nuisance: Nuisance, rng: Rng) -> Image.Image:
    """Light from one side, shading of the figure, a colour cast, and sensor noise."""
    width, height = image.size
    across = np.linspace(-1, 1, width, dtype=np.float32)[None, :, None]
    down = np.linspace(-1, 1, height, dtype=np.float32)[:, None, None]
    slope_x, slope_y, brightness = rng.uniform(-nuisance.light, nuisance.light, size=3).astype(np.float32)
    cast = 1 + rng.uniform(-nuisance.cast, nuisance.cast, size=3).astype(np.float32)
    figure = np.asarray(mask, dtype=np.float32)[:, :, None] / 255
    gain = (1 + 0.8 * brightness + slope_x * across + slope_y * down) * (1 - 0.14 * figure * down)
    noise: NDArray[np.int64] = (
        rng.integers(-nuisance.noise, nuisance.noise + 1, size=(2, height, width, 3)).sum(axis=0) // 2
    )
    pixels = np.asarray(image, dtype=np.float32) * gain * cast + noise
    return Image.fromarray(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))
