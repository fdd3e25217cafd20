"""Where attention lies is told by shares that a slow count gives too."""

import pytest
import torch

from lookalike.metrics.attention import described
from slow_attention import described_slowly


def means(found):
    return {name: values.mean().item() for name, values in found.items()}


def test_the_description_is_that_of_a_slow_one():
    generator = torch.Generator().manual_seed(0)
    heat = torch.rand(6, 5, 7, generator=generator) ** 3
    heat[heat < 0.05] = 0
    heat[2] = 0
    objects = torch.rand(6, 5, 7, generator=generator) > 0.6
    assert means(described(heat, objects)) == pytest.approx(described_slowly(heat, objects), rel=1e-12)


def test_attention_planted_on_a_quarter_of_the_picture_covers_a_quarter():
    heat, objects = torch.zeros(1, 8, 8), torch.zeros(1, 8, 8, dtype=torch.bool)
    heat[0, :4, :4] = 1
    objects[0, :, :2] = True  # half of the attention, a quarter of the picture
    found = described(heat, objects)
    assert {name: values.tolist() for name, values in found.items()} == {
        "coverage": [0.25],
        "spread": [pytest.approx(0.25, rel=1e-12)],
        "empty": [0],
        "on_object": [0.5],
        "object_area": [0.25],
    }


def test_one_bright_pixel_is_the_least_spread_and_an_even_map_the_most():
    point, even = torch.zeros(1, 4, 4), torch.ones(1, 4, 4)
    point[0, 1, 2] = 1
    assert described(point)["spread"].item() == pytest.approx(1 / 16, rel=1e-12)
    assert described(even)["spread"].item() == pytest.approx(1, rel=1e-12)


def test_without_attention_nothing_is_covered():
    found = described(torch.zeros(2, 3, 3), torch.ones(2, 3, 3, dtype=torch.bool))
    expected = {"coverage": 0, "spread": 0, "empty": 1, "on_object": 0, "object_area": 1}
    assert means(found) == expected
