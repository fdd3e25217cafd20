"""Measures of a model's attention on a picture: coverage, spread and share on the object."""

from __future__ import annotations

import torch
from torch import Tensor

ATTENDED = 0.5  # of a heat map from 0 to 1
OBJECT = 127  # masks' grey levels count annotators: above it most saw the object


def described(heat: Tensor, objects: Tensor | None = None) -> dict[str, Tensor]:
    """Coverage, spread and place of each picture's attention, as shares; 0 for a picture without any.

    Args:
        heat: ``(N, H, W)``, each map from 0 to 1 or zero everywhere.
        objects: ``(N, H, W)`` bool, pixels of the object.

    Returns:
        ``(N,)`` float64 each: ``coverage``, share of the pixels above 0.5; ``spread``, share of the pixels over which
        evenly spread attention would have the same entropy; ``empty``, 1 for a map of zeros; with objects
        ``on_object``, share of the attention on the object, and ``object_area``, the same for an even map.
    """
    pixels = heat.flatten(1).double()
    mass = pixels.sum(dim=1)
    shares = pixels / mass.clamp_min(torch.finfo(torch.float64).tiny)[:, None]
    entropy = -torch.xlogy(shares, shares).sum(dim=1)
    measures = {
        "coverage": (pixels > ATTENDED).double().mean(dim=1),
        "spread": torch.where(mass > 0, entropy.exp() / pixels.shape[1], 0.0),
        "empty": (mass == 0).double(),
    }
    if objects is not None:
        inside = objects.flatten(1).double()
        measures |= {"on_object": (shares * inside).sum(dim=1), "object_area": inside.mean(dim=1)}
    return measures
