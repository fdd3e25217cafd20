"""Archives made in memory, and unpacked as data sets are."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from lookalike.workflow.data.archives import extract, workspace


def tar_of(files: Mapping[str, bytes]) -> bytes:
    """A gzipped tar of files by name."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))
    return stream.getvalue()


def unpack(archive: Path, target: Path) -> Path:
    """A folder with the files of an archive, which appears when it is whole."""
    with workspace(target) as staging:
        extract(archive, staging)
        return staging.rename(target)
