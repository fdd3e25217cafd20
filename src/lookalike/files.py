"""Write results so that a file that exists is whole."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


@contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block ends without an error.

    Raises:
        OSError: if it cannot be written; it names ``path``, also where a full disk is all that the system says.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield temporary
        temporary.replace(target)
    except OSError as error:
        if error.filename not in (None, str(temporary)):
            raise
        raise OSError(error.errno, error.strerror, str(target)) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path | str, text: str) -> None:
    """Write a text file in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path | str, content: Mapping[str, Any]) -> None:
    """Write JSON with sorted keys, so that equal results are equal files."""
    write_text(path, json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n")


def read_json(path: Path | str) -> dict[str, Any]:
    """Mapping of a JSON file.

    Raises:
        ValueError: if the file is broken or holds something else, naming it.
    """
    content = read_json_value(path)
    if not isinstance(content, dict):
        raise ValueError(_no_json(path, f"a {type(content).__name__}, no mapping"))
    return content


def read_json_value(path: Path | str) -> Any:
    """Whatever a JSON file holds.

    Raises:
        ValueError: if the file is broken, naming it.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:  # no JSON, no UTF-8
        raise ValueError(_no_json(path, str(error))) from None


def _no_json(path: Path | str, reason: str) -> str:
    return f"{path} is no whole JSON file ({reason}). Remove it, and the next call makes it again"


def write_tensors(path: Path | str, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Write tensors as safetensors, with what they are about as JSON in the header.

    Raises:
        OSError: if the file cannot be written, naming it.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    with replacing(path) as temporary:
        whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        try:
            save_file(whole, temporary, {"about": json.dumps(about, sort_keys=True)})
        except SafetensorError as error:  # the reason stands in its text only
            number = errno.ENOSPC if "No space left" in str(error) else errno.EIO
            raise OSError(number, os.strerror(number)) from error


def packed_names(names: Sequence[str]) -> Tensor:
    """Names as one tensor of bytes ``(n,)`` uint8: a header of hundred thousand paths would be read with every file."""
    import torch

    return torch.frombuffer(bytearray("\0".join(names), "utf-8", "surrogateescape"), dtype=torch.uint8)


def unpacked_names(packed: Tensor) -> list[str]:
    """Names of a tensor that `packed_names` made."""
    return packed.cpu().numpy().tobytes().decode("utf-8", "surrogateescape").split("\0")


def read_tensors(path: Path | str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors of a safetensors file and what they are about.

    Raises:
        ValueError: if the file is broken or no safetensors file.
    """
    with _opened(path, "pt") as stream:
        return {name: stream.get_tensor(name) for name in stream.keys()}, _about(stream)  # noqa: SIM118  (no mapping)


def read_about(path: Path | str) -> dict[str, Any]:
    """What the tensors of a safetensors file are about, without reading them; empty if the file does not say.

    Raises:
        ValueError: as `read_tensors`.
    """
    with _opened(path, "numpy") as stream:
        return _about(stream)


@contextmanager
def _opened(path: Path | str, framework: str) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder, no safetensors file")
    try:
        with safe_open(str(path), framework=framework) as stream:
            yield stream
    except SafetensorError as error:
        raise ValueError(
            f"{path} is no whole safetensors file ({error}). Trainings leave theirs as "
            "results/<scale>/models/<recipe>/<dataset>/seed<seed>.safetensors, made anew if one is gone"
        ) from None


def _about(stream: Any) -> dict[str, Any]:
    about: dict[str, Any] = json.loads((stream.metadata() or {}).get("about", "{}"))
    return about


def about_model(path: Path | str) -> dict[str, Any]:
    """What the file of a training says of itself, nothing where only the metrics were kept."""
    return read_about(path) if Path(path).is_file() else {}
