"""DIML around a trained embedder: images in, representations out, similarities, rankings and explanations.

Source: Towards Interpretable Deep Metric Learning with Structural Matching (ICCV 2021).
"""

from __future__ import annotations

from torch import Tensor, nn

from lookalike.methods.diml.located import GlobalVector, LocatedEmbedder
from lookalike.methods.diml.marginals import Marginal
from lookalike.methods.diml.matcher import StructuralMatcher
from lookalike.methods.diml.matching import Solver
from lookalike.methods.diml.pooling import Pooling
from lookalike.methods.diml.ranking import Score
from lookalike.methods.diml.representation import Explanation, Representation


class DIML(LocatedEmbedder):
    """Any embedder whose last layers are a pooling and a linear map, with structural matching on top.

    What it says of representations is said by its ``matcher``, which needs no network.

    Args:
        embedder: ``(N, 3, H, W)`` images to ``(N, D)`` embeddings, of any length.
        feature_layer: name of the module that gives the last feature map, see `LocatedEmbedder`.
        side: G, side of the grid of locations.
        truncation: K, how many of the gallery are reordered; ``None`` for all.
        projection: linear layer applied at every position, ``nn.Identity()`` for the features themselves; by default
            the embedder's only one after the feature layer.
        global_vector: ``embedding``, what the embedder returns, or ``locations``, the mean of the regions.
        pooling: how the grid is pooled: ``resample``, ``roi_align`` or ``adaptive``, see `grid_pool`.
        score: what candidates are ordered by, ``sum`` of global and structural similarity, or ``structural`` alone.
        marginal: weights of the locations: ``cross_correlation``, ``uniform`` or ``swapped``, see `marginals`.
        reg: weight of the entropy.
        tolerance: largest error of the plans, see `transport_plan`.
        solver: what finds the plans: ``sinkhorn``, ``exact`` or ``released``, see `Matching`.

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
        projection: nn.Linear | nn.Identity | None = None,
        global_vector: GlobalVector = "embedding",
        pooling: Pooling = "resample",
        score: Score = "sum",
        marginal: Marginal = "cross_correlation",
        reg: float = 0.05,
        tolerance: float = 1e-6,
        solver: Solver = "sinkhorn",
    ) -> None:
        super().__init__(
            embedder, feature_layer, side, projection=projection, global_vector=global_vector, pooling=pooling
        )
        self.matcher = StructuralMatcher(truncation, score, marginal, reg, tolerance, solver)

    def similarity(self, query: Representation, gallery: Representation) -> Tensor:
        """As `StructuralMatcher.similarity`, ``(Q, G)``."""
        return self.matcher.similarity(query, gallery)

    def rank(
        self, query: Representation, gallery: Representation, *, self_match: bool = False, depth: int | None = None
    ) -> Tensor:
        """As `StructuralMatcher.rank`, ``(Q, G)`` or ``(Q, depth)`` int64."""
        return self.matcher.rank(query, gallery, self_match=self_match, depth=depth)

    def explain(self, query: Representation, gallery: Representation) -> Explanation:
        """As `StructuralMatcher.explain`."""
        return self.matcher.explain(query, gallery)
