"""Write results so that a file that exists is whole."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def state_of(found: os.stat_result) -> tuple[int, int, int]:
    """State of a file's content, known without reading it: its size, and the times of content and file.

    Both times are nanoseconds. A copy sets the first one back, but no program the second one.
    """
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


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


def read_text(path: Path) -> str:
    """Text that a person has written, in UTF-8 with or without a byte order mark.

    Raises:
        ValueError: naming the file and the remedy, if it is in another encoding.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        reason = "it holds a zero, as UTF-16 does" if "\0" in text else ""
    except UnicodeDecodeError as error:
        reason = f"{error.reason} at byte {error.start}"
    if reason:
        raise ValueError(f"{path} is not UTF-8 text: {reason}; save it in UTF-8 (Excel: `CSV UTF-8`)")
    return text


def read_cells(path: Path) -> tuple[list[str], list[list[str]]]:
    """The first line of a CSV that a person has written, and the others, each with as many cells; without blank lines.

    Raises:
        ValueError: naming the file, and where a line is at fault its number; as `read_text`.
    """
    reader, rows = csv.reader(io.StringIO(read_text(path)), strict=True), list[list[str]]()
    try:
        for row in filter(None, reader):
            rows.append(row)
            if len(row) != len(rows[0]):
                raise ValueError(f"{path}, line {reader.line_num}: {len(row)} cells, not the {len(rows[0])} of line 1")
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}; is a quotation mark left open?") from None
    header = rows[0] if rows else []
    for sign in ";\t":
        if len(header) == 1 and sign in header[0]:
            raise ValueError(f"{path}: {sign!r} parts its cells; put a comma in place of each, also in line 1")
    for name in header:
        if header.count(name) > 1:
            raise ValueError(f"{path}: column {name!r} stands twice")
    return header, rows[1:]


def write_json(path: Path | str, content: Mapping[str, Any]) -> None:
    """Write JSON with sorted keys, so that equal results are equal files.

    Raises:
        ValueError: as `json_text`.
    """
    write_text(path, json_text(content, where=str(path), indent=1, sort_keys=True) + "\n")


def json_text(content: Any, *, where: str, **options: Any) -> str:
    """JSON as its standard has it, which knows neither NaN nor infinity.

    Args:
        content: to be written.
        where: it will stand, for messages.
        options: of `json.dumps`.

    Raises:
        ValueError: naming the first number that is not finite by its keys.
    """
    try:
        return json.dumps(content, allow_nan=False, **options)
    except ValueError:
        found = next(_not_finite(content, ""), None)
        if found is None:
            raise
        raise ValueError(f"{where}: {found}; JSON has finite numbers alone") from None


def _not_finite(content: Any, key: str) -> Iterator[str]:
    if isinstance(content, Mapping):
        for name, each in content.items():
            yield from _not_finite(each, f"{key}.{name}" if key else str(name))
    elif isinstance(content, list | tuple):
        for place, each in enumerate(content):
            yield from _not_finite(each, f"{key}[{place}]")
    elif isinstance(content, float) and not math.isfinite(content):
        yield f"{key or 'a number'} is {content}"


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
        return json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_refuse)
    except ValueError as error:  # no JSON, no UTF-8
        raise ValueError(_no_json(path, str(error))) from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _no_json(path: Path | str, reason: str) -> str:
    return f"{path} is no whole JSON file ({reason}). Remove it, and the next call makes it again"


def write_tensors(path: Path | str, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Write tensors as safetensors, with their description as JSON in the header.

    Raises:
        ValueError: as `require_finite` and `json_text`.
        OSError: if the file cannot be written, naming it.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    require_finite(path, whole)
    header = {"about": json_text(about, where=str(path), sort_keys=True)}
    with replacing(path) as temporary:
        temporary.touch()
        mode = temporary.stat().st_mode  # that of every file written here; safetensors makes one for its owner alone
        try:
            save_file(whole, temporary, header)
            temporary.chmod(mode)
        except SafetensorError as error:  # the reason stands in its text only
            number = errno.ENOSPC if "No space left" in str(error) else errno.EIO
            raise OSError(number, os.strerror(number)) from error


def require_finite(where: Path | str, tensors: Mapping[str, Tensor]) -> None:
    """Refuse weights or embeddings with which nothing can be compared.

    Args:
        where: file, or what else they belong to.
        tensors: by name, on the CPU; whole numbers are passed over.

    Raises:
        ValueError: naming the first tensor that holds NaN or infinity.
    """
    import torch

    for name, tensor in tensors.items():
        # The two ends of all values take a tenth of the time of a look at each.
        if tensor.is_floating_point() and tensor.numel() and not bool(torch.stack(tensor.aminmax()).isfinite().all()):
            raise ValueError(f"{where}: {name} holds NaN or infinity, it must hold finite numbers alone")


def packed_names(names: Sequence[str]) -> Tensor:
    """Names as one tensor of bytes ``(n,)`` uint8: a header of hundred thousand paths would be read with every file."""
    import torch

    return torch.frombuffer(bytearray("\0".join(names), "utf-8", "surrogateescape"), dtype=torch.uint8)


def unpacked_names(packed: Tensor) -> list[str]:
    """Names of a tensor that `packed_names` made."""
    return packed.cpu().numpy().tobytes().decode("utf-8", "surrogateescape").split("\0")


def read_tensors(path: Path | str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors of a safetensors file and their description.

    Raises:
        ValueError: if the file is broken or no safetensors file, and as `require_finite`.
    """
    tensors, about = mapped_tensors(path)
    require_finite(path, tensors)
    return tensors, about


def mapped_tensors(path: Path | str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """As `read_tensors`, without reading a value of a tensor before it is used.

    Raises:
        ValueError: if the file is broken or no safetensors file.
    """
    with _opened(path, "pt") as stream:
        return {name: stream.get_tensor(name) for name in stream.keys()}, _about(stream)  # noqa: SIM118  (no mapping)


def read_about(path: Path | str) -> dict[str, Any]:
    """Description of the tensors of a safetensors file, without reading them; empty if the file has none.

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
    """Description in the file of a training; empty where only the metrics were kept."""
    return read_about(path) if Path(path).is_file() else {}


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """Hexadecimal digest of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()
