"""Split one data set into roles: training and test classes, or training, query and gallery."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lookalike.data import load_specification, read_layout
from lookalike.data.manifest import with_file_hashes, write_manifest
from lookalike.scales import Dataset
from lookalike.stages.download import download
from lookalike.versions import reproduce


def split(dataset: Dataset, *, archives: str, manifest: str) -> None:
    """Write the manifest that every later stage reads instead of the data set's own files.

    The data set is brought up to date first.

    Args:
        dataset: of this call's plan.
        archives: folder with archives that are on disk already.
        manifest: CSV to write.
    """
    if dataset.own:
        download(dataset, archives=archives)
        assign(dataset.specification, Path(dataset.root), Path(manifest))
    else:
        reproduce(f"split@{dataset.name}", [dataset.record, manifest], archives)


def assign(specification: Mapping[str, Any], root: Path, manifest: Path) -> None:
    """Read, check and write the split of a data set on disk."""
    write_manifest(with_file_hashes(read_layout(specification, root), root), manifest)


if __name__ == "__main__":
    name = sys.argv[1]
    assign(load_specification(name), Path("data") / name, Path("data") / "splits" / f"{name}.csv")
