"""Formulas that several papers share."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def unit(vectors: Tensor) -> Tensor:
    """Vectors along the last axis at length one; a zero vector stays zero."""
    return F.normalize(vectors, dim=-1)


def beside(tensor: Tensor, other: Tensor) -> Tensor:
    """The tensor on the device of another one; a copy from the host waits for nothing."""
    return tensor.to(other.device, non_blocking=True)


def log_one_plus_sum_exp(exponents: Tensor, kept: Tensor, *, dim: int) -> Tensor:
    """``log(1 + sum of exp)`` over the kept entries along an axis, without overflow; 0 where there are none.

    Args:
        exponents: ``(N, M)``.
        kept: ``(N, M)`` bool.
        dim: the axis, 0 or 1.
    """
    one = (1, 0) if dim == 1 else (0, 0, 1, 0)  # an exponent of 0 in front
    return F.pad(exponents.masked_fill(~kept, -torch.inf), one).logsumexp(dim=dim)
