"""Continue a training that was killed, and only the same training."""

from __future__ import annotations

import hashlib
import io
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lookalike.base.files import replacing
from lookalike.workflow.running.ending import undisturbed

LOG = logging.getLogger(__name__)


class ResumeFile:
    """State of an unfinished training, written between epochs; as a context, also when the training is broken off.

    It is no output of a Snakemake rule: Snakemake deletes those before it runs a rule again.

    Args:
        path: name of the file.
        digest: digest of settings, code and data; a file with another one belongs to another training and is ignored.
        every_s: seconds from the start or the last writing until `is_due` again: a state of a large network with its
            optimiser's moments has 0.4 GB.
    """

    def __init__(self, path: Path, digest: str, *, every_s: float = 0.0) -> None:
        self.path = path
        self.digest = digest
        self._every_s = every_s
        self._last_s = time.monotonic()
        self._held: dict[str, Any] | None = None
        self._written = 0

    @property
    def is_due(self) -> bool:
        """Whether so much time has gone that a killed training would lose too much of it."""
        return time.monotonic() - self._last_s >= self._every_s

    def __enter__(self) -> ResumeFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Write the held state, if the block ends before its time: a fault, or a process that is told to end."""
        if kind is not None and self._held is not None:
            try:
                with undisturbed():
                    self.write(self._held)
            except (OSError, RuntimeError) as failure:  # the full disk that is told already, or the device gone
                LOG.warning("%s; training goes on from an earlier epoch", failure)

    @property
    def held_epochs(self) -> int:
        """Finished epochs that the next attempt need not train again, if this one ends now."""
        return int(self._held["epoch"]) if self._held else self._written

    def hold(self, state: dict[str, Any]) -> None:
        """Keep a state where it is, which no later step may change, and write it if that `is_due`."""
        self._held = state
        if self.is_due:
            self.write(self._held)

    def write(self, state: dict[str, Any]) -> None:
        """Replace the file in one step: a line with the SHA-256 of the rest, which torch itself does not check.

        Raises:
            OSError: if it cannot be written, naming it; torch itself would only say that a position is unexpected.
        """
        buffer = io.BytesIO()
        torch.save({"digest": self.digest, **_each(state, Tensor.cpu)}, buffer)
        with replacing(self.path) as temporary, temporary.open("wb") as stream:
            stream.write(_line_of(buffer.getbuffer()))
            stream.write(buffer.getbuffer())
        self._held, self._written, self._last_s = None, int(state["epoch"]), time.monotonic()

    def read(self) -> dict[str, Any] | None:
        """State to continue from, ``None`` where there is none for this training."""
        if not self.path.is_file():
            return None
        try:
            with self.path.open("rb") as stream:
                line, content = stream.readline(), stream.read()
            if line != _line_of(content):
                raise ValueError("its checksum is another one")
            state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        except Exception as error:  # torch raises many kinds for a damaged file
            LOG.warning("%s is damaged (%s); training starts again", self.path, error)
            return None
        if state.get("digest") != self.digest:
            return None
        self._written = int(state["epoch"])
        return state

    def remove(self) -> None:
        """Forget the training: it has finished."""
        self.path.unlink(missing_ok=True)
        self._held, self._written = None, 0


def _line_of(content: bytes | memoryview) -> bytes:
    return f"sha256 {hashlib.sha256(content).hexdigest()}\n".encode()


def kept_aside(state: Any) -> Any:
    """A copy of a state on its own device, which the next steps do not change."""
    return _each(state, lambda tensor: tensor.detach().clone())


def _each(state: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """A state of dictionaries and lists with every tensor changed."""
    if isinstance(state, dict):
        return {key: _each(value, change) for key, value in state.items()}
    if isinstance(state, list):
        return [_each(value, change) for value in state]
    return change(state) if isinstance(state, Tensor) else state
