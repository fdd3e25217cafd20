"""Processor time of a training step with similarity mining beside the plain triplet step on the same tuples.

Run: OMP_NUM_THREADS=1 python benchmarks/sam_mining.py

Both steps embed every image of the triplets, take the triplet hinge and go backwards; with mining the masked images
pass the network once more, their masks on the graph. The paths of the attention: ``closed form`` of a ``LinearHead``,
``backward pass`` through the same head as any module, ``detached`` mask. One thread, float32, training mode; steps
alternate, and a ratio is the median over the rounds.

The step with mining holds twice the activations. Where glibc hands them back to the system after each step, page faults
add up to 0.2 to a ratio; with ``MALLOC_TOP_PAD_=1000000000 MALLOC_MMAP_THRESHOLD_=1000000000`` they do not.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from measure import Finding, conclude, parser, processor_seconds
from torch import Tensor, nn
from torchvision.models import resnet18
from torchvision.models.resnet import BasicBlock, ResNet

from lookalike.methods.sam.head import LinearHead, PoolingHead
from lookalike.methods.sam.loss import mining_loss
from lookalike.methods.sam.mining import read_maps
from lookalike.methods.sam.model import SimilarityAttention
from lookalike.models.backbones import Tiny

LIMIT, DIM, MARGIN, GAMMA = 2.3, 128, 0.2, 0.2
Step = Callable[[], None]


def without_classifier(network: ResNet) -> nn.Module:
    return nn.Sequential(*list(network.children())[:-2])


def residual_block(inputs: int, outputs: int) -> nn.Module:
    shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=2, bias=False), nn.BatchNorm2d(outputs))
    block: nn.Module = BasicBlock(inputs, outputs, stride=2, downsample=shortcut)
    return block


def small_resnet() -> nn.Module:
    stem = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)
    return nn.Sequential(*stem, residual_block(16, 32), residual_block(32, 64), residual_block(64, 128))


def networks() -> dict[str, tuple[nn.Module, int, int]]:
    """Trunk, channels and image size in pixels."""
    return {
        "small resnet, 56 px": (small_resnet(), 128, 56),
        "tiny, 56 px": (Tiny(), 96, 56),
        "resnet10, 64 px": (without_classifier(ResNet(BasicBlock, [1, 1, 1, 1])), 512, 64),
        "resnet18, 96 px": (without_classifier(resnet18()), 512, 96),
    }


def features_and_loss(model: SimilarityAttention, images: Tensor) -> tuple[Tensor, Tensor]:
    feature_maps = read_maps(model.trunk, images)
    anchor, positive, negative = model.head(feature_maps.flatten(0, 1)).view(*images.shape[:2], DIM)
    near, far = F.pairwise_distance(anchor, positive), F.pairwise_distance(anchor, negative)
    return feature_maps, (near - far + MARGIN).relu().mean()


def plain_step(model: SimilarityAttention, images: Tensor) -> None:
    model.zero_grad()
    _, loss = features_and_loss(model, images)
    torch.autograd.backward(loss)


def mining_step(model: SimilarityAttention, images: Tensor) -> None:
    model.zero_grad()
    feature_maps, loss = features_and_loss(model, images)
    erased = model.erase(images, feature_maps, "triplet")
    torch.autograd.backward(loss + GAMMA * mining_loss(erased.features, "triplet").mean())


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--triplets", type=int, default=8)
    options.add_argument("--repeats", type=int, default=7)
    arguments = options.parse_args()
    torch.set_num_threads(1)
    print(f"{arguments.triplets} triplets, D={DIM}, median of {arguments.repeats}")
    findings: list[Finding] = []
    for name, (trunk, channels, pixels) in networks().items():
        torch.manual_seed(0)
        images = torch.randn(3, arguments.triplets, 3, pixels, pixels)
        linear = nn.Linear(channels, DIM)
        general = PoolingHead(lambda maps: maps.mean(dim=(2, 3)), linear)
        models = {
            "closed form": SimilarityAttention(trunk, LinearHead(linear)),
            "backward pass": SimilarityAttention(trunk, general),
            "detached": SimilarityAttention(trunk, LinearHead(linear), detach_mask=True),
        }
        steps: dict[str, Step] = {"plain": partial(plain_step, models["closed form"], images)}
        steps |= {path: partial(mining_step, model, images) for path, model in models.items()}
        times = processor_seconds(steps, arguments.repeats)
        print(f"{name}: plain step {1e3 * statistics.median(times['plain']):.0f} ms")
        for path in models:
            ratio = statistics.median(mining / plain for mining, plain in zip(times[path], times["plain"], strict=True))
            print(f"    mining, {path:14s}{1e3 * statistics.median(times[path]):7.0f} ms")
            findings.append(Finding(f"mining, {path}, {name}", "times the plain step", ratio, LIMIT, plain=1.0))
    conclude(findings, arguments.json)


if __name__ == "__main__":
    main()
