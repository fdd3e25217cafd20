"""Trainable parts of one AVSL level: the head, and the learned reliability of the ablation."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lookalike.methods.avsl.attention import MinOver, Ties, class_activation_maps, normalised_maps


def average_max_pool(z: Tensor) -> Tensor:
    """Spatial maximum plus spatial mean: ``(N, C, H, W)`` to ``(N, C)``."""
    # The maximum's gradient reaches one position, the one that `linearise` weights.
    return z.flatten(2).max(dim=-1).values + z.mean(dim=(-2, -1))


class LevelHead(nn.Module):
    """Linear map that serves a level's embedding and its class activation maps.

    Args:
        channels: C of the level's feature maps.
        nodes: r, size of the embedding.
        ties: as in `linearise`.
        generator: draws the initial weights; bias starts at zero.
    """

    def __init__(
        self, channels: int, nodes: int, ties: Ties = "first", generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.ties = ties
        self.weight = nn.Parameter(torch.empty(nodes, channels))
        self.bias = nn.Parameter(torch.zeros(nodes))
        nn.init.kaiming_normal_(self.weight, mode="fan_out", nonlinearity="relu", generator=generator)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Embedding ``(N, r)``, not normalised, and class activation maps ``(N, r, H, W)`` of maps ``(N, C, H, W)``.

        No gradient reaches backbone or head from the class activation maps.
        """
        with torch.no_grad():
            cams = class_activation_maps(z, self.weight, self.bias, self.ties)
        return F.linear(average_max_pool(z), self.weight, self.bias), cams


class LearnedStatistic(nn.Module):
    """Node statistic of the ablation "LR": one fully connected layer on the normalised map, shared by all nodes.

    Source: AVSL, Table 4 (``eta = h(u) h(u')``); not in the released code. The paper does not give the normalisation
    or the initial weights: the maps are normalised as for `node_statistics`, the weights are normal with the
    deviation ``1 / sqrt(positions)``, the bias starts at zero.

    Args:
        positions: H W of the level's maps.
        min_over: as in `normalised_maps`.
        generator: draws the initial weights.
    """

    def __init__(self, positions: int, min_over: MinOver = "row", generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.min_over = min_over
        self.weight = nn.Parameter(torch.empty(positions))
        self.bias = nn.Parameter(torch.zeros(()))
        nn.init.normal_(self.weight, std=positions**-0.5, generator=generator)

    def forward(self, cams: Tensor) -> Tensor:
        """Statistic ``(N, r)`` of maps ``(N, r, H, W)``.

        Raises:
            ValueError: if the maps have another number of positions than the layer was built for.
        """
        shares = normalised_maps(cams, self.min_over).flatten(2)  # (N, r, H W)
        if shares.shape[-1] != len(self.weight):
            raise ValueError(
                f"maps have {shares.shape[-1]} positions, the learned reliability was built for {len(self.weight)}: "
                "give the size of the images as image_size"
            )
        return shares @ self.weight + self.bias
