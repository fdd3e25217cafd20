"""Processor time per query of DIML's re-ranking, beside the released path written plainly.

Run ``python benchmarks/diml_reranking.py``; all numbers come from one run on one thread (K=100, G=4, D=128, float32).
The plain path gathers the candidates of a query, and iterates on all of them until the released rule stops them
together. Both of ours converge: `structural_similarity` query by query, and the blocks of queries that `DIML.rank`
takes. All times include gathering and sorting. The last column says for how many queries the order of the candidates is
that of plans converged to rounding in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from measure import Finding, conclude, median_seconds, parser
from torch import Tensor
from torch.nn import functional as F

from lookalike.methods.diml.representation import Representation
from lookalike.methods.diml.retrieval import reordered
from lookalike.methods.diml.similarity import candidate_similarity, structural_similarity

SIDE, DIM, REG = 4, 128, 0.05
LIMIT_MS = 1.2  # per query, for 100 candidates


def make_images(count: int, spread: float, generator: torch.Generator) -> Representation:
    """Ten images per class, whose locations show common parts in any order; ``spread`` is what each has of its own."""
    noise = [
        torch.randn(*shape, DIM, generator=generator) for shape in ((1, 1), (8,), (count // 10 + 1, 1), (count, 1))
    ]
    background, parts, classes, images = noise
    places = torch.randint(len(parts), (count, SIDE**2), generator=generator)
    regions = 0.6 * background + 0.5 * parts[places] + 0.7 * classes[torch.arange(count) // 10] + 0.5 * images
    regions = regions + spread * torch.randn(count, SIDE**2, DIM, generator=generator)
    return Representation(F.normalize(regions, dim=-1), F.normalize(regions.mean(1), dim=-1))


class Reranking:
    """The candidates of some queries, and the ways to order them anew."""

    def __init__(self, images: Representation, queries: int, truncation: int) -> None:
        self.images, self.queries = images, queries
        similarity = images.global_vector[:queries] @ images.global_vector.T
        similarity.fill_diagonal_(-torch.inf)
        self.values, self.candidates = similarity.topk(truncation, dim=1)

    def by_query(self, scores: Callable[[Representation, int, Tensor], Tensor]) -> Tensor:
        heads = zip(torch.split(self.candidates, 1), torch.split(self.values, 1), strict=True)
        found = [
            reordered(own, values, scores(self.images, query, own[0])[None])
            for query, (own, values) in enumerate(heads)
        ]
        return torch.cat(found)

    def by_block(self) -> Tensor:
        query, gallery = self.images[: self.queries], self.images
        sides = query.regions, query.global_vector, gallery.regions, gallery.global_vector
        structural = candidate_similarity(*sides, self.candidates)
        return reordered(self.candidates, self.values, structural)


def plain_scores(images: Representation, query: int, candidates: Tensor) -> Tensor:
    """Structural similarities as the released code finds them."""
    regions, vectors = images.regions[candidates], images.global_vector[candidates]
    similarity = torch.einsum("gsd,rd->gsr", regions, images.regions[query])
    rows = torch.einsum("gsd,d->gs", regions, images.global_vector[query]).relu()
    columns = torch.einsum("rd,gd->gr", images.regions[query], vectors).relu()
    rows = rows / (rows.sum(dim=1, keepdim=True) + 1e-5)
    columns = columns / (columns.sum(dim=1, keepdim=True) + 1e-5)
    kernel = torch.exp(-(1 - similarity) / REG)
    r, c = torch.ones_like(rows), torch.ones_like(columns)
    for _ in range(100):
        before = r
        r = rows / torch.matmul(kernel, c.unsqueeze(-1)).squeeze(-1)
        c = columns / torch.matmul(kernel.transpose(1, 2), r.unsqueeze(-1)).squeeze(-1)
        if (r - before).abs().mean().item() < 0.1:
            break
    plan = torch.matmul(torch.matmul(torch.diag_embed(r), kernel), torch.diag_embed(c))
    return torch.sum(plan * similarity, dim=(1, 2))


def our_scores(images: Representation, query: int, candidates: Tensor) -> Tensor:
    """The same from converged plans."""
    own, others = images[query], images[candidates]
    return structural_similarity(own.regions, own.global_vector, others.regions, others.global_vector)[0]


def exact_scores(images: Representation, query: int, candidates: Tensor) -> Tensor:
    """The same, converged to rounding in float64."""
    own, others = images[query].to(torch.float64), images[candidates].to(torch.float64)
    return structural_similarity(own.regions, own.global_vector, others.regions, others.global_vector, tolerance=0.0)[0]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--images", type=int, default=1000)
    options.add_argument("--queries", type=int, default=50)
    options.add_argument("--truncation", type=int, default=100)
    options.add_argument("--repeats", type=int, default=7)
    arguments = options.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)

    findings: list[Finding] = []
    for spread in (0.4, 0.8, 1.6):
        images = make_images(arguments.images, spread, torch.Generator().manual_seed(0))
        task = Reranking(images, arguments.queries, arguments.truncation)
        exact = task.by_query(exact_scores)
        calls: dict[str, Callable[[], Tensor]] = {
            "released path, written plainly": partial(task.by_query, plain_scores),
            "converged, query by query": partial(task.by_query, our_scores),
            "converged, blocks of queries": task.by_block,
        }
        print(f"own share of a location {spread}")
        taken = {
            name: seconds / arguments.queries * 1e3
            for name, seconds in median_seconds(calls, arguments.repeats).items()
        }
        agreement = {name: 100 * (call() == exact).all(dim=1).double().mean().item() for name, call in calls.items()}
        released, _, blocks = calls
        for name in calls:
            ratio = taken[name] / taken[released]
            print(f"  {name:32} {taken[name]:5.2f} ms  ratio {ratio:4.2f}  order as converged {agreement[name]:.0f} %")
        plain_share, exact_share = agreement[released], agreement[blocks]
        place = f"own share of a location {spread}"
        findings += [
            Finding(f"re-ranking, {place}", "ms per query", taken[blocks], LIMIT_MS, plain=taken[released]),
            Finding(f"order as converged, {place}", "% of queries", exact_share, 100, at_least=True, plain=plain_share),
        ]
    conclude(findings, arguments.json)


if __name__ == "__main__":
    main()
