"""Split one data set into roles: training and test classes, or training, query and gallery."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from pathlib import Path, PurePosixPath

import pandas as pd

from lookalike.base.text import counted
from lookalike.workflow.data import load_specification, read_layout, read_manifest
from lookalike.workflow.data.manifest import check_listable, with_file_hashes, write_manifest
from lookalike.workflow.data.roles import check_usable, queries_without_positive
from lookalike.workflow.data.screening import check_readable, screened
from lookalike.workflow.data.splits import second_half as swapped
from lookalike.workflow.plan.needs import check_batches
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.sizes import sizes_of
from lookalike.workflow.running.ending import listening
from lookalike.workflow.running.jobs import warnings_marked
from lookalike.workflow.settings.datasets import Dataset
from lookalike.workflow.settings.layers import Tree
from lookalike.workflow.stages.download import obtain, of_dvc

LOG = logging.getLogger(__name__)


def split(dataset: str, *, config: Tree, archives: str, manifest: str, threads: int = 1) -> None:
    """Write the manifest that every later stage reads instead of the data set's own files.

    The data set is brought up to date first, since it may have changed after its download: DVC looks at the code and
    parameters behind it, and an archive of the user's own is known by its bytes. Each picture is decoded once, so that
    none ends a training.

    Args:
        manifest: CSV to write.
        threads: processes that decode pictures at the same time.

    Raises:
        ValueError: naming the first picture that cannot be read, is in two classes or is a copy, and how many more
            there are; naming all recipes of the call whose batches the pictures do not fill, and what would be enough.
    """
    plan = Plan(config)
    wanted, broken = plan.datasets[dataset], plan.broken_of(dataset)
    root = Path(wanted.root)
    if not wanted.own:
        of_dvc("split", dataset, [manifest], archives=archives)
        check_readable(read_manifest(Path(manifest)), root, broken, processes=threads)
        return
    obtain(wanted.about, root, Path(archives), Path(wanted.record))
    stated = "broken" in wanted.about.model_fields_set
    specification = wanted.about if stated else wanted.about.model_copy(update={"broken": broken})
    frame = read_layout(specification, root)
    check_listable(frame["path"])
    _tell(frame)
    frame = screened(frame, specification, root, processes=threads)
    alone, queries = queries_without_positive(frame)
    if alone:
        LOG.warning("%d of %d queries are in no metric: no other picture of their class is searched", alone, queries)
    if wanted.trained_on is None:
        check_usable(frame, dataset)
        recipes = plan.runs.loc[plan.runs["dataset"] == dataset, "recipe"]
        check_batches(plan, dataset, sizes_of(frame), list(dict.fromkeys(recipes)))
    write_manifest(frame, Path(manifest))


def second_half(manifest: str, *, second: str) -> None:
    """Write a split with training and test classes in each other's place, for seeds that train on the second half.

    Args:
        second: CSV to write; its paths are relative to the same root.

    Raises:
        ValueError: as `lookalike.workflow.data.splits.second_half`, and if nothing can be learned from that half.
    """
    frame = swapped(read_manifest(Path(manifest)), source=manifest)
    check_usable(frame, second)
    write_manifest(frame, Path(second))


def _tell(frame: pd.DataFrame) -> None:
    """Tell the classes of each role, remarks on their names, and the number of files that are no pictures."""
    print("\n".join(frame.attrs["classes"]))
    for remark in frame.attrs.get("remarks", ()):
        LOG.warning(remark)
    if others := frame.attrs.get("others"):
        kinds = Counter(PurePosixPath(path).suffix or "no suffix" for path in others)
        listed = ", ".join(f"{kind} {number}" for kind, number in kinds.most_common())
        print(f"{counted(len(others), 'file')} passed over as no picture by name ({listed}), the first is {others[0]}")


def assign(specification: Dataset, root: Path, manifest: Path) -> None:
    """Read, check and write the split of a data set of the project's, whose archives are known by their checksums."""
    write_manifest(with_file_hashes(read_layout(specification, root), root), manifest)


if __name__ == "__main__":
    name = sys.argv[1]
    with warnings_marked(sys.stderr), listening():
        assign(load_specification(name), Path("data") / name, Path("data") / "splits" / f"{name}.csv")
