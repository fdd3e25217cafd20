"""Processor time per ordered pair of AVSL's overall distance, beside the plain path and the matrix products alone.

Run ``python benchmarks/avsl_distance.py``; all numbers come from one run on one thread (r=512, 3 levels, k=128,
float32). The plain path holds every (pairs, r) tensor of 100 row blocks at once, as the released code does. The
products alone are two ordinary (pairs, r) x (r, r) products per pair (MKL), once per unordered pair for a set against
itself. The last lines show that memory does not grow with the number of pairs, apart from the result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from measure import Finding, conclude, median_seconds, parser
from torch import Tensor
from torch.nn import functional as F

from lookalike.methods.avsl.similarity import normalise_edges, overall_distance
from lookalike.workflow.running.machine import peak_megabytes

NODES, LEVELS, K, SCALE = 512, 3, 128, 10.0
LIMITS = {"set against itself": 11.0, "queries against a gallery": 20.0}  # microseconds per ordered pair, at N=512
Images = tuple[list[Tensor], list[Tensor]]


def make_images(count: int, generator: torch.Generator) -> Images:
    embeddings = [torch.randn(count, NODES, generator=generator) for _ in range(LEVELS)]
    statistics = [0.02 * torch.rand(count, NODES, generator=generator) for _ in range(LEVELS)]
    return embeddings, statistics


def plain_distance(
    query: Images, gallery: Images, alpha: list[Tensor], beta: list[Tensor], edges: list[Tensor | None]
) -> Tensor:
    """Every tensor of 100 row blocks in full, the recursion as it is written."""
    rows = max(1, len(query[0][0]) // 100)
    result = []
    for start in range(0, len(query[0][0]), rows):
        below = None
        for level in range(LEVELS):
            left = F.normalize(query[0][level][start : start + rows])
            delta = (left[:, None] - F.normalize(gallery[0][level])) ** 2
            weights = edges[level]
            if below is not None and weights is not None:
                eta = query[1][level][start : start + rows][:, None] * gallery[1][level]
                p = torch.sigmoid(SCALE * (alpha[level] * eta + beta[level]))
                delta = p * delta + (1 - p) * (below @ weights.T)
            below = delta
        result.append(delta.sum(-1))
    return torch.cat(result)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--images", type=int, default=512)
    options.add_argument("--repeats", type=int, default=5)
    arguments = options.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)

    generator = torch.Generator().manual_seed(0)
    count, pairs = arguments.images, arguments.images**2
    query, gallery = make_images(count, generator), make_images(count, generator)
    alpha = [torch.ones(NODES) for _ in range(LEVELS)]
    beta = [0.1 * torch.randn(NODES, generator=generator) for _ in range(LEVELS)]
    matrices = [normalise_edges(torch.randn(NODES, NODES, generator=generator), K) for _ in range(LEVELS - 1)]
    ours = partial(overall_distance, alpha=alpha, beta=beta, edges=[None, *matrices])
    plain = partial(plain_distance, alpha=alpha, beta=beta, edges=[None, *matrices])

    double = make_images(2 * count, generator)
    ours(*query, *query)
    before = peak_megabytes()
    ours(*double, *double)
    grown = peak_megabytes() - before  # measured first: the plain path raises the peak

    block = torch.randn(256, NODES, generator=generator)

    def products() -> None:
        for _ in range(pairs // len(block)):
            for matrix in matrices:
                F.linear(block, matrix)

    calls: dict[str, Callable[[], object]] = {
        "products alone": products,
        "set against itself": partial(ours, *query, *query),
        "queries against a gallery": partial(ours, *query, *gallery),
        "plain path": partial(plain, query, gallery),
    }
    medians = median_seconds(calls, arguments.repeats)
    rows = {name: seconds / pairs * 1e6 for name, seconds in medians.items()}
    print(f"N={count}, {LEVELS} levels, r={NODES}, k={K}, float32, one thread, median of {arguments.repeats}")
    for name, value in rows.items():
        print(f"{name:34s}{value:8.2f} us per ordered pair{value / rows['plain path']:8.2f} of the plain path")
    apart = (ours(*query, *gallery) - plain(query, gallery)).abs().max()
    print(f"largest difference from the plain path: {apart:.1e}")
    result, units, full = (4 * value / 1e6 for value in (4 * pairs, 2 * count * NODES * LEVELS, 4 * pairs * NODES))
    print(f"N={2 * count}: a result of {result:.0f} MB, unit vectors of {units:.0f} MB, one (N, N, r) of {full:.0f} MB")
    findings = [
        Finding(f"{name}, N={count}", "µs per ordered pair", rows[name], limit, plain=rows["plain path"])
        for name, limit in LIMITS.items()
    ]
    growth = f"memory from N={count} to N={2 * count}, unit vectors and result included"
    conclude([*findings, Finding(growth, "MB", grown, result + units)], arguments.json)


if __name__ == "__main__":
    main()
