"""Read a trained model back from the file that its training left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lookalike.files import read_tensors
from lookalike.models.embedder import Embedder


def load_model(path: Path | str, checkpoint: str = "best") -> tuple[Embedder, dict[str, Any]]:
    """A model ready to embed, in evaluation mode, on the CPU.

    Args:
        path: the safetensors file that a training wrote.
        checkpoint: ``best``, the epoch with the best R@1 on the test split (what the papers report), or ``last``.

    Returns:
        The model, and what the file is about: settings, seed, code digest, epochs.

    Raises:
        ValueError: for another checkpoint.
    """
    if checkpoint not in ("best", "last"):
        raise ValueError(f"unknown checkpoint {checkpoint!r}; known: best, last")
    tensors, about = read_tensors(path)
    stored = "last" if about["best_epoch"] == about["epochs"] else checkpoint
    prefix = f"{stored}/model."
    state = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    settings = about["settings"]
    model = Embedder({**settings["backbone"], "weights": None}, **settings["embedding"])
    model.load_state_dict(state)
    return model.eval(), about
