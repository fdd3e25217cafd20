"""The training pictures of one run: all of them, or fewer, or with errors put in on purpose (Contextual, Fig. 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from lookalike.methods.contextual.robustness import images_to_replace, noisy_labels, of_first_classes
from lookalike.training.roles import Role


def disturbed(training: Role, noise: Mapping[str, Any], strangers: Sequence[Path], *, seed: int) -> Role:
    """Training pictures with the noise of a recipe, drawn once per run.

    First classes are left out, then labels are drawn anew, then pictures replaced, their labels kept.

    Args:
        training: training pictures as the split has them.
        noise: the recipe's ``noise``: ``classes``, share of the classes that stay, the first ones; ``labels``, share
            of the pictures with a random label; ``images``, share of the pictures that are replaced.
        strangers: pictures of no class of the data set, drawn without repetition while they last.
        seed: seed of the run's draws.

    Raises:
        ValueError: if pictures are to be replaced and there are no strangers.
    """
    if noise["images"] > 0 and not strangers:
        raise ValueError(f"noise.images={noise['images']} needs strangers to replace pictures by, there are none")
    generator = torch.Generator().manual_seed(seed)
    if noise["classes"] < 1:
        count = round(noise["classes"] * training.numbered()[1])
        training = training.chosen(of_first_classes(training.labels, count).nonzero().flatten())
    if noise["labels"] > 0:
        training = replace(training, labels=noisy_labels(training.labels, noise["labels"], generator))
    if noise["images"] > 0:
        positions = images_to_replace(len(training.paths), noise["images"], generator).tolist()
        order = torch.randperm(len(strangers), generator=generator).tolist()
        paths = list(training.paths)
        for number, position in enumerate(positions):
            paths[position] = strangers[order[number % len(order)]]
        training = replace(training, paths=paths)
    return training
