"""Time and memory of the contextual loss beside dense automatic differentiation of the same formulas.

Run: OMP_NUM_THREADS=1 python benchmarks/contextual_loss.py

Both sides take embeddings, normalise them and compute the whole loss (Eq. 6) with its gradient, in float32 on one
thread. The dense side is the straightforward one: masks as matrices, both counts as matrix products, every step on
the graph. Times are the medians of alternating runs; memory is the peak of a fresh process above its inputs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from measure import Finding, conclude, median_seconds, parser
from torch import Tensor

from lookalike.methods.contextual.loss import ContextualLoss
from lookalike.workflow.running.machine import peak_megabytes, resident_megabytes

K, EPS, LAM, GAMMA, TARGET, POSITIVE, NEGATIVE = 4, 0.05, 0.4, 0.1, 0.25, 0.75, 0.6
LIMIT_MS, LIMIT_MB = 150, 120  # for 1024 embeddings of 512


class Heaviside(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, margin: Tensor) -> Tensor:
        return (margin >= 0).float()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return 10 * gradient


def dense_loss(embeddings: Tensor, labels: Tensor) -> Tensor:
    embeddings = F.normalize(embeddings, dim=1)
    similarity = embeddings @ embeddings.T
    distance = (2 - 2 * similarity).clamp(min=0)
    n = len(labels)
    same = (labels[:, None] == labels).float()

    def mask(rank: int) -> Tensor:
        boundary = distance.detach().kthvalue(rank, dim=1, keepdim=True).values
        step: Tensor = Heaviside.apply(-distance + EPS + boundary)
        return step

    near, half = mask(K), mask(K // 2)
    others = 1 - near
    sizes = near.detach().sum(dim=1, keepdim=True)
    shared = (near @ near.T / sizes + others @ others.T / (n - sizes).clamp(min=1)) / 2
    reciprocal = half * half.T
    expanded = reciprocal @ (shared * near) / reciprocal.sum(dim=1, keepdim=True)
    contextual = (expanded + expanded.T) / 2
    off_diagonal = 1 - torch.eye(n)
    first = ((same - contextual).square() * off_diagonal).sum() / n**2
    pull, push = (POSITIVE - similarity).relu() * same, (similarity - NEGATIVE).relu() * (1 - same)
    second = pull.sum() / (pull > 0).sum().clamp(min=1) + push.sum() / (push > 0).sum().clamp(min=1)
    regulariser: Tensor = (TARGET - similarity.mean()).square()
    return LAM * first + (1 - LAM) * second + GAMMA * regulariser


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "dense": dense_loss,
    "ours": ContextualLoss(K, EPS, LAM, GAMMA, TARGET, POSITIVE, NEGATIVE),
}


def batch(n: int, dimension: int, spread: float) -> tuple[Tensor, Tensor]:
    """Embeddings around one direction per class; a spread of 0 collapses all into one."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(n) // K
    centres = torch.randn(n // K, dimension, generator=generator)[labels]
    noise = torch.randn(n, dimension, generator=generator)
    embeddings = centres + noise if spread else torch.ones(n, dimension) + 1e-4 * noise
    return embeddings.requires_grad_(), labels


def run(name: str, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Value and gradient."""
    loss = LOSSES[name](embeddings, labels)
    return loss.detach(), torch.autograd.grad(loss, embeddings)[0]


def milliseconds(n: int, dimension: int, spread: float, repeats: int) -> dict[str, float]:
    embeddings, labels = batch(n, dimension, spread)
    value, gradient = run("ours", embeddings, labels)
    dense_value, dense_gradient = run("dense", embeddings, labels)
    torch.testing.assert_close(value, dense_value, rtol=1e-3, atol=1e-6)
    if spread and (gradient - dense_gradient).norm() > 1e-2 * dense_gradient.norm():
        raise ValueError(f"the gradients of {n} embeddings differ")
    medians = median_seconds({name: partial(run, name, embeddings, labels) for name in LOSSES}, repeats)
    return {name: 1e3 * seconds for name, seconds in medians.items()}


def peak(name: str, n: int, dimension: int) -> float:
    """MB above the inputs of one forward and backward pass, in this process."""
    run(name, *batch(288, 8, 1.0))  # libraries loaded
    embeddings, labels = batch(n, dimension, 1.0)
    before = resident_megabytes()
    run(name, embeddings, labels)
    return peak_megabytes() - before


def peak_of_a_fresh_process(name: str, n: int, dimension: int) -> float:
    command = [sys.executable, __file__, "--peak", name, str(n), str(dimension)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main(arguments: argparse.Namespace) -> None:
    print(f"torch {torch.__version__}, {torch.get_num_threads()} thread, float32, k {K}, eps {EPS}")
    print(f"{'batch':>22} {'density':>10} {'dense ms':>9} {'ours ms':>8} {'ratio':>6}")
    findings: list[Finding] = []
    for n, spread, repeats in ((64, 1, 201), (128, 1, 101), (256, 1, 31), (1024, 1, 11), (1024, 0, 7), (2048, 1, 3)):
        measured = milliseconds(n, 512, spread, repeats)
        ours, dense = measured["ours"], measured["dense"]
        shape, density = f"{n} x 512", "classes" if spread else "collapsed"
        print(f"{shape:>22} {density:>10} {dense:9.2f} {ours:8.2f} {dense / ours:6.2f}", flush=True)
        if (n, spread) == (1024, 1):
            findings.append(Finding(f"forward and backward, {shape}", "ms", ours, LIMIT_MS, plain=dense))
        findings.append(Finding(f"{shape}, {density}", "times the dense path", ours / dense, 1, plain=1))
    peaks = {name: peak_of_a_fresh_process(name, 1024, 512) for name in LOSSES}
    findings.append(
        Finding("peak memory over the input, 1024 x 512", "MB", peaks["ours"], LIMIT_MB, plain=peaks["dense"])
    )
    conclude(findings, arguments.json)


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--peak", nargs=3, metavar=("LOSS", "N", "D"), help="print the peak memory of one side")
    arguments = options.parse_args()
    torch.set_num_threads(1)
    if arguments.peak:
        loss, n, dimension = arguments.peak
        print(peak(loss, int(n), int(dimension)))
    else:
        main(arguments)
