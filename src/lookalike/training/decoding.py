"""Decoded pictures of a split, found by what they are and by what a view does to them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import PIL
import torchvision

from lookalike.data.decoded import GB, DecodedPictures, decoded, fixed_keys
from lookalike.settings.layers import canonical
from lookalike.training.images import fixed_part


@dataclass(frozen=True)
class Decoder:
    """Decodes pictures unless an earlier run did.

    Attributes:
        folder: folder of the decoded pictures; empty to decode pictures whenever they are read.
        limit_gb: what those of one split and view may take; beyond it they are decoded whenever they are read.
        threads: number of pictures decoded at the same time.
    """

    folder: str = ""
    limit_gb: float = 0.0
    threads: int = 1

    def pictures(
        self, paths: Sequence[Path], view: Mapping[str, Any], *, manifest: Path | str, root: Path | str
    ) -> list[DecodedPictures]:
        """Pictures of one split as the fixed part of a view leaves them.

        Args:
            paths: files of the pictures.
            view: how pictures become images, see `lookalike.training.images.Images`.
            manifest: CSV with the split, whose contents tell whether pictures are still the same.
            root: folder of the pictures.

        Returns:
            What `Images` takes; nothing where pictures are not kept.

        Raises:
            ValueError: naming the first picture that cannot be read.
        """
        if not self.folder or not self.limit_gb:
            return []
        identity = {
            "manifest": hashlib.sha256(Path(manifest).read_bytes()).hexdigest(),
            "paths": [path.relative_to(root).as_posix() for path in paths],
            "view": fixed_keys(view),
            "read": "upright",  # as `read_picture` reads them
            "libraries": [PIL.__version__, torchvision.__version__],
        }
        digest = hashlib.sha256(canonical(identity).encode()).hexdigest()[:16]
        folder = Path(self.folder) / f"{Path(manifest).stem}-{digest}"
        limit = round(self.limit_gb * GB)
        kept = decoded(paths, folder, fixed_part(view), limit_bytes=limit, threads=self.threads)
        return [kept] if kept else []
