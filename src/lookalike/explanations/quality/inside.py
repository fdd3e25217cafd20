"""Mass inside the object: how much of a map lies on it, less what a bell in the middle would put there.

Source: relevance mass accuracy of Arras, Osman and Samek, "CLEVR-XAI" (2022), as in Quantus (Hedström et al., 2023). It
says whether a map is on the object, not why a pair is alike. Maps are taken as their method gives them, of similarities
and of distances: where evidence lies, whatever it says.
"""

from __future__ import annotations

from torch import Tensor

from lookalike.explanations.controls import centre_maps
from lookalike.explanations.quality.pooled import pooled, require_maps


def mass_inside(maps: Tensor, objects: Tensor) -> Tensor:
    """Share of what is above zero in a map that lies on the object; what is in a cell is spread evenly over it.

    Args:
        maps: ``(N, side, side)``, on the grid that all methods share.
        objects: ``(N, H, W)`` bool, pixels of the object.

    Returns:
        ``(N,)`` float64 in [0, 1]; NaN for a map without anything above zero.

    Raises:
        ValueError: for maps that are not square or not as many as objects.
    """
    require_maps("maps", maps)
    if maps.shape[1] != maps.shape[2] or objects.ndim != 3 or len(maps) != len(objects):
        raise ValueError(
            f"maps must be (N, side, side) and objects (N, H, W), not {tuple(maps.shape)} and {tuple(objects.shape)}"
        )
    mass = maps.double().clamp_min(0).flatten(1)
    covered = pooled(objects.double(), maps.shape[1]).double().flatten(1)  # share of each cell
    return (mass * covered).sum(dim=1) / mass.sum(dim=1)


def mass_beyond_centre(maps: Tensor, objects: Tensor) -> Tensor:
    """`mass_inside` less that of the centre's bell on the same grid, ``(N,)`` in [-1, 1]; arguments as there."""
    found = mass_inside(maps, objects)
    (bell,) = centre_maps(objects[None], maps.shape[1])
    return found - mass_inside(bell, objects)
