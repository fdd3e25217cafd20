"""What can be asked of own pictures: refused where it cannot, before anything slow is imported."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

UNTRAINED = "untrained:"
TRAINING = "the file of a finished training, results/<scale>/models/<recipe>/<dataset>/seed<seed>.safetensors"
FORMS = f"{TRAINING}, or {UNTRAINED}NAME[=FILE]"
# As `lookalike.own.ranking` and `lookalike.explanations.choice` have them, which import torch.
WAYS = ("cosine", "structure", "graph")
METHODS = ("activation", "structure", "attention", "gradient", "class_agnostic", "graph")
WEIGHTS = (".pth", ".pt", ".bin", ".ckpt")  # endings of files that torch writes
_EXAMPLE = "is NAME=FILE, such as squeezenet1_1=weights/squeezenet1_1.pth"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def on_disk(text: str | Path) -> Path:
    """A path as it was typed.

    Raises:
        ValueError: for an address, of which a path would lose a slash.
    """
    if _ADDRESS.match(str(text)):
        raise ValueError(f"{text}: is an address; files are read from the disk, download it first")
    return Path(text)


def weights_of(where: str, text: str) -> tuple[str, Path | None]:
    """Name and weights file of ``NAME[=FILE]``.

    Raises:
        ValueError: without a name, or for a file that is not there.
    """
    name, mark, file = text.partition("=")
    if not name or (mark and not file):
        raise ValueError(f"{where}{text}: {_EXAMPLE}")
    if mark and not on_disk(file).is_file():
        raise ValueError(f"{where}{text}: there is no file {file}")
    return name, Path(file) if mark else None


def given_weights(text: str) -> tuple[str, Path]:
    """Name and weights file of what `recommend` is given.

    Raises:
        ValueError: as `weights_of`, and without a file.
    """
    name, file = weights_of("--weights ", text)
    if file is None:
        raise ValueError(f"--weights {text}: {_EXAMPLE}")
    return name, file


def check_model(name: str, *, runs: bool = False) -> None:
    """Refuse what cannot name a model.

    Args:
        name: the file of a training, or ``untrained:NAME[=FILE]``.
        runs: whether a run of a project may be meant, too.

    Raises:
        ValueError: saying what it is instead, and what would name a model.
    """
    from lookalike.data.junk import is_image  # with pandas, which --help needs not

    if name.startswith(UNTRAINED):
        weights_of(UNTRAINED, name.removeprefix(UNTRAINED))
        return
    path, forms = on_disk(name), f"RECIPE@DATASET, {FORMS}" if runs else FORMS
    if path.is_dir() or is_image(name):
        raise ValueError(f"{name}: is a {'folder' if path.is_dir() else 'picture'}; a model comes first, {forms}")
    if path.suffix in WEIGHTS:
        raise ValueError(f"{name}: weights do not say of which network they are; {UNTRAINED}NAME={name} does")
    if path.is_file():
        return
    if path.suffix == ".safetensors":
        raise ValueError(f"{name}: no such file; a training that has not finished leaves none")
    near = [f"{UNTRAINED}{name}", *([f"{name}@DATASET"] if runs else [])] if re.fullmatch(r"\w+", name) else []
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    raise ValueError(f"{name}: a model is {forms}{meant}")


def check_size(size_px: int | None) -> None:
    """Refuse a side of pictures that has no pixel.

    Raises:
        ValueError: naming it.
    """
    if size_px is not None and size_px < 1:
        raise ValueError(f"--size {size_px}: pictures have a side of at least 1 pixel")


def check_request(*, hours: float, weights: Sequence[str], size_px: int | None, cores: int | None) -> None:
    """Refuse what a recommendation cannot be made with; arguments as of `lookalike recommend`.

    Raises:
        ValueError: naming the option and its value.
    """
    if not 0 < hours < math.inf:
        raise ValueError(f"--hours {hours:g}: it takes time above 0, and an end")
    if cores is not None and cores < 1:
        raise ValueError(f"--cores {cores}: at least 1 is needed")
    check_size(size_px)
    for each in weights:
        given_weights(each)
