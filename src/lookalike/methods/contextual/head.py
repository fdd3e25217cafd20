"""The projector behind the embedding of the 224 x 224 experiments.

The embeddings of both set-ups are `lookalike.models.embedder.Embedder`: at 224 x 224 (main paper) with ``gem`` pooling
and ``kaiming`` initialisation, at 256 x 256 (appendix G) with ``max_layer_norm`` (CUB, Cars) or ``average`` pooling and
without projector.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Projector(nn.Module):
    """Linear layer without bias on the unit embeddings, normalised again; the identity in evaluation mode.

    All parts of the loss see its output while training; the test images are compared by their embeddings.

    Args:
        embedding_dim: ``D``.
        width: width of the output, 2048 in the released code.
        generator: source of the initial weights; torch's own if left out.

    Source: Supervised Metric Learning to Rank, section 5 ("additional linear layer"); sizes from the released code.
    """

    def __init__(self, embedding_dim: int, width: int = 2048, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.linear = nn.Linear(embedding_dim, width, bias=False, device="meta").to_empty(device="cpu")
        bound = embedding_dim**-0.5  # torch's default distribution, drawn from the generator
        nn.init.uniform_(self.linear.weight, -bound, bound, generator=generator)

    def forward(self, embeddings: Tensor) -> Tensor:
        """Unit vectors ``(B, width)`` while training, else the unit embeddings ``(B, D)``."""
        # the released code leaves autocast here: projector and loss are computed in float32
        with torch.autocast(embeddings.device.type, enabled=False):
            unit = F.normalize(embeddings.to(self.linear.weight.dtype), dim=1)
            return F.normalize(self.linear(unit), dim=1) if self.training else unit
