"""Committed results: a run's files take the place of the repository's, once the cells that move are printed."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lookalike.base.files import file_digest, read_json_value, replacing, write_json
from lookalike.base.text import counted
from lookalike.workflow.plan.equal_code import leave_unnamed
from lookalike.workflow.plan.results import CALL
from lookalike.workflow.running.records import decided_by, read_record, record_of, write_sums
from lookalike.workflow.settings.layers import flat

# What of a scale's results is committed: folders with the endings that are, and single files.
FOLDERS = {
    "tables": (".csv", ".md"),
    "figures": (".csv", ".json", ".md", ".png"),
    "metrics": (".json", ".csv"),
    "timings": (".tsv",),
    "explanations": (".csv",),
    "classes": (".xz",),
    "rates": (".csv",),
}
FILES = (
    "tables.html",
    "figures.md",
    "claims.csv",
    "claims.md",
    "claim_verdicts.csv",
    "fidelity.csv",
    "explanations.csv",
    "explanations.md",
)
RECORDED = "metrics"  # of which records are committed too: by them a call knows which are those that it would make
MANY = ("metrics", "timings")  # which are told as one
UNRECORDED = "timings"  # that nobody reads a second time
SHOWN = 40  # characters of a value
Row = dict[str, str]


class Moved(NamedTuple):
    """A cell before and after."""

    before: str
    after: str

    @property
    def by(self) -> float | None:
        """Distance that the cell moved, ``None`` for text."""
        try:
            return abs(float(self.after) - float(self.before))
        except ValueError:
            return None


def adopt(made: str, committed: str, call: Mapping[str, Any]) -> None:
    """Take over the files made in a folder of results, each as its record says; digests that none names any more leave.

    Args:
        made: ``results/<scale>``.
        committed: ``results/reference/<scale>``. Of one that is there its parts are taken, those of it that were made.
        call: scale and overlays that it was made with, for ``call.json``.

    Raises:
        ValueError: if nothing of it was made, or a file is not what its stage left; then nothing is taken.
    """
    for file in taken(Path(made), Path(committed)):
        _require_recorded(Path(made, file))
    take_over(made, committed, call)
    if left_out := leave_unnamed():
        print(left_out)


def take_over(made: str, committed: str, call: Mapping[str, Any] | None = None) -> None:
    """Print the cells that move, then put the files in their place, with digests of all; arguments as for `adopt`.

    Raises:
        ValueError: if there is nothing to take.
    """
    files = list(taken(Path(made), Path(committed)))
    if not files:
        raise ValueError(f"{made} holds nothing that {committed} is to show: make a table first, and call again")
    there = [file for file in files if Path(committed, file).is_file()]
    new = [file for file in files if file not in there]
    other = [file for file in there if Path(made, file).read_bytes() != Path(committed, file).read_bytes()]
    cells: dict[str, dict[str, list[Moved | None]]] = {}
    for file in there:
        columns = cells.setdefault(file.parts[0] if file.parts[0] in MANY else str(file), {})
        for column, moved in _compared(Path(committed, file), Path(made, file)):
            columns.setdefault(column, []).append(moved)
    decided = [file for file in files if _decided(Path(committed, file)) != _decided(Path(made, file))]
    for name, columns in cells.items():
        for column, found in columns.items():
            if any(found):
                print(f"{name}: {column}, {_told(found)}")
    for file in new:
        print(f"{file}: new")
    every = [moved for columns in cells.values() for found in columns.values() for moved in found]
    print(
        f"{committed}: {counted(len(files), 'file')} made, {len(other):,} other, {len(new):,} new; "
        f"{sum(map(bool, every)):,} of {counted(len(every), 'cell')} moved"
    )
    for file in (*other, *new):
        _put(Path(made, file), Path(committed, file))
    for file in dict.fromkeys((*other, *new, *decided)):
        record, place = record_of(Path(made, file)), record_of(Path(committed, file))
        if file.parts[0] == RECORDED and record and place and record.is_file():
            _put(record, place)
    if call:
        write_json(Path(committed, CALL), dict(call))
    write_sums(Path(committed))


def _put(made: Path, committed: Path) -> None:
    with replacing(committed) as path:
        path.write_bytes(made.read_bytes())


def _decided(file: Path) -> Row:
    """Digests that decided a file of metrics, none for other files."""
    return decided_by(file) if RECORDED in file.parts else {}


def taken(made: Path, committed: Path) -> Iterator[Path]:
    """Files of a folder of results that belong to its committed ones, below it, in order."""
    parts = [*FOLDERS, *FILES]
    for name in [each for each in parts if (committed / each).exists()] or parts:
        if (made / name).is_file():
            yield Path(name)
        for file in sorted((made / name).rglob("*")):
            if file.is_file() and file.suffix in FOLDERS[name] and not file.name.startswith("."):
                yield file.relative_to(made)


def _require_recorded(file: Path) -> None:
    """Refuse a file that a stage has not left as it is."""
    record = read_record(file)
    if record is None and UNRECORDED not in file.parts:
        raise ValueError(f"{file} has no record of how it was made. Remove it, and the next call makes it again")
    if record is not None and record["sha256"] != file_digest(Path(file)):
        raise ValueError(
            f"{file} is not what {record['stage']} left there. Remove it, and the next call makes it again"
        )


def _compared(before: Path, after: Path) -> Iterator[tuple[str, Moved | None]]:
    """Cells by column, ``None`` where one is as before; of rows that are more or fewer their number alone."""
    old, new = _rows(before), _rows(after)
    if len(old) != len(new):
        yield "rows", Moved(str(len(old)), str(len(new)))
        return
    for one, other in zip(old, new, strict=True):
        for column in dict.fromkeys((*one, *other)):
            pair = Moved(one.get(column, ""), other.get(column, ""))
            yield column, pair if pair.before != pair.after else None


def _rows(file: Path) -> list[Row]:
    """Cells of a file by row and column; none of a page or a picture."""
    if file.suffix == ".json":
        content: Any = read_json_value(file)
        held = flat({**content, **_decided(file)}) if isinstance(content, dict) else []
        return [{name: str(value) for name, value in held}] if held else []
    if file.suffix not in (".csv", ".tsv"):
        return []
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="," if file.suffix == ".csv" else "\t"))


def _told(found: list[Moved | None]) -> str:
    """Number of a column's moved cells, their mean distance, and the one that moved most, or the first of text."""
    moved = [each for each in found if each]
    distances = [each.by for each in moved]
    numbers = [distance for distance in distances if distance is not None]
    first, average = moved[0], ""
    if len(numbers) == len(moved):
        first = moved[numbers.index(max(numbers))]
        average = f" by {sum(numbers) / len(numbers):.3g} on average"
    before, after = (text[:SHOWN] or "-" for text in first)
    return f"{len(moved):,} of {counted(len(found), 'cell')}{average}: {before} -> {after}"
