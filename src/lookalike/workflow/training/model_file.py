"""Read a trained model, and how it wants its pictures, back from the file that its training left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from torch import Tensor, nn

from lookalike.base.checks import require_known
from lookalike.base.files import read_about, read_tensors
from lookalike.metrics.names import CHECKPOINTS, REPORTED
from lookalike.workflow.settings.model import checked
from lookalike.workflow.settings.recipes import Network, View
from lookalike.workflow.training.images import transform
from lookalike.workflow.training.methods import LEARNERS

FACTS = ("best_epoch", "epochs", "seed")


@dataclass(frozen=True)
class Training:
    """Settings and facts of a training, as its model's file states them.

    Attributes:
        settings: what its network was built by.
        facts: what results say of it that are made by the model; what made the model stands in their records.
    """

    settings: Network
    facts: dict[str, Any]

    @property
    def ends_at_its_best(self) -> bool:
        """Whether the best checkpoint and the last one are the same."""
        return bool(self.facts["best_epoch"] == self.facts["epochs"])


def load(run: Path | str, checkpoint: str = REPORTED) -> nn.Module:
    """The model of a finished run, ready to use: in evaluation mode, on the CPU.

    Args:
        run: the safetensors file of a training, ``results/<scale>/models/<recipe>/<dataset>/seed<seed>.safetensors``.
        checkpoint: ``last``, or ``best``, the epoch with the best R@1 on the test split (what the papers report).

    Returns:
        An ``Embedder`` (images ``(N, 3, H, W)`` to embeddings ``(N, D)``), or for runs of AVSL and DIML an ``AVSL`` or
        a ``DIML``. All of them are ``nn.Module``; ``safetensors.torch.save_file(model.state_dict(), path)`` exports.

    Raises:
        ValueError: for another checkpoint, or a file that is no training's.
    """
    return load_model(run, checkpoint)[0]


def transform_of(run: Path | str) -> Callable[[Image.Image], Tensor]:
    """Transform by which the test pictures of a run became images, as its model wants them.

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
    return transform(checked(View, about["settings"]["test_image"], f"{run}, test_image"))


def load_model(path: Path | str, checkpoint: str = REPORTED) -> tuple[nn.Module, Training]:
    """The model as `load` returns it, and the settings and facts of its training.

    Raises:
        ValueError: as `load`, and for a model whose settings or weights are not those of today's code.
    """
    require_known("checkpoint", checkpoint, CHECKPOINTS)
    tensors, about = read_tensors(path)
    _check_training(about, path)
    facts = {key: about[key] for key in FACTS if key in about}
    stored = REPORTED if about["best_epoch"] == about["epochs"] else checkpoint
    prefix = f"{stored}/model."
    state = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    stated = {key: value for key, value in about["settings"].items() if key in Network.model_fields}
    try:
        trained = Training(checked(Network, stated, "settings"), facts)
        model = LEARNERS[trained.settings.method.name].build(trained.settings.untrained())
        model.load_state_dict(state)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:  # as torch words it, over many lines
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{path} was written by other code than today's, with which it cannot be read ({type(error).__name__}: "
            f"{reason}). `snakemake --cores all --forcerun train <file>` trains it again"
        ) from error
    return model.eval(), trained


def _check_training(about: dict[str, Any], path: Path | str) -> None:
    if not {"settings", "best_epoch", "epochs"} <= about.keys():
        raise ValueError(f"{path} is not the model of a training, which says of itself with which settings it was made")
