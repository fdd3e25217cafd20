"""Read a feature map and the linear layer behind it out of any trained embedder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from lookalike.checks import require_known


def find_projection(embedder: nn.Module, feature_layer: str) -> str:
    """Name of the only linear layer that was registered after ``feature_layer``.

    Where a network has none, that of its only ``nn.Identity`` there, as people write a network without a head: its
    features are embeddings as they are.

    Raises:
        ValueError: if there is no such layer, or neither exactly one linear one nor one identity after it.
    """
    names: list[str] = [name for name, _ in embedder.named_modules()]
    require_known("feature_layer", feature_layer, names[1:])
    after = [name for name in names[names.index(feature_layer) + 1 :] if not name.startswith(f"{feature_layer}.")]
    linear = [name for name in after if isinstance(embedder.get_submodule(name), nn.Linear)]
    without_head = [name for name in after if isinstance(embedder.get_submodule(name), nn.Identity)]
    if len(linear) == 1:
        return linear[0]
    if not linear and len(without_head) == 1:
        return without_head[0]
    raise ValueError(f"linear layers after {feature_layer!r} are {linear}, not one: give it as projection")


def embed_with_map(embedder: nn.Module, feature_layer: str, images: Tensor) -> tuple[Tensor, Tensor]:
    """What the embedder returns and what the layer gave on the way.

    A layer may return several maps, as a sequence or a mapping; the last counts. So does the last call of a layer that
    is used more than once.

    Returns:
        Embeddings ``(N, D)``, not normalised, and feature map ``(N, C, H, W)``.

    Raises:
        ValueError: if the layer was not called (a traced network may pass over it), or gave no stack of maps.
    """
    seen: list[Tensor] = []

    def keep(module: nn.Module, inputs: Any, output: Any) -> None:
        maps = list(output.values()) if isinstance(output, Mapping) else output
        seen[:] = [maps if isinstance(maps, Tensor) else maps[-1]]

    handle = embedder.get_submodule(feature_layer).register_forward_hook(keep)
    try:
        embeddings: Tensor = embedder(images)
    finally:
        handle.remove()
    if not seen:
        raise ValueError(f"feature_layer={feature_layer!r} was not called by the embedder, choose one that is")
    if seen[0].ndim != 4:
        raise ValueError(f"feature_layer={feature_layer!r} gives shape {tuple(seen[0].shape)}, not maps (N, C, H, W)")
    return embeddings, seen[0]
