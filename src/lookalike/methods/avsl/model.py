"""AVSL as a model: images in, representations out, distances and explanations of pairs.

Source: Attributable Visual Similarity Learning (CVPR 2022).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn
from torchvision.models.feature_extraction import create_feature_extractor

from lookalike.base.checks import require_known
from lookalike.methods.avsl.attention import MinOver, Ties, node_statistics
from lookalike.methods.avsl.graph import (
    batch_edges,
    block_sensitivities,
    graph_images,
    graph_steps,
    level_nodes,
    level_reliability,
    normalise_edges,
    update_edges,
)
from lookalike.methods.avsl.head import LearnedStatistic, LevelHead
from lookalike.methods.avsl.representation import Explanation, Representation
from lookalike.methods.avsl.similarity import level_distance, overall_distance

Variant = Literal["graph", "reliable_nodes", "top", "concat"]
Reliability = Literal["deviation", "learned"]
Statistic = Literal["absolute", "relative"]


def select_stages(output: Mapping[str, Tensor] | Sequence[Tensor], levels: Sequence[str]) -> list[Tensor]:
    """Maps of the levels, lowest first, from the output of a backbone.

    Raises:
        ValueError: if a level is missing, or a sequence has another length than ``levels``.
    """
    if isinstance(output, Mapping):
        missing = [level for level in levels if level not in output]
        if missing:
            raise ValueError(f"levels {missing} are not among the backbone's {list(output)}")
        return [output[level] for level in levels]
    if len(output) != len(levels):
        raise ValueError(f"the backbone returns {len(output)} maps, levels names {len(levels)}")
    return list(output)


def read_stages(
    backbone: nn.Module, levels: Sequence[str], image_size: int
) -> tuple[nn.Module, list[tuple[int, int, int]]]:
    """Module that returns the maps of the levels, and their shapes.

    Args:
        backbone: a module that returns maps already is kept; of any other, the named stages are read.
        levels: names of the stages, lowest first.
        image_size: side in pixels of the empty image it is tried with.

    Returns:
        The module, which shares the backbone's parameters, and per level channels, height and width.

    Raises:
        ValueError: if the backbone has no such stages, or a stage is no stack of maps.
    """
    like = next(backbone.parameters(), torch.empty(0))
    # One image of zeros tells the shapes of the stages.
    image = torch.zeros(1, 3, image_size, image_size, dtype=like.dtype, device=like.device)
    modes = {part: part.training for part in backbone.modules()}
    reader = backbone
    try:
        with torch.no_grad():
            output = backbone.eval()(image)
            if isinstance(output, Tensor):
                reader = create_feature_extractor(backbone, return_nodes=list(levels))
                output = reader.eval()(image)
                reader.train(modes[backbone])
    finally:
        # The reader shares its parts with the backbone; frozen batch normalisation stays frozen.
        for part, training in modes.items():
            part.training = training
    stages = select_stages(output, levels)
    for level, stage in zip(levels, stages, strict=True):
        if stage.ndim != 4:
            raise ValueError(f"{level} gives shape {tuple(stage.shape)}, it must give maps (N, C, H, W)")
    return reader, [(stage.shape[1], stage.shape[2], stage.shape[3]) for stage in stages]


class AVSL(nn.Module):
    """Images compared as graphs whose nodes are the embedding dimensions of several stages of one backbone.

    The running edges are buffers, updated by every forward pass in training mode before anything uses them. Whether
    they have seen a batch is saved with them (the released code forgets it, and a resumed run starts its edges anew).
    Gradients of `distance` reach ``alpha`` and ``beta`` only; those of the embeddings reach ``heads`` and ``backbone``.

    Variants of the paper's Table 2: ``graph`` is the full method, ``reliable_nodes`` drops the edges, so that the sum
    of p delta over the top level remains (the text does not fix which levels are summed), ``top`` is the top level
    alone, ``concat`` the sum of all level distances (the concatenation of unit vectors). Table 4's learned reliability
    is ``reliability="learned"``.

    Args:
        backbone: classifier whose named stages are read (torchvision's feature extraction), or a module that already
            returns a mapping from names to maps, or a sequence of maps.
        levels: names of the stages, lowest first; one per map where the backbone returns a sequence.
        embedding_dim: r, nodes per level.
        k: edges kept per node.
        momentum: share of the old edges at an update, in [0, 1]; 0 uses the edges of the last batch.
        variant: ``graph``, ``reliable_nodes``, ``top`` or ``concat``.
        reliability: ``deviation`` (spread of the maps) or ``learned``.
        sigmoid_scale: factor of the sigmoid's argument; 10 in the released code, 1 in the paper.
        statistic: ``absolute``, the deviation of a map whose entries sum to one (released code), or ``relative``, that
            times the number of entries: then products of two are of order one, and reliability varies with the pair.
            Learned statistics are as they are.
        min_over: ``row`` (released code) or ``map``, see `normalised_maps`.
        ties: ``first`` (released code) or ``shared`` (paper), see `linearise`.
        image_size: side in pixels of the image that the backbone is tried with; a learned reliability is tied to it.
        generator: draws the initial weights of heads and learned reliability.

    Raises:
        ValueError: if an option is unknown or out of range, or the backbone has no such stages.
    """

    edge_states: Tensor
    edges_initialised: Tensor

    def __init__(
        self,
        backbone: nn.Module,
        levels: Sequence[str] = ("layer2", "layer3", "layer4"),
        embedding_dim: int = 512,
        k: int = 128,
        momentum: float = 0.5,
        *,
        variant: Variant = "graph",
        reliability: Reliability = "deviation",
        sigmoid_scale: float = 10.0,
        statistic: Statistic = "absolute",
        min_over: MinOver = "row",
        ties: Ties = "first",
        image_size: int = 224,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_known("variant", variant, get_args(Variant))
        require_known("reliability", reliability, get_args(Reliability))
        require_known("statistic", statistic, get_args(Statistic))
        require_known("min_over", min_over, get_args(MinOver))
        require_known("ties", ties, get_args(Ties))
        if not levels:
            raise ValueError("levels is empty, it must name at least one stage")
        if not 1 <= k <= embedding_dim:
            raise ValueError(f"k={k} is outside [1, {embedding_dim}], the nodes of a level")
        if not 0 <= momentum <= 1:
            raise ValueError(f"momentum={momentum} is outside [0, 1]")
        self.levels, self.k, self.momentum = tuple(levels), k, momentum
        self.variant, self.sigmoid_scale, self.statistic, self.min_over = variant, sigmoid_scale, statistic, min_over

        self.backbone, shapes = read_stages(backbone, self.levels, image_size)
        self.heads = nn.ModuleList(LevelHead(channels, embedding_dim, ties, generator) for channels, _, _ in shapes)
        steps = len(self.levels) - 1  # the lowest level has neither reliability nor edges
        self.alpha = nn.Parameter(torch.ones(steps, embedding_dim))
        self.beta = nn.Parameter(torch.zeros(steps, embedding_dim))
        self.learned_statistics = nn.ModuleList(
            LearnedStatistic(height * width, min_over, generator)
            for _, height, width in (shapes[1:] if reliability == "learned" else [])
        )
        # omega is saved with the model, but no optimiser moves it.
        self.register_buffer("edge_states", torch.zeros(steps, embedding_dim, embedding_dim))
        self.register_buffer("edges_initialised", torch.tensor(False))
        self._has_edges: bool | None = False  # what the buffer says, as far as it was read from its device
        self.register_load_state_dict_post_hook(_read_anew)  # type: ignore[no-untyped-call]

    def forward(self, images: Tensor, *, with_maps: bool = False) -> Representation:
        """Representation of ``(N, 3, H, W)`` images; in training mode the edges learn from them.

        Args:
            images: ``(N, 3, H, W)``, as the backbone takes them.
            with_maps: keep the class activation maps, about 2 MB per image at the defaults, for `explain`.
        """
        stages = select_stages(self.backbone(images), self.levels)
        # Heads and maps keep the precision of their weights where the backbone runs in a lower one.
        with torch.autocast(images.device.type, enabled=False):
            levels = [head(stage.to(self.alpha.dtype)) for head, stage in zip(self.heads, stages, strict=True)]
            embeddings, maps = zip(*levels, strict=True)  # per level (N, r) and (N, r, H, W)
            if self.training:
                self._learn_edges(maps)
            return Representation(embeddings, self._statistics(maps), maps if with_maps else ())

    @property
    def has_edges(self) -> bool:
        """Whether the edges have seen a batch."""
        if self._has_edges is None:
            self._has_edges = bool(self.edges_initialised)
        return self._has_edges

    def edges(self) -> list[Tensor | None]:
        """Normalised edges from every level to the one below, ``(r, r)``; the lowest has ``None``."""
        if self.variant != "graph":
            # What an unreliable node leaves then goes nowhere.
            return [None, *torch.zeros_like(self.edge_states)]
        return [None, *(normalise_edges(state, self.k) for state in self.edge_states)]

    def distance(self, query: Representation, gallery: Representation, *, block: int | None = None) -> Tensor:
        """Distance ``(Q, G)`` of every pair, in blocks of ``block`` pairs; embeddings enter as constants."""
        if self.variant in ("top", "concat"):
            first = len(self.levels) - 1 if self.variant == "top" else 0
            pairs = zip(query.embeddings[first:], gallery.embeddings[first:], strict=True)
            return torch.stack([level_distance(left.detach(), right.detach()) for left, right in pairs]).sum(dim=0)
        return overall_distance(
            query.embeddings,
            query.statistics,
            gallery.embeddings,
            gallery.statistics,
            alpha=[None, *self.alpha],
            beta=[None, *self.beta],
            edges=self.edges(),
            scale=self.sigmoid_scale,
            block=block,
            learned_statistics=len(self.learned_statistics) > 0,
        )

    @torch.no_grad()
    def explain(self, query: Representation, gallery: Representation) -> Explanation:
        """Contributions of all nodes to the distance of every pair.

        Holds ``3 L r`` values per pair and is meant for few of them. Maps are those the representations carry.
        """
        query_graph = graph_images("query", query.embeddings, query.statistics, learned_statistics=False)
        gallery_graph = graph_images("gallery", gallery.embeddings, gallery.statistics, learned_statistics=False)
        # Per level (Q, G, r).
        nodes = tuple(level_nodes(query_graph, gallery_graph, level) for level in range(len(self.levels)))
        ones, zeros = torch.ones_like(nodes[0]), torch.zeros_like(nodes[0])
        # The lowest level is always reliable; without a graph all are.
        trust, weights = [ones] * len(nodes), [ones] * len(nodes)
        if self.variant == "top":
            weights = [*[zeros] * (len(nodes) - 1), ones]
        elif self.variant != "concat":
            steps = graph_steps(query_graph, [None, *self.alpha], [None, *self.beta], self.edges())
            for level in range(1, len(nodes)):
                trust[level] = level_reliability(query_graph, gallery_graph, steps, level, self.sigmoid_scale)
            weights = block_sensitivities(query_graph, gallery_graph, steps, self.sigmoid_scale)
        return Explanation(self.distance(query, gallery), tuple(trust), nodes, tuple(weights), query.maps, gallery.maps)

    def _learn_edges(self, maps: Sequence[Tensor]) -> None:
        # A state's rows are nodes of the upper level; that of the very first batch is copied.
        for state, lower, upper in zip(self.edge_states, maps[:-1], maps[1:], strict=True):
            batch = batch_edges(upper, lower)
            state.copy_(update_edges(state if self.has_edges else None, batch, self.momentum))
        self.edges_initialised.fill_(True)
        self._has_edges = True

    def _statistics(self, maps: Sequence[Tensor]) -> tuple[Tensor, ...]:
        # The lowest level is always reliable: its statistic would be the dearest of all, and is never read.
        lowest, upper = torch.zeros_like(maps[0][:, :, 0, 0]), maps[1:]
        if not self.learned_statistics:
            # A map that sums to one has the mean 1 / (H W): times H W, a spread is relative to it.
            entries = [level[0, 0].numel() if self.statistic == "relative" else 1 for level in upper]
            return (
                lowest,
                *(n * node_statistics(level, self.min_over) for n, level in zip(entries, upper, strict=True)),
            )
        return (lowest, *(layer(level) for layer, level in zip(self.learned_statistics, upper, strict=True)))


def _read_anew(model: nn.Module, keys: object) -> None:
    """After a state was loaded."""
    cast(AVSL, model)._has_edges = None
