"""AVSL's graph with drawn images and weights."""

import torch

from lookalike.methods.avsl.graph import normalise_edges

AREA = (
    49  # of the maps whose statistics are drawn: the deviation of a map that sums to one is of the order of its inverse
)


def made_graph(
    alpha, *, seed, count=12, others=15, nodes=16, levels=3, dtype=torch.float64, negative_edges=False, labels=None
):
    """Embeddings and statistics of two sides, and ``alpha, beta, edges``; images of a label are alike."""
    generator = torch.Generator().manual_seed(seed)
    sides = labels or (torch.arange(count) % 5, torch.arange(others) % 5)
    centres = torch.randn(levels, 1 + int(max(each.max() for each in sides)), nodes, generator=generator)

    def side(of_side):
        drawn = [centre[of_side] + 1.5 * torch.randn(len(of_side), nodes, generator=generator) for centre in centres]
        statistics = [2 / AREA * torch.rand(len(of_side), nodes, generator=generator) for _ in range(levels)]
        return [each.to(dtype) for each in drawn], [each.to(dtype) for each in statistics]

    def weights(draw):
        return [None, *(draw().to(dtype) for _ in range(levels - 1))]

    def edges():
        drawn = normalise_edges(torch.rand(nodes, nodes, generator=generator), max(1, nodes // 4))
        return drawn - 0.3 * drawn.flip(0) if negative_edges else drawn

    model = {
        "alpha": weights(lambda: alpha * torch.randn(nodes, generator=generator)),
        "beta": weights(lambda: 0.6 * torch.rand(nodes, generator=generator) - 0.3),
        "edges": weights(edges),
    }
    return side(sides[0]), side(sides[1]), model
