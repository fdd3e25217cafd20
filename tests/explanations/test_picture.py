"""Colours show sign and size of a map, and leave the picture where it is zero."""

import numpy as np
import torch
from PIL import Image

from lookalike.explanations.picture import overlaid


def test_sign_is_colour_and_zero_leaves_grey():
    picture = Image.new("RGB", (30, 10), (200, 100, 50))
    shown = np.asarray(overlaid(picture, torch.tensor([[1.0, 0.0, -1.0]]))).astype(int)
    grey = np.asarray(picture.convert("L"))[0, 0]
    assert shown.shape == (10, 30, 3)
    assert abs(shown[5, 14] - grey).max() <= 3
    assert shown[5, 0, 0] > shown[5, 0, 2] + 50
    assert shown[5, 29, 2] > shown[5, 29, 0] + 50


def test_a_larger_value_has_more_colour_and_an_empty_map_none():
    picture = Image.effect_noise((20, 20), 30).convert("RGB")
    shown = np.asarray(overlaid(picture, torch.tensor([[1.0, 0.5]]))).astype(int)
    strength = np.abs(shown - np.asarray(picture)).mean(axis=(0, 2))
    assert strength[0] > strength[-1] > 0
    assert np.array_equal(np.asarray(overlaid(picture, torch.zeros(2, 2))), np.asarray(picture))


def test_a_map_of_a_part_leaves_the_rest_grey_and_stands_in_a_frame():
    picture = Image.new("RGB", (40, 20), (200, 100, 50))
    shown = np.asarray(overlaid(picture, torch.ones(1, 1), (0.25, 0.1, 0.5, 0.8))).astype(int)
    grey = np.asarray(picture.convert("L"))[0, 0]
    outside = np.ones((20, 40), dtype=bool)
    outside[2:18, 10:30] = False
    assert (shown[outside] == grey).all()
    assert (shown[2, 10:30] == 255).all() and (shown[2:18, 29] == 255).all()  # the frame, black within
    assert (shown[3, 11:29] == 0).all()
    assert (shown[4:16, 12:28, 0] > shown[4:16, 12:28, 2] + 50).all()


def test_a_part_beyond_the_picture_is_that_of_a_view_with_padding():
    picture = Image.effect_noise((20, 20), 30).convert("RGB")
    values = torch.zeros(4, 4)
    values[:, 1:3] = 1  # of which the outer columns lie beyond the picture
    shown = np.asarray(overlaid(picture, values, (-0.5, 0.0, 2.0, 1.0))).astype(int)
    assert (shown[2:-2, 4:16, 0] > shown[2:-2, 4:16, 2] + 30).all()
