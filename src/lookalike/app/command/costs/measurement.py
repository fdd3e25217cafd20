"""Measure times of trainings and searches on the device at hand, by training for some steps."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lookalike.app.command.costs.cards import Measured, card_of, write_card
from lookalike.app.command.costs.overview import device_at_hand
from lookalike.app.own.step_cost import Kind, kind_of, measured_learner, now
from lookalike.sampling.samplers import build_sampler
from lookalike.workflow.data.junk import is_image
from lookalike.workflow.running.devices import loading_threads
from lookalike.workflow.settings.recipes import Train
from lookalike.workflow.training.evaluation import SEARCHED_AT_ONCE, represent_images
from lookalike.workflow.training.images import Decoder, Images, Loader

WARM_UP = 5  # steps that also allocate, compile and fill the caches


def print_card(trainings: Sequence[Train], pictures: Path, *, steps: int) -> None:
    """Measure every kind of training on this device, print a table, and keep it in ``params/cards``.

    Args:
        trainings: ``train`` sections, of which those without a loss are left out.
        pictures: folder with a folder of pictures per class.
        steps: of each kind.

    Raises:
        ValueError: if the pictures cannot fill a batch of a recipe.
    """
    device, name = device_at_hand()
    kinds: dict[Kind, Measured] = {}
    print("| kind of training | pictures/s | network alone | share | searched pictures/s | GB |")
    print("|:--|--:|--:|--:|--:|--:|")
    learning = [train for train in trainings if train.loss is not None]
    for kind, values in measure_card(learning, pictures, device=device, steps=steps):
        kinds[kind] = values
        loaded, alone, searched = (1000 / each for each in (values.step_ms, values.alone_ms, values.search_ms))
        memory = f"{values.memory_gb:.1f}" if device.type == "cuda" else "–"
        figures = f"{loaded:,.0f} | {alone:,.0f} | {values.share:.2f} | {searched:,.0f} | {memory}"
        print(f"| {kind} | {figures} |", flush=True)
    card = card_of(name, steps, kinds)
    versions = ", ".join(f"{each} {version}" for each, version in card.versions.items())
    print(f"\n{name}, {card.date}, {versions}, {steps} steps each; kept in {write_card(card)}")


def pictures_in(folder: Path) -> tuple[list[Path], Tensor]:
    """Pictures of a folder with a folder per class, and their classes ``(N,)`` counted from 0.

    Raises:
        ValueError: for a folder without pictures of at least two classes.
    """
    paths = sorted(path for path in folder.glob("*/*") if is_image(path.name))
    classes, labels = np.unique([path.parent.name for path in paths], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"{folder} has pictures in {len(classes)} folders, a folder for each of two classes is needed")
    return paths, torch.from_numpy(labels.astype(np.int64))


def measure_kind(
    train: Train, paths: Sequence[Path], labels: Tensor, *, device: torch.device, steps: int, folder: Path
) -> Measured:
    """Train for some steps from a random start, as `lookalike.workflow.training.loop.fit` does, and measure.

    Args:
        train: a recipe's ``train`` section, with a loss.
        paths: of training pictures, which are also searched.
        labels: ``(N,)`` their classes.
        device: to measure on.
        steps: measured, after a few to warm up.
        folder: in which decoded pictures are kept.

    Raises:
        ValueError: if the pictures cannot fill a batch of the recipe.
    """
    learner, taken = measured_learner(train, classes=int(labels.max()) + 1, device=device)
    on_cuda = device.type == "cuda"
    workers = loading_threads() - 1 if on_cuda else 0  # as jobs have
    loaders = []
    for view in (train.image, train.test_image):
        listed = folder / "listed.csv"
        listed.write_text("\n".join(map(str, paths)), encoding="utf-8")
        decoder = Decoder(str(folder / "decoded"), 100, workers + 1)
        images = Images(paths, view, decoder.pictures(paths, view, manifest=listed, root=paths[0].parents[1]))
        loaders.append(Loader(images, device=device, workers=workers))

    def step(pictures: Tensor, chosen: Tensor) -> None:
        taken.optimiser.zero_grad()
        taken.take(learner(pictures, labels[chosen]))

    _reset_memory(device)
    seen, started, batch = 0, 0.0, None
    for number, batch in enumerate(islice(_batches(train, loaders[0], labels), WARM_UP + steps)):
        if number == WARM_UP:
            started = now(device)
        seen += len(batch[1]) if number >= WARM_UP else 0
        step(*batch)
    loaded = now(device) - started
    started = now(device)
    assert batch is not None
    for _ in range(steps):
        step(*batch)
    alone = now(device) - started
    memory = torch.cuda.max_memory_allocated(device) / 1e9 if on_cuda else 0.0
    searched = []
    for _ in range(2):  # the first one starts the loading processes
        started = now(device)
        represent_images(learner.searched, learner.model, loaders[1], batch_size=SEARCHED_AT_ONCE)
        searched.append(now(device) - started)
    return Measured(
        step_ms=round(1000 * loaded / seen, 4),
        alone_ms=round(1000 * alone / (steps * len(batch[1])), 4),
        search_ms=round(1000 * searched[1] / len(paths), 4),
        memory_gb=round(memory, 2),
    )


def measure_card(
    trainings: Sequence[Train], pictures: Path, *, device: torch.device, steps: int
) -> Iterator[tuple[Kind, Measured]]:
    """Measure the first training of each kind, in the order of the kinds.

    Args:
        trainings: ``train`` sections with a loss.
        pictures: folder with a folder of pictures per class.
        device: to measure on.
        steps: of each kind.
    """
    paths, labels = pictures_in(pictures)
    kinds: dict[Kind, Train] = {}
    for train in trainings:
        kinds.setdefault(kind_of(train), train)
    with tempfile.TemporaryDirectory() as folder:
        for kind, train in sorted(kinds.items()):
            yield kind, measure_kind(train, paths, labels, device=device, steps=steps, folder=Path(folder))


def _batches(train: Train, loader: Loader, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of one epoch after the other, each as long as the recipe's: its loading begins as the last one ends."""
    chosen, batches = train.sampler, train.budget.batches_per_epoch
    sampler = build_sampler(
        chosen.name,
        chosen.options,
        labels=labels,
        coarse_labels=labels % 2,
        batch_size=train.batch_size,
        seed=0,
        batches=batches,
    )
    for epoch in count():
        sampler.set_epoch(epoch)
        yield from loader.batches(sampler, seed=epoch)


def _reset_memory(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
