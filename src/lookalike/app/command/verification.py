"""Read every result against the record that its stage left of it, and every committed one against its digest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from lookalike.app.own.recommend.schedule import SCHEDULE
from lookalike.base.files import file_digest
from lookalike.base.paths import project_root
from lookalike.base.text import counted, error_line, human_bytes, one_line
from lookalike.workflow.data.contents import root_of
from lookalike.workflow.data.manifest import altered_files, read_manifest
from lookalike.workflow.running.records import (
    COMMITTED,
    RECORDS,
    RESULTS,
    SUMS,
    read_record,
    read_sums,
    record_of,
    summed,
)

DATA = "data"
# What Snakemake writes itself, behind a job that has ended, and a folder that is laid out of files with records.
UNRECORDED = ("timings", "page")
# Below results/, but of no stage, as is a folder with a schedule of `recommend`.
OF_NO_STAGE = "benchmarks"
UNKNOWN = "results of an earlier version have none; remove them, and the next call makes them again"


def print_verification(folders: Iterable[Path]) -> int:
    """Print each fault as a line, and how many files there were.

    Args:
        folders: ``results/<scale>``, or folders below one, or ``results/reference/<scale>``; none for all of them.

    Returns:
        1 if a file is not as its record or digest says, is missing or has none, else 0.

    Raises:
        ValueError: for what is no folder of results.
    """
    faults = 0
    results = project_root() / RESULTS
    every = [*filter(_is_of_stages, sorted(results.glob("*"))), *sorted((results / COMMITTED).glob("*"))]
    folders = list(folders)
    for folder in folders:
        if not folder.is_dir() or RESULTS not in folder.resolve().parts[:-1]:
            there = ", ".join(str(each.relative_to(project_root())) for each in every)
            raise ValueError(f"{folder} is no folder below {RESULTS}/; there are {there}")
        if folder.resolve() == (results / OF_NO_STAGE).resolve():
            raise ValueError(f"{folder} is written where it is committed; `git status` tells what has changed there")
    committed = (results / COMMITTED).resolve()
    below = [sorted(each.glob("*")) if each.resolve() == committed else [each] for each in folders]
    for folder in chain.from_iterable(below) if folders else every:
        right = 0
        if folder.resolve().parent.name == COMMITTED:
            try:
                faults += _print_committed(folder)
            except (OSError, ValueError) as error:
                print(f"fault  {error_line(error)}", flush=True)
                faults += 1
            continue
        files = counted(len(list(_files(folder))), "file")
        if any(_files(folder)) and not any(_recorded(folder)):
            print(f"fault  {folder}: {files} without any record; {UNKNOWN}", flush=True)
            faults += 1
            continue
        for path, fault in _looked_at(folder):
            right += not fault
            faults += bool(fault)
            if fault:
                print(f"fault  {path}: {one_line(fault)}", flush=True)
        print(f"ok     {folder}: {counted(right, 'file')} as recorded", flush=True)
        for fault in _changed_pictures(project_root() / DATA / folder.resolve().name):
            print(f"fault  {one_line(fault)}", flush=True)
            faults += 1
    print(counted(faults, "fault"))
    return int(faults > 0)


def _changed_pictures(data: Path) -> Iterator[str]:
    """Faults of the user's own pictures, a line for each that is no longer as its split lists it."""
    for split in sorted((data / "splits").glob("*.csv")):
        name = split.stem.partition(".")[0]
        root = root_of(data / f"{name}.contents.json") or data / name
        if root.is_dir():
            try:
                yield from altered_files(read_manifest(split), root)
            except (OSError, ValueError) as error:
                yield f"{split}: {error_line(error)}; remove it, and the next call makes it again"


def _print_committed(folder: Path) -> int:
    """Print the faults of a scale's committed results against their digests, and return their number."""
    sums, there = read_sums(folder), summed(folder)
    every = {name: _fault_of_committed(folder / name, sums.get(name)) for name in sorted({*sums, *there})}
    faults = {name: fault for name, fault in every.items() if fault}
    for name, fault in faults.items():
        print(f"fault  {folder / name}: {fault}", flush=True)
    print(f"ok     {folder}: {counted(len({*there} - faults.keys()), 'committed file')}", flush=True)
    return len(faults)


def _fault_of_committed(path: Path, digest: str | None) -> str:
    if digest is None:
        return f"has no digest in {SUMS}; the target `adopt` writes them"
    if not path.is_file():
        return f"is missing; {SUMS} has its digest"
    return "" if file_digest(path) == digest else f"has other bytes than those of {SUMS}"


def _is_of_stages(folder: Path) -> bool:
    return folder.is_dir() and folder.name not in (OF_NO_STAGE, COMMITTED) and not (folder / SCHEDULE).is_file()


def _looked_at(folder: Path) -> Iterator[tuple[Path, str]]:
    """Files that are there or were, each with its fault, empty where there is none."""
    for path in sorted({*_files(folder), *_recorded(folder)}):
        yield path, _fault(path)


def _files(folder: Path) -> Iterator[Path]:
    """Results below a folder, but neither states of unfinished trainings nor files that are being written."""
    for current, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in (RECORDS, *UNRECORDED) and not name.startswith(".")]
        yield from (Path(current, name) for name in names if not name.startswith("."))


def _recorded(folder: Path) -> Iterator[Path]:
    """Results below a folder that there are records of."""
    records = record_of(folder / "any")
    if records is not None:
        for record in records.parent.rglob("*.record"):
            yield folder / record.relative_to(records.parent).with_suffix("")


def _fault(path: Path) -> str:
    try:
        record = read_record(path)
        if record is None:
            return "has no record of how it was made"
        if not path.is_file():
            return f"is missing; {record['stage']} left it with {human_bytes(record['bytes'])}"
        if path.stat().st_size != record["bytes"]:
            return f"has {path.stat().st_size} bytes, {record['stage']} left {record['bytes']}"
        if file_digest(path) != record["sha256"]:
            return f"has other bytes than those that {record['stage']} left"
        return _other_inputs(path, record.get("made_of", {}))
    except ValueError as error:
        return str(error)
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _other_inputs(path: Path, made_of: dict[str, str]) -> str:
    """The first results that were read for this one and have been made anew since."""
    project = Path(*path.parts[: path.parts.index(RESULTS)]) if RESULTS in path.parts else Path()
    for name, digest in made_of.items():
        record = None
        with suppress(ValueError):  # a broken record is told with its own file
            record = read_record(project / name)
        if record is not None and record["sha256"] != digest:
            return f"was made of another {name} than the one that lies there now"
    return ""
