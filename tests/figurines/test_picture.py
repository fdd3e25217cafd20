from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from figurines.figure import Figure
from figurines.geometry import rectangle
from figurines.obstacles import OBSTACLES
from figurines.perches import water
from figurines.picture import Nuisance, photograph
from figurines.scenery import BACKDROPS

CALM = Nuisance(extent=(0.8, 0.8), shift=0, rotation=0, squeeze=1, light=0, cast=0, noise=0, occlusion=0)


def brick() -> Figure:
    figure = Figure()
    figure.fill(rectangle(-1, -0.5, 1, 0.5), (200, 60, 40))
    figure.mark("foot", (0, 0.5))
    figure.mark("middle", (0, 0))
    figure.mark("outside", (0, 9))
    return figure


def shot(scene: str, nuisance: Nuisance, seed: int = 0, kind: str = "pole"):
    return photograph(brick(), scene, nuisance, np.random.default_rng(seed), upright=0.0, obstacles=(kind,))


@pytest.mark.parametrize("scene", BACKDROPS)
def test_every_scene_gives_a_picture_with_the_figure_in_its_middle(scene):
    picture = shot(scene, CALM)
    assert picture.image.size == picture.mask.size
    assert picture.seen("middle") is not None
    assert picture.seen("outside") is None
    x, y = picture.seen("middle")
    red, green, blue = picture.image.getpixel((x, y))
    assert abs(red - 200) < 40
    assert green < 110
    assert blue < 90


@pytest.mark.parametrize("kind", OBSTACLES)
def test_an_obstacle_takes_from_the_mask_what_it_covers(kind):
    free = [np.asarray(shot("studio", CALM, seed).mask) for seed in range(8)]
    covered = [np.asarray(shot("studio", replace(CALM, occlusion=1), seed, kind).mask) for seed in range(8)]
    assert all((after <= before).all() for before, after in zip(free, covered, strict=True))
    lost = [1 - (after > 127).sum() / (before > 127).sum() for before, after in zip(free, covered, strict=True)]
    assert max(lost) > 0.02
    assert np.mean(lost) < 0.5


def test_water_hides_what_is_below_its_level():
    dry, wet = (np.asarray(shot(scene, CALM).mask) > 127 for scene in ("studio", "pond"))
    assert not wet[np.flatnonzero(dry.any(axis=1))[-1]].any()


def test_water_below_the_picture_hides_nothing():
    canvas, mask = Image.new("RGB", (30, 20), "red"), Image.new("L", (30, 20), 255)
    water(canvas, mask, Image.new("RGB", (30, 20), "blue"), 24.0, np.random.default_rng(0))
    assert mask.getextrema() == (255, 255)


def test_the_conditions_change_the_picture_and_not_the_mask():
    calm, harsh = shot("studio", CALM), shot("studio", replace(CALM, light=0.4, cast=0.2, noise=30))
    assert np.array_equal(np.asarray(calm.mask), np.asarray(harsh.mask))
    assert not np.array_equal(np.asarray(calm.image), np.asarray(harsh.image))


def test_the_box_of_a_figure_that_is_hidden_is_the_whole_picture():
    picture = shot("studio", CALM)
    hidden = replace(picture, mask=picture.mask.point(lambda _: 0))
    assert hidden.box == (0, 0, *picture.image.size)
