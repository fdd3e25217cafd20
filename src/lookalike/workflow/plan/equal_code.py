"""Code that computes the same: after a change of form or speed, committed numbers still count as made by today's.

Metrics, and trials of rates, name the digest of the code that made them. Where the gate finds every trace unmoved,
``results/equal_code.csv`` says which of today's digests each of these has become. Where traces are written anew, it
says of which code the numbers have moved, and no later call takes those for equal.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from lookalike.base.files import replacing
from lookalike.base.paths import project_root
from lookalike.base.text import counted
from lookalike.workflow.plan.inputs import Inputs
from lookalike.workflow.plan.plan import Plan
from lookalike.workflow.plan.results import REFERENCE, committed_call
from lookalike.workflow.plan.reuse import EQUAL_CODE, OF_CODE, Equal, differs, read_equal
from lookalike.workflow.running.records import decided_by
from lookalike.workflow.running.versions import commit, has_changes

WITHOUT_FILES = ("settings", "reads")  # what else decides metrics and can be told without pictures and weights


class Other(NamedTuple):
    """A digest of code that committed metrics or trials of a recipe name, and that of today's code in its place."""

    recipe: str
    before: str
    after: str


def other_code() -> list[Other]:
    """All digests of committed metrics and trials that today's code no longer has.

    Metrics that something else than code makes otherwise today are left out.

    Raises:
        ValueError: as `Plan`, for parameter files that a call would refuse.
    """
    numbers = [file for kind in ("metrics", "rates") for file in (project_root() / REFERENCE).glob(f"*/{kind}")]
    return sorted({other for folder in {file.parent for file in numbers} for other in _others(folder)})


def _others(folder: Path) -> Iterator[Other]:
    config = committed_call(folder.name)
    if config is None:
        return
    inputs = Inputs(Plan(config))
    for file in sorted((folder / "metrics").glob("*/*/seed*.json")):
        recipe, dataset = file.parts[-3:-1]
        said, today = decided_by(file), inputs.today(recipe, dataset, int(file.stem.removeprefix("seed")))
        if not differs(said, {key: today[key] for key in WITHOUT_FILES}):
            changed = [key for key in OF_CODE if said.get(key, today[key]) != today[key]]
            yield from (Other(recipe, said[key], today[key]) for key in changed)
    for file in sorted((folder / "rates").glob("*/*.csv")):
        today_code = inputs.training_code(file.parent.name, file.name.split(".")[0])
        said_codes = {row["code"] for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines())}
        yield from (Other(file.parent.name, code, today_code) for code in said_codes - {today_code})


def note_equal(others: Iterable[Other]) -> str:
    """Note that all traces are unmoved: code of `other_code` has become today's, but for that whose numbers have moved.

    Returns:
        A line that says what was noted, or why nothing was; empty where there is nothing new to note.
    """
    return _write(equal_pairs(others))


def equal_pairs(others: Iterable[Other]) -> set[tuple[str, str]]:
    """What is to be noted where all traces are unmoved: before and after, empty for code whose numbers have moved.

    Args:
        others: as for `note_equal`.
    """
    moved = {each.before for each in read_equal() if not each.after}
    return {(each.before, "" if each.before in moved else each.after) for each in others}


def leave_unnamed() -> str:
    """Leave out what is noted of code that no committed metrics and trials name any more; returns as `note_equal`."""
    if not (noted := read_equal()):
        return ""
    named = {each.before for each in other_code()}
    return _write({(each.before, each.after) for each in noted if each.before in named})


def note_moved(others: Iterable[Other], moved: set[str], unmoved: set[str]) -> str:
    """Note that traces of some recipes have moved; a recipe without a trace counts as moved wherever one has.

    Args:
        others: of `other_code`.
        moved: recipes whose traces have moved.
        unmoved: recipes whose traces have not.

    Returns:
        As `note_equal`.
    """
    if not moved:
        return ""
    equal = {(each.before, each.after) for each in read_equal()}
    stale = {each.before for each in others if each.recipe not in unmoved and (each.before, each.after) not in equal}
    return _write({pair for pair in equal if pair[0] not in stale} | {(before, "") for before in stale})


def _write(pairs: set[tuple[str, str]]) -> str:
    known = {(each.before, each.after): each for each in read_equal()}
    new = pairs - known.keys()
    if pairs == known.keys():
        return ""
    root = project_root()
    if new and (has_changes(root, "src") or commit(root) == "unknown"):
        return f"{EQUAL_CODE}: not extended, as no commit holds the code below src/; commit it, and call again"
    now = commit(root).removesuffix("-dirty")
    rows = [known.get(pair, Equal(*pair, now)) for pair in sorted(pairs)]
    with replacing(root / EQUAL_CODE) as path, path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([Equal._fields, *rows])
    return f"{EQUAL_CODE}: {counted(len(new), 'digest')} of code noted, {len(known.keys() - pairs)} left out; commit it"
