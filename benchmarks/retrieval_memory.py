"""Peak memory and time of `retrieval_metrics_from_embeddings`, beside a plain full sort.

    python benchmarks/retrieval_memory.py --images 60502 --dim 512

The embeddings are random clusters of about five images, as in Stanford Online Products. The peak is that of the whole
process, libraries and embeddings included, and is read before the reference runs. The reference holds all scores and
sorts every row, so it runs on the first `--reference-images` only, and the metrics are timed there once more. Its
scores are float32 sums: where two differ by less than their rounding, a query may count differently.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from measure import Finding, conclude, parser
from torch import Tensor

from lookalike.metrics.retrieval import retrieval_metrics_from_embeddings
from lookalike.workflow.running.machine import peak_megabytes

LIMIT_GB = 1.5  # of 60,502 images: 1.46 where the metrics were written


def clustered_embeddings(images: int, dim: int, images_per_class: int) -> tuple[Tensor, Tensor]:
    """Unit-scale noise around class centres, made in place so that the data are all the memory they take."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(images) // images_per_class
    embeddings = torch.randn(images, dim, generator=generator).mul_(2.5)
    for start in range(0, images, images_per_class):
        embeddings[start : start + images_per_class] += torch.randn(dim, generator=generator)
    return embeddings, labels


def metrics_by_full_sort(embeddings: Tensor, labels: Tensor, ks: tuple[int, ...]) -> dict[str, float]:
    """The same metrics from a sorted matrix of float32 cosines."""
    unit = torch.nn.functional.normalize(embeddings)
    similarity = (unit @ unit.T).fill_diagonal_(-torch.inf)
    ranking = similarity.argsort(dim=1, descending=True, stable=True)[:, :-1]
    hits = labels[ranking] == labels[:, None]
    counts = hits.sum(dim=1)
    precision = hits.cumsum(dim=1) / torch.arange(1, len(labels), dtype=torch.float64) * hits
    first_r = torch.arange(len(labels) - 1) < counts[:, None]
    kept = counts > 0
    metrics = {f"R@{k}": hits[kept, :k].any(dim=1).double().mean().item() for k in ks}
    metrics["P@1"] = hits[kept, 0].double().mean().item()
    metrics["RP"] = ((hits & first_r).sum(dim=1) / counts)[kept].double().mean().item()
    metrics["MAP@R"] = ((precision * first_r).sum(dim=1) / counts)[kept].double().mean().item()
    metrics["mAP"] = (precision.sum(dim=1) / counts)[kept].double().mean().item()
    return metrics


def timed(function: Callable[[], dict[str, float]]) -> tuple[dict[str, float], float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    result = function()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def peak_gb() -> float:
    return peak_megabytes() / 1e3


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--images", type=int, default=60_502)
    options.add_argument("--dim", type=int, default=512)
    options.add_argument("--images-per-class", type=int, default=5)
    options.add_argument("--block", type=int, default=1024)
    options.add_argument("--reference-images", type=int, default=6_000)
    arguments = options.parse_args()
    ks = (1, 10, 100)

    embeddings, labels = clustered_embeddings(arguments.images, arguments.dim, arguments.images_per_class)
    print(f"before: {peak_gb():.2f} GB peak, of which embeddings {embeddings.nbytes / 1e9:.2f} GB")

    def measure(count: int) -> dict[str, float]:
        some, own = embeddings[:count], labels[:count]
        return retrieval_metrics_from_embeddings(some, own, some, own, ks=ks, self_match=True, block=arguments.block)

    metrics, whole_cpu, wall = timed(lambda: measure(arguments.images))
    peak = peak_gb()
    size = f"{arguments.images} images of {arguments.dim}"
    print(f"{size}: {peak:.2f} GB peak, {whole_cpu:.1f} s CPU, {wall:.1f} s wall")
    print("  " + ", ".join(f"{name} {100 * value:.2f}" for name, value in metrics.items()))

    count = min(arguments.reference_images, arguments.images)
    metrics, cpu, _ = timed(lambda: measure(count))
    reference, reference_cpu, _ = timed(lambda: metrics_by_full_sort(embeddings[:count], labels[:count], ks))
    largest = max(abs(metrics[name] - reference[name]) for name in reference)
    print(f"{count} images: {cpu:.1f} s CPU, full sort {reference_cpu:.1f} s, {reference_cpu / cpu:.1f} times as much")
    print(f"  largest difference of a metric {largest:.1e}; peak with the full sort {peak_gb():.2f} GB")
    findings = [
        Finding(f"peak memory, {size}", "GB", peak, LIMIT_GB),
        Finding(f"all metrics, {size}", "s", whole_cpu),
        Finding(f"all metrics, {count} images of {arguments.dim}", "s", cpu, plain=reference_cpu),
    ]
    conclude(findings, arguments.json)


if __name__ == "__main__":
    main()
