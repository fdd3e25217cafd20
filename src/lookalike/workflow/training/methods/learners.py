"""The methods as recipes train them: an embedder with any loss, similarity mining, AVSL and DIML."""

from __future__ import annotations

import inspect
from typing import cast

import torch
from torch import Tensor, nn

from lookalike.base.tensors import beside
from lookalike.losses import build_loss
from lookalike.losses.base import BatchLoss
from lookalike.methods.avsl import LEVELS
from lookalike.methods.avsl.graph import relative_change
from lookalike.methods.avsl.loss import AVSLLoss
from lookalike.methods.avsl.model import AVSL
from lookalike.methods.avsl.scoring import graph
from lookalike.methods.contextual.head import Projector
from lookalike.methods.contextual.loss import ContextualLoss, Regularised
from lookalike.methods.diml.loss import DIMLLoss
from lookalike.methods.diml.model import DIML
from lookalike.methods.diml.scoring import located, structural_matching
from lookalike.methods.sam.head import trunk_and_head
from lookalike.methods.sam.loss import MetricLoss, SimilarityMiningLoss
from lookalike.methods.sam.model import SimilarityAttention
from lookalike.models.backbones import Trunk
from lookalike.models.embedder import Embedder
from lookalike.workflow.settings.model import Part
from lookalike.workflow.settings.recipes import Network, Train
from lookalike.workflow.training.learner import Learner, Tensors

MINING = set(inspect.signature(SimilarityMiningLoss).parameters)


class EmbedderLearner(Learner):
    """Any loss of ``LOSSES`` on the embeddings, or on their projections while training.

    ``L(f(x), y)``, with a ``projector`` ``L(unit(W unit(f(x))), y)``. A ``regulariser`` adds ``gamma (s~ - mean s)^2``
    for the mean over all pairs of the batch, ``s~`` its ``target_similarity``.

    Source: the baseline of all four papers; projector and regulariser are those of Contextual, Section 5 and Eq. 7.
    """

    def __init__(self, settings: Train, *, classes: int) -> None:
        super().__init__(settings, classes=classes)
        projector = settings.projector
        self.projector = nn.Identity() if projector is None else Projector(self._dim, projector.width)
        self._contextual: list[Tensor] = []  # of the epoch's batches; on the device, so that no batch waits for them

    @property
    def _dim(self) -> int:
        return cast(Embedder, self.model).dim

    @classmethod
    def build(cls, settings: Network) -> Embedder:
        """An embedder."""
        return Embedder(settings.backbone.dump(), **settings.embedding.dump())

    def build_loss(self, settings: Train, loss: Part, classes: int) -> nn.Module:
        """A loss of ``LOSSES``, with the similarity regulariser where the recipe adds it."""
        dim = self._dim if settings.projector is None else settings.projector.width
        built = build_loss(loss.name, loss.options, classes=classes, embedding_dim=dim)
        return built if settings.regulariser is None else Regularised(built, **settings.regulariser.dump())

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Loss of one batch."""
        with self.half_precision(images):
            embeddings = self.model(images)
        bare = self.loss.loss if isinstance(self.loss, Regularised) else self.loss
        if not isinstance(bare, BatchLoss):  # which takes labels from where they are
            labels = beside(labels, images)
        value: Tensor = self.loss(self.projector(embeddings.to(torch.get_default_dtype())), labels)
        if isinstance(self.loss, ContextualLoss):
            self._contextual.append(self.loss.contextual)
        return value

    def set_epoch(self, epoch: int) -> None:
        """The contextual part is that of an epoch."""
        self._contextual = []

    def measures(self) -> dict[str, float]:
        """``contextual``, the contextual part of the loss of that name, unweighted, mean over the epoch's batches."""
        return {"contextual": torch.stack(self._contextual).mean().item()} if self._contextual else {}

    @classmethod
    def represent(cls, model: nn.Module, images: Tensor) -> Tensors:
        """``embedding (N, D)``, not normalised."""
        return {"embedding": model(images).to(torch.get_default_dtype())}

    def part_of(self, name: str) -> str:
        """The projector is a part of its own."""
        return "projector" if name.startswith("projector.") else super().part_of(name)


