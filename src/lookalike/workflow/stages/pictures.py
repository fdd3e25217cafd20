"""Keep a data set's pictures in another size, which all trainings and embeddings then read."""

from __future__ import annotations

from pathlib import Path

from lookalike.workflow.data import read_manifest, resized_copy, write_manifest
from lookalike.workflow.settings.datasets import PictureCache


def pictures(settings: PictureCache, *, manifest: str, root: str, copied: str, threads: int = 1) -> None:
    """Make the copy, or find it on disk, and list it under a name that is known before.

    Args:
        settings: ``shorter_side_px``, ``encoding`` and ``broken``, as ``resized_copy`` takes them.
        copied: CSV to write: the rows of the copy, with paths relative to the CSV's own folder, in which the copy lies,
            and in ``name`` the originals' paths.
        threads: number of pictures resized at the same time.

    Raises:
        ValueError: naming the first picture that cannot be read, unless those are skipped.
    """
    target = Path(copied)
    copy = resized_copy(Path(manifest), Path(root), target.parent, **settings.dump(), threads=threads)
    rows = read_manifest(copy.manifest)
    write_manifest(rows.assign(name=rows["path"], path=f"{copy.root.name}/" + rows["path"]), target)
    print(f"{rows['path'].nunique()} pictures in {copy.root}, {len(copy.skipped)} skipped", *copy.skipped, sep="\n")
