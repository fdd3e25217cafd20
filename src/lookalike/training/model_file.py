"""Read a trained model, and how it wants its pictures, back from the file that its training left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from torch import Tensor, nn

from lookalike.checks import require_known
from lookalike.files import read_about, read_tensors
from lookalike.metrics.names import CHECKPOINTS
from lookalike.training.images import transform
from lookalike.training.methods import LEARNERS

FACTS = ("best_epoch", "epochs", "seed", "code", "data", "weights")


def load(run: Path | str, checkpoint: str = "best") -> nn.Module:
    """The model of a finished run, ready to use: in evaluation mode, on the CPU.

    Args:
        run: the safetensors file of a training, ``results/<scale>/models/<recipe>/<dataset>/seed<seed>.safetensors``.
        checkpoint: ``best``, the epoch with the best R@1 on the test split (what the papers report), or ``last``.

    Returns:
        An ``Embedder`` (images ``(N, 3, H, W)`` to embeddings ``(N, D)``), or for runs of AVSL and DIML an ``AVSL`` or
        a ``DIML``. All of them are ``nn.Module``; ``safetensors.torch.save_file(model.state_dict(), path)`` exports.

    Raises:
        ValueError: for another checkpoint, or a file that is no training's.
    """
    return load_model(run, checkpoint)[0]


def transform_of(run: Path | str) -> Callable[[Image.Image], Tensor]:
    """How the test pictures of a run were made into images: what its model wants to see.

    Args:
        run: the safetensors file of a training.

    Returns:
        A transform of torchvision from a picture (``PIL.Image``, any mode and size) to an image ``(3, H, W)`` float32:
        resized, its centre cropped, normalised by ImageNet's mean and deviation.

    Raises:
        ValueError: for a file that is no training's.
    """
    about = read_about(run)
    _check_training(about, run)
    return transform(about["settings"]["test_image"])


def load_model(path: Path | str, checkpoint: str = "best") -> tuple[nn.Module, dict[str, Any]]:
    """The model as `load` returns it, and what its file is about: settings, seed, code digest, epochs.

    Raises:
        ValueError: as `load`, and for a model whose settings or weights are not those of today's code.
    """
    require_known("checkpoint", checkpoint, CHECKPOINTS)
    tensors, about = read_tensors(path)
    _check_training(about, path)
    stored = "last" if about["best_epoch"] == about["epochs"] else checkpoint
    prefix = f"{stored}/model."
    state = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    settings = about["settings"]
    try:
        untrained = {**settings, "backbone": {**settings["backbone"], "weights": None}}
        model = LEARNERS[settings["method"]["name"]].build(untrained)
        model.load_state_dict(state)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:  # as torch words it, over many lines
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{path} was written by other code than today's, with which it cannot be read ({type(error).__name__}: "
            f"{reason}). `snakemake --cores all --forcerun train <file>` trains it again"
        ) from error
    return model.eval(), about


def training_facts(about: dict[str, Any]) -> dict[str, Any]:
    """What a result that is made by a model says of its training; files of older code have no digest of weights."""
    return {key: about[key] for key in FACTS if key in about or key != "weights"}


def _check_training(about: dict[str, Any], path: Path | str) -> None:
    if not {"settings", "best_epoch", "epochs"} <= about.keys():
        raise ValueError(f"{path} is not the model of a training, which says of itself with which settings it was made")
