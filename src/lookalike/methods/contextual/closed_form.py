"""The contextual similarity of the paper with its gradient in closed form.

Automatic differentiation of Eq. 2-4 takes nine dense matrix products, three of them forward. Written out there are
five, two of them forward, and each has a left side that is zero outside the neighbourhoods.
"""

from __future__ import annotations

from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import FunctionCtx, once_differentiable

from lookalike.methods.contextual.neighbours import divisor
from lookalike.methods.contextual.products import plus_transpose, product


class ContextualSimilarity(Function):
    """Eq. 2-4 on the closeness of a batch: ``(values, near, half, alpha) -> w``, see ``neighbours.Closeness``."""

    @staticmethod
    def forward(ctx: FunctionCtx, values: Tensor, near: Tensor, half: Tensor, alpha: float) -> Tensor:
        """Contextual similarity ``(n, n)``, symmetric and in [0, 1]."""
        dtype = values.dtype
        neighbours, half_neighbours = values >= near, values >= half  # N, H
        sizes = neighbours.sum(dim=1, keepdim=True, dtype=dtype)  # r, (n, 1)
        outside = divisor(len(sizes) - sizes)  # c
        agreement = product(neighbours, neighbours.T.contiguous().to(dtype))  # M+
        neither = (agreement - sizes.T).add_(len(sizes) - sizes)  # M- = n - r_i - r_j + M+, all whole numbers
        agreement.div_(sizes).add_(neither.div_(outside)).div_(2)  # P
        del neither
        half_columns = half_neighbours.T.contiguous()  # H^T
        reciprocal = half_neighbours & half_columns  # R
        # q is 0 where rounding puts duplicates before the sample itself and leaves it without a reciprocal neighbour
        expansion_sizes = divisor(reciprocal.sum(dim=1, keepdim=True, dtype=dtype))  # q
        expanded = product(reciprocal, agreement * neighbours).div_(expansion_sizes)  # W2 = R W1 / q
        ctx.alpha = alpha  # type: ignore[attr-defined]
        ctx.save_for_backward(
            neighbours, half_columns, reciprocal, agreement, expanded, sizes, outside, expansion_sizes
        )
        return plus_transpose(expanded).div_(2)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        """Gradient ``(n, n)`` of the closeness."""
        saved: tuple[Tensor, ...] = ctx.saved_tensors  # type: ignore[attr-defined]
        neighbours, half_columns, reciprocal, agreement, expanded, sizes, outside, expansion_sizes = saved
        alpha: float = ctx.alpha  # type: ignore[attr-defined]
        of_expanded = plus_transpose(gradient).div_(2 * expansion_sizes)  # U
        of_intersection = product(reciprocal, of_expanded)  # G1 = R U, as R = R^T

        # N: as the outer factor of W1 and inside both counts of P; their normalisers are constants
        of_agreement = of_intersection * neighbours  # GP
        inside_share, outside_share = 0.5 / sizes, 0.5 / outside  # A = GP inside_share, B = GP outside_share, by rows
        of_outside = of_agreement.sum(dim=1, keepdim=True) * outside_share + of_agreement.T @ outside_share
        # (A + A^T) N - (B + B^T)(1 - N) = (A + A^T + B + B^T) N - the row sums of B + B^T
        scaled = plus_transpose(of_agreement.mul_(inside_share + outside_share))
        to_neighbours = product(scaled, neighbours.to(gradient.dtype)).sub_(of_outside)
        to_neighbours.addcmul_(of_intersection, agreement)  # GN
        del of_agreement, scaled, of_intersection

        # H: through R in the numerator and in q
        to_half_neighbours = plus_transpose(product(agreement * neighbours, of_expanded.T))  # W1 U^T + U W1^T
        of_sizes = of_expanded.mul_(expanded).sum(dim=1, keepdim=True)
        to_half_neighbours.sub_(of_sizes).sub_(of_sizes.T).mul_(half_columns)  # GH = (GR + GR^T) * H^T
        return to_neighbours.add_(to_half_neighbours).mul_(alpha), None, None, None
