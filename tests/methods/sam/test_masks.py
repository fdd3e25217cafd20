from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lookalike.methods.sam.attention import soft_mask
from lookalike.methods.sam.masks import heat_map


def upsampled(values: list[list[float]], size: tuple[int, int]) -> list[list[float]]:
    """Bilinear with half-pixel centres, pixel by pixel."""

    def neighbours(place: int, pixels: int, cells: int) -> tuple[int, int, float]:
        centre = max((place + 0.5) * cells / pixels - 0.5, 0)
        low = min(int(centre), cells - 1)
        return low, min(low + 1, cells - 1), centre - low

    result = []
    for y in range(size[0]):
        top, bottom, down = neighbours(y, size[0], len(values))
        row = []
        for x in range(size[1]):
            left, right, along = neighbours(x, size[1], len(values[0]))
            upper = (1 - along) * values[top][left] + along * values[top][right]
            lower = (1 - along) * values[bottom][left] + along * values[bottom][right]
            row.append((1 - down) * upper + down * lower)
        result.append(row)
    return result


def mask_by_loops(values: Tensor, size, alpha: float, beta: float, normalise: str) -> Tensor:
    pixels = upsampled(values.tolist(), size)
    lowest, highest = min(min(row) for row in pixels), max(max(row) for row in pixels)
    result = torch.zeros(size, dtype=torch.float64)
    for y, row in enumerate(pixels):
        for x, pixel in enumerate(row):
            if normalise == "minmax":
                pixel = (pixel - lowest) / (highest - lowest + 1e-8)
            elif normalise == "max":
                pixel = pixel / (highest + 1e-8)
            result[y, x] = 1 / (1 + math.exp(-alpha * (pixel - beta)))
    return result


@pytest.mark.parametrize("normalise", ["minmax", "max", "none"])
@pytest.mark.parametrize(("alpha", "beta"), [(10.0, 0.5), (5.0, 0.3)])
@pytest.mark.parametrize("size", [(8, 6), (7, 11), (2, 3)])
def test_mask_follows_the_formula_pixel_by_pixel(normalise, alpha, beta, size, draw):
    maps = draw(2, 3, 4, 3, seed=0).relu() + 0.1
    masks = soft_mask(maps, size, alpha=alpha, beta=beta, normalise=normalise)
    for r in range(2):
        for b in range(3):
            expected = mask_by_loops(maps[r, b], size, alpha, beta, normalise)
            torch.testing.assert_close(masks[r, b], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("normalise", ["minmax", "max", "none"])
def test_gradient_of_the_mask_is_that_of_the_formula_with_its_extremes_attached(normalise, draw):
    before_relu = draw(4, 5, 4, seed=1).requires_grad_()
    upstream = draw(4, 20, 16, seed=2)
    (gradient,) = torch.autograd.grad(
        soft_mask(before_relu.relu(), (20, 16), normalise=normalise), before_relu, upstream
    )
    pixels = F.interpolate(before_relu.relu()[:, None], size=(20, 16), mode="bilinear")[:, 0]
    lowest, highest = pixels.amin(dim=(1, 2), keepdim=True), pixels.amax(dim=(1, 2), keepdim=True)
    if normalise == "minmax":
        pixels = (pixels - lowest) / (highest - lowest + 1e-8)
    elif normalise == "max":
        pixels = pixels / (highest + 1e-8)
    (expected,) = torch.autograd.grad(torch.sigmoid(10 * (pixels - 0.5)), before_relu, upstream)
    torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-13)


def test_masks_lie_between_0_and_1_and_grow_with_the_map(draw):
    maps = draw(6, 5, 5, seed=3).relu()
    for normalise in ("minmax", "max", "none"):
        masks = soft_mask(maps, (15, 15), normalise=normalise)
        assert masks.min() > 0 and masks.max() < 1
        for map_, mask in zip(F.interpolate(maps[:, None], size=(15, 15), mode="bilinear")[:, 0], masks, strict=True):
            assert mask.flatten()[map_.flatten().argsort()].diff().min() >= -1e-15


