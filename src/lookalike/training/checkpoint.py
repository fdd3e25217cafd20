"""Continue a training that was killed, and only the same training."""

from __future__ import annotations

import io
import logging
import time
from pathlib import Path
from typing import Any

import torch

from lookalike.files import replacing

LOG = logging.getLogger(__name__)


class ResumeFile:
    """State of an unfinished training, written between epochs.

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

    @property
    def is_due(self) -> bool:
        """Whether so much time has gone that a killed training would lose too much of it."""
        return time.monotonic() - self._last_s >= self._every_s

    def write(self, state: dict[str, Any]) -> None:
        """Replace the file in one step.

        Raises:
            OSError: if it cannot be written, naming it; torch itself would only say that a position is unexpected.
        """
        buffer = io.BytesIO()
        torch.save({"digest": self.digest, **state}, buffer)
        with replacing(self.path) as temporary:
            temporary.write_bytes(buffer.getbuffer())
        self._last_s = time.monotonic()

    def read(self) -> dict[str, Any] | None:
        """State to continue from, ``None`` where there is none for this training."""
        if not self.path.is_file():
            return None
        try:
            state: dict[str, Any] = torch.load(self.path, map_location="cpu", weights_only=True)
        except Exception as error:  # torch raises many kinds for a damaged file
            LOG.warning("%s is damaged (%s); training starts again", self.path, error)
            return None
        return state if state.get("digest") == self.digest else None

    def remove(self) -> None:
        """Forget the training: it has finished."""
        self.path.unlink(missing_ok=True)
