"""Processor time per ordered pair of AVSL's overall distance, beside the plain path and the matrix products alone.

Run ``python benchmarks/avsl_distance.py``; all numbers come from one run on one thread (r=512, 3 levels, k=128,
float32). The plain path holds every (pairs, r) tensor of 100 row blocks at once, as the released code does. The
products alone are two ordinary (pairs, r) x (r, r) products per pair (MKL), once per unordered pair for a set against
itself. The last lines show that memory does not grow with the number of pairs, apart from the result.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from lookalike.methods.avsl.similarity import normalise_edges, overall_distance

NODES, LEVELS, K, SCALE = 512, 3, 128, 10.0
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


def megabytes() -> float:
    """Largest memory this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def microseconds(call: Callable[[], object], pairs: int, repeats: int) -> float:
    """Median processor time per pair after one warm-up call."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append((time.process_time() - start) / pairs * 1e6)
    return sorted(times)[repeats // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
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
    before = megabytes()
    ours(*double, *double)
    grown = megabytes() - before  # measured first: the plain path raises the peak

    block = torch.randn(256, NODES, generator=generator)

    def products() -> None:
        for _ in range(pairs // len(block)):
            for matrix in matrices:
                F.linear(block, matrix)

    both = microseconds(products, pairs, arguments.repeats)
    rows = {
        "products alone, unordered pairs": both / 2,
        "products alone, ordered pairs": both,
        "set against itself": microseconds(lambda: ours(*query, *query), pairs, arguments.repeats),
        "queries against a gallery": microseconds(lambda: ours(*query, *gallery), pairs, arguments.repeats),
        "plain path": microseconds(lambda: plain(query, gallery), pairs, arguments.repeats),
    }
    print(f"N={count}, {LEVELS} levels, r={NODES}, k={K}, float32, one thread, median of {arguments.repeats}")
    for name, value in rows.items():
        print(f"{name:34s}{value:8.2f} us per ordered pair{value / rows['plain path']:8.2f} of the plain path")
    apart = (ours(*query, *gallery) - plain(query, gallery)).abs().max()
    print(f"largest difference from the plain path: {apart:.1e}")
    result, units, full = (4 * value / 2**20 for value in (4 * pairs, 2 * count * NODES * LEVELS, 4 * pairs * NODES))
    print(f"memory from N={count} to N={2 * count}: {grown:+.0f} MB with a result of {result:.0f} MB and unit vectors")
    print(f"of {units:.0f} MB; one (N, N, r) tensor would be {full:.0f} MB")


if __name__ == "__main__":
    main()
