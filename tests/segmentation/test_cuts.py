"""From heat maps to regions."""

import numpy as np
import pytest
import torch

from lookalike.segmentation.cuts import THRESHOLDS, TRIVIAL, candidates, disjoint, grabcut

OPTIONS = {"sure": 0.7, "probable": 0.3, "background": None, "iterations": 5}


def disc():
    """A red disc on noisy green ground, and attention on a quarter of it."""
    generator = np.random.default_rng(0)
    rows, columns = np.mgrid[:48, :64]
    inside = (rows - 24) ** 2 + (columns - 30) ** 2 < 15**2
    picture = np.where(inside[..., None], [200, 40, 40], [40, 160, 60]) + generator.integers(-20, 20, (48, 64, 3))
    heat = np.exp(-((rows - 20) ** 2 + (columns - 26) ** 2) / 60)
    return picture.astype(np.uint8), torch.from_numpy(heat).float(), torch.from_numpy(inside)


def iou(region, true):
    return ((region & true).sum() / (region | true).sum()).item()


def test_grabcut_grows_from_a_part_to_the_whole_object():
    picture, heat, inside = disc()
    (((region,),)) = grabcut(picture, heat[None], **OPTIONS)
    assert iou(heat >= 0.3, inside) < 0.5
    assert iou(region, inside) > 0.95


def test_sure_background_keeps_the_region_where_attention_is():
    picture, heat, _ = disc()
    (((region,),)) = grabcut(picture, heat[None], **{**OPTIONS, "background": 0.2})
    assert not region[heat < 0.2].any()


def test_a_region_depends_on_nothing_that_was_cut_before():
    picture, heat, _ = disc()
    first = grabcut(picture, heat[None], **OPTIONS)
    grabcut(picture[::-1].copy(), heat[None], **OPTIONS)
    assert torch.equal(grabcut(picture, heat[None], **OPTIONS), first)


@pytest.mark.parametrize("value", [0.0, 0.2, 0.5, 1.0])
def test_a_map_without_foreground_or_background_is_cut_at_its_height(value):
    picture, _, _ = disc()
    region = grabcut(picture, torch.full((1, 48, 64), value), **OPTIONS)
    if value != 0.5:
        assert torch.equal(region, torch.full((1, 1, 48, 64), value >= 0.3))
    else:
        assert region.all()  # probable foreground everywhere: nothing to tell it from


@pytest.mark.parametrize(("name", "taken"), [("nothing", False), ("everything", True)])
def test_a_trivial_answer_is_the_same_whatever_is_seen(name, taken):
    assert name in TRIVIAL
    picture, heat, _ = disc()
    regions = candidates({"name": name}, picture, torch.stack([heat, 1 - heat]))
    assert regions.shape == (1, 2, 48, 64)
    assert bool((regions == taken).all())  # everything: each class takes each pixel


def test_a_picture_of_one_colour_is_cut_at_its_height():
    _, heat, _ = disc()
    region = grabcut(np.full((48, 64, 3), 9, np.uint8), heat[None], **OPTIONS)
    assert torch.equal(region, heat[None, None] >= 0.3)


def test_thresholds_give_everything_from_each_height_on():
    picture, heat, _ = disc()
    regions = candidates({"name": "threshold"}, picture, heat[None])
    assert regions.shape == (19, 1, 48, 64)
    for height, region in zip(THRESHOLDS.tolist(), regions, strict=True):
        assert torch.equal(region[0], heat >= height)


def test_a_pixel_of_two_regions_stays_with_the_larger_heat():
    heat = torch.tensor([[[0.9, 0.2, 0.5, 0.5, 0.1]], [[0.4, 0.8, 0.5, 0.9, 0.0]]])
    regions = torch.tensor([[[True, True, True, True, False]], [[True, True, True, False, True]]])
    expected = [[[True, False, True, True, False]], [[False, True, False, False, True]]]
    assert disjoint(regions[None], heat).tolist() == [expected]
