"""Losses that compare embeddings with one learned vector per class: ProxyNCA, Proxy Anchor, Softmax, ArcFace.

The vectors are a parameter of the loss. All weigh items by how often ``indices_tuple`` names them, as the library does.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from pytorch_metric_learning.losses import ArcFaceLoss as LibraryArcFaceLoss
from pytorch_metric_learning.losses import NormalizedSoftmaxLoss
from pytorch_metric_learning.losses import ProxyAnchorLoss as LibraryProxyAnchorLoss
from pytorch_metric_learning.losses import ProxyNCALoss as LibraryProxyNCALoss
from pytorch_metric_learning.utils.loss_and_miner_utils import convert_to_weights
from torch import Tensor, nn

from lookalike.base.checks import require_known
from lookalike.base.tensors import unit
from lookalike.losses.base import BatchLoss, LibraryLoss
from lookalike.sampling.miners import Tuples

MarginOn = Literal["own_class", "every_class"]


class ProxyNCALoss(BatchLoss):
    """``d^2(x, c_y) + log sum_{c != c_y} exp(-d^2(x, c))`` on vectors of length ``length``, mean over the batch.

    Source: DIML Table 1, row ProxyNCA.
    Differs: the library has the own proxy in the sum as well, see :class:`ProxyNCASoftmaxLoss`.
    """

    def __init__(
        self, *, classes: int, embedding_dim: int, length: float = 3.0, generator: torch.Generator | None = None
    ) -> None:
        if classes < 2:
            raise ValueError(f"classes={classes} must be at least 2: the sum runs over the other classes")
        super().__init__(classes=classes)
        self.length = length
        self.proxies = nn.Parameter(torch.randn(classes, embedding_dim, generator=generator) / 8)

    def batch_loss(self, embeddings: Tensor, labels: Tensor, tuples: Tuples | None) -> Tensor:
        """The loss against all proxies."""
        cosine = unit(embeddings) @ unit(self.proxies.to(embeddings.dtype)).T  # (B, P)
        squared = self.length**2 * (2 - 2 * cosine)
        own = labels[:, None]  # (B, 1), column of each item's own proxy
        others = (-squared).scatter(1, own, -math.inf)
        losses = squared.gather(1, own).squeeze(1) + others.logsumexp(dim=1)
        weights: Tensor = convert_to_weights(tuples, labels, dtype=losses.dtype)
        return (losses * weights).mean()


class ProxyNCASoftmaxLoss(LibraryLoss):
    """ProxyNCA with the own proxy in the denominator too: cross entropy of ``-scale d^2``.

    ``-log(exp(-scale d^2(x, c_y)) / sum_c exp(-scale d^2(x, c)))``, mean over the batch.

    Source: Contextual, Tables 2 and 3, row Proxy NCA; ``scale`` is 9 in its 224 px set-up and 10 at 256 px.
    """

    def __init__(
        self, *, classes: int, embedding_dim: int, scale: float = 9.0, generator: torch.Generator | None = None
    ) -> None:
        initialise = partial(nn.init.normal_, generator=generator)
        criterion = LibraryProxyNCALoss(classes, embedding_dim, softmax_scale=scale, weight_init_func=initialise)
        super().__init__(criterion, classes=classes)


class ProxyAnchorLoss(LibraryLoss):
    """Proxy Anchor: smooth maxima over all positives and all negatives of a proxy, on cosine similarities.

    ``mean_{c in batch} log(1 + sum_{x of c} exp(-scale (s_xc - margin))) + mean_c log(1 + sum_{x not of c} exp(scale
    (s_xc + margin)))``. The first mean is over classes of the batch, the second over all.

    Source: Kim et al. 2020, Eq. 4; a baseline of AVSL, DIML and Contextual, not in DIML's released code.
    """

    def __init__(
        self,
        *,
        classes: int,
        embedding_dim: int,
        margin: float = 0.1,
        scale: float = 32.0,
        generator: torch.Generator | None = None,
    ) -> None:
        initialise = partial(nn.init.kaiming_normal_, mode="fan_out", generator=generator)
        criterion = LibraryProxyAnchorLoss(
            classes, embedding_dim, margin=margin, alpha=scale, weight_init_func=initialise
        )
        super().__init__(criterion, classes=classes)


class SoftmaxLoss(LibraryLoss):
    """Normalised softmax: cross entropy of ``cosine / temperature``, without bias.

    ``-log(exp(s_xy / temperature) / sum_c exp(s_xc / temperature))``, mean over the batch.

    Source: DIML Table 1, row Softmax; Contextual, Tables 4 and 8, row N-Softmax.
    """

    def __init__(
        self, *, classes: int, embedding_dim: int, temperature: float = 0.05, generator: torch.Generator | None = None
    ) -> None:
        criterion = NormalizedSoftmaxLoss(
            classes, embedding_dim, temperature=temperature, weight_init_func=_uniform(embedding_dim, generator)
        )
        super().__init__(criterion, classes=classes)


class ArcFaceLoss(LibraryLoss):
    """Cross entropy of ``scale cos``, with ``margin`` radians added to the angle of the own class.

    ``-log(e / (e + sum_{c != c_y} exp(scale cos t_c)))`` with ``e = exp(scale cos(t_y + margin))`` and angles ``t``
    between x and c, mean over the batch; for ``t_y > pi - margin`` the cosine is ``cos t_y - margin sin(margin)``.

    Source: Deng et al. 2019, Eq. 3, with the numbers of DIML Table 1, row ArcFace.
    Differs: the released code of DIML shifts the logits of all classes alike, so that its margin has no effect, and
    lifts cosines to 1e-10 at least; ``margin_on="every_class"`` repeats that. The start of the class vectors is not
    stated; it is that of the softmax loss.
    """

    def __init__(
        self,
        *,
        classes: int,
        embedding_dim: int,
        margin: float = 0.5,
        scale: float = 16.0,
        margin_on: MarginOn = "own_class",
        generator: torch.Generator | None = None,
    ) -> None:
        require_known("margin_on", margin_on, get_args(MarginOn))
        criterion = LibraryArcFaceLoss(
            classes,
            embedding_dim,
            margin=math.degrees(margin),
            scale=scale,
            weight_init_func=_uniform(embedding_dim, generator),
        )
        super().__init__(criterion, classes=classes)
        self.scale, self.margin_on = scale, margin_on

    def batch_loss(self, embeddings: Tensor, labels: Tensor, tuples: Tuples | None) -> Tensor:
        """The loss against all class vectors."""
        if self.margin_on == "own_class":
            return super().batch_loss(embeddings, labels, tuples)
        cosine = unit(embeddings) @ F.normalize(self.criterion.get_parameter("W").to(embeddings.dtype), dim=0)
        losses = F.cross_entropy(self.scale * cosine.clamp_min(1e-10), labels, reduction="none")
        weights: Tensor = convert_to_weights(tuples, labels, dtype=losses.dtype)
        return (losses * weights).mean()


def _uniform(embedding_dim: int, generator: torch.Generator | None) -> partial[Tensor]:
    """Start of class vectors in DIML's softmax: uniform in plus and minus one over the root of the dimension."""
    bound = embedding_dim**-0.5
    return partial(nn.init.uniform_, a=-bound, b=bound, generator=generator)
