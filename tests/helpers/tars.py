"""Archives made in memory."""

import io
import tarfile
from collections.abc import Mapping


def tar_of(files: Mapping[str, bytes]) -> bytes:
    """A gzipped tar of files by name."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))
    return stream.getvalue()
