"""Heads of the two experimental set-ups: 224 x 224 (main paper) and 256 x 256 (appendix G).

224: ``EmbeddingHead(..., pooling="gem", initialisation="kaiming")``; CUB and Cars train through a ``Projector``.
256: ``EmbeddingHead(..., pooling="max_layer_norm", initialisation="default")`` for CUB and Cars, ``"average"`` for
SOP, iNaturalist and In-Shop; no projector.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SMALLEST_ACTIVATION = 1e-6  # released code; keeps the root of the mean differentiable


def gem_pool(feature_map: Tensor, power: float = 3.0) -> Tensor:
    """Generalised mean over the positions, ``(mean x^power)^(1 / power)``.

    Args:
        feature_map: ``(B, C, H, W)``; values below ``1e-6`` are raised to it.
        power: 1 is the mean, infinity the maximum.

    Returns:
        ``(B, C)``, at least float32: the cube of a small activation is 0 in 16 bits.
    """
    activations = _precise(feature_map).clamp(min=SMALLEST_ACTIVATION)
    return activations.pow(power).mean(dim=(2, 3)).pow(1 / power)


def max_layer_norm_pool(feature_map: Tensor) -> Tensor:
    """Maximum over the positions, then the channels brought to mean 0 and variance 1; ``(B, C)``, at least float32.

    Source: Supervised Metric Learning to Rank, appendix G. Differs: as in the released code, the normalisation
    follows the pooling and has no affine parameters.
    """
    maxima = _precise(feature_map).amax(dim=(2, 3))
    return F.layer_norm(maxima, maxima.shape[1:])


def average_pool(feature_map: Tensor) -> Tensor:
    """Mean over the positions, ``(B, C)``, at least float32."""
    return _precise(feature_map).mean(dim=(2, 3))


POOLINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "gem": gem_pool,
    "max_layer_norm": max_layer_norm_pool,
    "average": average_pool,
}
INITIALISATIONS = ("kaiming", "default")


class EmbeddingHead(nn.Module):
    """Pooling, a linear layer with bias and L2 normalisation: ``(B, C, H, W)`` to unit vectors ``(B, D)``.

    Args:
        channels: ``C`` of the feature map, 2048 for ResNet-50.
        embedding_dim: ``D``, 512 or 1536 in the paper.
        pooling: one of ``POOLINGS``.
        initialisation: ``kaiming`` (normal, fan out, zero bias; 224) or ``default`` (that of ``nn.Linear``; 256).
        generator: source of the initial weights; torch's own if left out.

    Raises:
        ValueError: if ``pooling`` or ``initialisation`` is unknown.
    """

    def __init__(
        self,
        channels: int,
        embedding_dim: int,
        *,
        pooling: str,
        initialisation: str,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise ValueError(f"pooling={pooling!r} is unknown, known are {', '.join(POOLINGS)}")
        if initialisation not in INITIALISATIONS:
            raise ValueError(f"initialisation={initialisation!r} is unknown, known are {', '.join(INITIALISATIONS)}")
        self.pooling = pooling
        self.linear = _linear(channels, embedding_dim, bias=True, generator=generator)
        if initialisation == "kaiming":
            nn.init.kaiming_normal_(self.linear.weight, mode="fan_out", generator=generator)
            nn.init.zeros_(self.linear.bias)

    def forward(self, feature_map: Tensor) -> Tensor:
        """Unit embeddings ``(B, D)`` of a feature map ``(B, C, H, W)``."""
        return F.normalize(self.linear(POOLINGS[self.pooling](feature_map)), dim=1)


class Projector(nn.Module):
    """Linear layer without bias on the unit embeddings, normalised again; the identity in evaluation mode.

    All parts of the loss see its output while training; the test images are compared by their embeddings.

    Args:
        embedding_dim: ``D``.
        width: of the output, 2048 in the released code.
        generator: source of the initial weights; torch's own if left out.

    Source: Supervised Metric Learning to Rank, section 5 ("additional linear layer"); sizes from the released code.
    """

    def __init__(self, embedding_dim: int, width: int = 2048, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.linear = _linear(embedding_dim, width, bias=False, generator=generator)

    def forward(self, embeddings: Tensor) -> Tensor:
        """Unit vectors ``(B, width)`` while training, else the unit embeddings ``(B, D)``."""
        # the released code leaves autocast here: projector and loss are computed in float32
        with torch.autocast(embeddings.device.type, enabled=False):
            unit = F.normalize(embeddings.to(self.linear.weight.dtype), dim=1)
            return F.normalize(self.linear(unit), dim=1) if self.training else unit


def _precise(feature_map: Tensor) -> Tensor:
    return feature_map.to(torch.promote_types(feature_map.dtype, torch.float32))


def _linear(inputs: int, outputs: int, *, bias: bool, generator: torch.Generator | None) -> nn.Linear:
    """``nn.Linear`` with its default distribution, drawn from ``generator``."""
    linear = nn.Linear(inputs, outputs, bias=bias, device="meta").to_empty(device="cpu")
    bound = inputs**-0.5
    nn.init.uniform_(linear.weight, -bound, bound, generator=generator)
    if bias:
        nn.init.uniform_(linear.bias, -bound, bound, generator=generator)
    return linear