def test_minmax_mask_keeps_the_unattended_and_drops_the_peak(draw):
    masks = soft_mask(draw(5, 6, 6, seed=4).relu(), (48, 48))
    assert masks.amin(dim=(1, 2)).tolist() == pytest.approx([1 / (1 + math.exp(5))] * 5)
    assert masks.amax(dim=(1, 2)).tolist() == pytest.approx([1 / (1 + math.exp(-5))] * 5, rel=1e-6)


@pytest.mark.parametrize("normalise", ["minmax", "max"])
def test_scale_of_a_map_does_not_matter_once_normalised(normalise, draw):
    maps = draw(3, 4, 4, seed=5).relu()
    torch.testing.assert_close(
        soft_mask(1000 * maps, (16, 16), normalise=normalise),
        soft_mask(maps, (16, 16), normalise=normalise),
        rtol=0,
        atol=1e-6,
    )


def test_each_map_is_normalised_by_itself(draw):
    maps = draw(3, 4, 4, seed=6).relu()
    alone = soft_mask(maps[1], (8, 8))
    maps[0] *= 1e4
    assert torch.equal(soft_mask(maps, (8, 8))[1], alone)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", [0.0, 1e-12, 3e-4, 0.3, 1.7, 123.4])
@pytest.mark.parametrize(("cells", "pixels"), [(7, 56), (3, 50), (1, 5), (3, 3)])
def test_a_constant_map_erases_evenly_and_has_a_finite_gradient(dtype, value, cells, pixels):
    maps = torch.full((1, cells, cells), value, dtype=dtype, requires_grad=True)
    masks = soft_mask(maps, (pixels, pixels))
    torch.testing.assert_close(masks, torch.full_like(masks, 1 / (1 + math.exp(5))), rtol=1e-6, atol=0)
    for normalise in ("minmax", "max", "none"):
        (gradient,) = torch.autograd.grad(soft_mask(maps, (pixels, pixels), normalise=normalise).sum(), maps)
        assert gradient.isfinite().all()


def test_mask_is_at_least_float32_and_agrees_over_dtypes(draw):
    maps = draw(2, 4, 4, seed=7).relu()
    precise = soft_mask(maps, (12, 12))
    assert precise.dtype == torch.float64
    assert soft_mask(maps.half(), (12, 12)).dtype == torch.float32
    torch.testing.assert_close(soft_mask(maps.float(), (12, 12)).double(), precise, rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", [(4, 4), (0, 4, 4), (2, 3, 1, 4, 4)])
def test_leading_axes_are_kept(shape, draw):
    assert soft_mask(draw(*shape, seed=8).relu(), (6, 5)).shape == (*shape[:-2], 6, 5)


def test_heat_map_fills_0_to_1(draw):
    maps = heat_map(draw(3, 4, 4, seed=9).relu(), (16, 16))
    assert maps.amin(dim=(1, 2)).tolist() == [0, 0, 0]
    assert maps.amax(dim=(1, 2)).tolist() == pytest.approx([1, 1, 1], abs=1e-6)
    assert torch.equal(heat_map(torch.zeros(2, 3, 3), (6, 6)), torch.zeros(2, 6, 6))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": (0, 4)}, r"size=\(0, 4\)"),
        ({"size": (4,)}, r"size=\(4,\)"),
        ({"normalise": "mean"}, "normalise: unknown 'mean', did you mean"),
        ({"alpha": 0.0}, "alpha=0.0 must be above 0"),
        ({"alpha": math.inf}, "alpha=inf"),
        ({"maps": torch.zeros(3)}, r"maps have shape \(3,\)"),
        ({"maps": torch.zeros(2, 0, 3)}, "h, w >= 1"),
    ],
)
def test_what_is_no_mask_is_refused(change, message):
    given = {"maps": torch.zeros(2, 3, 3), "size": (6, 6), **change}
    with pytest.raises(ValueError, match=message):
        soft_mask(given.pop("maps"), given.pop("size"), **given)
