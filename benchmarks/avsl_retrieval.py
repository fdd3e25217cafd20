"""Time and memory of exact retrieval by AVSL's overall distance at the size of Stanford Online Products' test half.

Run ``python benchmarks/avsl_retrieval.py``. 60,502 images of 11,316 classes, r = 512, 3 levels, k = 128, all threads.
Slopes and offsets lie in the ranges seen in trained models (|alpha| up to 3, beta from -1.3 to 1.7), statistics are of
the sizes seen there (1/49 at the top, 1/130 in the middle). Beside each time stands that of one matrix product of all
images with all images over the coordinates of the three levels, in the same run, and the share of pairs whose distance
was evaluated over the whole graph. Slopes of 30 and 300 follow, for a hundredth of the images as queries of the others.
"""

from __future__ import annotations

import os
import time

import torch
from measure import Finding, conclude, parser
from torch import Tensor
from torch.nn import functional as F

from lookalike.methods.avsl.retrieval import certified_metrics
from lookalike.methods.avsl.similarity import normalise_edges, overall_distance
from lookalike.workflow.running.machine import peak_megabytes, resident_megabytes

NODES, LEVELS, K = 512, 3, 128
PER_CLASS = 60502 / 11316
SIZES = (0.0077, 0.0077, 0.02)  # of the statistics of each level
NOISE = 2.4  # around the centre of a class, so that R@1 lies between 70 and 85 %
TIMES, MEGABYTES = 2.2, 1500.0
Images = tuple[list[Tensor], list[Tensor], Tensor]


def make_images(count: int, generator: torch.Generator) -> Images:
    labels = torch.randint(round(count / PER_CLASS), (count,), generator=generator)
    embeddings = []
    for _ in range(LEVELS):
        centres = torch.randn(int(labels.max()) + 1, NODES, generator=generator)
        embeddings.append(centres[labels] + NOISE * torch.randn(count, NODES, generator=generator))
    statistics = [size * (0.5 + torch.rand(count, NODES, generator=generator)) for size in SIZES]
    return embeddings, statistics, labels


def _part(images: Images, rows: slice) -> Images:
    embeddings, statistics, labels = images
    return [level[rows] for level in embeddings], [level[rows] for level in statistics], labels[rows]


def make_model(slope: float, generator: torch.Generator) -> dict[str, list[Tensor | None]]:
    upper = range(LEVELS - 1)
    return {
        "alpha": [None, *(slope * (2 * torch.rand(NODES, generator=generator) - 1) for _ in upper)],
        "beta": [None, *(3 * torch.rand(NODES, generator=generator) - 1.3 for _ in upper)],
        "edges": [None, *(normalise_edges(torch.rand(NODES, NODES, generator=generator), K) for _ in upper)],
    }


def product_seconds(embeddings: list[Tensor], rows: int = 1024) -> float:
    """Of all images with all images, block by block."""
    flat = torch.cat([F.normalize(level) for level in embeddings], dim=1)
    start = time.perf_counter()
    for top in range(0, len(flat), rows):
        flat[top : top + rows] @ flat.T
    return time.perf_counter() - start


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--images", type=int, default=60502)
    arguments = options.parse_args()
    torch.set_grad_enabled(False)
    torch.set_num_threads(os.cpu_count() or 1)  # whatever the benchmark's environment says
    generator = torch.Generator().manual_seed(0)
    embeddings, statistics, labels = make_images(arguments.images, generator)
    pairs = arguments.images * (arguments.images - 1)
    product = product_seconds(embeddings)
    few = [level[:512] for level in embeddings], [level[:512] for level in statistics]
    others = [level.clone() for level in few[0]], [level.clone() for level in few[1]]
    findings = [Finding(f"one product, {arguments.images} images of {LEVELS} x {NODES}", "s", product)]
    for slope, share in ((1.0, 1), (3.0, 1), (30.0, 100), (300.0, 100)):
        model = make_model(slope, generator)
        start = time.perf_counter()
        overall_distance(*few, *others, **model)
        dense = (time.perf_counter() - start) / 512**2 * pairs / share
        count = arguments.images // share
        whole = embeddings, statistics, labels
        query, gallery = (
            (whole, whole) if share == 1 else (_part(whole, slice(count)), _part(whole, slice(count, None)))
        )
        before = resident_megabytes()
        start = time.perf_counter()
        metrics, report = certified_metrics(
            *query[:2], *gallery[:2], query[2], gallery[2], **model, ks=(1, 10, 100), self_match=share == 1
        )
        seconds = time.perf_counter() - start
        what = f"alpha up to {slope:g}, {count} queries"
        print(f"{what}: R@1 {metrics['R@1']:.3f}, {report}")
        limit = TIMES if share == 1 else None
        findings += [
            Finding(f"{what}: all metrics", "s", seconds, plain=dense),
            Finding(f"{what}: all metrics", "times the product", seconds / product * share, limit),
            Finding(f"{what}: over the whole graph", "% of pairs", 100 * report["exact_share"]),
        ]
        if share == 1:
            above = peak_megabytes() - before
            findings.append(Finding(f"{what}: beyond the representations", "MB", above, MEGABYTES))
    conclude(findings, arguments.json)


if __name__ == "__main__":
    main()
