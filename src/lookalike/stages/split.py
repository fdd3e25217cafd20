"""Split one data set into roles: training and test classes, or training, query and gallery."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from lookalike.data import load_specification, read_layout, read_manifest
from lookalike.data.manifest import with_file_hashes, write_manifest
from lookalike.data.roles import check_usable, queries_without_positive
from lookalike.data.screening import check_readable, screened
from lookalike.plan.needs import check_batches
from lookalike.plan.plan import Plan
from lookalike.plan.sizes import sizes_of
from lookalike.running.ending import listening
from lookalike.running.jobs import warnings_marked
from lookalike.stages.download import download, of_dvc
from lookalike.text import counted

LOG = logging.getLogger(__name__)


def split(plan: Plan, name: str, *, archives: str, manifest: str, processes: int = 1) -> None:
    """Write the manifest that every later stage reads instead of the data set's own files.

    The data set is brought up to date first, since it may have changed after its download: DVC looks at the code and
    parameters behind it, and an archive of the user's own is known by its bytes. Each picture is decoded once, so that
    none ends a training.

    Args:
        plan: of the call.
        name: of the data set.
        archives: folder with archives that are on disk already.
        manifest: CSV to write.
        processes: that decode pictures at the same time.

    Raises:
        ValueError: naming the first picture that cannot be read, is in two classes or is a copy, and how many more
            there are; naming all recipes of the call whose batches the pictures do not fill, and what would be enough.
    """
    dataset = plan.datasets[name]
    root = Path(dataset.root)
    broken = plan.broken_of(name)
    if not dataset.own:
        of_dvc("split", name, [manifest], archives=archives)
        check_readable(read_manifest(Path(manifest)), root, broken, processes=processes)
        return
    download(dataset, archives=archives)
    specification = {"broken": broken, **dataset.specification}
    frame = read_layout(specification, root)
    _tell(frame)
    frame = screened(frame, specification, root, processes=processes)
    alone, queries = queries_without_positive(frame)
    if alone:
        LOG.warning("%d of %d queries are in no metric: no other picture of their class is searched", alone, queries)
    if dataset.trained_on is None:
        check_usable(frame, name)
        recipes = plan.runs.loc[plan.runs["dataset"] == name, "recipe"]
        check_batches(plan, name, sizes_of(frame), list(dict.fromkeys(recipes)))
    write_manifest(frame, Path(manifest))


def _tell(frame: pd.DataFrame) -> None:
    """Which classes have which role, what is odd about their names, and how many files are no pictures."""
    print("\n".join(frame.attrs["classes"]))
    for remark in frame.attrs.get("remarks", ()):
        LOG.warning(remark)
    if others := frame.attrs.get("others"):
        kinds = Counter(PurePosixPath(path).suffix or "no suffix" for path in others)
        listed = ", ".join(f"{kind} {number}" for kind, number in kinds.most_common())
        print(f"{counted(len(others), 'file')} passed over as no picture by name ({listed}), the first is {others[0]}")


def assign(specification: Mapping[str, Any], root: Path, manifest: Path) -> None:
    """Read, check and write the split of a data set of the project's, whose archives are known by their checksums."""
    write_manifest(with_file_hashes(read_layout(specification, root), root), manifest)


if __name__ == "__main__":
    name = sys.argv[1]
    with warnings_marked(sys.stderr), listening():
        assign(load_specification(name), Path("data") / name, Path("data") / "splits" / f"{name}.csv")
