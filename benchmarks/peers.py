"""Time of what others take today, beside ours on the same data in the same run, on one thread.

Run ``python benchmarks/peers.py``. Retrieval of 60,502 clustered embeddings of 512 numbers: pytorch-metric-learning's
AccuracyCalculator (R@1 and MAP@R by faiss, in float32) beside all metrics of ours (exact cosines, mAP among them), and
the 100 nearest by faiss's flat index beside ours, which orders them by the exact cosine. Transport: POT's Sinkhorn,
pair by pair, beside the plans of DIML, all of 16 x 16 locations, converged to the same tolerance; the largest
difference of a plan's entries is told.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import faiss
import numpy as np
import ot
import torch
from measure import Finding, conclude, parser, timed
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from pytorch_metric_learning.utils.inference import FaissKNN
from retrieval_memory import clustered_embeddings

from lookalike.methods.diml.transport import transport_plan
from lookalike.metrics.ranking import nearest
from lookalike.metrics.retrieval import retrieval_metrics_from_embeddings

LOCATIONS, REG, TOLERANCE = 16, 0.05, 1e-6
NEIGHBOURS = 100
TIMES_FLAT = 2.0


def retrieval(images: int, dim: int) -> list[Finding]:
    embeddings, labels = clustered_embeddings(images, dim, 5)
    unit = torch.nn.functional.normalize(embeddings)
    calculator = AccuracyCalculator(
        include=("precision_at_1", "mean_average_precision_at_r"),
        k="max_bin_count",
        device=torch.device("cpu"),
        knn_func=FaissKNN(index_init_fn=faiss.IndexFlatIP, gpus=None),
    )
    theirs, peer = timed(lambda: calculator.get_accuracy(unit, labels))
    ours, own = timed(
        lambda: retrieval_metrics_from_embeddings(
            embeddings, labels, embeddings, labels, ks=(1, 10, 100), self_match=True
        )
    )
    print(f"R@1 {ours['R@1']:.4f} and {theirs['precision_at_1']:.4f}", end=", ")
    print(f"MAP@R {ours['MAP@R']:.4f} and {theirs['mean_average_precision_at_r']:.4f}")

    def flat() -> None:
        index = faiss.IndexFlatIP(dim)
        index.add(unit.numpy())
        index.search(unit.numpy(), NEIGHBOURS)

    _, searched = timed(flat)
    _, ranked = timed(lambda: nearest(embeddings, embeddings, NEIGHBOURS, self_match=True))
    what = f"{images} x {dim}"
    return [
        Finding(f"all metrics, {what}, plain: R@1 and MAP@R by pytorch-metric-learning", "s", own, plain=peer),
        Finding(f"all metrics, {what}", "times faiss flat", own / searched, TIMES_FLAT),
        Finding(f"{NEIGHBOURS} nearest, {what}, plain: faiss flat", "s", ranked, plain=searched),
    ]


def transport(pairs: int) -> list[Finding]:
    generator = torch.Generator().manual_seed(0)
    regions = torch.nn.functional.normalize(
        torch.randn(2, pairs, LOCATIONS, 128, generator=generator) + torch.randn(1, pairs, 1, 128, generator=generator),
        dim=-1,
    )
    cost = 1 - regions[0] @ regions[1].transpose(1, 2)  # (n, R, R)
    rows, columns = (torch.rand(pairs, LOCATIONS, generator=generator) + 0.1 for _ in range(2))
    rows, columns = rows / rows.sum(1, keepdim=True), columns / columns.sum(1, keepdim=True)
    arrays = [each.double().numpy() for each in (rows, columns, cost)]

    def one_by_one() -> np.ndarray:
        return np.stack(
            [
                ot.sinkhorn(*each, REG, method="sinkhorn", stopThr=TOLERANCE, numItermax=1000)
                for each in zip(*arrays, strict=True)
            ]
        )

    theirs, peer = timed(one_by_one)
    ours, own = timed(lambda: transport_plan(cost, rows, columns, reg=REG, tolerance=TOLERANCE))
    difference = float(np.abs(ours.numpy() - theirs).max())
    each = 1e3 / pairs * NEIGHBOURS
    return [
        Finding(
            f"plans of {NEIGHBOURS} pairs, {LOCATIONS} x {LOCATIONS}, plain: POT", "ms", own * each, plain=peer * each
        ),
        Finding("largest difference of a plan's entry from POT's", "", difference, 1e-4),
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--images", type=int, default=60_502)
    options.add_argument("--dim", type=int, default=512)
    options.add_argument("--pairs", type=int, default=2_000)
    arguments = options.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    faiss.omp_set_num_threads(1)
    conclude([*transport(arguments.pairs), *retrieval(arguments.images, arguments.dim)], arguments.json)


if __name__ == "__main__":
    main()
