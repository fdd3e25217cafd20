"""Scenes of one or two objects, with the class of every pixel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from figurines.figure import SUPERSAMPLING, Pose
from figurines.objects import CLASSES, CLASSES_PER_FOLD, PLACES, draw
from figurines.obstacles import occlude
from figurines.perches import shadow
from figurines.picture import Nuisance, Picture, exposed
from figurines.scenery import BACKDROPS
from figurines.species import Species

Rng = np.random.Generator
Labels = NDArray[np.uint8]
RIM = 1  # width of what belongs to a pixel's surroundings, in pixels of the canvas
BACKDROP_SCALE = 0.7  # of the picture; the backdrops are out of focus, and drawn for smaller pictures


@dataclass(frozen=True)
class Scene(Picture):
    """A picture whose ``mask`` is that of all its objects.

    Attributes:
        classes: ``(H, W)``, 0 for the background, 1 to 20 for an object.
        edges: ``(H, W)``, whether the pixel or its rim shows a second class: a line of one or two pixels.
    """

    classes: Labels
    edges: NDArray[np.bool_]


def classes_shown(label: int, number: int) -> list[int]:
    """Class ids in the ``number``-th scene of class ``label``: itself, and in those of even number another one.

    The other is each of its fold's four others in turn, then the class at its own position in the next fold. So ten
    scenes of each class show every pair of a fold twice.
    """
    turn, is_odd = divmod(number, 2)
    if is_odd:
        return [label]
    fold, position = divmod(label - 1, CLASSES_PER_FOLD)
    step = turn % CLASSES_PER_FOLD + 1
    if step == CLASSES_PER_FOLD:
        return [label, (label - 1 + CLASSES_PER_FOLD) % len(CLASSES) + 1]
    return [label, fold * CLASSES_PER_FOLD + (position + step) % CLASSES_PER_FOLD + 1]


def picture(kind: Species, nth: int, rng: Rng, nuisance: Nuisance) -> Scene:
    """One photograph of an object of the class, where that class is met, alone or beside one of another class.

    ``extent`` and ``shift`` of the nuisance are those of an object that is alone.
    """
    labels = classes_shown(CLASSES.index(kind) + 1, nth)
    short, long = int(rng.integers(100, 113)), int(rng.integers(112, 131))
    width, height = (short, long) if len(labels) == 1 and rng.random() < 0.4 else (long, short)
    canvas = _backdrop(str(rng.choice(PLACES[kind.group])), width, height, rng)
    classes = Image.new("L", canvas.size)
    poses = _poses(len(labels), width, height, nuisance, rng)
    figures = [draw(CLASSES[label - 1], rng) for label in labels]
    drawings = [figure.draw(width, height, pose) for figure, pose in zip(figures, poses, strict=True)]
    for drawing in drawings:
        shadow(canvas, drawing.mask.getbbox() or (0, 0, *canvas.size))
    for label, drawing in zip(labels, drawings, strict=True):
        canvas.paste(drawing.colour, mask=drawing.mask)
        classes.paste(label, mask=drawing.mask)
    if rng.random() < nuisance.occlusion:
        occlude(canvas, classes, str(rng.choice(("twig", "pole", "card"))), rng)
    seen = classes.point([0] + [255] * 255).reduce(SUPERSAMPLING)
    image = exposed(canvas.reduce(SUPERSAMPLING), seen, nuisance, rng)
    fine, middle = np.asarray(classes), SUPERSAMPLING // 2
    return Scene(
        image, seen, {}, poses[0].mirrored, fine[middle::SUPERSAMPLING, middle::SUPERSAMPLING].copy(), edges(fine)
    )


def edges(classes: Labels) -> NDArray[np.bool_]:
    """Where a pixel or its rim shows more than one class.

    Args:
        classes: ``(SUPERSAMPLING * H, SUPERSAMPLING * W)``, of a canvas.

    Returns:
        ``(H, W)``.
    """
    padded = np.pad(classes, RIM, mode="edge")
    height, width = classes.shape
    offsets = range(SUPERSAMPLING + 2 * RIM)
    rows = [padded[offset : offset + height : SUPERSAMPLING] for offset in offsets]
    lowest, highest = (
        extreme.reduce([extreme.reduce(rows)[:, offset : offset + width : SUPERSAMPLING] for offset in offsets])
        for extreme in (np.minimum, np.maximum)
    )
    return np.asarray(lowest != highest)


def _backdrop(scene: str, width: int, height: int, rng: Rng) -> Image.Image:
    """The backdrop on the canvas of a picture of ``width`` x ``height`` pixels."""
    small = BACKDROPS[scene](round(BACKDROP_SCALE * width), round(BACKDROP_SCALE * height), rng)
    return small.resize((SUPERSAMPLING * width, SUPERSAMPLING * height), Image.Resampling.BILINEAR)


def _poses(count: int, width: int, height: int, nuisance: Nuisance, rng: Rng) -> list[Pose]:
    """One object about the middle, or one in each half of the picture, smaller and nearer to the ground."""
    alone = count == 1
    room = min(width, height) * (1.0 if alone else 0.7)
    level = 0.54 if alone else 0.62
    sides = (0.5,) if alone else (0.27, 0.73) if rng.random() < 0.5 else (0.73, 0.27)
    poses = []
    for side in sides:
        drift_x, drift_y = (rng.uniform(-nuisance.shift, nuisance.shift, size=2) * room).tolist()
        pose = Pose(
            centre=(side * width + (drift_x if alone else 0.4 * drift_x), level * height + drift_y),
            extent=room * float(rng.uniform(*nuisance.extent)),
            mirrored=bool(rng.random() < 0.5),
            rotation=float(rng.uniform(-nuisance.rotation, nuisance.rotation)),
            squeeze=float(rng.uniform(nuisance.squeeze, 1.0)),
        )
        poses.append(pose)
    return poses
