"""Trainings small enough for unit tests: settings for every method, batches, and pictures on disk."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from lookalike.base.files import write_tensors
from lookalike.workflow.settings.layers import merge
from lookalike.workflow.settings.recipes import Train
from lookalike.workflow.training.learner import Learner
from lookalike.workflow.training.methods import LEARNERS

CROP = 24
CLASSES = 3
SETTINGS: dict[str, Any] = {
    "backbone": {"name": "tiny", "weights": None, "batch_norm": "trained"},
    "method": {"name": "embedder"},
    "embedding": {"pooling": "average", "dim": 8, "initialisation": "default"},
    "projector": None,
    "loss": {"name": "margin"},
    "regulariser": None,
    "noise": {"labels": 0.0, "images": 0.0, "classes": 1.0},
    "sampler": {"name": "m_per_class", "per_class": 2},
    "batch_size": 6,
    "mixed_precision": False,
    "acceleration": [],
    "image": {"resize_px": 28, "crop_px": CROP, "scale": [0.5, 1.0], "ratio": [0.8, 1.25], "flip": 0.5},
    "test_image": {"resize_px": 28, "crop_px": CROP},
    "optimiser": {
        "algorithm": "adamw",
        "lr": {"trunk": 1e-2, "head": 1e-2, "projector": 1e-2, "proxies": 1e-2, "boundaries": 1e-2},
        "weight_decay": 1e-4,
        "loss_weight_decay": 0.0,
        "clip_norm": None,
    },
    "schedule": {
        "step_epochs": None,
        "factor": 1.0,
        "warm_up_epochs": 0,
        "warm_up_counts": False,
        "resting": ["trunk"],
    },
    "budget": {
        "epochs": 2,
        "batches_per_epoch": 2,
        "evaluate_every": 1,
        "patience": None,
        "collapse": None,
        "metrics": ["R@1"],
    },
}
# Every method, and losses with proxies, with boundaries and with neither.
METHODS: dict[str, dict[str, Any]] = {
    "embedder": {"loss": {"name": "margin"}},
    "proxies": {"loss": {"name": "proxy_anchor"}},
    "projected": {
        "loss": {"name": "margin"},
        "projector": {"width": 12},
        "regulariser": {"gamma": 0.25, "target_similarity": 0.3, "combine": "convex"},
    },
    "avsl": {"method": {"name": "avsl", "k": 4}, "loss": {"name": "proxy_anchor"}},
    "avsl_margin": {"method": {"name": "avsl", "k": 4, "reliability": "learned"}, "loss": {"name": "margin"}},
    "diml": {"method": {"name": "diml", "side": 2}, "loss": {"name": "margin"}},
    "sam": {"method": {"name": "sam", "kind": "triplet"}, "loss": {"name": "triplet"}},
    "sam_parts": {
        "method": {"name": "sam", "kind": "triplet", "miner": "hardest"},
        "embedding": {"pooling": "stripes", "parts": 3, "dim": 9},
        "loss": {"name": "part_cross_entropy", "parts": 3},
    },
}


def section(method: str, over: Mapping[str, Any] | None = None) -> Train:
    """The ``train`` section of one of `METHODS`."""
    return Train.model_validate(merge(merge(SETTINGS, METHODS[method]), over or {}))


def learner(method: str, over: Mapping[str, Any] | None = None, *, seed: int = 0) -> Learner:
    """The learner of one of `METHODS`, its weights drawn from a seed, in training mode."""
    settings = section(method, over)
    torch.manual_seed(seed)
    return LEARNERS[settings.method.name](settings, classes=CLASSES).train()


def batch(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Nine images of three classes, those of a class alike."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(9) % CLASSES
    shown = torch.randn(CLASSES, 3, CROP, CROP, generator=generator)
    return shown[labels] + 0.5 * torch.randn(9, 3, CROP, CROP, generator=generator), labels


def write_dataset(folder: Path, roles: Mapping[str, int], *, classes: int = CLASSES) -> Path:
    """Pictures of ``classes`` classes, so many of each class per role, and the manifest that lists them."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    lines = ["path,label,role"]
    for place, (role, each) in enumerate(roles.items()):
        first = 0 if role == "train" else classes
        for label in range(first, first + classes):
            for number in range(each):
                colour = np.random.default_rng(label).integers(60, 200, 3)
                name = f"{place}-{label}-{number}.png"
                pixels = colour + generator.integers(-50, 50, (30, 34, 3))
                Image.fromarray(pixels.astype(np.uint8)).save(folder / name)
                lines.append(f"{name},{label},{role}")
    manifest = folder / "manifest.csv"
    manifest.write_text("\n".join(lines) + "\n")
    return manifest


def save(path: Path, method: str, *, best_epoch: int = 1, over: Mapping[str, Any] | None = None) -> dict[str, Learner]:
    """A training's file, as the stage leaves it, and the learners whose states it holds."""
    learners = {kind: learner(method, over, seed=seed) for seed, kind in enumerate(("best", "last"))}
    for seed, each in enumerate(learners.values()):
        each(*batch(seed))  # statistics of batch norm, edges
    kept = ["last"] if best_epoch == 2 else ["best", "last"]
    states = {f"{kind}/{name}": tensor for kind in kept for name, tensor in learners[kind].state_dict().items()}
    about = {
        "settings": section(method, over).dump(),
        "best_epoch": best_epoch,
        "epochs": 2,
        "seed": 0,
        "code": "c",
        "data": "d",
    }
    write_tensors(path, states, about)
    return learners
