"""Time and memory of the contextual loss beside dense automatic differentiation of the same formulas.

Run: OMP_NUM_THREADS=1 python benchmarks/contextual_loss.py

Both sides take embeddings, normalise them and compute the whole loss (Eq. 6) with its gradient, in float32 on one
thread. The dense side is the straightforward one: masks as matrices, both counts as matrix products, every step on
the graph. Times are the medians of alternating runs; memory is the peak of a fresh process above its inputs.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from lookalike.methods.contextual.loss import ContextualLoss

K, EPS, LAM, GAMMA, TARGET, POSITIVE, NEGATIVE = 4, 0.05, 0.4, 0.1, 0.25, 0.75, 0.6
LIMIT_MS, LIMIT_MB = 150, 120  # for 1024 embeddings of 512


class Heaviside(torch.autograd.Function):
    @staticmethod
    def forward(ctx, margin):
        return (margin >= 0).float()

    @staticmethod
    def backward(ctx, gradient):
        return 10 * gradient


def dense_loss(embeddings: Tensor, labels: Tensor) -> Tensor:
    embeddings = F.normalize(embeddings, dim=1)
    similarity = embeddings @ embeddings.T
    distance = (2 - 2 * similarity).clamp(min=0)
    n = len(labels)
    same = (labels[:, None] == labels).float()

    def mask(rank: int) -> Tensor:
        return Heaviside.apply(-distance + EPS + distance.detach().kthvalue(rank, dim=1, keepdim=True).values)

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
    return LAM * first + (1 - LAM) * second + GAMMA * (TARGET - similarity.mean()).square()


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


def run(name: str, embeddings: Tensor, labels: Tensor) -> tuple[float, Tensor]:
    embeddings.grad = None
    start = time.perf_counter()
    loss = LOSSES[name](embeddings, labels)
    loss.backward()
    return 1e3 * (time.perf_counter() - start), loss.detach()


def times(n: int, dimension: int, spread: float, repeats: int) -> dict[str, float]:
    embeddings, labels = batch(n, dimension, spread)
    values, gradients = {}, {}
    for name in LOSSES:
        values[name] = run(name, embeddings, labels)[1]
        gradients[name] = embeddings.grad
    torch.testing.assert_close(values["ours"], values["dense"], rtol=1e-3, atol=1e-6)
    if spread:
        assert (gradients["ours"] - gradients["dense"]).norm() < 1e-2 * gradients["dense"].norm()
    measured: dict[str, list[float]] = {name: [] for name in LOSSES}
    for _ in range(repeats):
        for name in LOSSES:
            measured[name].append(run(name, embeddings, labels)[0])
    return {name: statistics.median(values) for name, values in measured.items()}


def resident(field: str) -> float:
    """``VmRSS`` or ``VmHWM`` of this process in MB."""
    kilobytes = re.search(rf"{field}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert kilobytes is not None
    return int(kilobytes[1]) / 1e3


def peak(name: str, n: int, dimension: int) -> float:
    """MB above the inputs of one forward and backward pass, in this process."""
    run(name, *batch(288, 8, 1.0))  # libraries loaded
    embeddings, labels = batch(n, dimension, 1.0)
    before = resident("VmRSS")
    run(name, embeddings, labels)
    return resident("VmHWM") - before


def peak_of_a_fresh_process(name: str, n: int, dimension: int) -> float:
    command = [sys.executable, __file__, "--peak", name, str(n), str(dimension)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    print(f"torch {torch.__version__}, {torch.get_num_threads()} thread, float32, k {K}, eps {EPS}")
    print(f"{'batch':>22} {'density':>10} {'dense ms':>9} {'ours ms':>8} {'ratio':>6}")
    for n, dimension, spread, repeats in (
        (64, 512, 1.0, 51),
        (128, 512, 1.0, 51),
        (256, 512, 1.0, 31),
        (1024, 512, 1.0, 11),
        (1024, 512, 0.0, 7),
        (2048, 512, 1.0, 3),
    ):
        measured = times(n, dimension, spread, repeats)
        shape = f"{n} x {dimension}"
        density = "classes" if spread else "collapsed"
        ratio = measured["dense"] / measured["ours"]
        print(f"{shape:>22} {density:>10} {measured['dense']:9.2f} {measured['ours']:8.2f} {ratio:6.2f}", flush=True)
        if (n, spread) == (1024, 1.0):
            print(f"{'':>22} limit {LIMIT_MS} ms: {'met' if measured['ours'] <= LIMIT_MS else 'MISSED'}")
    peaks = {name: peak_of_a_fresh_process(name, 1024, 512) for name in LOSSES}
    met = "met" if peaks["ours"] <= LIMIT_MB else "MISSED"
    print("peak memory over the input, 1024 x 512: ", end="")
    print(f"dense {peaks['dense']:.0f} MB, ours {peaks['ours']:.0f} MB, ", end="")
    print(f"ratio {peaks['dense'] / peaks['ours']:.2f}; limit {LIMIT_MB} MB: {met}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peak", nargs=3, metavar=("LOSS", "N", "D"), help="print the peak memory of one side")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.peak:
        loss, n, dimension = arguments.peak
        print(peak(loss, int(n), int(dimension)))
    else:
        main()
