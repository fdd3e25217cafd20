"""Losses by name, and how to build one from the parameters of a recipe.

Every loss is an ``nn.Module`` called ``loss(embeddings, labels, indices_tuple=None)`` with embeddings that are not yet
normalised, like those of pytorch-metric-learning, which many of them wrap.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from lookalike.base.checks import require_keys, require_known
from lookalike.losses.base import BatchLoss, MiningOptions
from lookalike.losses.identity import PartCrossEntropyLoss
from lookalike.losses.listwise import BlackboxAPLoss, FastAPLoss, RoadmapLoss, SmoothAPLoss, SoftbinAPLoss
from lookalike.losses.npair import AngularLoss, GeneralisedLiftedLoss, NPairLoss
from lookalike.losses.pairwise import (
    ContrastiveLoss,
    CosineContrastiveLoss,
    HistogramLoss,
    MarginLoss,
    MultiSimilarityLoss,
    NTXentLoss,
    SquaredContrastiveLoss,
)
from lookalike.losses.proxy import ArcFaceLoss, ProxyAnchorLoss, ProxyNCALoss, ProxyNCASoftmaxLoss, SoftmaxLoss
from lookalike.losses.triplet import (
    DistanceWeightedTripletLoss,
    QuadrupletLoss,
    RandomTripletLoss,
    SemihardTripletLoss,
    SNRLoss,
    SofthardTripletLoss,
    TripletLoss,
    TwoHingeQuadrupletLoss,
)
from lookalike.methods.contextual.loss import ContextualLoss

__all__ = ["LOSSES", "build_loss"]

LOSSES: dict[str, type[nn.Module]] = {
    "angular": AngularLoss,
    "arcface": ArcFaceLoss,
    "blackbox_ap": BlackboxAPLoss,
    "contextual": ContextualLoss,
    "contrastive": ContrastiveLoss,
    "contrastive_cosine": CosineContrastiveLoss,
    "contrastive_squared": SquaredContrastiveLoss,
    "fast_ap": FastAPLoss,
    "gen_lifted": GeneralisedLiftedLoss,
    "histogram": HistogramLoss,
    "margin": MarginLoss,
    "multi_similarity": MultiSimilarityLoss,
    "npair": NPairLoss,
    "ntxent": NTXentLoss,
    "part_cross_entropy": PartCrossEntropyLoss,
    "proxy_anchor": ProxyAnchorLoss,
    "proxy_nca": ProxyNCALoss,
    "proxy_nca_softmax": ProxyNCASoftmaxLoss,
    "quadruplet": QuadrupletLoss,
    "quadruplet_two_hinges": TwoHingeQuadrupletLoss,
    "roadmap": RoadmapLoss,
    "smooth_ap": SmoothAPLoss,
    "snr": SNRLoss,
    "softbin_ap": SoftbinAPLoss,
    "softmax": SoftmaxLoss,
    "triplet": TripletLoss,
    "triplet_distance": DistanceWeightedTripletLoss,
    "triplet_random": RandomTripletLoss,
    "triplet_semihard": SemihardTripletLoss,
    "triplet_softhard": SofthardTripletLoss,
}


def arguments_of(loss: type[nn.Module]) -> dict[str, bool]:
    """Names of the arguments that a loss takes and whether it needs them; ``**mining`` stands for `MiningOptions`."""
    taken: dict[str, bool] = {}
    for argument in inspect.signature(loss).parameters.values():
        if argument.kind is argument.VAR_KEYWORD:
            # Any other loss without a constructor shows that of nn.Module, which takes anything and wants nothing.
            taken |= dict.fromkeys(MiningOptions.__annotations__ if issubclass(loss, BatchLoss) else (), False)
        elif argument.kind is not argument.VAR_POSITIONAL:
            taken[argument.name] = argument.default is argument.empty
    return taken


def build_loss(
    name: str,
    parameters: Mapping[str, Any],
    *,
    classes: int,
    embedding_dim: int,
    generator: torch.Generator | None = None,
) -> nn.Module:
    """The loss of a recipe.

    Args:
        name: a key of :data:`LOSSES`.
        parameters: keyword arguments of that loss; what is left out keeps its default.
        classes: number of training classes, passed to losses with a value per class.
        embedding_dim: dimension D, passed to losses with a vector per class.
        generator: what parameters start from and miners draw from; ``None`` is the global one.

    Raises:
        ValueError: for an unknown name, listing the nearest ones, a parameter that the loss does not have, listing
            those it has, or one that it needs and does not get.
    """
    require_known("loss", name, LOSSES)
    arguments = arguments_of(LOSSES[name])
    offered = {"classes": classes, "embedding_dim": embedding_dim, "generator": generator}
    known = arguments.keys() - offered.keys()
    require_keys(f"loss {name!r}, parameter", parameters, known)
    given = {**parameters, **{key: value for key, value in offered.items() if key in arguments}}
    missing = [key for key, is_needed in arguments.items() if is_needed and key not in given]
    if missing:
        raise ValueError(f"loss {name!r} needs {', '.join(missing)}")
    return LOSSES[name](**given)
