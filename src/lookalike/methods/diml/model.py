"""DIML around a trained embedder: images in, representations out, similarities, rankings and explanations.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn

from lookalike.checks import require_known
from lookalike.methods.diml.feature_map import embed_with_map, find_projection
from lookalike.methods.diml.head import locations, mean_vector, project, unit
from lookalike.methods.diml.marginals import Marginal
from lookalike.methods.diml.matching import Matching, Solver
from lookalike.methods.diml.pooling import Pooling
from lookalike.methods.diml.ranking import Score, check_truncations, reordered
from lookalike.methods.diml.representation import Explanation, Representation
from lookalike.methods.diml.similarity import candidate_similarity, structural_similarity
from lookalike.metrics.ranking import nearest

GlobalVector = Literal["embedding", "locations"]


class DIML(nn.Module):
    """Any embedder whose last layers are a pooling and a linear map, with structural matching on top.

    The rows of Table 2: ``SS`` is ``marginal="uniform", score="structural", truncation=None`` (on large data sets a
    large ``truncation``, for the whole gallery is then out of reach), ``SS + MM`` is ``marginal="uniform"``, and
    ``SS + MM + CC`` the default.

    Differs: the paper combines both similarities by an average in training and does not say how at test time; the
    released code adds them, which is the same order.

    Args:
        embedder: ``(N, 3, H, W)`` images to ``(N, D)`` embeddings, of any length.
        feature_layer: name of the module that gives the last feature map; for `lookalike.models.embedder.Embedder`
            it is ``trunk``.
        side: G, side of the grid of locations.
        truncation: K, how many of the gallery are reordered; ``None`` for all.
        projection: linear layer applied at every position; by default the embedder's only one after the feature layer.
        global_vector: ``embedding``, what the embedder returns, for networks trained in any other way; ``locations``,
            the mean of the locations, for networks trained with DIML.
        pooling: as in `grid_pool`.
        score: what candidates are ordered by, ``sum`` of global and structural similarity, or ``structural`` alone.
        marginal: as in `Matching`, and so are all others.
        reg: weight of the entropy.
        tolerance: of the plans.
        solver: ``sinkhorn``, ``exact`` or ``released``.

    Raises:
        ValueError: if an option is unknown or out of range, or the embedder lacks such layers.
    """

    def __init__(
        self,
        embedder: nn.Module,
        feature_layer: str,
        side: int = 4,
        truncation: int | None = 100,
        *,
        projection: nn.Linear | None = None,
        global_vector: GlobalVector = "embedding",
        pooling: Pooling = "resample",
        score: Score = "sum",
        marginal: Marginal = "cross_correlation",
        reg: float = 0.05,
        tolerance: float = 1e-6,
        solver: Solver = "sinkhorn",
    ) -> None:
        super().__init__()
        require_known("global_vector", global_vector, get_args(GlobalVector))
        require_known("pooling", pooling, get_args(Pooling))
        require_known("score", score, get_args(Score))
        if side < 1:
            raise ValueError(f"side={side} must be at least 1")
        check_truncations([] if truncation is None else [truncation])
        self.embedder, self.feature_layer = embedder, feature_layer
        if projection is None:
            self._projection_name = f"embedder.{find_projection(embedder, feature_layer)}"
        else:
            # A part of the embedder must not be registered twice: its weights would be saved twice.
            inside = [name for name, module in self.named_modules() if module is projection]
            self._projection_name = inside[0] if inside else "own_projection"
            if not inside:
                self.own_projection = projection
        self.side, self.truncation, self.pooling = side, truncation, pooling
        self.global_vector, self.score = global_vector, score
        self.matching = Matching(marginal, reg, tolerance, solver)

    @property
    def projection(self) -> nn.Linear:
        """The linear layer that is applied at every position."""
        return cast(nn.Linear, self.get_submodule(self._projection_name))

    def locations(self, images: Tensor) -> Tensor:
        """Locations ``(N, R, D)``, not normalised, as the training losses take them."""
        return self._embed(images)[1]

    def represent(self, images: Tensor) -> Representation:
        """Representation of ``(N, 3, H, W)`` images.

        Raises:
            ValueError: if the feature layer gives no maps, or embeddings and projection differ in size.
        """
        embeddings, regions = self._embed(images)
        if self.global_vector == "locations":
            return Representation(unit(regions), mean_vector(regions))
        return Representation(unit(regions), unit(embeddings))

    def forward(self, images: Tensor) -> Representation:
        """As `represent`."""
        return self.represent(images)

    def similarity(self, query: Representation, gallery: Representation) -> Tensor:
        """What candidates are ordered by, ``(Q, G)``, for every pair."""
        sides = query.regions, query.global_vector, gallery.regions, gallery.global_vector
        structural = structural_similarity(*sides, **asdict(self.matching))
        return structural if self.score == "structural" else query.global_vector @ gallery.global_vector.T + structural

    def rank(
        self, query: Representation, gallery: Representation, *, self_match: bool = False, depth: int | None = None
    ) -> Tensor:
        """Gallery in the order of global similarity, the first ``truncation`` items reordered.

        Global similarities are exact (`lookalike.metrics.cosine`), so that duplicates tie; ties keep the global order,
        and there lower indices come first.

        Args:
            query: Q images.
            gallery: G images.
            self_match: query i is gallery item i; it is no candidate and comes last.
            depth: ranks wanted, the query itself not among them; ``None`` for the whole gallery.

        Returns:
            ``(Q, G)`` int64, or ``(Q, depth)``.

        Raises:
            ValueError: if the sides do not belong together, or ``depth`` is outside 1 to the number of other items.
        """
        truncations = [len(gallery) if self.truncation is None else self.truncation]
        return self.rankings(query, gallery, truncations, self_match=self_match, depth=depth)[0]

    @torch.no_grad()
    def rankings(
        self,
        query: Representation,
        gallery: Representation,
        truncations: Sequence[int],
        *,
        self_match: bool = False,
        depth: int | None = None,
    ) -> list[Tensor]:
        """`rank` for several K, each reordering its own first K items, with every plan computed once.

        Args:
            query: as in `rank`.
            gallery: as in `rank`.
            truncations: the K; larger ones than the gallery mean all of it.
            self_match: as in `rank`.
            depth: as in `rank`.

        Returns:
            One ranking for every K, in their order.

        Raises:
            ValueError: as `rank`, or if a K is negative.
        """
        check_truncations(truncations)
        width = len(gallery) - self_match
        ranks = width if depth is None else depth
        if depth is not None and not 1 <= depth <= width:
            raise ValueError(
                f"depth={depth} is outside [1, {width}], the gallery{' less the query' if self_match else ''}"
            )
        longest = min(max(truncations, default=0), width)
        values, candidates = nearest(
            query.global_vector, gallery.global_vector, max(ranks, longest), self_match=self_match
        )
        sides = query.regions, query.global_vector, gallery.regions, gallery.global_vector
        structural = candidate_similarity(*sides, candidates[:, :longest], self.matching)
        heads = [reordered(candidates[:, :k], values[:, :k], structural[:, :k], self.score) for k in truncations]
        found = [torch.cat([head, candidates[:, head.shape[1] :]], dim=1)[:, :ranks] for head in heads]
        if not self_match or depth is not None:
            return found
        own = torch.arange(len(query), device=candidates.device).unsqueeze(1)
        return [torch.cat([ranking, own], dim=1) for ranking in found]

    @torch.no_grad()
    def explain(self, query: Representation, gallery: Representation) -> Explanation:
        """What every pair of locations contributes to the similarity of every pair of images.

        Holds ``3 R R`` values per pair and is meant for few of them.
        """
        match = self.matching(query.regions, query.global_vector, gallery.regions, gallery.global_vector)
        return Explanation(query.global_vector @ gallery.global_vector.T, match)

    def _embed(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings ``(N, D)`` and locations ``(N, R, D)``, neither normalised.

        Of the precision of the projection where the network runs in a lower one: in 16 bits similar images would tie.
        """
        embeddings, feature_map = embed_with_map(self.embedder, self.feature_layer, images)
        with torch.autocast(images.device.type, enabled=False):
            weight, bias = self.projection.weight, self.projection.bias
            z = project(feature_map.to(weight.dtype), weight, bias)
            return embeddings.to(weight.dtype), locations(z, self.side, self.pooling)
