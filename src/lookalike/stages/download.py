"""Get one data set onto the disk.

DVC owns this stage for the data sets of ``params/datasets`` and runs this module; an overlay's own data are taken
from where the user has them, and are told apart by the hashes in their manifest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from figurines import preset_named, write_figurines
from lookalike.data import ensure_data, load_specification
from lookalike.files import write_json, write_text
from lookalike.paths import archives_of, project_root
from lookalike.plan.scales import Dataset
from lookalike.running.ending import listening
from lookalike.running.jobs import warnings_marked
from lookalike.running.versions import reproduce
from lookalike.settings import datasets
from lookalike.settings.call import Configuration
from lookalike.settings.files import dataset_names, read

STAGES = "params/stages.yaml"  # which dvc.yaml reads
DRAWING, FETCHING = "src/figurines", "src/lookalike/data/download.py"


def download(dataset: Dataset, *, archives: str, processes: int = 1) -> None:
    """Get a data set, and record that it is there.

    Args:
        dataset: of this call's plan.
        archives: folder with archives that are on disk already.
        processes: that draw at the same time.
    """
    if dataset.own:
        obtain(dataset.specification, Path(dataset.root), Path(archives), Path(dataset.record))
    else:
        of_dvc("download", dataset.name, [dataset.record], archives=archives, processes=processes)


def of_dvc(stage: str, name: str, outputs: list[str], *, archives: str, processes: int = 1) -> None:
    """Let DVC bring a data set's stage up to date, which it finds in a list that is written where it lacks any."""
    file, text = project_root() / STAGES, stages()
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        write_text(file, text)
        print(f"{STAGES} is written anew, as the data sets of params/datasets have changed: commit it with them")
    reproduce(f"{stage}@{name}", outputs, archives=archives, processes=processes)


def stages() -> str:
    """Text of `STAGES`: the data sets of the project by name, each with the code that gets it."""
    lines = ["# Of dvc.yaml, from params/datasets: a call that gets data writes what is missing.", "datasets:"]
    for name in dataset_names():
        specification = read(f"params/datasets/{name}.yaml", datasets.Dataset).dump()
        if "one_of" not in specification:
            lines.append(f"  {name}: {{code: {DRAWING if 'generator' in specification else FETCHING}}}")
    return "\n".join([*lines, ""])


def obtain(specification: Mapping[str, Any], root: Path, archives: Path, record: Path, *, processes: int = 1) -> None:
    """Draw, unpack or find a data set, count its pictures, and record what it is."""
    if "generator" in specification:
        draw(specification["generator"], root, processes=processes)
    else:
        ensure_data(specification, root, archives)
    write_json(record, {"title": specification.get("title", root.name), "licence": specification.get("licence", "")})


def draw(generator: Mapping[str, Any], root: Path, *, processes: int = 1) -> None:
    """Draw a data set of figurines.

    Args:
        generator: ``preset`` and ``seed``, and what differs from the preset by the names of its fields.
        root: folder to make.
        processes: that draw at the same time.
    """
    others = {key: value for key, value in generator.items() if key not in ("preset", "seed")}
    parameters = replace(preset_named(generator["preset"]), **others)
    write_figurines(generator["preset"], root, seed=generator["seed"], parameters=parameters, processes=processes)


if __name__ == "__main__":
    name = sys.argv[1]
    folder = archives_of(read("params/config.yaml", Configuration).dump()["archives"])
    with warnings_marked(sys.stderr), listening():
        obtain(
            load_specification(name),
            Path("data") / name,
            Path(folder),
            Path("data") / f"{name}.json",
            processes=int(os.environ.get("LOOKALIKE_PROCESSES", "1")),
        )
