"""Two surveillance cameras as in CUHK03: one place, one light and one side of the people each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from PIL import Image, ImageChops

from figurines.figure import SUPERSAMPLING, Figure, Pose
from figurines.palette import Colour
from figurines.picture import Nuisance, Picture, exposed
from figurines.scenery import BACKDROPS
from figurines.walkers import View

Rng = np.random.Generator
SCENE = (220, 112)  # pixels that a camera sees, wide and high


@dataclass(frozen=True)
class Camera:
    """One camera.

    Attributes:
        view: side of the people that it sees.
        scene: name of the backdrop, which is the same in all its pictures.
        tint: colour of its light.
    """

    view: View
    scene: str
    tint: Colour


CAMERAS = {1: Camera("front", "tiles", (255, 232, 204)), 2: Camera("back", "street", (192, 212, 238))}


def camera_of(nth: int) -> int:
    """Number of the camera that took the n-th picture of a person: they take turns."""
    return 1 + nth % len(CAMERAS)


def film(figure: Figure, stranger: Figure | None, camera: Camera, nuisance: Nuisance, rng: Rng) -> Picture:
    """The figure in a box that a detector drew around it, loose and off its centre.

    Args:
        figure: the person, as seen from the camera's side.
        stranger: who walks past in front, at the edge of the box.
        camera: decides background and colour of the light.
        nuisance: how far the conditions vary; sizes are relative to the height of the box for ``extent`` and to its
            width for ``shift``.
        rng: generator of this picture.
    """
    height = int(rng.integers(90, 103))
    width = round(height / 3 * float(rng.uniform(0.94, 1.1)))
    pose = _pose(width, height, camera, nuisance, rng)
    drawing = figure.draw(width, height, pose)
    canvas = _window(camera, width, height, rng).resize(drawing.colour.size, Image.Resampling.BILINEAR)
    mask = drawing.mask
    canvas.paste(drawing.colour, mask=mask)
    if stranger is not None:
        side = float(rng.choice((-1, 1)))
        beside = Pose((width * (0.5 + 0.55 * side), pose.centre[1] + 0.06 * height), 1.05 * pose.extent, pose.mirrored)
        passing = stranger.draw(width, height, beside)
        canvas.paste(passing.colour, mask=passing.mask)
        mask = ImageChops.subtract(mask, passing.mask)
    lit = ImageChops.multiply(canvas, Image.new("RGB", canvas.size, camera.tint))
    seen = mask.reduce(SUPERSAMPLING)
    landmarks = {name: (x / SUPERSAMPLING, y / SUPERSAMPLING) for name, (x, y) in drawing.landmarks.items()}
    return Picture(exposed(lit.reduce(SUPERSAMPLING), seen, nuisance, rng), seen, landmarks, pose.mirrored)


def _pose(width: int, height: int, camera: Camera, nuisance: Nuisance, rng: Rng) -> Pose:
    drift_x, drift_y = rng.uniform(-nuisance.shift, nuisance.shift, size=2).tolist()
    return Pose(
        centre=((0.5 + drift_x) * width, (0.5 + 0.4 * drift_y) * height),
        extent=height * float(rng.uniform(*nuisance.extent)),
        mirrored=camera.view == "back",
        rotation=float(rng.uniform(-nuisance.rotation, nuisance.rotation)),
        squeeze=float(rng.uniform(nuisance.squeeze, 1.0)),
    )


def _window(camera: Camera, width: int, height: int, rng: Rng) -> Image.Image:
    """The part of the camera's scene where the person happens to walk."""
    left, top = (int(rng.integers(0, whole - part + 1)) for whole, part in zip(SCENE, (width, height), strict=True))
    return _scene(camera.scene).crop((left, top, left + width, top + height))


@cache
def _scene(name: str) -> Image.Image:
    return BACKDROPS[name](*SCENE, np.random.Generator(np.random.PCG64(0)))
