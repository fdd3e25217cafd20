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
