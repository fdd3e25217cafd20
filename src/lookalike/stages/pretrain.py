"""Make the start of the network that learns from drawn data: train a classifier of figurines that no data set shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from figurines import write_figurines
from lookalike.data import read_layout
from lookalike.data.manifest import with_file_hashes, write_manifest
from lookalike.files import read_tensors, write_tensors
from lookalike.stages.train import train

TRUNK = "last/model.trunk.stages."


def pretrain(
    settings: Mapping[str, Any],
    *,
    drawn: Sequence[Mapping[str, Any]],
    measured_on: Sequence[Mapping[str, Any]],
    seed: int,
    code: str,
    folder: str,
    weights: str,
    history: str,
) -> None:
    """Draw, train, and keep the trunk after the last epoch.

    Args:
        settings: section ``train`` of a recipe.
        drawn: sets of figurines to learn from: ``name``, and the ``specification`` that draws and reads them.
        measured_on: sets that are searched between epochs.
        seed: of the training.
        code: digest of the code behind the result.
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
    model = root / "model.safetensors"
    resume = root / ".unfinished"
    train(
        settings,
        seed=seed,
        code=code,
        manifest=str(manifest),
        root=str(root),
        model=str(model),
        history=history,
        resume=str(resume),
    )
    tensors, about = read_tensors(model)
    trunk = {name.removeprefix(TRUNK): tensor for name, tensor in tensors.items() if name.startswith(TRUNK)}
    species = {role: int(frame.loc[frame["role"] == role, "label"].nunique()) for role in ("train", "test")}
    write_tensors(weights, trunk, {**about, "drawn": [each["name"] for each in drawn], "species": species})


def _species(root: Path, drawn: Mapping[str, Any], role: str, place: int) -> pd.DataFrame:
    """Pictures of a set under labels of their own, all of one role."""
    home, specification = root / drawn["name"], drawn["specification"]
    if not home.is_dir():
        write_figurines(specification["generator"]["preset"], home, seed=specification["generator"]["seed"])
    frame = read_layout(specification, home)
    return pd.DataFrame(
        {
            "path": [f"{drawn['name']}/{path}" for path in frame["path"]],
            "label": frame["label"] + 1_000_000 * place,
            "role": role,
        }
    )
