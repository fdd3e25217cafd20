"""Get one data set onto the disk.

DVC owns this stage for the data sets of ``params/datasets`` and runs this module; an overlay's own data are taken
from where the user has them, and are told apart by the hashes in their manifest.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from figurines import preset_named, write_figurines
from lookalike.base.files import write_json, write_text
from lookalike.base.paths import archives_of, project_root
from lookalike.workflow.data import ensure_data, load_specification
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.running.ending import listening
from lookalike.workflow.running.jobs import warnings_marked
from lookalike.workflow.running.versions import reproduce
from lookalike.workflow.settings.call import Configuration
from lookalike.workflow.settings.datasets import Dataset, Generator
from lookalike.workflow.settings.files import dataset_names, read
from lookalike.workflow.settings.layers import Tree, canonical
from lookalike.workflow.settings.sources.code import code_digest

STAGES = "params/stages.yaml"  # which dvc.yaml reads


def download(dataset: str, *, config: Tree, archives: str, threads: int = 1) -> None:
    """Get a data set, and record that it is there.

    Args:
        threads: processes that draw at the same time.
    """
    wanted = Plan(config).datasets[dataset]
    if wanted.own:
        obtain(wanted.about, Path(wanted.root), Path(archives), Path(wanted.record), processes=threads)
    else:
        stage = "draw" if wanted.about.generator else "download"
        of_dvc(stage, dataset, [wanted.record], archives=archives, processes=threads)


def of_dvc(stage: str, name: str, outputs: list[str], *, archives: str, processes: int = 1) -> None:
    """Let DVC bring a data set's stage up to date, which it finds in a list that is written where it lacks any."""
    file, text = project_root() / STAGES, stages()
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        write_text(file, text)
        print(f"{STAGES} is written anew, as the data sets of params/datasets have changed: commit it with them")
    reproduce(f"{stage}@{name}", outputs, archives=archives, processes=processes)


def stages() -> str:
    """Text of `STAGES`: the data sets of the project, each in the list of the stage that gets it."""
    told = {name: read(f"params/datasets/{name}.yaml", Dataset) for name in dataset_names()}
    named = {name: about for name, about in told.items() if not about.one_of}
    lists = {
        "drawn": [name for name, about in named.items() if about.generator],
        "downloaded": [name for name, about in named.items() if not about.generator],
        "datasets": [*named],
    }
    lines = ["# Of dvc.yaml, from params/datasets: a call that gets data writes what is missing."]
    for key, names in lists.items():
        lines += [f"{key}:" if names else f"{key}: []", *(f"  - {name}" for name in names)]
    return "\n".join([*lines, ""])


def obtain(specification: Dataset, root: Path, archives: Path, record: Path, *, processes: int = 1) -> None:
    """Draw, unpack or find a data set, count its pictures, and record its title and licence."""
    if specification.generator:
        draw(specification.generator, root, processes=processes)
    else:
        ensure_data(specification, root, archives)
    write_json(record, {"title": specification.title, "licence": specification.licence})


def draw(generator: Generator, root: Path, *, processes: int = 1) -> None:
    """Draw a data set of figurines, unless it is there; one that another generator or other code has drawn makes way.

    Args:
        generator: preset and seed, and what differs from the preset.
        root: folder to make; a file beside it says by what it was drawn.
        processes: that draw at the same time.

    Raises:
        ValueError: for an unknown preset.
        FileExistsError: if the folder holds what nothing says to be drawn, which is left alone.
    """
    drawn = root.with_name(f".{root.name}.drawn")
    wanted = canonical({"generator": generator.dump(), "code": code_digest(("figurines.writing:write_figurines",))})
    if drawn.is_file() and root.is_dir() and any(root.iterdir()):
        if drawn.read_text(encoding="utf-8") == wanted:
            return
        shutil.rmtree(root)
    others = generator.model_dump(exclude={"preset", "seed"}, exclude_unset=True)
    parameters = replace(preset_named(generator.preset), **others)
    write_figurines(generator.preset, root, seed=generator.seed, parameters=parameters, processes=processes)
    write_text(drawn, wanted)


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
