"""Make the start of the network that learns from drawn data: train a classifier of figurines that no data set shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from figurines import write_figurines
from lookalike.base.files import read_tensors, write_tensors
from lookalike.workflow.data import read_layout
from lookalike.workflow.data.manifest import with_file_hashes, write_manifest
from lookalike.workflow.settings.recipes import Train
from lookalike.workflow.settings.start import DrawnSet
from lookalike.workflow.stages.train import train

TRUNK = "last/model.trunk.stages."


def pretrain(
    settings: Train,
    *,
    drawn: Sequence[DrawnSet],
    measured_on: Sequence[DrawnSet],
    seed: int,
    code: str,
    folder: str,
    weights: str,
    history: str,
) -> None:
    """Draw, train, and keep the trunk after the last epoch.

    Args:
        settings: section ``train`` of a recipe.
        drawn: sets of figurines to learn from.
        measured_on: sets that are searched between epochs.
        seed: of the training.
        folder: for pictures, manifest and model; what is there is drawn no second time.
        weights: safetensors to write: the network as `lookalike.models.backbones.load_weights` reads it, and with it
            settings, digests of code and data, and what was drawn.
        history: CSV to write: loss and R@1 per epoch.
    """
    root = Path(folder)
    manifest = root / "split.csv"
    sets = [(each, "train") for each in drawn] + [(each, "test") for each in measured_on]
    frame = pd.concat([_species(root, each, role, place) for place, (each, role) in enumerate(sets)], ignore_index=True)
    write_manifest(with_file_hashes(frame, root), manifest)
    model = str(root / "model.safetensors")
    found, resume = str(manifest), str(root / ".unfinished")
    train(settings, seed=seed, code=code, manifest=found, root=folder, model=model, history=history, resume=resume)
    tensors, about = read_tensors(model)
    trunk = {name.removeprefix(TRUNK): tensor for name, tensor in tensors.items() if name.startswith(TRUNK)}
    species = {role: int(frame.loc[frame["role"] == role, "label"].nunique()) for role in ("train", "test")}
    write_tensors(weights, trunk, {**about, "drawn": [each.name for each in drawn], "species": species})


def _species(root: Path, drawn: DrawnSet, role: str, place: int) -> pd.DataFrame:
    """Pictures of a set under labels of their own, all of one role."""
    home, generator = root / drawn.name, drawn.specification.generator
    if generator and not home.is_dir():
        write_figurines(generator.preset, home, seed=generator.seed)
    frame = read_layout(drawn.specification, home)
    return pd.DataFrame(
        {
            "path": [f"{drawn.name}/{path}" for path in frame["path"]],
            "label": frame["label"] + 1_000_000 * place,
            "role": role,
        }
    )
