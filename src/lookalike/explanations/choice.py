"""Explain pairs and triplets of images by a method of choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from lookalike.base.checks import require_known
from lookalike.explanations.decomposition import by_activation, by_graph, by_structure, decomposes
from lookalike.explanations.explanation import Explanation, stacked
from lookalike.explanations.gradient import by_attention, by_gradient, by_mean_activation
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.diml.model import LocatedEmbedder
from lookalike.models.embedder import Embedder

OF_EMBEDDERS: dict[str, Callable[..., Explanation]] = {
    "activation": by_activation,
    "structure": by_structure,
    "attention": by_attention,
    "gradient": by_gradient,
    "class_agnostic": by_mean_activation,
}
OF_LAYERS = {name: OF_EMBEDDERS[name] for name in ("attention", "gradient", "class_agnostic")}
OF_GRAPHS: dict[str, Callable[..., Explanation]] = {"graph": by_graph}


def explain(
    model: nn.Module,
    query: Tensor,
    gallery: Tensor,
    negative: Tensor | None = None,
    *,
    method: str | None = None,
    layer: str | None = None,
    **options: Any,
) -> Explanation:
    """Why images look alike, or why one is closer than another.

    Args:
        model: a trained or untrained one in evaluation mode: an ``Embedder``, a ``DIML``, an ``AVSL``, as
            `lookalike.load` returns them; with a ``layer`` any network from images to embeddings ``(N, D)``.
        query: ``(3, H, W)``, or ``(N, 3, H, W)`` for N pairs, as the model takes them.
        gallery: as many.
        negative: as many, for triplets; see ``Explanation.maps`` for what a query's map then says.
        method: ``activation``, ``structure``, ``attention``, ``gradient`` or ``class_agnostic`` of embedders, ``graph``
            of an AVSL; without, that of the model: its graph, its structure, else ``activation`` where that is exact
            and ``attention`` where it is not.
        layer: of any other network, the name of its part that gives the last maps ``(N, C, h, w)``; ``attention``,
            ``gradient`` and ``class_agnostic`` explain it then. Wrapped as `lookalike.DIML`, ``structure`` does.
        options: of the method: those of ``structure``, see `by_structure`, such as ``side`` of the grid.

    Returns:
        Maps of all images, the measure that is explained, and where the method has them what its evidence sums to,
        pairs of locations and nodes.

    Raises:
        ValueError: for images of other shapes, a model in training mode or of an unknown kind, or a method that does
            not explain it.
    """
    images = stacked((query, gallery, negative))
    if model.training:
        raise ValueError("the model is in training mode, in which images change each other's embeddings; call eval()")
    possible = methods_of(model) if layer is None else OF_LAYERS
    chosen = method or (default_method(model) if layer is None else "attention")
    require_known("method", chosen, possible)
    if layer is not None:
        return possible[chosen](model, images, layer=layer)
    explained = model.embedder if isinstance(model, LocatedEmbedder) and chosen != "structure" else model
    return possible[chosen](explained, images, **options)


def methods_of(model: nn.Module) -> dict[str, Callable[..., Explanation]]:
    """Methods that can explain a model.

    Raises:
        ValueError: for a model of an unknown kind.
    """
    if isinstance(model, AVSL):
        return OF_GRAPHS
    inner = model.embedder if isinstance(model, LocatedEmbedder) else model
    if isinstance(inner, Embedder):
        return OF_EMBEDDERS
    if isinstance(model, LocatedEmbedder):
        return {"structure": by_structure}
    raise ValueError(
        f"a model of type {type(inner).__name__} cannot be explained as it is; known are Embedder, DIML, AVSL. Say by "
        "`layer` which part of it gives the last maps"
    )


def default_method(model: nn.Module) -> str:
    """The method that says most of a model."""
    if isinstance(model, AVSL):
        return "graph"
    if isinstance(model, LocatedEmbedder):
        return "structure"
    return "activation" if isinstance(model, Embedder) and decomposes(model) else "attention"
