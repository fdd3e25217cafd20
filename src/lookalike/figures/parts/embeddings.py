"""Embeddings as figures read them from the files of the runs."""

from __future__ import annotations

from torch import Tensor

from lookalike.figures.parts.form import Run
from lookalike.files import read_tensors


def read_embeddings(run: Run, role: str) -> tuple[Tensor, Tensor]:
    """Embeddings ``(N, D)`` of the best epoch, not normalised, and labels ``(N,)`` of one role.

    Raises:
        ValueError: if the run has not embedded that role, naming the file and what it holds.
    """
    tensors, _ = read_tensors(run.path)
    name = f"best/{role}/embedding"
    if name not in tensors:
        hint = "; embed.training_pictures of its recipe must be true" if role == "train" else ""
        raise ValueError(f"{run.path} holds no {name}{hint}; it holds {', '.join(sorted(tensors))}")
    return tensors[name], tensors[f"labels/{role}"]
