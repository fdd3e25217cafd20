"""Methods of explanation by name, and the controls that they have to be better than."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lookalike.explanations.choice import explain
from lookalike.explanations.controls import centre_maps, edge_maps, random_maps
from lookalike.explanations.explanation import Explanation
from lookalike.explanations.quality.measured import Explain
from lookalike.explanations.quality.pooled import GRID

CONTROLS = ("random", "centre", "edges")


def explainer(method: str, *, seed: int, side: int = GRID) -> Explain:
    """A method of `lookalike.explain`, or one of `CONTROLS`, which know nothing of the pair.

    Args:
        method: its name.
        seed: of random maps, which are others with every call.
        side: of the controls' maps.
    """
    if method not in CONTROLS:
        return lambda model, query, gallery, negative: explain(model, query, gallery, negative, method=method)
    calls = 0

    def control(model: nn.Module, query: Tensor, gallery: Tensor, negative: Tensor | None) -> Explanation:
        nonlocal calls
        calls += 1
        images = torch.stack([query, gallery] if negative is None else [query, gallery, negative])
        if method == "random":
            maps = random_maps(images, side, seed * 1_000_003 + calls)
        else:
            maps = (centre_maps if method == "centre" else edge_maps)(images, side)
        return Explanation(method, "cosine", torch.full((len(query),), torch.nan), maps)

    return control
