"""What patches of an image are replaced by, to see what a model makes of the rest."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torchvision.transforms.v2 import functional as tv

# Of an image of 224 pixels. Source: X-MIR (WACV 2022), a kernel of 51 pixels with a variance of 50.
DEVIATION, REACH, SIDE = 50**0.5, 25, 224


def blurred(images: Tensor) -> Tensor:
    """Each image out of focus: a Gaussian as wide in proportion to the shorter side as that of X-MIR.

    Args:
        images: ``(N, 3, H, W)`` float.
    """
    shorter = min(images.shape[-2:])
    reach = max(1, round(REACH * shorter / SIDE))
    result: Tensor = tv.gaussian_blur(images, [2 * reach + 1] * 2, [DEVIATION * shorter / SIDE] * 2)
    return result


def plain(images: Tensor, colour: Tensor) -> Tensor:
    """Images of one colour.

    Args:
        images: ``(N, 3, H, W)`` float, for their size.
        colour: ``(3,)``, such as the data set's mean, as the model takes it: of images normalised by that mean zero.

    Raises:
        ValueError: for another shape of the colour.
    """
    if colour.shape != images.shape[1:2]:
        raise ValueError(
            f"colour has shape {tuple(colour.shape)}, it must be ({images.shape[1]},), one value a channel"
        )
    return colour.to(images)[:, None, None].expand_as(images)


def mean_colour(images: Tensor) -> Tensor:
    """Images of the colour that normalisation takes for the mean: zero everywhere."""
    return plain(images, images.new_zeros(images.shape[1]))


SUBSTITUTES: dict[str, Callable[[Tensor], Tensor]] = {"blur": blurred, "mean": mean_colour}