class SAMLearner(EmbedderLearner):
    """An ordinary embedder, trained by a metric loss and by a mining loss on images with its attention erased.

    ``L + gamma mean ||f_a - f_p| - |f_a - f_n||`` with unit features ``f`` of ``x (1 - sigmoid(alpha (M - beta)))``.
    The attention ``M``, brought to [0, 1], is ``relu(sum_k A_k mean d(w.f)/dA_k)`` over channels k of the last map
    ``A``, with ``w = (1 - |f_a - f_p|) |f_a - f_n|`` by entry, of the images as they are. Pairs have other forms.

    Source: SAM, Eq. 1 to 3, of which the print has lost operators.
    """

    loss: SimilarityMiningLoss

    def __init__(self, settings: Train, *, classes: int) -> None:
        super().__init__(settings, classes=classes)
        self._attention = {key: value for key, value in settings.method.options.items() if key not in MINING}

    def build_loss(self, settings: Train, loss: Part, classes: int) -> SimilarityMiningLoss:
        """A loss of ``LOSSES`` that mines tuples, with the mining loss beside it."""
        metric_loss = build_loss(loss.name, loss.options, classes=classes, embedding_dim=self._dim)
        options = {key: value for key, value in settings.method.options.items() if key in MINING}
        return SimilarityMiningLoss(cast(MetricLoss, metric_loss), **options)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Loss of one batch."""
        with self.half_precision(images):
            # Shares the parameters of the model; kept here, it would save them twice.
            attention = SimilarityAttention(*trunk_and_head(cast(Embedder, self.model)), **self._attention)
            value: Tensor = self.loss(attention, images, labels)
            return value

    def set_epoch(self, epoch: int) -> None:
        """The first epochs train without mining."""
        self.loss.set_epoch(epoch)

    def measures(self) -> dict[str, float]:
        """Measures of the mining that show its collapse."""
        return self.loss.measures()


class AVSLLearner(Learner):
    """Levels, graph and losses trained together; one backward pass realises the paper's two minimisations.

    ``final_weight L(d) + sum_l level_weights_l L(|e_l - e'_l|^2)`` with unit embeddings ``e_l`` of three levels. The
    distance ``d`` is the sum of ``D_3``, where ``D_l = p_l (e_l - e'_l)^2 + (1 - p_l) W_l D_{l-1}``, ``D_1 = (e_1 -
    e'_1)^2``, and ``p_l = sigmoid(sigmoid_scale (alpha_l eta_l eta'_l + beta_l))``. ``W_l`` are the edges to the level
    below, ``k`` of each node; ``eta_l`` is the deviation of a node's map.

    Source: AVSL, Eq. 1 to 8; factor of the sigmoid and weights are the released code's.
    """

    scoring = staticmethod(graph)
    model: AVSL

    def __init__(self, settings: Train, *, classes: int) -> None:
        super().__init__(settings, classes=classes)
        self._edge_changes: list[Tensor] = []  # of the epoch's batches; on the device, so that no batch waits for them

    @classmethod
    def build(cls, settings: Network) -> AVSL:
        """The graph over the last three stages of a backbone."""
        trunk = Trunk(**settings.backbone.dump(), levels=LEVELS)
        side = cast(int, settings.test_image.crop_px)  # as the method's check has it, like the size of the embedding
        return AVSL(trunk, trunk.names, cast(int, settings.embedding.dim), image_size=side, **settings.method.options)

    def build_loss(self, settings: Train, loss: Part, classes: int) -> AVSLLoss:
        """Proxy Anchor or Margin on the overall distance and on every level's."""
        dim = cast(int, settings.embedding.dim)
        return AVSLLoss(loss.name, classes, embedding_dim=dim, **loss.options)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Loss of one batch, on edges that have just learned from it."""
        before = self.model.edge_states.clone() if self.model.has_edges else None
        with self.half_precision(images):
            representation = self.model(images)
        if before is not None:
            self._edge_changes.append(relative_change(before, self.model.edge_states).mean())
        value: Tensor = self.loss(representation, labels, self.model.distance)
        return value

    def set_epoch(self, epoch: int) -> None:
        """Changes of the edges are counted per epoch."""
        self._edge_changes = []

    def measures(self) -> dict[str, float]:
        """``edge_change``, by how much a batch changes the edges, mean over levels and the epoch's batches.

        The very first batch, whose edges are copied, does not count.
        """
        return {"edge_change": float(torch.stack(self._edge_changes).mean())} if self._edge_changes else {}

    @classmethod
    def represent(cls, model: nn.Module, images: Tensor) -> Tensors:
        """Embeddings and statistics of every level."""
        return cast(AVSL, model)(images).to(torch.get_default_dtype()).state()  # type: ignore[no-any-return]

    def part_of(self, name: str) -> str:
        """Heads have a rate; all that belongs to graph and proxies has another (the released code's collector)."""
        if name.startswith("model.backbone."):
            return "trunk"
        if name.startswith("model.heads."):
            return "head"
        return "boundaries" if "boundar" in name else "proxies"


class DIMLLearner(Learner):
    """An embedder whose regions are trained: structure and mean of the regions together.

    ``L`` of ``(sum_ij T_ij s(z_i, z'_j) + s(g, g')) / 2``, or of the same with distances ``d`` for ``s``. ``z`` are the
    regions, ``g`` is their mean. The plan ``T`` has the least ``sum_ij T_ij (1 - s(z_i, z'_j)) + reg sum_ij T_ij log
    T_ij`` of those whose rows sum to shares of ``s(z_i, g')+`` and whose columns to shares of ``s(z'_j, g)+``.

    Source: DIML, Eq. 4 to 12.
    """

    scoring = staticmethod(structural_matching)
    model: DIML

    @classmethod
    def build(cls, settings: Network) -> DIML:
        """An embedder with its regions; as in training, an image's global vector is the mean of its regions."""
        embedder = Embedder(settings.backbone.dump(), **settings.embedding.dump())
        return DIML(embedder, "trunk", **{"global_vector": "locations", **settings.method.options})

    def build_loss(self, settings: Train, loss: Part, classes: int) -> DIMLLoss:
        """Margin or Multi-Similarity on the mean of structural and global similarity."""
        return DIMLLoss(loss.name, classes, **loss.options)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Loss of one batch."""
        with self.half_precision(images):
            regions = self.model.regions(images)
        value: Tensor = self.loss(regions.to(torch.get_default_dtype()), labels)
        return value

    @classmethod
    def represent(cls, model: nn.Module, images: Tensor) -> Tensors:
        """``embedding (N, D)`` and ``regions (N, R, D)``, unit vectors."""
        return located(cast(DIML, model), images)

    def part_of(self, name: str) -> str:
        """The embedder's trunk lies one step deeper than elsewhere."""
        return super().part_of(name.replace("model.embedder.", "model."))
